//! Who decides that a person is needed, beyond what tools declare.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{ConversationId, Json, PrincipalId, Verdict};

use super::LiveTool;

/// The operator's rules and policies.
///
/// Asked once for each call when it is submitted, again for arguments that an approver edits, again before silence approves one, and
/// again before a call runs that has waited. An implementation that cannot tell asks a person: it never panics and never hangs.
#[async_trait]
pub trait Policy: Send + Sync {
    /// What is required of a call.
    async fn judge(&self, question: Question) -> Verdict;
}

/// A call to be judged. Its arguments fit the tool's schema.
#[derive(Clone)]
pub struct Question {
    /// The tool.
    pub live: Arc<LiveTool>,
    /// Who calls it.
    pub caller: PrincipalId,
    /// In which conversation.
    pub conversation: ConversationId,
    /// What the caller passed along with the turn: a JSON object.
    pub context: Option<Json>,
    /// The arguments.
    pub arguments: Json,
}

/// The policy of a host without any: tools are what they declare.
#[derive(Debug, Clone, Copy, Default)]
pub struct AsDeclared;

#[async_trait]
impl Policy for AsDeclared {
    async fn judge(&self, question: Question) -> Verdict {
        Verdict { rule: question.live.rule, ..Verdict::default() }
    }
}
