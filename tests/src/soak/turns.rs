//! The turns of the soak, one function for each kind. A function submits one turn, brings it to its end, and checks it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::ledger::Ledger;
use crate::host::Host;
use crate::http::{Client, outcomes, path, suspension_of};
use crate::random::Random;
use crate::steps::open_step;

/// The conversation of the first worker. It is followed, and gets an eighth of all turns.
pub(super) const LONG_CONVERSATION: &str = "soak-long";

/// The turns of another worker's conversation.
const CONVERSATION: u64 = 400;

/// A result of this size is a file of its own in the store.
const LARGE: usize = 200_000;

/// Calls of `gated_echo` with this value need the approver of [`Clients`], who lends its authority to the delegate.
pub(super) const DELEGATED: &str = "delegated";

/// The uses of each standing approval.
const USES: u32 = 20;

/// Runs one turn. Returns its path, unless it is not stored.
type Kind = fn(&mut Worker) -> Option<Value>;

/// The kinds of turns, each with its part of the sum.
const MIX: [(&str, usize, Kind); 19] = [
    ("automatic", 28, automatic),
    ("approved", 12, approved),
    ("denied", 8, denied),
    ("expired", 5, expired),
    ("question", 8, question),
    ("client", 5, client),
    ("cancelled", 8, cancelled),
    ("refused", 8, refused),
    ("large", 4, large),
    ("durable", 3, durable),
    ("failing", 5, failing),
    ("followed", 5, followed),
    ("ephemeral", 4, ephemeral),
    ("ledger", 3, ledger),
    ("standing", 3, standing),
    ("delegated", 2, delegated),
    ("webhook", 2, webhook),
    ("external", 1, external),
    ("signal", 1, signal),
];

/// Every kind, with a count of zero.
pub(super) fn kinds() -> Vec<(&'static str, u64)> {
    MIX.iter().map(|(name, ..)| (*name, 0)).collect()
}

/// The principals that a worker uses. Workers share all but the caller, which some share.
#[derive(Clone)]
pub(super) struct Clients {
    caller: Client,
    approver: Client,
    /// An approver who gets authority only from the other one.
    delegate: Client,
    page: Client,
    admin: Client,
}

impl Clients {
    /// One for each caller.
    pub(super) fn of(host: &Host, callers: usize) -> Vec<Self> {
        let delegate = host.token("delegate", &["approver"], None);
        let clients = |caller| Self {
            caller: host.token(&format!("caller-{caller}"), &["caller"], None),
            approver: host.approver.clone(),
            delegate: delegate.clone(),
            page: host.page.clone(),
            admin: host.admin.clone(),
        };
        (0..callers).map(clients).collect()
    }
}

/// A thread that submits.
pub(super) struct Worker {
    clients: Clients,
    number: usize,
    random: Random,
    conversation: String,
    calls: u64,
    ledger: Arc<Ledger>,
    /// The number of the current turn.
    turn: u64,
}

impl Worker {
    pub(super) fn new(clients: Clients, number: usize, seed: u64, ledger: Arc<Ledger>) -> Self {
        let random = Random::new(seed.wrapping_mul(1 + number as u64));
        Self { clients, number, random, conversation: LONG_CONVERSATION.to_owned(), calls: 0, ledger, turn: 0 }
    }

    /// Runs a turn of a random kind. Returns the index of the kind and the path of the turn.
    pub(super) fn turn(&mut self, number: u64) -> (usize, Option<String>) {
        self.turn = number;
        if self.number > 0 {
            self.conversation = format!("soak-{}-{}", self.number, number / CONVERSATION);
        }
        let mut drawn = self.random.below(MIX.iter().map(|(_, part, _)| part).sum());
        let kind = MIX.iter().position(|(_, part, _)| {
            let found = drawn < *part;
            drawn = drawn.saturating_sub(*part);
            found
        });
        let kind = kind.unwrap_or_default();
        (kind, MIX[kind].2(self).map(|turn| path(&turn)))
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.calls += 1;
        json!({"id": format!("soak-{}-{}", self.number, self.calls), "tool": tool, "arguments": arguments})
    }

    /// A text of up to 2 KB that no other call has.
    fn text(&mut self) -> String {
        let length = self.random.below(2_000);
        format!("{:016x} {}", self.random.bits(), "x".repeat(length))
    }

    fn submit(&self, calls: &[Value]) -> Value {
        self.clients.caller.submit(&self.conversation, calls.into())
    }

