//! Kills the real host while plugins of each language are in the middle of durable calls. Each call has the result, the
//! data and the effects of a call that nothing interrupts.

mod building;

use serde_json::{Value, json};

use super::moment;
use crate::effects::Server;
use crate::host::{Host, Setup};
use crate::http::{outcomes, path};
use crate::random::Random;

pub use building::{Language, Worker};

/// The rounds of a call. In each, it writes, sends requests, waits and sleeps: for an answer, an approval, an external system and a
/// nested call, in this order.
const ROUNDS: usize = 4;

/// The kills in a row that may come before each call asks again. A call that is killed more often without progress ends in doubt.
const MAX_HASTY: u32 = 3;

/// The longest time between an answer and a kill, in microseconds.
const MAX_MOMENT: usize = 80_000;

/// The kills to carry out.
#[derive(Clone, Copy)]
pub struct Plan {
    /// The number of kills.
    pub kills: u32,
    /// The seed of the moments and of the answers.
    pub seed: u64,
    /// Receives lines of progress.
    pub say: fn(&str),
}

/// Counts of things that happened.
#[derive(Debug, Default)]
pub struct Tally {
    pub kills: u32,
    /// Calls that came to their end.
    pub calls: usize,
    /// Requests that the server carried out.
    pub effects: usize,
    /// Requests that came again because of a kill.
    pub repeated: usize,
    /// Runs that a kill ended.
    pub interrupted: u64,
}

/// A call that has not ended.
struct Open {
    language: Language,
    key: String,
    turn: Value,
}

struct Killed<'a> {
    workers: &'a [Worker],
    host: Host,
    server: &'a Server,
    open: Vec<Open>,
    random: Random,
    submitted: usize,
    /// The last kills that came before each call asked.
    hasty: u32,
    tally: Tally,
}

/// Kills a host with these plugins, which send their requests to this server.
///
/// # Panics
/// When a kill changes something.
#[must_use]
pub fn run(plan: Plan, workers: &[Worker], server: &Server) -> Tally {
    let setup = workers.iter().fold(Setup::default(), |setup, worker| {
        let name = worker.language.name();
        let grants = format!(
            "[plugin.{name}]\ncomponent = \"any\"\ngrants.keyvalue = true\ngrants.calls = [\"work_{name}\"]\n\
             [[plugin.{name}.grants.http]]\nurl = \"{}\"\nmethods = [\"GET\", \"POST\"]\nprivate = true\nidempotent = true",
            server.url("/")
        );
        setup.component(name, worker.component.clone()).tables(&grants)
    });
    let (host, random) = (setup.start(), Random::new(plan.seed));
    let mut killed =
        Killed { workers, host, server, open: Vec::new(), random, submitted: 0, hasty: 0, tally: Tally::default() };
    while killed.tally.kills < plan.kills {
        killed.round();
        if killed.tally.kills.is_multiple_of(20) {
            (plan.say)(&format!("{} kills, {} calls have ended", killed.tally.kills, killed.tally.calls));
        }
    }
    killed.finish()
}

