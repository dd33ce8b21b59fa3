//! The tables `[[webhook]]`: receivers of messages about suspensions and turns.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dispatch::ports::SuspensionRow;
use domain::{ConversationId, PrincipalId, Span, Turn, suspension::SuspensionKind};
use policy::Pattern;
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;
use webhook::{LinkSettings, SigningSecret, Webhook, WebhookEvent};

use super::source::Source;
use super::{Config, ConfigError, Parsed, secrets};

/// The maximal length of a webhook's name, in bytes.
const MAX_NAME: usize = 64;

/// A receiver of signed messages about suspensions and turns (standardwebhooks.com).
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookTable {
    /// Its unique name, of a-z A-Z 0-9 _ -. If the name is removed, its undelivered messages are dropped.
    pub name: String,
    /// Its URL. http needs `private`.
    #[schemars(with = "String")]
    pub url: Parsed<Url>,
    /// The environment variable with its secret: `whsec_` and base64, or any text of 24 to 256 bytes. Either this or
    /// `secret_file`.
    #[serde(default)]
    pub secret_env: Option<String>,
    /// The file with its secret, relative to the configuration. A line break at its end is ignored.
    #[serde(default)]
    pub secret_file: Option<PathBuf>,
    /// The events that it receives. Default: "opened", "escalated" and "closed", those of suspensions.
    #[serde(default)]
    pub events: Option<BTreeSet<EventWord>>,
    /// The kinds of suspensions. Default: "approval" and "elicitation", which ask people.
    #[serde(default)]
    pub kinds: Option<BTreeSet<KindWord>>,
    /// The tools: a pattern in which `*` matches any characters and `?` matches one. A turn counts if one of its calls
    /// does. Default: all.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub tools: Option<Parsed<Pattern>>,
    /// The conversation. Default: all.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub conversation: Option<Parsed<ConversationId>>,
    /// Whether messages contain the arguments of calls, up to 64 KiB. Default: false.
    #[serde(default)]
    pub arguments: bool,
    /// Whether its address can be private: loopback, or a private network. Default: false.
    #[serde(default)]
    pub private: bool,
    /// Adds a one-time link to messages about open suspensions.
    #[serde(default)]
    pub link: Option<LinkTable>,
}

/// A link that opens one suspension, once. Everyone who has the link can answer.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkTable {
    /// The principal under which the holder of the link answers.
    #[schemars(with = "String")]
    pub principal: Parsed<PrincipalId>,
    /// The beginning of the link: the URL of the host, such as `https://toolgate.example.com`.
    #[schemars(with = "String")]
    pub base: Parsed<Url>,
    /// How long the link is valid, in milliseconds. Default: 3600000, an hour.
    #[serde(default)]
    pub ttl_ms: Option<NonZeroU64>,
}

/// An event that a webhook receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventWord {
    /// A suspension was opened.
    Opened,
    /// An approval was late, and more people can answer now.
    Escalated,
    /// A suspension was closed.
    Closed,
    /// Every call of a turn has its outcome.
    #[serde(rename = "turn.settled")]
    TurnSettled,
}

/// A kind of suspension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KindWord {
    /// An approval.
    Approval,
    /// A question.
    Elicitation,
    /// A call that a client runs.
    ClientExec,
    /// A wait for an external system.
    External,
}

impl From<EventWord> for WebhookEvent {
    fn from(word: EventWord) -> Self {
        match word {
            EventWord::Opened => Self::Opened,
            EventWord::Escalated => Self::Escalated,
            EventWord::Closed => Self::Closed,
            EventWord::TurnSettled => Self::TurnSettled,
        }
    }
}

impl From<KindWord> for SuspensionKind {
    fn from(word: KindWord) -> Self {
        match word {
            KindWord::Approval => Self::Approval,
            KindWord::Elicitation => Self::Elicitation,
            KindWord::ClientExec => Self::ClientExec,
            KindWord::External => Self::External,
        }
    }
}

