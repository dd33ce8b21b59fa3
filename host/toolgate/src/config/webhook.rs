//! The tables `[[webhook]]`: who outside is told of what waits, and what of it.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dispatch::ports::SuspensionRow;
use domain::{ConversationId, Kind, PrincipalId, Span};
use policy::Pattern;
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;
use webhook::{EventName, Link, Secret, Webhook};

use super::place::Source;
use super::{Config, ConfigError, Parsed, secrets};

/// The most bytes of a webhook's name.
const LONGEST_NAME: usize = 64;

/// A receiver of signed messages about suspensions (standardwebhooks.com).
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookTable {
    /// Its name, of a-z A-Z 0-9 _ -, unique. What is still owed to a name that is taken away is given up.
    pub name: String,
    /// Where it is. Over http only with `private`.
    #[schemars(with = "String")]
    pub url: Parsed<Url>,
    /// The variable of the environment that holds its secret: `whsec_` and base64, or any text of 24 to 256 bytes. Either this
    /// or `secret_file`.
    #[serde(default)]
    pub secret_env: Option<String>,
    /// The file that holds its secret; a line break at its end does not count. Relative to the configuration's file.
    #[serde(default)]
    pub secret_file: Option<PathBuf>,
    /// What it is told of. Default: all of it.
    #[serde(default)]
    pub events: Option<BTreeSet<EventWord>>,
    /// Of which kinds of suspensions. Default: those that ask people, "approval" and "elicitation".
    #[serde(default)]
    pub kinds: Option<BTreeSet<KindWord>>,
    /// Of which tools: `*` stands for any characters, `?` for one. Default: all.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub tools: Option<Parsed<Pattern>>,
    /// Of which conversation. Default: all.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub conversation: Option<Parsed<ConversationId>>,
    /// Whether it is sent the arguments of calls, where they have at most 64 KiB. Default: false.
    #[serde(default)]
    pub arguments: bool,
    /// Whether it may be at an address that is not public: loopback, or the operator's own network. Default: false.
    #[serde(default)]
    pub private: bool,
    /// Sends a one-time link with what is open.
    #[serde(default)]
    pub link: Option<LinkTable>,
}

/// A link that opens exactly one suspension, once. Whoever has it can answer.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkTable {
    /// As whom its holder answers.
    #[schemars(with = "String")]
    pub principal: Parsed<PrincipalId>,
    /// Where people reach the host: the beginning of the link, `https://toolgate.example.com`.
    #[schemars(with = "String")]
    pub base: Parsed<Url>,
    /// How long it can be opened, in milliseconds. Default: 3600000, an hour.
    #[serde(default)]
    pub ttl_ms: Option<NonZeroU64>,
}

/// What a webhook is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventWord {
    /// A suspension began.
    Opened,
    /// A need was not met in time, and others may answer now.
    Escalated,
    /// It ended.
    Closed,
}

/// A kind of suspensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KindWord {
    /// A yes or a no.
    Approval,
    /// A question.
    Elicitation,
    /// The work of a client.
    ClientExec,
}

impl From<EventWord> for EventName {
    fn from(word: EventWord) -> Self {
        match word {
            EventWord::Opened => Self::Opened,
            EventWord::Escalated => Self::Escalated,
            EventWord::Closed => Self::Closed,
        }
    }
}

impl From<KindWord> for Kind {
    fn from(word: KindWord) -> Self {
        match word {
            KindWord::Approval => Self::Approval,
            KindWord::Elicitation => Self::Elicitation,
            KindWord::ClientExec => Self::ClientExec,
        }
    }
}

