//! Requests to the loop, with the members that most tests leave out.

use dispatch::ports::End;
use dispatch::{Answer, CallRequest, TurnRequest};
use domain::{
    CallId, ConversationId, Json, Outcome, Principal, PrincipalId, SuspensionId, event::Rejection, principal::Role,
    suspension::Decision,
};

/// A principal with this role.
///
/// # Panics
/// When the name is illegal.
#[must_use]
pub fn principal(name: &str, role: Role) -> Principal {
    Principal::new(PrincipalId::new(name).expect("a legal name"), [role])
}

/// A conversation.
///
/// # Panics
/// When the name is illegal.
#[must_use]
pub fn conversation(name: &str) -> ConversationId {
    ConversationId::new(name).expect("a legal name")
}

/// A call of a tool with these arguments.
///
/// # Panics
/// When the id is illegal.
#[must_use]
pub fn call(id: &str, tool: &str, arguments: impl Into<Box<str>>) -> CallRequest {
    CallRequest {
        id: CallId::new(id).expect("a legal id"),
        tool: tool.into(),
        arguments: Json::unchecked(arguments),
        result: None,
        origin: None,
    }
}

/// A stored turn with these calls, without a context.
///
/// # Panics
/// When the name of the conversation is illegal.
#[must_use]
pub fn turn(of: &str, calls: impl IntoIterator<Item = CallRequest>) -> TurnRequest {
    TurnRequest {
        conversation: conversation(of),
        calls: calls.into_iter().collect(),
        context: None,
        rejection: Rejection::default(),
        ephemeral: false,
    }
}

/// A decision without anything else.
#[must_use]
pub fn answer(suspension: SuspensionId, decision: impl Into<Decision>) -> Answer {
    Answer {
        suspension,
        decision: decision.into(),
        data: None,
        arguments: None,
        comment: None,
        expect_digest: None,
        standing: None,
    }
}

/// The end of a run with an empty object as its result.
#[must_use]
pub fn done() -> End {
    End::unrun(Outcome::Ok { value: Json::unchecked("{}"), trusted: true }.into())
}
