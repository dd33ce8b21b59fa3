//! The steps of durable calls: waits in the middle of their code.

use serde_json::Value;

use crate::host::Host;
use crate::http::{Client, path};

/// The open step of a turn, once it has one from this number on.
///
/// # Panics
/// When the turn ends instead.
#[must_use]
pub fn waiting(host: &Host, turn: &Value, step: u64) -> Value {
    open_step(&host.agent, turn, step)
}

/// As [`waiting`], as this client sees it.
///
/// # Panics
/// When the turn ends instead.
#[must_use]
pub fn open_step(client: &Client, turn: &Value, step: u64) -> Value {
    client.until(&path(turn), |answer| {
        let turn: Value = serde_json::from_str(&answer.text).expect("a turn is JSON");
        assert_eq!(turn["state"], "open", "{turn:#}");
        let pending = turn["pending"].as_array().expect("a turn lists what waits");
        pending.iter().find(|open| open["step"].as_u64() >= Some(step)).cloned()
    })
}

/// A call that waits for a person, in the nested turn of the first call of this turn.
///
/// # Panics
/// When no call of it waits.
#[must_use]
pub fn nested(host: &Host, turn: &Value) -> Value {
    let nested = host.agent.until(&path(turn), |answer| {
        let nested = answer.json()["calls"][0]["nested"][0].clone();
        (nested["open"] == true).then_some(nested)
    });
    // The turn is submitted after the call waits for it.
    host.agent.until(&path(&nested), |answer| {
        let found = (answer.status == 200).then(|| answer.json()["pending"][0].clone());
        found.filter(|pending| !pending.is_null())
    })
}

/// Answers a step, and tries to answer it again with something else.
///
/// # Panics
/// When the first answer does not count, or the second one does.
pub fn answer(host: &Host, step: &Value, given: &Value, other: &Value) {
    let id = step["suspension"].as_str().expect("a step has an id");
    assert_eq!(host.approver.resolve(id, given.clone()).ok(200)["ok"], true);
    assert_eq!(host.approver.resolve(id, other.clone()).status, 409);
}
