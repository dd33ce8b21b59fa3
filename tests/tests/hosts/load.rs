//! The clients of the hosts, and the record of everything that was acknowledged to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_tests::host::Host;
use toolgate_tests::http::{Answer, Client, path};
use toolgate_tests::random::Random;

use super::ACCOUNTS;

/// How long a client waits for a host if it can use another.
const SHORT: Duration = Duration::from_secs(3);

/// How long a client waits for a host that was paused. Only a host that hangs reaches it.
const LONG: Duration = Duration::from_secs(120);

/// About the maximum number of turns without an answer.
const MAX_OPEN: usize = 40;

/// The time between two looks at something that has no notification.
const LOOK: Duration = Duration::from_millis(20);

/// The number of looks. Only hosts that hang reach it. Each acknowledgement is followed by a look.
const LOOKS: u32 = 50_000;

/// The principals at a host.
pub(super) struct Clients {
    pub(super) agent: Client,
    approver: Client,
    /// It runs calls.
    page: Client,
    /// The number of requests without a response, by kind.
    open: [AtomicUsize; 3],
}

/// A kind of request.
#[derive(Clone, Copy)]
enum Kind {
    Turn,
    Answer,
    /// For the end of a turn.
    Wait,
}

impl Clients {
    fn of(host: &Host, patience: Duration) -> Self {
        let [agent, approver, page] = [&host.agent, &host.approver, &host.page].map(|by| by.leaving_after(patience));
        Self { agent, approver, page, open: Default::default() }
    }

    /// Whether a request of each kind has no response yet.
    pub(super) fn are_waiting(&self) -> bool {
        self.open.iter().all(|open| open.load(Ordering::SeqCst) > 0)
    }

    /// Sends a request. `None`: the connection ended, or the host did not carry it out.
    fn send(&self, kind: Kind, by: &Client, path: &str, body: Option<&Value>) -> Option<Answer> {
        let open = &self.open[kind as usize];
        open.fetch_add(1, Ordering::SeqCst);
        let sent = match body {
            Some(body) => by.send("POST", path, &[JSON], body.to_string().as_bytes()),
            None => by.send("GET", path, &[], b""),
        };
        open.fetch_sub(1, Ordering::SeqCst);
        let others: &[_] = if matches!(kind, Kind::Answer) { &[409] } else { &[] };
        sent.ok().filter(|answer| is_acknowledged(answer, others))
    }
}

/// The clients of all hosts, and what they hear.
pub(super) struct Load {
    /// For each host. They leave a host that is paused.
    short: Vec<Clients>,
    /// For each host. They wait until it goes on.
    pub(super) patient: Vec<Clients>,
    pub(super) record: Record,
    /// The id of the turn whose end is the last event.
    pub(super) last_turn: OnceLock<String>,
}

/// The work of a thread, at some of the hosts.
pub(super) type Work = fn(&Load, &[Clients], u64);

impl Load {
    pub(super) fn of(hosts: &[Host]) -> Self {
        let [short, patient] =
            [SHORT, LONG].map(|patience| hosts.iter().map(|host| Clients::of(host, patience)).collect());
        Self { short, patient, record: Record::default(), last_turn: OnceLock::new() }
    }
}