    fn resolve(&self, by: &Client, turn: &Value, answer: Value) {
        assert_eq!(by.resolve(&suspension_of(turn), answer).ok(200)["ok"], true);
    }

    /// Checks the end of a turn.
    #[track_caller]
    fn ends(&self, turn: Value, expected: &[&str]) -> Option<Value> {
        let turn = if turn["state"] == "open" { self.clients.caller.settled(&turn) } else { turn };
        assert_eq!(outcomes(&turn), expected, "{turn:#}");
        Some(turn)
    }
}

fn automatic(worker: &mut Worker) -> Option<Value> {
    let calls: Vec<_> = (0..=worker.random.below(3))
        .map(|_| {
            let text = worker.text();
            worker.call("echo", &json!({"value": text}))
        })
        .collect();
    let turn = worker.submit(&calls);
    let turn = worker.ends(turn, &vec!["ok"; calls.len()])?;
    for (call, submitted) in turn["calls"].as_array().into_iter().flatten().zip(&calls) {
        assert_eq!(call["content"]["result"], submitted["arguments"]["value"], "{call:#}");
    }
    Some(turn)
}

fn approved(worker: &mut Worker) -> Option<Value> {
    let [text, other] = [worker.text(), worker.text()];
    let call = worker.call("gated_echo", &json!({"value": text}));
    let turn = worker.submit(&[call]);
    let edits = worker.random.once_in(3);
    let (answer, expected) = if edits {
        (json!({"decision": "approve", "arguments": {"value": other}, "comment": "edited"}), other)
    } else {
        (json!({"decision": "approve"}), text)
    };
    worker.resolve(&worker.clients.approver, &turn, answer);
    let turn = worker.ends(turn, &["ok"])?;
    assert_eq!(turn["calls"][0]["content"]["result"], expected.as_str(), "{turn:#}");
    Some(turn)
}

fn denied(worker: &mut Worker) -> Option<Value> {
    let text = worker.text();
    let call = worker.call("gated_echo", &json!({"value": text}));
    let turn = worker.submit(&[call]);
    worker.resolve(&worker.clients.approver, &turn, json!({"decision": "deny", "comment": "not now"}));
    worker.ends(turn, &["denied"])
}

fn expired(worker: &mut Worker) -> Option<Value> {
    let call = worker.call("brief", &json!({}));
    let turn = worker.submit(&[call]);
    worker.ends(turn, &["expired"])
}

fn question(worker: &mut Worker) -> Option<Value> {
    let call = worker.call("ask_user", &json!({"question": "Which?", "choices": ["a", "b"]}));
    let turn = worker.submit(&[call]);
    let declines = worker.random.once_in(2);
    let answer = json!({"decision": "answer", "data": {"answer": worker.text()}});
    let answer = if declines { json!({"decision": "decline"}) } else { answer };
    worker.resolve(&worker.clients.approver, &turn, answer);
    worker.ends(turn, &["ok"])
}

fn client(worker: &mut Worker) -> Option<Value> {
    let stream = format!("/v1/conversations/{}/events?after=now&client=get_location", worker.conversation);
    let page = worker.clients.page.events(&stream);
    let call = worker.call("get_location", &json!({}));
    let turn = worker.submit(&[call]);
    let place = json!({"latitude": 52.5, "longitude": 13.4, "accuracy": 20});
    worker.resolve(&worker.clients.page, &turn, json!({"decision": "result", "data": place}));
    drop(page);
    worker.ends(turn, &["ok"])
}

/// A turn with a call that waits and one that runs.
fn cancelled(worker: &mut Worker) -> Option<Value> {
    let text = worker.text();
    let mut calls = vec![worker.call("gated_echo", &json!({"value": text}))];
    if worker.random.once_in(2) {
        calls.push(worker.call("sleep", &json!({"ms": 3_600_000})));
    }
    // Without waiting, because a call may keep running.
    let turns = format!("/v1/conversations/{}/turns", worker.conversation);
    let turn = worker.clients.caller.post(&turns, &json!({"calls": calls})).ok(201);
    let turn = worker.clients.caller.post_nothing(&format!("{}/cancel", path(&turn))).ok(200);
    assert_eq!(turn["state"], "cancelled");
    worker.ends(turn, &vec!["cancelled"; calls.len()])
}

