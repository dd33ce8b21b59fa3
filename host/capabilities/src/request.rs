//! The part of a capability that concerns its grants: how an operator writes one, how a plugin requests one, and their
//! intersection.

use std::path::Path;

use domain::doubt::DoubtfulRequests;
use domain::step::Durable;

use crate::words::ValueName;

/// The maximum number of requests of one kind.
pub const MAX_REQUESTS: usize = 64;

/// The maximum number of characters of a reason.
pub const MAX_WHY: usize = 500;

/// A request in a plugin's manifest. It also has a field `why`. Its form in a manifest is what serde makes of it.
pub trait GrantRequest: Sized {
    /// All requests of a manifest: `Option<Self>` or `Vec<Self>`.
    type All: Default;
    /// The access of a call. The default grants nothing.
    type Granted: Clone + Default + PartialEq;
    /// The grant in `toolgate.toml`. The default is nothing.
    type Table: Default;
    /// Values that the host gets when it starts, such as those of secrets. `()` if it needs nothing.
    type Opened: Default;

    /// Whether a call with a grant can be replayed from the results of its host functions.
    const IS_REPLAYABLE: bool;

    /// The requests of an interrupted run that a person must decide about before the call can go on.
    fn doubtful_requests(_granted: &Self::Granted, _durable: &Durable) -> Option<DoubtfulRequests> {
        None
    }

    /// Whether a call with these grants can reach a system outside the host.
    fn reaches_outside(granted: &Self::Granted) -> bool;

    /// Whether a call with these grants can change something that outlasts the call.
    fn may_change(granted: &Self::Granted) -> bool;

    /// A line of `[plugin.NAME]` that grants it to a component without a manifest.
    const EXAMPLE: Option<&'static str>;

    /// The request, in the host's words.
    fn words(&self) -> String;

    /// The name under which the plugin finds what it requests. No other request of a manifest has it.
    fn name(&self) -> Option<String> {
        None
    }

    /// Checks what no type of its fields checks.
    ///
    /// # Errors
    /// The first fault.
    fn check(&self) -> Result<(), InvalidManifest> {
        Ok(())
    }

    /// Why no grant can give it. `None` if one can.
    fn refusal(&self) -> Option<String> {
        None
    }

    /// The lines of `[plugin.NAME]` that grant the requests. Values that only the operator knows are placeholders.
    fn lines(requests: &[Self]) -> Vec<String>;

    /// Grants for a trial run in which nothing leaves the process: at least what is requested, or common grants without
    /// a manifest.
    fn made_up(requests: Option<&[Self]>) -> Self::Granted;

    /// The intersection of the grants and the requests.
    fn intersection(granted: &Self::Granted, requests: &[Self]) -> Self::Granted;

    /// Whether everything that is requested is granted.
    fn is_covered(&self, granted: &Self::Granted) -> bool;

    /// Each single grant, and its text for people. The text shows no secret, and of a configuration value what `shown`
    /// makes of it.
    fn each(granted: &Self::Granted, shown: fn(&str) -> String) -> Vec<(Self::Granted, String)>;

    /// The grants of a table. Paths are relative to `beside`.
    fn granted(table: &Self::Table, beside: &Path, opened: &Self::Opened) -> Self::Granted;

    /// Checks what no type of the table's fields checks.
    ///
    /// # Errors
    /// The first fault. Its keys begin below the key of the table.
    fn check_table(_table: &Self::Table) -> Result<(), InvalidGrant> {
        Ok(())
    }

    /// Adds what is requested and not granted yet.
    fn add_to(&self, table: &mut Self::Table);
}

/// Why a manifest is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidManifest {
    #[error("{0} has no `why`; add the reason, which the operator reads")]
    NoWhy(String),
    #[error("the `why` of {0} has more than {MAX_WHY} characters")]
    LongWhy(String),
    /// Too many requests of one kind.
    #[error("it requests more than {MAX_REQUESTS} of one kind: {0}")]
    TooMany(&'static str),
    /// The same request twice.
    #[error("it requests {0} twice; remove one of the requests")]
    Twice(String),
    /// A secret that could never be sent.
    #[error("the request for the secret `{0}` names no host or no place in a request")]
    Nowhere(ValueName),
}

/// Why a grant in `toolgate.toml` is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidGrant {
    /// Where it is, from the outermost key.
    pub keys: Vec<String>,
    pub message: String,
    /// What to do.
    pub hint: &'static str,
}

impl InvalidGrant {
    pub(crate) fn at<const N: usize>(keys: [String; N], message: String, hint: &'static str) -> Self {
        Self { keys: keys.into(), message, hint }
    }
}

/// A TOML string. The texts that come here consist of visible ASCII characters.
pub(crate) fn string(text: &impl ToString) -> String {
    format!("\"{}\"", text.to_string().replace('\\', "\\\\").replace('"', "\\\""))
}

pub(crate) fn strings<'a, T: ToString + 'a>(texts: impl IntoIterator<Item = &'a T>) -> String {
    texts.into_iter().map(string).collect::<Vec<_>>().join(", ")
}

/// The line with a list of grants, unless it is empty.
pub(crate) fn listing<R>(key: &str, requests: &[R], inline: fn(&R) -> String) -> Vec<String> {
    let grants = requests.iter().map(inline).collect::<Vec<_>>().join(", ");
    if grants.is_empty() { Vec::new() } else { vec![format!("grants.{key} = [{grants}]")] }
}

/// A TOML key, quoted if necessary.
pub(crate) fn key(name: &str) -> String {
    if name.contains('.') { format!("\"{name}\"") } else { name.to_owned() }
}

/// Whether serde leaves a field out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
