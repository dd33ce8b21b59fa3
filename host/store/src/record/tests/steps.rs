//! Steps of durable calls, and nested turns.

use domain::{
    CallId, ConversationId, Event, PluginName, TurnId,
    doubt::{Doubt, DoubtfulRequest, DoubtfulRequests},
    event::{CallEvent, Rejection},
    nested::{NestedCall, NestedTurn, Parent},
    suspension::{ApprovalRequest, Asked, Elicitation, SuspensionBody},
    tool::Editable,
};

use crate::record::read_events;

use super::{TURN, asked, at, json, principal, suspended, suspended_step};

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
        ("call_suspended_doubt", vec![suspended(requests_in_doubt())]),
        ("turn_started_nested", vec![nested_start()]),
        ("call_suspended_nested", vec![suspended_step(None, nested_turn())]),
    ]
}

/// A question about requests that a kill left in doubt.
fn requests_in_doubt() -> SuspensionBody {
    let request = |entry| DoubtfulRequest { entry, request: "http POST https://api.example.com/".into(), at: at(900) };
    let doubt = Some(Doubt::Requests(DoubtfulRequests::new([request(2), request(5)].into())));
    let asked = asked(Some("Sent?"));
    SuspensionBody::Approval(ApprovalRequest { doubt, editable: Editable::All, ..ApprovalRequest::new(asked) })
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

#[test]
fn external_wait_of_an_older_host_has_no_needs() {
    let golden = include_str!("../../../tests/golden/v8/call_suspended_external.json");
    let asked = r#""asked":{"prompt_by":"plugin","by":"freeze","needs":[{"who":[],"quorum":2}],"policy_failed":true}"#;
    let older = golden.trim_end().replace(r#""step""#, &format!(r#"{asked},"step""#));
    for event in read_events(&[b"\x08", older.as_bytes()].concat()).unwrap() {
        let Event::Call { event: CallEvent::Suspended { suspension }, .. } = event else { panic!("{event:?}") };
        let by = suspension.about().and_then(|about| about.by.as_deref());
        assert_eq!((by, suspension.needs().len(), suspension.asked()), (Some("freeze"), 0, None));
    }
}
