//! The parts of a host's answers that the commands read. Arguments and results stay JSON text, so that an approver sees every
//! digit of a number.

use serde::Deserialize;
use serde_json::value::RawValue;

/// A turn.
#[derive(Debug, Deserialize)]
pub(crate) struct Turn {
    pub(crate) turn: String,
    pub(crate) conversation: String,
    pub(crate) state: String,
    pub(crate) calls: Vec<Call>,
    #[serde(default)]
    pub(crate) pending: Vec<Suspension>,
    #[serde(default)]
    pub(crate) replayed: bool,
}

impl Turn {
    /// Whether every call has its outcome.
    pub(crate) fn is_settled(&self) -> bool {
        self.state != "open"
    }
}

/// A call.
#[derive(Debug, Deserialize)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) arguments: Box<RawValue>,
    pub(crate) submitted: Option<Box<RawValue>>,
    pub(crate) status: String,
    pub(crate) outcome: Option<String>,
    pub(crate) trusted: Option<bool>,
    pub(crate) content: Option<Box<RawValue>>,
    pub(crate) approver: Option<String>,
    pub(crate) receipt: Option<Receipt>,
}

/// What a call spent.
#[derive(Debug, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) time_us: u64,
    pub(crate) peak_memory_bytes: u64,
    pub(crate) host_calls: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

/// A suspension.
#[derive(Debug, Deserialize)]
pub(crate) struct Suspension {
    pub(crate) suspension: String,
    pub(crate) conversation: String,
    pub(crate) turn: String,
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) plugin: Option<String>,
    pub(crate) kind: String,
    pub(crate) prompt: Option<String>,
    pub(crate) arguments: Box<RawValue>,
    pub(crate) context: Option<Box<RawValue>>,
    pub(crate) caller: String,
    pub(crate) allowed: Vec<String>,
    pub(crate) response_schema: Option<Box<RawValue>>,
    pub(crate) editable: Option<serde_json::Value>,
    pub(crate) expires_at: String,
    pub(crate) on_expiry: Option<serde_json::Value>,
    pub(crate) digest: String,
    pub(crate) in_doubt_attempt: Option<u32>,
    #[serde(default)]
    pub(crate) votes: Vec<Vote>,
    pub(crate) closed: Option<Closed>,
}

/// One approval, where several are needed.
#[derive(Debug, Deserialize)]
pub(crate) struct Vote {
    pub(crate) by: String,
    pub(crate) via: Option<String>,
    pub(crate) arguments: Option<Box<RawValue>>,
}

/// How a suspension ended.
#[derive(Debug, Deserialize)]
pub(crate) struct Closed {
    pub(crate) state: String,
    pub(crate) by: String,
    pub(crate) at: String,
    pub(crate) via: Option<String>,
    pub(crate) arguments: Option<Box<RawValue>>,
    pub(crate) comment: Option<String>,
}

/// A page of suspensions.
#[derive(Debug, Deserialize)]
pub(crate) struct Page {
    pub(crate) suspensions: Vec<Box<RawValue>>,
    pub(crate) next: Option<String>,
}

/// The answer to an answer.
#[derive(Debug, Deserialize)]
pub(crate) struct Resolved {
    #[serde(default)]
    pub(crate) replayed: bool,
}

/// A page of the audit.
#[derive(Debug, Deserialize)]
pub(crate) struct AuditPage {
    pub(crate) entries: Vec<Box<RawValue>>,
    pub(crate) next: Option<u64>,
}

/// An entry of the audit.
#[derive(Debug, Deserialize)]
pub(crate) struct AuditEntry {
    pub(crate) position: u64,
    pub(crate) at: String,
    pub(crate) by: String,
    pub(crate) action: String,
    pub(crate) call: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) component: Option<String>,
    pub(crate) turn: Option<String>,
    pub(crate) conversation: Option<String>,
    pub(crate) suspension: Option<String>,
    pub(crate) answer: Option<String>,
    pub(crate) attempt: Option<u32>,
    pub(crate) outcome: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) edited: Option<Box<RawValue>>,
    pub(crate) comment: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) via: Option<String>,
    pub(crate) webhook: Option<String>,
    pub(crate) until: Option<String>,
    pub(crate) version: Option<String>,
    #[serde(default)]
    pub(crate) tools: Vec<String>,
    #[serde(default)]
    pub(crate) findings: Vec<String>,
    #[serde(default)]
    pub(crate) grants: Vec<String>,
    #[serde(default)]
    pub(crate) revoked: Vec<String>,
}

/// A page of the audit's chain.
#[derive(Debug, Deserialize)]
pub(crate) struct AuditChain {
    pub(crate) links: Vec<AuditLink>,
    pub(crate) next: Option<u64>,
    pub(crate) head: AuditHead,
}

/// A point in the chain.
#[derive(Debug, Deserialize)]
pub(crate) struct AuditHead {
    pub(crate) position: u64,
    pub(crate) hash: String,
}

/// A link of the chain.
#[derive(Debug, Deserialize)]
pub(crate) struct AuditLink {
    pub(crate) position: u64,
    pub(crate) hash: String,
    pub(crate) source: String,
    pub(crate) record: Option<String>,
}

/// The live tools.
#[derive(Debug, Deserialize)]
pub(crate) struct Tools {
    pub(crate) tools: Vec<Tool>,
}

/// A live tool.
#[derive(Debug, Deserialize)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) executor: String,
    pub(crate) approval: String,
    pub(crate) plugin: String,
}
