//! Steps of durable calls, and nested turns.

use domain::{
    CallId, ConversationId, Event, PluginName, TurnId,
    event::Rejection,
    nested::{NestedCall, NestedTurn, Parent},
    suspension::{ApprovalRequest, Asked, Elicitation, SuspensionBody},
};

use super::{TURN, at, json, principal, suspended_step};

pub(super) fn events() -> Vec<(&'static str, Vec<Event>)> {
    vec![
        (
            "call_suspended_step",
            vec![
                suspended_step(Some("{\"b\": 2}"), SuspensionBody::Approval(ApprovalRequest::new(Asked::default()))),
                suspended_step(None, SuspensionBody::Elicitation(Elicitation::default())),
                suspended_step(None, SuspensionBody::Timer),
            ],
        ),
        ("turn_started_nested", vec![nested_start()]),
        ("call_suspended_nested", vec![suspended_step(None, nested_turn())]),
    ]
}

/// The start of a nested turn.
fn nested_start() -> Event {
    let conversation = ConversationId::new("support:42").unwrap();
    let parent = Parent {
        conversation: conversation.clone(),
        turn: TURN,
        call: CallId::new("toolu_1").unwrap(),
        plugin: PluginName::new("rollout").unwrap(),
        tool: "roll_out".into(),
        depth: 1,
    };
    Event::TurnStarted {
        turn: TurnId::from_bits(TURN.bits() + 1),
        conversation: conversation.of_nested(),
        caller: principal("ann"),
        rejection: Rejection::default(),
        context: None,
        parent: Some(Box::new(parent)),
        at: at(1_732_230_000_000),
    }
}

/// A wait for a nested turn.
fn nested_turn() -> SuspensionBody {
    let call = |tool: &str| NestedCall { tool: tool.into(), arguments: json(r#"{"amount": 5}"#) };
    let calls = [call("ledger_post"), call("ledger_read")].into();
    SuspensionBody::Nested(NestedTurn { turn: TurnId::from_bits(TURN.bits() + 1), calls })
}
