//! The clients of the hosts, and the record of everything that was acknowledged to them.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_tests::host::Host;
use toolgate_tests::http::{Answer, Client, path};
use toolgate_tests::random::Random;

use super::ACCOUNTS;

/// How long a client waits for a host, which may be paused.
const PATIENCE: Duration = Duration::from_secs(3);

/// About the maximum number of turns without an answer.
const MAX_OPEN: usize = 40;

/// The time between two looks at something that has no notification.
const LOOK: Duration = Duration::from_millis(20);

/// The number of looks. Only hosts that hang reach it. Each acknowledgement is followed by a look.
const LOOKS: u32 = 50_000;

/// The principals at a host.
pub(super) struct Clients {
    agent: Client,
    approver: Client,
    /// It runs calls.
    page: Client,
}

impl Clients {
    pub(super) fn of(host: &Host) -> Self {
        let [agent, approver, page] = [&host.agent, &host.approver, &host.page].map(|by| by.leaving_after(PATIENCE));
        Self { agent, approver, page }
    }
}

/// An acknowledged answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Given {
    pub(super) call: String,
    pub(super) body: Value,
}

#[derive(Default)]
struct State {
    acknowledged: usize,
    no_more_turns: bool,
    no_more_answers: bool,
    turns: BTreeMap<String, Value>,
    answers: BTreeMap<String, Given>,
}

/// The acknowledgements of the hosts.
#[derive(Default)]
pub(super) struct Record {
    state: Mutex<State>,
    changed: Condvar,
}

impl Record {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn acknowledge(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        state.acknowledged += 1;
        self.changed.notify_all();
    }

    /// The number of acknowledgements.
    pub(super) fn acknowledged(&self) -> usize {
        self.state().acknowledged
    }

    /// The call of each turn, by the path of the turn.
    pub(super) fn turns(&self) -> BTreeMap<String, Value> {
        self.state().turns.clone()
    }

    /// The answer to each suspension.
    pub(super) fn answers(&self) -> BTreeMap<String, Given> {
        self.state().answers.clone()
    }

    pub(super) fn no_more_turns(&self) {
        self.state().no_more_turns = true;
        self.changed.notify_all();
    }

    /// Waits until the answerers keep up. Returns whether there are more turns to submit.
    fn wants_turns(&self) -> bool {
        let is_far_ahead =
            |state: &mut State| !state.no_more_turns && state.turns.len() > state.answers.len() + MAX_OPEN;
        let state = self.changed.wait_while(self.state(), is_far_ahead).unwrap();
        !state.no_more_turns
    }

    pub(super) fn no_more_answers(&self) {
        self.state().no_more_answers = true;
    }

    /// Returns when this is so.
    pub(super) fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        for _ in 0..LOOKS {
            if is_so() {
                return;
            }
            drop(self.changed.wait_timeout(self.state(), LOOK).unwrap());
        }
        panic!("there is no {what}");
    }
}

/// Whether a host carried a request out. It may have no store, or no room.
fn is_acknowledged(answer: &Answer, others: &[u16]) -> bool {
    assert!([200, 201, 429, 503, 507].contains(&answer.status) || others.contains(&answer.status), "{}", answer.text);
    matches!(answer.status, 200 | 201)
}

const JSON: (&str, &str) = ("content-type", "application/json");

/// Submits turns of one call, each at any host, again and again until one acknowledges it.
pub(super) fn submit(hosts: &[Clients], record: &Arc<Record>, seed: u64) {
    let mut random = Random::new(seed);
    for count in 0.. {
        let call = call(&mut random, &format!("{seed}-{count}"));
        let turns = format!("/v1/conversations/faults{}/turns", random.below(4));
        let body = json!({"calls": [call]}).to_string();
        loop {
            if !record.wants_turns() {
                return;
            }
            let sent = random.pick(hosts).agent.send("POST", &turns, &[JSON], body.as_bytes());
            let Some(answer) = sent.ok().filter(|answer| is_acknowledged(answer, &[])) else { continue };
            record.acknowledge(|state| drop(state.turns.insert(path(&answer.json()), call)));
            break;
        }
    }
}

/// A call that a person must approve, one that asks two questions in the middle of its code, or one that a client runs.
fn call(random: &mut Random, id: &str) -> Value {
    let (tool, arguments) = match random.below(4) {
        0 => ("test_input_required_result_multi_round", json!({})),
        1 => ("get_location", json!({})),
        _ => {
            let (from, to, cents) = (random.below(ACCOUNTS), random.below(ACCOUNTS - 1), 1 + random.below(9));
            let to = (from + 1 + to) % ACCOUNTS;
            ("ledger_transfer", json!({"from": format!("a{from}"), "to": format!("a{to}"), "amount_cents": cents}))
        }
    };
    json!({"id": id, "tool": tool, "arguments": arguments})
}

/// Answers the open suspensions, each twice at once at any hosts, and in different ways.
pub(super) fn answer(hosts: &[Clients], record: &Arc<Record>, seed: u64) {
    let mut random = Random::new(seed);
    while !record.state().no_more_answers {
        let listed = random.pick(hosts).approver.send("GET", "/v1/pending", &[], b"");
        let Some(listed) = listed.ok().filter(|answer| is_acknowledged(answer, &[])) else { continue };
        let listed = listed.json();
        let Some(open) = listed["suspensions"].as_array().filter(|open| !open.is_empty()) else {
            drop(record.changed.wait_timeout(record.state(), LOOK).unwrap());
            continue;
        };
        let open = random.pick(open);
        let bodies = [(); 2].map(|()| body(&mut random, open));
        let by = |at: &Clients| if open["kind"] == "client_exec" { at.page.clone() } else { at.approver.clone() };
        let by = [(); 2].map(|()| by(random.pick(hosts)));
        thread::scope(|scope| {
            for (by, body) in by.into_iter().zip(bodies) {
                scope.spawn(move || resolve(&by, record, open, body));
            }
        });
    }
}

/// An answer to a suspension.
fn body(random: &mut Random, open: &Value) -> Value {
    let number = random.below(90);
    match open["kind"].as_str().unwrap() {
        "approval" => json!({"decision": if random.once_in(3) { "deny" } else { "approve" }}),
        "client_exec" => {
            json!({"decision": "result", "data": {"latitude": number, "longitude": 0, "accuracy": 1}})
        }
        _ if open["prompt"].as_str().unwrap().starts_with("Step 1") => {
            json!({"decision": "answer", "data": {"name": number.to_string()}})
        }
        _ => json!({"decision": "answer", "data": {"color": number.to_string()}}),
    }
}

fn resolve(by: &Client, record: &Record, open: &Value, body: Value) {
    let suspension = open["suspension"].as_str().unwrap();
    let path = format!("/v1/suspensions/{suspension}/resolve");
    let sent = by.send("POST", &path, &[JSON], body.to_string().as_bytes());
    let Some(_) = sent.ok().filter(|answer| is_acknowledged(answer, &[409])) else { return };
    let given = Given { call: open["call"].as_str().unwrap().to_owned(), body };
    record.acknowledge(|state| {
        let before = state.answers.insert(suspension.to_owned(), given.clone());
        assert!(before.is_none_or(|before| before == given), "{suspension} has two answers");
    });
}
