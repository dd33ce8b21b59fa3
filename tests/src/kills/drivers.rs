//! Clients of a host that is killed repeatedly. They repeat unacknowledged requests with the same ids, and record the
//! acknowledged ones.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::{ACCOUNTS, CONVERSATION, Field, Tally};
use crate::http::{Answer, Client};
use crate::random::Random;

/// The pause before a request is repeated that a full disk refused.
const REPEAT: Duration = Duration::from_millis(10);

/// How long to wait for the next start after a broken connection.
const RECONNECT: Duration = Duration::from_secs(5);

/// The acknowledged requests since the last check.
#[derive(Default)]
pub(super) struct Acknowledged {
    /// The calls as they were submitted, by the turn's id.
    pub(super) turns: BTreeMap<String, Value>,
    /// The principal and its answer, by the id of the suspension. There must never be more than one.
    pub(super) answers: BTreeMap<String, Vec<(String, String)>>,
}

#[derive(Default)]
struct State {
    acknowledged: Acknowledged,
    late: usize,
    refused: usize,
}

/// The record of all drivers.
#[derive(Default)]
pub(super) struct Record {
    state: Mutex<State>,
    refusal: Condvar,
}

impl Record {
    /// Takes the acknowledged requests since the last time.
    pub(super) fn take(&self) -> Acknowledged {
        std::mem::take(&mut self.state().acknowledged)
    }

    /// The requests that the host refused because its disk was full.
    pub(super) fn refused(&self) -> usize {
        self.state().refused
    }

    /// Waits until there are more of them, but not forever: nobody may have written meanwhile.
    pub(super) fn wait_for_a_refusal(&self, seen: usize, at_most: Duration) {
        drop(self.refusal.wait_timeout_while(self.state(), at_most, |state| state.refused == seen));
    }

    pub(super) fn count(&self, tally: &mut Tally) {
        tally.late += self.state().late;
        tally.refused += self.refused();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open suspension: its id and kind.
type Question = (String, String);

/// One client.
pub(super) struct Driver {
    by: Client,
    field: Arc<Field>,
    acknowledged: Sender<()>,
    random: Random,
}

impl Driver {
    pub(super) fn new(by: Client, field: Arc<Field>, acknowledged: Sender<()>, seed: u64) -> Self {
        Self { by, field, acknowledged, random: Random::new(seed) }
    }

    /// Submits turns until all is over.
    pub(super) fn submit(&mut self, number: u64, tell: &[Sender<Question>]) {
        for turn in 0_u64.. {
            if !self.field.gate.enter() {
                return;
            }
            let calls = (0..=self.random.below(3)).map(|n| self.call(&format!("s{number}-{turn}-{n}")));
            let calls = Value::from(calls.collect::<Vec<_>>());
            let path = format!("/v1/conversations/{CONVERSATION}/turns");
            let answer = self.insist(&path, &json!({"calls": calls}));
            assert!(matches!(answer.status, 200 | 201), "{}", answer.text);
            let turn = answer.json();
            self.field.record.state().acknowledged.turns.insert(word(&turn["turn"]), calls);
            for open in turn["pending"].as_array().into_iter().flatten() {
                for approver in tell {
                    self.field.gate.begin();
                    approver.send((word(&open["suspension"]), word(&open["kind"]))).expect("the approver answers");
                }
            }
            self.tell();
        }
    }

    fn call(&mut self, id: &str) -> Value {
        let (tool, arguments) = match self.random.below(4) {
            0 => ("text_stats", json!({"text": "to be or not to be"})),
            1 => ("ask_user", json!({"question": "Which?"})),
            _ => {
                let from = self.random.below(ACCOUNTS as usize);
                let to = (from + 1 + self.random.below(ACCOUNTS as usize - 1)) % ACCOUNTS as usize;
                let amount = 1 + self.random.below(500);
                ("ledger_transfer", json!({"from": format!("a{from}"), "to": format!("a{to}"), "amount_cents": amount}))
            }
        };
        json!({"id": id, "tool": tool, "arguments": arguments})
    }

    /// Answers every question, in a race with the other approver and often with another decision.
    pub(super) fn answer(&mut self, name: &str, questions: &Receiver<Question>) {
        while let Ok((suspension, kind)) = questions.recv() {
            let said = match (kind.as_str(), self.random.below(3)) {
                ("approval", 0) => json!({"decision": "deny"}),
                ("approval", _) => json!({"decision": "approve"}),
                (_, 0) => json!({"decision": "decline"}),
                _ => json!({"decision": "answer", "data": {"answer": name}}),
            };
            let answer = self.insist(&format!("/v1/suspensions/{suspension}/resolve"), &said);
            let mut state = self.field.record.state();
            if answer.status == 409 {
                answer.problem(409, "stale");
                state.late += 1;
            } else {
                assert_eq!(answer.ok(200)["ok"], true);
                let answers = state.acknowledged.answers.entry(suspension).or_default();
                answers.push((name.to_owned(), word(&said["decision"])));
            }
            drop(state);
            self.tell();
        }
    }

    /// Counts an acknowledgement. After the last kill, nobody reads the count.
    fn tell(&self) {
        self.field.gate.finish();
        let _ = self.acknowledged.send(());
    }

    /// Repeats a request until it is answered, and not because the disk is full.
    fn insist(&self, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        loop {
            let seen = self.field.starts.count();
            let pause = match self.by.send("POST", path, &[("content-type", "application/json")], body.as_bytes()) {
                Ok(answer) if answer.status == 507 => {
                    answer.problem(507, "no-space");
                    self.field.record.state().refused += 1;
                    self.field.record.refusal.notify_all();
                    REPEAT
                }
                Ok(answer) => return answer,
                Err(_) => RECONNECT,
            };
            self.field.starts.wait_for_another(seen, pause);
        }
    }
}

/// # Panics
/// When the value is not a text.
fn word(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
