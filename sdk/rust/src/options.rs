//! The options of a tool: the JSON object that the interface calls `options`.

use serde_json::{Map, Value, json};

use crate::policy::Risk;
use crate::schema::SchemaOf;

/// The outcome of an approval that nobody answers in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExpiry {
    /// The call ends `expired`. The default.
    Error,
    /// The call ends `denied`.
    Deny,
    /// The call runs, if the operator allows that for the tool.
    Approve,
}

/// How the host continues a call that was running when the host was killed. A call of a durable tool always continues after its
/// last step. There, it is what the host does about an HTTP request that was begun, whose answer was lost, and whose grant does
/// not say `idempotent`; the default is [`Recovery::Fail`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// It dispatches the call again with the same idempotency key. The default, except for a durable tool.
    Retry,
    /// It asks a person.
    Ask,
    /// It ends the call `in_doubt`.
    Fail,
}

/// The arguments that an approver may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Editable {
    All,
    Fields(&'static [&'static str]),
}

/// The outcome of an expired wait: for an approval, or for a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expiry {
    Approval(OnExpiry),
    Answer(Value),
}

/// How long a result is useful in a model's context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Retention {
    pub(crate) max_age_turns: Option<u32>,
    pub(crate) max_count: Option<u32>,
    pub(crate) max_age_days: Option<u32>,
    pub(crate) never_evict: bool,
}

/// The effects of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) open_world: Option<bool>,
}

/// All options. Those that are `None` are absent in the JSON.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    pub(crate) title: Option<&'static str>,
    pub(crate) result: Option<SchemaOf>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) expires_ms: Option<u64>,
    pub(crate) on_expiry: Option<Expiry>,
    pub(crate) prompt: Option<&'static str>,
    pub(crate) responses: Option<&'static [&'static str]>,
    pub(crate) response: Option<SchemaOf>,
    pub(crate) editable: Option<Editable>,
    pub(crate) risk: Option<Risk>,
    pub(crate) context_keys: Option<&'static [&'static str]>,
    pub(crate) durable: bool,
    pub(crate) recovery: Option<Recovery>,
    pub(crate) retention: Retention,
    pub(crate) hints: Hints,
}

impl Options {
    /// The JSON form that `plugin.wit` defines.
    pub(crate) fn to_json(&self) -> Value {
        let mut object = Map::new();
        put(&mut object, "title", self.title);
        put(&mut object, "result", self.result.map(|schema| schema()));
        put(&mut object, "timeout_ms", self.timeout_ms);
        put(&mut object, "expires_ms", self.expires_ms);
        put(&mut object, "on_expiry", self.on_expiry.as_ref().map(Expiry::to_json));
        put(&mut object, "prompt", self.prompt);
        put(&mut object, "responses", self.responses.map(|responses| json!(responses)));
        put(&mut object, "response", self.response.map(|schema| schema()));
        put(&mut object, "editable", self.editable.map(Editable::to_json));
        put(&mut object, "risk", self.risk.map(Risk::as_str));
        put(&mut object, "context_keys", self.context_keys.map(|keys| json!(keys)));
        put(&mut object, "durable", self.durable.then_some(true));
        put(&mut object, "recovery", self.recovery.map(Recovery::as_str));
        put_object(&mut object, "retention", self.retention.members());
        put_object(&mut object, "hints", self.hints.members());
        Value::Object(object)
    }
}

fn put(object: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value.into());
    }
}

fn put_object(object: &mut Map<String, Value>, key: &str, members: Map<String, Value>) {
    if !members.is_empty() {
        object.insert(key.to_owned(), Value::Object(members));
    }
}

impl Expiry {
    fn to_json(&self) -> Value {
        match self {
            Self::Approval(OnExpiry::Error) => json!("error"),
            Self::Approval(OnExpiry::Deny) => json!("deny"),
            Self::Approval(OnExpiry::Approve) => json!("approve"),
            Self::Answer(value) => json!({ "answer": value }),
        }
    }
}

impl Editable {
    pub(crate) fn to_json(self) -> Value {
        match self {
            Self::All => json!("all"),
            Self::Fields(names) => json!(names),
        }
    }
}

impl Recovery {
    fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Ask => "ask",
            Self::Fail => "fail",
        }
    }
}

impl Retention {
    fn members(self) -> Map<String, Value> {
        let mut members = Map::new();
        put(&mut members, "max_age_turns", self.max_age_turns);
        put(&mut members, "max_count", self.max_count);
        put(&mut members, "max_age_days", self.max_age_days);
        put(&mut members, "never_evict", self.never_evict.then_some(true));
        members
    }
}

impl Hints {
    fn members(self) -> Map<String, Value> {
        let mut members = Map::new();
        put(&mut members, "read_only", self.read_only);
        put(&mut members, "destructive", self.destructive);
        put(&mut members, "idempotent", self.idempotent);
        put(&mut members, "open_world", self.open_world);
        members
    }
}