/// Starts threads that do this work: for each host, one that uses all hosts, and one that waits for this host.
pub(super) fn start(load: &Arc<Load>, work: Work, seeds: impl Iterator<Item = u64>) -> Vec<JoinHandle<()>> {
    let hosts = load.patient.len();
    let begin = |(number, seed): (usize, u64)| {
        let load = load.clone();
        thread::spawn(move || {
            let at = if number < hosts { &load.short[..] } else { &load.patient[number - hosts..=number - hosts] };
            work(&load, at, seed);
        })
    };
    (0..2 * hosts).zip(seeds).map(begin).collect()
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
    /// The turns in responses.
    seen: Vec<Value>,
    /// The turns whose end was in no response yet.
    unseen: BTreeSet<String>,
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

    /// The turns in responses, by their paths.
    pub(super) fn seen(&self) -> BTreeMap<String, Vec<Value>> {
        let mut seen = BTreeMap::<_, Vec<_>>::new();
        for turn in &self.state().seen {
            seen.entry(path(turn)).or_default().push(turn.clone());
        }
        seen
    }

    /// Each turn that a client has begun to submit is still submitted.
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

    /// Returns at the next acknowledgement, or after a moment.
    pub(super) fn wait_briefly(&self) {
        drop(self.changed.wait_timeout(self.state(), LOOK).unwrap());
    }

    /// Returns when this is so.
    pub(super) fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        for _ in 0..LOOKS {
            if is_so() {
                return;
            }
            self.wait_briefly();
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
pub(super) fn submit(Load { record, .. }: &Load, hosts: &[Clients], seed: u64) {
    let mut random = Random::new(seed);
    for count in (0..).take_while(|_| record.wants_turns()) {
        let call = call(&mut random, &format!("{seed}-{count}"));
        let turns = format!("/v1/conversations/faults{}/turns", random.below(4));
        let body = json!({"calls": [call]});
        let answer = loop {
            let at = random.pick(hosts);
            match at.send(Kind::Turn, &at.agent, &turns, Some(&body)) {
                Some(answer) => break answer,
                None => record.wait_briefly(),
            }
        };
        record.acknowledge(|state| {
            let turn = answer.json();
            state.unseen.insert(path(&turn));
            state.turns.insert(path(&turn), call);
            state.seen.push(turn);
        });
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
            let (from, to) = (format!("a{from}"), format!("a{to}"));
            // The ledger keeps the memo, so each of its transfers names its call.
            ("ledger_transfer", json!({"from": from, "to": to, "amount_cents": cents, "memo": id}))
        }
    };
    json!({"id": id, "tool": tool, "arguments": arguments})
}

/// Answers the open suspensions, each twice at once at any of these hosts, and in different ways.
pub(super) fn answer(Load { record, short, .. }: &Load, hosts: &[Clients], seed: u64) {
    let mut random = Random::new(seed);
    while !record.state().no_more_answers {
        let listed = random.pick(short).approver.send("GET", "/v1/pending", &[], b"");
        let listed = listed.ok().filter(|answer| is_acknowledged(answer, &[])).map(|answer| answer.json());
        let open = listed.as_ref().and_then(|listed| listed["suspensions"].as_array());
        let Some(open) = open.filter(|open| !open.is_empty()) else {
            record.wait_briefly();
            continue;
        };
        let open = random.pick(open);
        let bodies = [(); 2].map(|()| body(&mut random, open));
        let hosts = [(); 2].map(|()| random.pick(hosts));
        thread::scope(|scope| {
            for (at, body) in hosts.into_iter().zip(bodies) {
                scope.spawn(move || resolve(at, record, open, body));
            }
        });
    }
}

/// Waits for the end of turns, each at any of these hosts.
pub(super) fn wait(Load { record, .. }: &Load, hosts: &[Clients], seed: u64) {
    let mut random = Random::new(seed);
    while !record.state().no_more_answers {
        let unseen: Vec<_> = record.state().unseen.iter().cloned().collect();
        if unseen.is_empty() {
            record.wait_briefly();
            continue;
        }
        let (at, turn) = (random.pick(hosts), random.pick(&unseen));
        match at.send(Kind::Wait, &at.agent, &format!("{turn}?wait_ms=60000"), None) {
            None => record.wait_briefly(),
            Some(answer) => {
                let (seen, mut state) = (answer.json(), record.state());
                if seen["state"] != "open" {
                    state.unseen.remove(turn);
                }
                state.seen.push(seen);
            }
        }
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

fn resolve(at: &Clients, record: &Record, open: &Value, body: Value) {
    let suspension = open["suspension"].as_str().unwrap();
    let by = if open["kind"] == "client_exec" { &at.page } else { &at.approver };
    let path = format!("/v1/suspensions/{suspension}/resolve");
    if at.send(Kind::Answer, by, &path, Some(&body)).is_none() {
        return record.wait_briefly();
    }
    let given = Given { call: open["call"].as_str().unwrap().to_owned(), body };
    record.acknowledge(|state| {
        let before = state.answers.insert(suspension.to_owned(), given.clone());
        assert!(before.is_none_or(|before| before == given), "{suspension} has two answers");
    });
}
