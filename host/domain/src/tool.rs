//! A tool's declaration.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::{Digest, Json, PluginName, Span, ids::InvalidId};

crate::names! {
    /// The party that produces the result of a call.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Executor {
        /// The plugin's function, in the sandbox.
        Server = "server",
        /// A person. The answer is the result.
        Human = "human",
        /// The user's program, such as a web page or a device.
        Client = "client",
        /// The model's provider, in its own stream.
        Provider = "provider",
    }
}

crate::names! {
    /// Whether a person must approve a call before its result is produced.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Approval {
        Auto = "auto",
        RequiresApproval = "requires-approval",
    }
}

/// The name of a tool. It matches `^[a-zA-Z0-9_-]{1,64}$`, which models accept.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(Arc<str>);

impl ToolName {
    /// Checks the name.
    ///
    /// # Errors
    /// [`InvalidId`] if the name does not match the pattern.
    pub fn new(text: &str) -> Result<Self, InvalidId> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if text.is_empty() || text.len() > 64 || !text.bytes().all(allowed) {
            return Err(InvalidId::of("tool name", "1 to 64 of the characters a-z A-Z 0-9 _ -", text));
        }
        Ok(Self(text.into()))
    }

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

/// The effect on a call when nobody answers its suspension in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnExpiry {
    /// The call ends as `expired`. The model reads that nobody responded.
    Error,
    /// The call ends as `denied`, as if a person had denied it.
    Deny,
    /// This value becomes the answer to the question.
    Answer(Json),
    /// The call is approved. The operator's configuration must allow this for the tool.
    Approve,
}

/// The arguments that an approver can change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Editable {
    Nothing,
    /// These members of the arguments.
    Fields(Arc<[String]>),
    All,
}

impl Editable {
    /// The bytes of the names.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Fields(names) => names.iter().map(String::len).sum(),
            Self::Nothing | Self::All => 0,
        }
    }

    /// Checks an edit of these members. `None`: it changes something other than members.
    ///
    /// # Errors
    /// The members that may be edited.
    pub fn check(&self, edited: Option<&[String]>) -> Result<(), String> {
        match (self, edited) {
            (Self::All, _) => Ok(()),
            (Self::Fields(fields), Some(edited)) if edited.iter().all(|field| fields.contains(field)) => Ok(()),
            (Self::Fields(fields), _) => Err(format!("only these may be edited: {}", fields.join(", "))),
            (Self::Nothing, _) => Err("the arguments of this call cannot be edited".into()),
        }
    }
}

/// The recovery of a server call that was running when its host was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// The host runs it again with the same id and idempotency key.
    Retry,
    /// A person decides whether to run it again.
    Ask,
    /// It ends as `in_doubt`.
    Fail,
}

crate::names! {
    /// The harm that a wrong call can do, as stated by the operator or the plugin.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Risk {
        /// The call does almost no harm.
        Low = "low",
        /// The harm can be undone.
        Medium = "medium",
        /// The harm can hardly be undone.
        High = "high",
        /// The harm must not happen.
        Critical = "critical",
    }
}

impl FromStr for Risk {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Self::named(text).ok_or_else(|| InvalidId::of("risk", "low, medium, high or critical", text))
    }
}

/// How long a caller should keep a result in the model's context, and how long the host needs the turn. The host publishes
/// the first and does not act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// The caller should drop results that are older than this number of turns.
    pub max_age_turns: Option<u32>,
    /// The caller should keep at most this number of the tool's results.
    pub max_count: Option<u32>,
    /// The caller should never drop a result.
    pub never_evict: bool,
    /// The host can remove an ended turn with a call of the tool after this number of days, if its operator allows that.
    pub max_age_days: Option<u32>,
}

/// A tool's hints about its effects, for people and callers. The host bases no decision on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// The tool changes nothing.
    pub read_only: Option<bool>,
    /// The tool can destroy data.
    pub destructive: Option<bool>,
    /// A second call with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
    /// The tool interacts with systems outside the host.
    pub open_world: Option<bool>,
}

/// The optional part of a declaration. A later release of the same interface version can add fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOptions {
    /// The tool's name for people.
    pub title: Option<String>,
    /// The JSON Schema of the result.
    pub result: Option<Json>,
    /// The time limit of a run. `None`: the host's default.
    pub timeout: Option<Span>,
    /// The time limit of each suspension. `None`: the host's default.
    pub expires: Option<Span>,
    pub on_expiry: OnExpiry,
    /// The text of the question to people: a template over the arguments.
    pub prompt: Option<String>,
    /// The responses to a question that a person can choose from.
    pub responses: Option<Arc<[String]>>,
    /// The JSON Schema of the data in a response.
    pub response: Option<Json>,
    pub editable: Editable,
    /// Whether a call may wait in the middle of its code.
    pub durable: bool,
    pub recovery: Recovery,
    /// The harm that a wrong call can do, as stated by the plugin.
    pub risk: Option<Risk>,
    /// The members of the turn's context that people see with a question. `None`: all of them.
    pub context_keys: Option<Arc<[String]>>,
    pub retention: Option<Retention>,
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
            durable: false,
            recovery: Recovery::Retry,
            risk: None,
            context_keys: None,
            retention: None,
            hints: Hints::default(),
        }
    }
}

/// A tool of a loaded plugin: its checked declaration and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// The name is unique in the host.
    pub name: ToolName,
    /// The description for the model.
    pub description: String,
    /// The JSON Schema of the arguments, verbatim.
    pub parameters: Json,
    pub executor: Executor,
    pub approval: Approval,
    /// Whether the tool reports progress before its result.
    pub streaming: bool,
    pub options: ToolOptions,
    pub plugin: PluginName,
    /// The SHA-256 digest of the component.
    pub component: Digest,
    /// The SHA-256 digest of the declaration. It binds an approval to the declaration that the approver saw.
    pub declaration: Digest,
}