/// Looks at what one value alone does not show.
pub(super) fn check(webhooks: &[WebhookTable], source: &Source) -> Result<(), ConfigError> {
    let mut names = BTreeSet::new();
    for (position, table) in webhooks.iter().enumerate() {
        let position = position.to_string();
        let fail = |key: &str, message: String, hint: &str| {
            Err(source.error(&["webhook", &position, key], message, Some(hint.to_owned())))
        };
        let name = table.name.as_str();
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(legal) {
            let message = format!("{} is no name of a webhook", text::quoted(name, LONGEST_NAME));
            return fail("name", message, "use 1 to 64 of the characters a-z A-Z 0-9 _ -");
        }
        if !names.insert(name) {
            return fail("name", format!("two webhooks are named {name}"), "rename one of them");
        }
        check_url(&table.url.0, table.private).or_else(|(message, hint)| fail("url", message, hint))?;
        let base = table.link.as_ref().map(|link| &link.base.0);
        if base.is_some_and(|base| !matches!(base.scheme(), "http" | "https") || base.query().is_some()) {
            let message = "a link begins with http:// or https:// and a host".to_owned();
            return fail("link", message, "write `base = \"https://toolgate.example.com\"`");
        }
        match (&table.secret_env, &table.secret_file) {
            (Some(_), Some(_)) => {
                return fail("secret_env", "a secret has one source, not both".into(), "remove one of the two");
            }
            (None, None) => {
                let message = format!("nothing says where the secret of the webhook {name} comes from");
                let hint = "write `secret_env = \"VARIABLE\"` or `secret_file = \"PATH\"`; its value has no place in this file";
                return fail("name", message, hint);
            }
            (Some(variable), None) if variable.is_empty() || variable.contains(['=', '\0']) => {
                let message = format!("{variable:?} is no variable of the environment");
                return fail("secret_env", message, "write its name alone");
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_url(url: &Url, private: bool) -> Result<(), (String, &'static str)> {
    match url.scheme() {
        "https" => {}
        "http" if private => {}
        "http" => {
            let hint = "use https; or write `private = true` for a receiver in your own network";
            return Err(("over http anybody on the way reads what is sent".to_owned(), hint));
        }
        scheme => return Err((format!("a webhook is reached over https, not over {scheme}"), "correct the URL")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        let hint = "the signature says who sends; take the name and the password out";
        return Err(("the URL holds a name or a password".to_owned(), hint));
    }
    Ok(())
}

impl Config {
    /// The webhooks, with their secrets looked up in the environment and in files.
    ///
    /// # Errors
    /// [`ConfigError`], which names the secret that is missing or is none, and shows no value.
    pub fn webhooks(&self) -> Result<Vec<Webhook>, ConfigError> {
        let made = self.webhook.iter().enumerate().map(|(position, table)| {
            let secret = secret(table, self.source.beside()).map_err(|why| {
                let key = if table.secret_env.is_some() { "secret_env" } else { "secret_file" };
                let message = format!("the secret of the webhook {}: {why}", table.name);
                let hint = "the host starts only with every secret that it needs".to_owned();
                self.source.error(&["webhook", &position.to_string(), key], message, Some(hint))
            })?;
            Ok(table.webhook(secret))
        });
        made.collect()
    }
}

#[cfg(not(feature = "server"))]
impl Config {
    /// Refuses webhooks that send links: a link leads to the HTTP API, which this program was built without.
    ///
    /// # Errors
    /// [`ConfigError`], which names the first such webhook.
    pub(crate) fn refuse_links(&self) -> Result<(), ConfigError> {
        let Some(position) = self.webhook.iter().position(|table| table.link.is_some()) else { return Ok(()) };
        let message = "this program has no HTTP server, so nobody could open a link".to_owned();
        let hint = "remove `link`, or build the crate toolgate with the feature `server`".to_owned();
        Err(self.source.error(&["webhook", &position.to_string(), "link"], message, Some(hint)))
    }
}

fn secret(table: &WebhookTable, beside: &Path) -> Result<Secret, String> {
    let text = match (&table.secret_env, &table.secret_file) {
        (Some(variable), _) => secrets::variable_of(variable)?,
        (None, Some(file)) => secrets::file_of(&beside.join(file))?,
        (None, None) => return Err("it has no source".to_owned()),
    };
    Secret::new(&text).map_err(|error| error.to_string())
}

impl WebhookTable {
    fn webhook(&self, secret: Secret) -> Webhook {
        let events = self.events.as_ref().map(|words| words.iter().map(|word| (*word).into()).collect());
        let hour = NonZeroU64::new(3_600_000);
        let link = |table: &LinkTable| Link {
            principal: table.principal.0.clone(),
            ttl: Span::from_millis(table.ttl_ms.or(hour).map_or(0, NonZeroU64::get)),
            base: table.base.0.clone(),
        };
        Webhook {
            name: self.name.clone(),
            url: self.url.0.clone(),
            secret,
            events: events.unwrap_or_else(|| EventName::ALL.into()),
            wants: self.wants(),
            arguments: self.arguments,
            private: self.private,
            link: self.link.as_ref().map(link),
        }
    }

    fn wants(&self) -> Arc<dyn Fn(&SuspensionRow) -> bool + Send + Sync> {
        let asking = || [KindWord::Approval, KindWord::Elicitation].into();
        let kinds: Vec<Kind> = self.kinds.clone().unwrap_or_else(asking).into_iter().map(Kind::from).collect();
        let (tools, conversation) = (self.tools.clone(), self.conversation.clone());
        Arc::new(move |row| {
            kinds.contains(&row.kind)
                && tools.as_ref().is_none_or(|tools| tools.0.matches(&row.tool))
                && conversation.as_ref().is_none_or(|conversation| conversation.0 == row.conversation)
        })
    }
}