impl Killed<'_> {
    /// From the answers to the next kill, and what has ended since.
    fn round(&mut self) {
        self.submit();
        self.answer(2);
        // A run that is killed each time before its next effect would never come further.
        let is_patient = self.hasty >= MAX_HASTY;
        let is_silent = self.random.once_in(3) && !is_patient;
        if is_silent {
            self.server.fall_silent();
        }
        let waits = self.random.once_in(2) || is_patient;
        if waits {
            self.until_asked();
        }
        self.hasty = if waits && !is_silent { 0 } else { self.hasty + 1 };
        moment(&mut self.random, MAX_MOMENT);
        self.host.kill();
        self.server.answer_again();
        self.host.start();
        self.tally.kills += 1;
        self.take_ended();
    }

    /// A call for each language that has none.
    fn submit(&mut self) {
        for worker in self.workers {
            let language = worker.language;
            if self.open.iter().any(|open| open.language == language) {
                continue;
            }
            self.submitted += 1;
            let (name, key) = (language.name(), format!("{}-{}", language.name(), self.submitted));
            let arguments = json!({"key": key, "rounds": ROUNDS, "url": self.server.url("/work")});
            let call = json!({"id": key, "tool": format!("work_{name}"), "arguments": arguments});
            let path = format!("/v1/conversations/{name}/turns");
            let turn = self.host.agent.post(&path, &json!({"calls": [call]})).ok(201);
            self.open.push(Open { language, key, turn });
        }
    }

    /// Ends one in this many open waits.
    fn answer(&mut self, one_in: usize) {
        for open in &self.open {
            for waiting in asked(&self.host, &path(&open.turn)) {
                if !self.random.once_in(one_in) {
                    continue;
                }
                let word = word(waiting["prompt"].as_str().expect("a wait has a text"));
                let (by, given) = match waiting["kind"].as_str() {
                    Some("elicitation") => (&self.host.approver, json!({"decision": "answer", "data": {"word": word}})),
                    Some("approval") => (&self.host.approver, json!({"decision": "approve"})),
                    _ => (&self.host.agent, json!({"decision": "result", "data": {"word": word}})),
                };
                let id = waiting["suspension"].as_str().expect("a suspension has an id");
                assert_eq!(by.resolve(id, given).ok(200)["ok"], true);
            }
        }
    }

    /// Returns once each call waits for an answer or has ended, or a call waits for the silent server.
    fn until_asked(&self) {
        for open in &self.open {
            let path = path(&open.turn);
            self.host.agent.until(&path, |answer| {
                let is_open = answer.json()["state"] == "open";
                (!is_open || self.server.is_waited_for() || !asked(&self.host, &path).is_empty()).then_some(())
            });
        }
    }

    /// Checks the calls that have ended.
    fn take_ended(&mut self) {
        for open in std::mem::take(&mut self.open) {
            let turn = self.host.agent.get(&path(&open.turn)).ok(200);
            if turn["state"] == "open" {
                self.open.push(open);
            } else {
                self.check(&open, &turn);
            }
        }
    }

    fn check(&mut self, open: &Open, turn: &Value) {
        let call = &turn["calls"][0];
        assert_eq!(outcomes(turn), ["ok"], "{turn:#}");
        self.check_rounds(open.language, &open.key, &call["content"]["result"], ROUNDS);
        self.tally.calls += 1;
        self.tally.interrupted += call["attempt"].as_u64().expect("a number").saturating_sub(1);
    }

    /// Checks the result of a call with this key.
    fn check_rounds(&mut self, language: Language, key: &str, result: &Value, rounds: usize) {
        let all = result.as_array().expect("a list of rounds");
        assert_eq!(all.len(), rounds, "{result:#}");
        let sent: Vec<_> = self.server.carried_out().into_iter().map(|(_, answer)| answer).collect();
        for (number, round) in all.iter().enumerate() {
            let begin = format!("{key} {number}");
            assert_eq!(round["count"], json!(number + 1), "{result:#}");
            if number == ROUNDS - 1 {
                self.check_rounds(language, &format!("{key}+"), &round["given"], 1);
            } else {
                assert_eq!(round["given"], json!(word(&begin)), "{result:#}");
            }
            let mut once = |name: String, expected: Value| {
                let effects: Vec<_> = sent.iter().filter(|answer| answer.starts_with(&name)).collect();
                assert_eq!(json!(effects), expected, "each request is carried out once: {result:#}");
                self.tally.effects += effects.len();
            };
            if language.has_http() {
                once(format!("{begin} {} ", number + 1), json!([round["sent"]]));
            }
            if language.is_concurrent() {
                let answers = round["together"].as_array().expect("a list of answers");
                assert_eq!(answers.len(), 3, "{result:#}");
                once(format!("{begin} together "), json!(answers));
                once(format!("{begin} raced "), json!([round["raced"]]));
            }
        }
    }

    /// Lets the open calls come to their end without a kill.
    fn finish(mut self) -> Tally {
        for _ in 0..=ROUNDS {
            self.until_asked();
            self.take_ended();
            self.answer(1);
        }
        assert!(self.open.is_empty(), "a call waits more often than it has rounds");
        let mut requests = self.server.requests();
        requests.retain(|request| request.method == "POST");
        let carried_out = self.server.carried_out();
        assert_eq!(carried_out.len(), self.tally.effects, "no request belongs to no round: {carried_out:#?}");
        for (key, _) in &carried_out {
            let mut bodies: Vec<_> = requests.iter().filter(|each| each.key == *key).map(|each| &each.body).collect();
            bodies.dedup();
            assert_eq!(bodies.len(), 1, "a request that comes again has the same body: {bodies:?}");
        }
        self.tally.repeated = requests.len() - carried_out.len();
        self.host.kill();
        let verified = self.host.cli(None, &["audit", "verify"]);
        assert_eq!(verified.code, 0, "the kills left the chain whole: {verified:?}");
        self.tally
    }
}

/// The waits of a turn and its nested turns that somebody can end.
fn asked(host: &Host, path_of_turn: &str) -> Vec<Value> {
    let answer = host.agent.get(path_of_turn);
    if answer.status != 200 {
        // A nested turn is submitted after the call waits for it.
        return Vec::new();
    }
    let turn = answer.json();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let has_answer = |open: &Value| ["elicitation", "approval", "external"].map(Value::from).contains(&open["kind"]);
    let own = list(&turn["pending"]).into_iter().filter(has_answer);
    let nested = list(&turn["calls"]).into_iter().flat_map(|call| list(&call["nested"]));
    own.chain(nested.flat_map(|nested| asked(host, &path(&nested)))).collect()
}

/// The answer to a question.
fn word(prompt: &str) -> String {
    format!("go on with {prompt}")
}
