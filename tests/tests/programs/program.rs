//! Random programs of a durable call, and what people and servers answer them. Both follow from the seed alone, so a kill
//! changes neither.

use domain::suspension::{Decision, Suspension, SuspensionKind};
use serde_json::{Value, json};
use toolgate_tests::effects::Server;
use toolgate_tests::random::Random;

/// Requests to these paths may be sent again, as the operator says.
pub(crate) const IDEMPOTENT: &str = "/sure/";

/// Requests to these paths may not be sent again.
pub(crate) const ONCE: &str = "/once/";

const MAX_OPERATIONS: usize = 14;

/// A program: the operations of the plugin `program`.
pub(crate) struct Program {
    pub(crate) operations: Vec<Value>,
    /// The bodies that the server refuses at first, as often as they are named.
    pub(crate) limited: Vec<String>,
}

impl Program {
    pub(crate) fn new(seed: u64, server: &Server) -> Self {
        let mut random = Random::new(seed);
        let mut limited = Vec::new();
        // Nothing in doubt ends most programs, so that they come to their ends.
        let asks_for_doubt = random.once_in(4);
        let length = 1 + random.below(MAX_OPERATIONS);
        let operations = (0..length).map(|n| operation(n, &mut random, server, asks_for_doubt, &mut limited)).collect();
        Self { operations, limited }
    }

    pub(crate) fn arguments(&self) -> String {
        json!({"program": self.operations}).to_string()
    }
}

fn operation(n: usize, random: &mut Random, server: &Server, may_doubt: bool, limited: &mut Vec<String>) -> Value {
    let key = |kind: &str, random: &mut Random| format!("{kind}{}", random.below(2));
    match random.below(17) {
        0 => json!({"do": "get", "key": key("value", random)}),
        1 => json!({"do": "set", "key": key("value", random), "value": format!("v{n}")}),
        2 => json!({"do": "delete", "key": key("value", random)}),
        3 => json!({"do": "increment", "key": key("count", random), "by": n}),
        4 => json!({"do": "append", "key": key("text", random), "text": format!("{n},")}),
        5 => json!({"do": "keys"}),
        6 | 7 => json!({"do": "send", "method": "GET", "url": server.url("/sure/count"), "body": null}),
        8..11 => {
            let body = format!("p{n}");
            let times = if random.once_in(3) { 1 + random.below(2) } else { 0 };
            limited.extend(std::iter::repeat_n(body.clone(), times));
            let path = if may_doubt && times == 0 && random.once_in(2) { ONCE } else { IDEMPOTENT };
            json!({"do": "send", "method": "POST", "url": server.url(path), "body": body})
        }
        11 => json!({"do": "ask", "prompt": format!("Question {n}?")}),
        12 => json!({"do": "approve", "value": format!("a{n}"), "who": ["role:approver"], "quorum": 1}),
        13 => json!({"do": "await", "signal": format!("signal-{n}")}),
        14 => json!({"do": "sleep", "ms": 1_000 + random.below(100_000)}),
        15 => json!({"do": *random.pick(&["now", "random"])}),
        _ => json!({"do": "log", "line": format!("line {n}")}),
    }
}

/// The answer to a suspension that somebody is asked about: the decision, and the data with it. Every tenth is a denial.
pub(crate) fn answer(seed: u64, open: &Suspension) -> (Decision, Option<Value>) {
    // Steps have the same digest in each run of the same call.
    let digest = open.step.as_ref().expect("a durable call waits in its code").digest;
    let [first, ..] = *digest.as_bytes();
    let drawn = u64::from(first).wrapping_add(seed);
    match open.kind() {
        SuspensionKind::Approval if drawn.is_multiple_of(10) => (Decision::Deny, None),
        SuspensionKind::Approval => (Decision::Approve, None),
        SuspensionKind::Elicitation => (Decision::Answer("answer".into()), Some(json!(drawn))),
        SuspensionKind::External => (Decision::Result, Some(json!(format!("job {drawn}")))),
        other => panic!("nobody answers a suspension of the kind {}", other.as_str()),
    }
}
