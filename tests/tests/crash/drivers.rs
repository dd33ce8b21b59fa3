//! Clients of a host that is killed repeatedly. They repeat unacknowledged requests with the same ids, and record the
//! acknowledged ones.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use serde_json::{Value, json};
use toolgate_tests::http::{Answer, Client};
use toolgate_tests::random::Random;

use crate::{ACCOUNTS, CONVERSATION, Starts};

/// The acknowledged requests.
#[derive(Default)]
pub(crate) struct Record {
    /// The calls as they were submitted, by the turn's id.
    turns: Mutex<BTreeMap<String, Value>>,
    /// The principal and its answer, by the id of the suspension. There must never be more than one.
    answers: Mutex<BTreeMap<String, Vec<(String, String)>>>,
    late: AtomicUsize,
    stop: AtomicBool,
}

impl Record {
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn turns(&self) -> BTreeMap<String, Value> {
        self.turns.lock().unwrap().clone()
    }

    pub(crate) fn answers(&self) -> BTreeMap<String, Vec<(String, String)>> {
        self.answers.lock().unwrap().clone()
    }

    pub(crate) fn late(&self) -> usize {
        self.late.load(Ordering::Relaxed)
    }
}

/// An open suspension: its id and kind.
pub(crate) type Question = (String, String);

/// Submits turns until it is stopped.
pub(crate) fn submit(
    number: u64,
    by: &Client,
    tell: &[Sender<Question>],
    starts: &Starts,
    record: &Record,
    acknowledged: &Sender<()>,
) {
    let mut random = Random::new(number);
    for turn in 0_u64.. {
        if record.stop.load(Ordering::Relaxed) {
            return;
        }
        let calls: Vec<Value> =
            (0..=random.below(3)).map(|n| call(&format!("s{number}-{turn}-{n}"), &mut random)).collect();
        let calls = Value::from(calls);
        let path = format!("/v1/conversations/{CONVERSATION}/turns");
        let answer = insist(by, &path, &json!({"calls": calls}), starts);
        assert!(matches!(answer.status, 200 | 201), "{}", answer.text);
        let turn = answer.json();
        record.turns.lock().unwrap().insert(turn["turn"].as_str().unwrap().to_owned(), calls);
        // After the last kill, nobody counts acknowledgements.
        let _ = acknowledged.send(());
        for open in turn["pending"].as_array().unwrap() {
            let word = |name: &str| open[name].as_str().unwrap().to_owned();
            tell.iter().for_each(|approver| approver.send((word("suspension"), word("kind"))).unwrap());
        }
    }
}

fn call(id: &str, random: &mut Random) -> Value {
    let (tool, arguments) = match random.below(4) {
        0 => ("text_stats", json!({"text": "to be or not to be"})),
        1 => ("ask_user", json!({"question": "Which?"})),
        _ => {
            let from = random.below(ACCOUNTS as usize);
            let to = (from + 1 + random.below(ACCOUNTS as usize - 1)) % ACCOUNTS as usize;
            let amount = 1 + random.below(500);
            ("ledger_transfer", json!({"from": format!("a{from}"), "to": format!("a{to}"), "amount_cents": amount}))
        }
    };
    json!({"id": id, "tool": tool, "arguments": arguments})
}

/// Answers every question, in a race with the other approver and often with another decision.
pub(crate) fn answer(
    name: &str,
    by: &Client,
    seed: u64,
    questions: &Receiver<Question>,
    starts: &Starts,
    record: &Record,
    acknowledged: &Sender<()>,
) {
    let mut random = Random::new(seed);
    while let Ok((suspension, kind)) = questions.recv() {
        let said = match (kind.as_str(), random.below(3)) {
            ("approval", 0) => json!({"decision": "deny"}),
            ("approval", _) => json!({"decision": "approve"}),
            (_, 0) => json!({"decision": "decline"}),
            _ => json!({"decision": "answer", "data": {"answer": name}}),
        };
        let path = format!("/v1/suspensions/{suspension}/resolve");
        let answer = insist(by, &path, &said, starts);
        if answer.status == 409 {
            answer.problem(409, "stale");
            record.late.fetch_add(1, Ordering::Relaxed);
        } else {
            assert_eq!(answer.ok(200)["ok"], true);
            let decision = said["decision"].as_str().unwrap().to_owned();
            record.answers.lock().unwrap().entry(suspension).or_default().push((name.to_owned(), decision));
        }
        let _ = acknowledged.send(());
    }
}

/// Repeats a request until it is answered.
fn insist(by: &Client, path: &str, body: &Value, starts: &Starts) -> Answer {
    let body = body.to_string();
    loop {
        let seen = starts.count();
        match by.send("POST", path, &[("content-type", "application/json")], body.as_bytes()) {
            Ok(answer) => return answer,
            Err(_) => starts.wait_for_another(seen),
        }
    }
}
