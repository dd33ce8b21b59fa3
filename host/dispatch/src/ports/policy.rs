//! The port that decides whether a call may run, and whether a person is asked, beyond what tools declare.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{ConversationId, Json, PrincipalId, gate::Verdict, nested::Parent, step::StepKind};

use super::KnownTool;

/// The operator's rules and policies.
///
/// Asked once for each call when it is submitted, again for arguments that an approver edits, again before a timeout
/// approves a call, and again before a call runs that has waited. Asked about each step of a durable call, too. If an
/// implementation cannot decide, it asks a person. It never panics and never hangs.
#[async_trait]
pub trait Policy: Send + Sync {
    /// The verdict on a call.
    async fn decide(&self, question: PolicyQuery) -> Verdict;
}

/// A call that the policy decides about. Its arguments fit the tool's schema.
#[derive(Clone)]
pub struct PolicyQuery {
    pub known: Arc<KnownTool>,
    pub caller: PrincipalId,
    /// The caller's conversation, also for a call of a nested turn.
    pub conversation: ConversationId,
    /// The call that submits this one in a nested turn. `None`: the caller submits it.
    pub via: Option<Box<Parent>>,
    /// The context that the caller passed with the turn: a JSON object.
    pub context: Option<Json>,
    pub arguments: Json,
    /// The step that the call comes to. `None`: the question is about the whole call.
    pub step: Option<StepKind>,
}

/// The policy of a host that has none: tools are what they declare.
#[derive(Debug, Clone, Copy, Default)]
pub struct AsDeclared;

#[async_trait]
impl Policy for AsDeclared {
    async fn decide(&self, question: PolicyQuery) -> Verdict {
        Verdict { rule: question.known.effect, ..Verdict::default() }
    }
}
