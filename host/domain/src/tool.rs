//! What a tool declares about itself.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::{Digest, Json, PluginName, Span, ids::InvalidId};

/// Who produces the result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Executor {
    /// The plugin's own function, in the sandbox.
    Server,
    /// A person: the answer is the result.
    Human,
    /// The program at the user's end: a page, a device.
    Client,
    /// The model's provider, inside its own stream.
    Provider,
}

impl Executor {
    /// Every executor, in the order of the matrix.
    pub const ALL: [Self; 4] = [Self::Server, Self::Human, Self::Client, Self::Provider];

    /// The name used in WIT, in JSON and in messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Human => "human",
            Self::Client => "client",
            Self::Provider => "provider",
        }
    }
}

/// Whether a person must approve a call before its result is produced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Approval {
    /// Nobody has to.
    Auto,
    /// Somebody has to.
    RequiresApproval,
}

impl Approval {
    /// Both, in the order of the matrix.
    pub const ALL: [Self; 2] = [Self::Auto, Self::RequiresApproval];

    /// The name used in WIT, in JSON and in messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::RequiresApproval => "requires-approval",
        }
    }
}

/// The name of a tool as models accept it: `^[a-zA-Z0-9_-]{1,64}$`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(Arc<str>);

impl ToolName {
    /// Checks the name and keeps it.
    ///
    /// # Errors
    /// [`InvalidId`] when the name is not of the form above.
    pub fn new(text: &str) -> Result<Self, InvalidId> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if text.is_empty() || text.len() > 64 || !text.bytes().all(allowed) {
            return Err(InvalidId::of("tool name", "1 to 64 of the characters a-z A-Z 0-9 _ -", text));
        }
        Ok(Self(text.into()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The end of a suspension that nobody answered in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnExpiry {
    /// The call ends `expired`; the model reads that nobody responded.
    Error,
    /// The call ends `denied`, as if a person had denied it.
    Deny,
    /// This value is taken as the answer to a question.
    Answer(Json),
    /// The approval is taken as given. Legal only where the operator's configuration allows it for the tool.
    Approve,
}

/// Which arguments an approver may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Editable {
    /// None.
    Nothing,
    /// These members of the arguments object.
    Fields(Arc<[String]>),
    /// All of them.
    All,
}

/// The recovery of a server call whose host was killed while the call ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// It is dispatched again with the same id and idempotency key.
    Retry,
    /// A person decides whether to run it again.
    Ask,
    /// It ends `in_doubt`.
    Fail,
}

/// The harm if a call goes wrong, as the operator or the plugin states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Risk {
    /// Almost none.
    Low,
    /// It can be undone.
    Medium,
    /// It can hardly be undone.
    High,
    /// It must not happen.
    Critical,
}

impl Risk {
    /// From the lowest.
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    /// The name in JSON and in configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

impl FromStr for Risk {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let found = Self::ALL.into_iter().find(|risk| risk.as_str() == text);
        found.ok_or_else(|| InvalidId::of("risk", "low, medium, high or critical", text))
    }
}

/// How long a caller should keep a result in the model's context. The host passes it on and does not act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Drop results that are older than this many turns.
    pub max_age_turns: Option<u32>,
    /// Keep at most this many results of the tool.
    pub max_count: Option<u32>,
    /// Never drop one.
    pub never_evict: bool,
}

/// A tool's hints about its effects, for people and callers. No decision of the host reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// What it changes may be lost.
    pub destructive: Option<bool>,
    /// A second call with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
    /// It deals with a world beyond the host.
    pub open_world: Option<bool>,
}

/// The part of a declaration that may grow within a version of the interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOptions {
    /// A name for people.
    pub title: Option<String>,
    /// JSON Schema of the result.
    pub result: Option<Json>,
    /// The longest a run may take. `None`: the host's default.
    pub timeout: Option<Span>,
    /// The longest time that each wait may take. `None`: the host's default.
    pub expires: Option<Span>,
    /// The end of a wait that nobody answered in time.
    pub on_expiry: OnExpiry,
    /// What people are asked: a template over the arguments.
    pub prompt: Option<String>,
    /// The decisions that a person may choose from when a question is asked.
    pub responses: Option<Arc<[String]>>,
    /// JSON Schema of the data that comes with a decision.
    pub response: Option<Json>,
    /// Which arguments an approver may change.
    pub editable: Editable,
    /// The recovery of a killed run.
    pub recovery: Recovery,
    /// The harm if a call goes wrong, as the plugin states it.
    pub risk: Option<Risk>,
    /// The members of a turn's context that people are shown with a question; `None`: all.
    pub context_keys: Option<Arc<[String]>>,
    /// How long a caller should keep results.
    pub retention: Option<Retention>,
    /// Hints about its effects.
    pub hints: Hints,
}

impl Default for ToolOptions {
    fn default() -> Self {
        Self {
            title: None,
            result: None,
            timeout: None,
            expires: None,
            on_expiry: OnExpiry::Error,
            prompt: None,
            responses: None,
            response: None,
            editable: Editable::Nothing,
            recovery: Recovery::Retry,
            risk: None,
            context_keys: None,
            retention: None,
            hints: Hints::default(),
        }
    }
}

/// A tool of a plugin that was loaded: its declaration, checked, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Its name, unique across the host.
    pub name: ToolName,
    /// For the model.
    pub description: String,
    /// JSON Schema (draft 2020-12) of the arguments, verbatim as declared.
    pub parameters: Json,
    /// Who produces the result.
    pub executor: Executor,
    /// Whether a person must approve first.
    pub approval: Approval,
    /// Whether it reports progress before its result.
    pub streaming: bool,
    /// Everything else.
    pub options: ToolOptions,
    /// The plugin that offers it.
    pub plugin: PluginName,
    /// SHA-256 of the component's bytes.
    pub component: Digest,
    /// SHA-256 of the declaration, so that an approval is bound to what the approver saw.
    pub declaration: Digest,
}