/// Checks the tables for contradictions.
pub(super) fn check(webhooks: &[WebhookTable], source: &Source) -> Result<(), ConfigError> {
    let mut names = BTreeSet::new();
    for (position, table) in webhooks.iter().enumerate() {
        let position = position.to_string();
        let fail = |key: &str, message: String, hint: &str| {
            Err(source.error(&["webhook", &position, key], message, Some(hint.to_owned())))
        };
        let name = table.name.as_str();
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(legal) {
            let message = format!("{} is not a name for a webhook", escape::quoted(name, MAX_NAME));
            return fail("name", message, "use 1 to 64 of the characters a-z A-Z 0-9 _ -");
        }
        if !names.insert(name) {
            return fail("name", format!("two webhooks are named {name}"), "rename one of them");
        }
        check_url(&table.url.0, table.private).or_else(|(message, hint)| fail("url", message, hint))?;
        let base = table.link.as_ref().map(|link| &link.base.0);
        if base.is_some_and(|base| !matches!(base.scheme(), "http" | "https") || base.query().is_some()) {
            let message = "the base of a link begins with http:// or https:// and a host, and has no query".to_owned();
            return fail("link", message, "write `base = \"https://toolgate.example.com\"`");
        }
        match (&table.secret_env, &table.secret_file) {
            (Some(_), Some(_)) => {
                return fail("secret_env", "the secret has two sources".into(), "remove one of the two");
            }
            (None, None) => {
                let message = format!("the secret of the webhook {name} has no source");
                let hint =
                    "write `secret_env = \"VARIABLE\"` or `secret_file = \"PATH\"`; this file cannot contain the value";
                return fail("name", message, hint);
            }
            (Some(variable), None) if variable.is_empty() || variable.contains(['=', '\0']) => {
                let message = format!("{variable:?} is not an environment variable");
                return fail("secret_env", message, "write only its name");
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
            let hint = "use https, or write `private = true` for a receiver in your own network";
            return Err(("http does not encrypt the messages".to_owned(), hint));
        }
        scheme => return Err((format!("a webhook needs https, not {scheme}"), "correct the URL")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        let hint = "remove the name and the password; the signature authenticates the host";
        return Err(("the URL contains a name or a password".to_owned(), hint));
    }
    Ok(())
}

impl Config {
    /// The webhooks, with their secrets from the environment and from files.
    ///
    /// # Errors
    /// [`ConfigError`], which names the missing or invalid secret and shows no value.
    pub fn webhooks(&self) -> Result<Vec<Webhook>, ConfigError> {
        let made = self.webhook.iter().enumerate().map(|(position, table)| {
            let secret = secret(table, self.source.beside()).map_err(|why| {
                let key = if table.secret_env.is_some() { "secret_env" } else { "secret_file" };
                let message = format!("the secret of the webhook {}: {why}", table.name);
                let hint = "the host starts only if every secret is available".to_owned();
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

fn secret(table: &WebhookTable, beside: &Path) -> Result<SigningSecret, String> {
    let text = secrets::read(table.secret_env.as_deref(), table.secret_file.as_ref(), beside)?;
    SigningSecret::new(&text).map_err(|error| error.to_string())
}

impl WebhookTable {
    fn webhook(&self, secret: SigningSecret) -> Webhook {
        let events = self.events.as_ref().map(|words| words.iter().map(|word| (*word).into()).collect());
        let hour = NonZeroU64::new(3_600_000);
        let link = |table: &LinkTable| LinkSettings {
            principal: table.principal.0.clone(),
            ttl: Span::from_millis(table.ttl_ms.or(hour).map_or(0, NonZeroU64::get)),
            base: table.base.0.clone(),
        };
        Webhook {
            name: self.name.clone(),
            url: self.url.0.clone(),
            secret,
            events: events.unwrap_or_else(|| WebhookEvent::OF_SUSPENSIONS.into()),
            reports: self.reports(),
            reports_turn: self.reports_turn(),
            arguments: self.arguments,
            private: self.private,
            link: self.link.as_ref().map(link),
        }
    }

    fn reports(&self) -> Arc<dyn Fn(&SuspensionRow) -> bool + Send + Sync> {
        let default = || [KindWord::Approval, KindWord::Elicitation].into();
        let kinds: Vec<SuspensionKind> =
            self.kinds.clone().unwrap_or_else(default).into_iter().map(SuspensionKind::from).collect();
        let (tools, conversation) = (self.tools.clone(), self.conversation.clone());
        Arc::new(move |row| {
            kinds.contains(&row.kind)
                && tools.as_ref().is_none_or(|tools| tools.0.matches(&row.tool))
                && conversation.as_ref().is_none_or(|conversation| conversation.0.is_with(&row.conversation))
        })
    }

    /// `kinds` does not matter: it is about suspensions.
    fn reports_turn(&self) -> Arc<dyn Fn(&Turn) -> bool + Send + Sync> {
        let (tools, conversation) = (self.tools.clone(), self.conversation.clone());
        Arc::new(move |turn| {
            tools.as_ref().is_none_or(|tools| turn.calls.iter().any(|call| tools.0.matches(&call.tool)))
                && conversation.as_ref().is_none_or(|conversation| conversation.0 == turn.conversation)
        })
    }
}