/// Refused requests, and a turn with calls that the host refuses.
fn refused(worker: &mut Worker) -> Option<Value> {
    let turns = format!("/v1/conversations/{}/turns", worker.conversation);
    worker.clients.caller.post_text(&turns, r#"{"calls":"#).problem(400, "bad-json");
    let calls = [worker.call("nobody", &json!({})), worker.call("echo", &json!({"valeu": 1}))];
    worker.clients.page.post(&turns, &json!({"calls": calls})).problem(403, "not-allowed");
    let turn = worker.submit(&calls);
    let again = worker.clients.caller.post(&turns, &json!({"calls": calls})).ok(200);
    assert_eq!((&again["turn"], &again["replayed"]), (&turn["turn"], &json!(true)));
    worker.ends(turn, &["failed(unknown_tool)", "failed(invalid_arguments)"])
}

/// A durable call with two waits.
fn durable(worker: &mut Worker) -> Option<Value> {
    let call = worker.call("roll_out", &json!({"version": "1.4.2"}));
    let turn = worker.submit(&[call]);
    worker.resolve(&worker.clients.approver, &turn, json!({"decision": "answer", "data": {"environment": "live"}}));
    let plan = open_step(&worker.clients.caller, &turn, 2);
    worker.resolve(&worker.clients.approver, &json!({"pending": [plan]}), json!({"decision": "deny"}));
    let turn = worker.ends(turn, &["ok"])?;
    assert_eq!(turn["calls"][0]["content"]["result"]["state"], "rejected", "{turn:#}");
    Some(turn)
}

fn large(worker: &mut Worker) -> Option<Value> {
    let call = worker.call("flood", &json!({"bytes": LARGE}));
    let turn = worker.submit(&[call]);
    let turn = worker.ends(turn, &["ok"])?;
    let length = turn["calls"][0]["content"]["result"].as_str().map(str::len);
    assert_eq!(length, Some(LARGE - 2), "without the quotes");
    Some(turn)
}

fn failing(worker: &mut Worker) -> Option<Value> {
    let message = worker.text();
    let calls = ["fail", "panic"].map(|tool| worker.call(tool, &json!({"message": message})));
    let turn = worker.submit(&calls);
    worker.ends(turn, &["failed(tool_failed)", "failed(trapped)"])
}

/// Reads a stream while its turn runs, and then lists.
fn followed(worker: &mut Worker) -> Option<Value> {
    let stream = format!("/v1/conversations/{}/events?after=now", worker.conversation);
    let mut events = worker.clients.caller.events(&stream);
    let call = worker.call("count", &json!({"to": 20}));
    let turn = worker.submit(&[call]);
    events.until(|event| event.name == "turn.settled" && event.data["turn"] == turn["turn"]);
    for (by, list) in [
        (&worker.clients.caller, "/v1/conversations?limit=20"),
        (&worker.clients.approver, "/v1/pending?limit=20"),
        (&worker.clients.admin, "/v1/audit?limit=20"),
        (&worker.clients.admin, "/metrics"),
    ] {
        assert_eq!(by.get(list).status, 200, "{list}");
    }
    worker.ends(turn, &["ok"])
}

fn ephemeral(worker: &mut Worker) -> Option<Value> {
    let text = worker.text();
    let calls = [worker.call("echo", &json!({"value": text}))];
    let turns = format!("/v1/conversations/{}/turns?wait_ms=60000", worker.conversation);
    let answer = worker.clients.caller.post(&turns, &json!({"calls": calls, "ephemeral": true}));
    assert!(matches!(answer.status, 200 | 201), "{}", answer.text);
    worker.ends(answer.json(), &["ok"])?;
    None
}

/// Moves money between two accounts that other workers use too, or reads one.
fn ledger(worker: &mut Worker) -> Option<Value> {
    let Some(order) = worker.ledger.transfer(worker.turn, &mut worker.random) else {
        let account = Ledger::read(&mut worker.random);
        let call = worker.call("ledger_balance", &account);
        let turn = worker.submit(&[call]);
        return worker.ends(turn, &["ok"]);
    };
    let calls = [worker.call("ledger_transfer", &order)];
    let turn = worker.submit(&calls);
    let turns = format!("/v1/conversations/{}/turns", worker.conversation);
    let again = worker.clients.caller.post(&turns, &json!({"calls": calls})).ok(200);
    assert_eq!((&again["turn"], &again["replayed"]), (&turn["turn"], &json!(true)));
    worker.resolve(&worker.clients.approver, &turn, json!({"decision": "approve"}));
    let turn = worker.ends(turn, &["ok"])?;
    let receipt = &turn["calls"][0]["content"]["result"];
    for (member, ordered) in order.as_object().into_iter().flatten() {
        assert_eq!(&receipt[member], ordered, "{turn:#}");
    }
    Some(turn)
}

/// A call that a standing approval covers. The first one, and the one after the last use, give a new standing approval.
fn standing(worker: &mut Worker) -> Option<Value> {
    let arguments = json!({"value": format!("standing-{}", worker.number)});
    let call = worker.call("gated_echo", &arguments);
    let turn = worker.submit(&[call]);
    if turn["pending"] == json!([]) {
        return worker.ends(turn, &["ok"]);
    }
    let standing = json!({"ttl_ms": 600_000, "uses": USES, "pin": "all"});
    worker.resolve(&worker.clients.approver, &turn, json!({"decision": "approve", "standing": standing}));
    worker.ends(turn, &["ok"])?;
    let call = worker.call("gated_echo", &arguments);
    let covered = worker.submit(&[call]);
    assert_eq!(covered["pending"], json!([]), "a standing approval covers it: {covered:#}");
    worker.ends(covered, &["ok"])
}

/// A call that its approver leaves to somebody else.
fn delegated(worker: &mut Worker) -> Option<Value> {
    let call = worker.call("gated_echo", &json!({"value": DELEGATED}));
    let turn = worker.submit(&[call]);
    let suspension = format!("/v1/suspensions/{}", suspension_of(&turn));
    let clients = &worker.clients;
    clients
        .delegate
        .post(&format!("{suspension}/resolve"), &json!({"decision": "approve"}))
        .problem(403, "not-allowed");
    let lent = clients.approver.post(&format!("{suspension}/delegate"), &json!({"to": "delegate"})).ok(200);
    assert_eq!(lent["ok"], true, "{lent:#}");
    worker.resolve(&clients.delegate, &turn, json!({"decision": "approve"}));
    worker.ends(turn, &["ok"])
}

/// A call that a webhook announces. Its end is announced too.
fn webhook(worker: &mut Worker) -> Option<Value> {
    let call = worker.call("paged", &json!({}));
    let turn = worker.submit(&[call]);
    let suspension = format!("/v1/suspensions/{}", suspension_of(&turn));
    worker.resolve(&worker.clients.approver, &turn, json!({"decision": "approve"}));
    let turn = worker.ends(turn, &["ok"])?;
    worker.clients.approver.until(&suspension, |answer| {
        // Retention removes no turn that waits for a delivery.
        let is_removed = answer.status == 410;
        let deliveries = answer.json()["deliveries"].clone();
        let delivered = |row: &&Value| row["state"] == "delivered";
        let is_delivered = deliveries.as_array().is_some_and(|rows| rows.iter().filter(delivered).count() == 2);
        (is_removed || is_delivered).then_some(())
    });
    Some(turn)
}

/// A durable call whose external system sends its result to the id of the wait.
fn external(worker: &mut Worker) -> Option<Value> {
    rolled_out(worker, |worker, wait, result| {
        let answer = json!({"decision": "result", "data": result});
        worker.resolve(&worker.clients.caller, &json!({"pending": [wait]}), answer);
    })
}

/// A durable call whose external system sends its result to the name of the wait.
fn signal(worker: &mut Worker) -> Option<Value> {
    rolled_out(worker, |worker, wait, result| {
        let name = wait["signal"].as_str().expect("the wait has a name");
        let signal = format!("/v1/conversations/{}/signals/{name}", worker.conversation);
        assert_eq!(worker.clients.caller.post(&signal, &result).ok(200)["replayed"], false);
    })
}

/// A rollout that waits for a report of its health, which `report` sends.
fn rolled_out(worker: &mut Worker, report: impl Fn(&Worker, &Value, Value)) -> Option<Value> {
    let name = format!("health-{}-{}", worker.number, worker.calls);
    let call = worker.call("roll_out", &json!({"version": "1.4.2", "settles_s": 1, "signal": name}));
    let turn = worker.submit(&[call]);
    worker.resolve(&worker.clients.approver, &turn, json!({"decision": "answer", "data": {"environment": "live"}}));
    let plan = open_step(&worker.clients.caller, &turn, 2);
    worker.resolve(&worker.clients.approver, &json!({"pending": [plan]}), json!({"decision": "approve"}));
    let wait = open_step(&worker.clients.caller, &turn, 3);
    // Then it sleeps for a second, in which the other workers use the host.
    report(worker, &wait, json!({"healthy": true}));
    let turn = worker.ends(turn, &["ok"])?;
    assert_eq!(turn["calls"][0]["content"]["result"]["state"], "done", "{turn:#}");
    Some(turn)
}
