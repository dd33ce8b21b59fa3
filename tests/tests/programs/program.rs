//! Random programs of a durable call, and what people and servers answer them. Both follow from the seed alone, so a kill
//! changes neither.

use std::fmt;

use domain::Json;
use domain::doubt::{self, DecidedRequest, DoubtfulRequest, DoubtfulRequests, RequestDecision};
use domain::suspension::{Decision, Suspension, SuspensionKind};
use serde_json::{Value, json};
use toolgate_tests::effects::Server;
use toolgate_tests::random::Random;

/// Requests to these paths may be sent again, as the operator says.
pub(crate) const IDEMPOTENT: &str = "/sure/";

/// Requests to these paths may not be sent again.
pub(crate) const ONCE: &str = "/once/";

/// Requests to this path have random bodies, and their answers do not tell them. They may be sent again.
pub(crate) const RANDOM: &str = "/sure/unseen";

const MAX_OPERATIONS: usize = 14;

/// The operations of a program that another one calls.
const MAX_NESTED: usize = 5;

/// A program: the operations of the plugin `program`.
pub(crate) struct Program {
    seed: u64,
    operations: Vec<Value>,
    /// The bodies that the server refuses at first, as often as they are named.
    pub(crate) limited: Vec<String>,
}

impl Program {
    pub(crate) fn new(seed: u64, server: &Server) -> Self {
        let mut random = Random::new(seed);
        // A request in doubt ends the call, so most programs have none.
        let may_doubt = random.once_in(4);
        let mut drawn = Drawn { random, server, may_doubt, limited: Vec::new() };
        let operations = drawn.operations("", MAX_OPERATIONS);
        Self { seed, operations, limited: drawn.limited }
    }

    pub(crate) fn arguments(&self) -> String {
        json!({"program": self.operations}).to_string()
    }

    /// The end of a wait, except for one for a nested turn. A step has the same digest in each run of the call, so a kill
    /// changes nothing about it.
    pub(crate) fn end(&self, open: &Suspension) -> WaitEnd {
        let answer = |decision, data: Value| WaitEnd::Answer(decision, Some(Json::unchecked(data.to_string())));
        if let Some(requests) = open.doubtful_requests() {
            // They are sent again, or the call ends in doubt.
            let is_sent = requests.all().iter().all(|request| request.entry.is_multiple_of(2));
            return if is_sent { WaitEnd::SendAgain(sent_again(requests)) } else { WaitEnd::Denial };
        }
        let digest = open.step.as_ref().map_or(open.digest, |step| step.digest);
        let [first, second, ..] = *digest.as_bytes();
        let drawn = self.seed.wrapping_add(first.into());
        if self.seed.wrapping_add(second.into()).is_multiple_of(20) {
            return WaitEnd::Cancellation;
        }
        match open.kind() {
            SuspensionKind::Timer | SuspensionKind::RateLimit => WaitEnd::Time,
            SuspensionKind::Approval if drawn.is_multiple_of(10) => WaitEnd::Denial,
            SuspensionKind::Approval if drawn.is_multiple_of(3) => WaitEnd::Edit(Json::unchecked("\"edited\"")),
            SuspensionKind::Approval => WaitEnd::Answer(Decision::Approve, None),
            SuspensionKind::Elicitation if drawn.is_multiple_of(3) => WaitEnd::Time,
            SuspensionKind::Elicitation => answer(Decision::Answer("answer".into()), json!(drawn)),
            SuspensionKind::External => answer(Decision::Result, json!(format!("job {drawn}"))),
            other => panic!("no program knows the end of a suspension of the kind {}: {self}", other.as_str()),
        }
    }
}

/// The end of a wait.
pub(crate) enum WaitEnd {
    /// A decision, with data.
    Answer(Decision, Option<Json>),
    Denial,
    /// An approval of another value.
    Edit(Json),
    /// A decision to send requests in doubt again.
    SendAgain(Json),
    /// Its time comes.
    Time,
    /// Somebody cancels the whole call.
    Cancellation,
}

/// The decision to send each of these requests again.
fn sent_again(requests: &DoubtfulRequests) -> Json {
    let decided =
        |request: &DoubtfulRequest| DecidedRequest { entry: request.entry, decision: RequestDecision::SendAgain };
    doubt::value_of(&requests.all().iter().map(decided).collect::<Vec<_>>())
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the program with the seed {}:", self.seed)?;
        self.operations.iter().enumerate().try_for_each(|(number, operation)| writeln!(f, "{number:4} {operation}"))
    }
}

/// Draws operations.
struct Drawn<'a> {
    random: Random,
    server: &'a Server,
    /// Whether a request may not be sent again.
    may_doubt: bool,
    limited: Vec<String>,
}

impl Drawn<'_> {
    /// `caller`: the operation that calls this program, or nothing.
    fn operations(&mut self, caller: &str, max: usize) -> Vec<Value> {
        let length = 1 + self.random.below(max);
        (0..length).map(|n| self.operation(caller.is_empty(), &format!("{caller}{n}"))).collect()
    }

    /// An operation of this name. `is_outer`: no other program calls it.
    fn operation(&mut self, is_outer: bool, name: &str) -> Value {
        match self.random.below(23) {
            0 => json!({"do": "get", "key": self.key("value")}),
            1 => json!({"do": "set", "key": self.key("value"), "value": name}),
            2 => json!({"do": "delete", "key": self.key("value")}),
            3 => json!({"do": "increment", "key": self.key("count"), "by": 1 + self.random.below(9)}),
            4 => json!({"do": "append", "key": self.key("text"), "text": name}),
            5 => json!({"do": "keys"}),
            6 => json!({"do": "send", "method": "GET", "url": self.server.url(IDEMPOTENT), "body": null}),
            7..11 => self.post(is_outer, name),
            11 => {
                let expires = 1_000 + self.random.below(100_000);
                json!({"do": "ask", "prompt": name, "expires_ms": self.random.once_in(2).then_some(expires)})
            }
            12 => json!({"do": "approve", "value": name, "who": ["role:approver"], "quorum": 1}),
            13 => json!({"do": "await", "signal": name}),
            14 => json!({"do": "sleep", "ms": 1_000 + self.random.below(100_000)}),
            15 => json!({"do": "now"}),
            // A nested turn that a kill kept from the disk has another id the next time, and so other random numbers. Nothing but
            // the request of `send_random` may depend on them.
            16 if is_outer => json!({"do": "random"}),
            17 => json!({"do": "config", "name": "region"}),
            18 if is_outer => {
                let program = self.operations(&format!("{name}."), MAX_NESTED);
                json!({"do": "call", "calls": [{"tool": "run", "arguments": {"program": program}}]})
            }
            19 => self.together(is_outer, name),
            20 => json!({"do": "send_random", "url": self.server.url(RANDOM)}),
            // It keeps the instance.
            21 => json!({"do": "sleep", "ms": 1 + self.random.below(3)}),
            _ => json!({"do": "log", "line": name}),
        }
    }

    /// A key for values of a kind.
    fn key(&mut self, kind: &str) -> String {
        format!("{kind}{}", self.random.below(2))
    }

    /// A request with the name as its body.
    fn post(&mut self, is_outer: bool, name: &str) -> Value {
        let path = self.path(is_outer, name);
        json!({"do": "send", "method": "POST", "url": self.server.url(path), "body": name})
    }

    /// Three requests at once, and perhaps a timer.
    fn together(&mut self, is_outer: bool, name: &str) -> Value {
        let authority = self.server.url("").replace("http://", "");
        let posts = ["a", "b", "c"].map(|end| {
            let body = format!("{name}{end}");
            json!({"authority": authority, "path": self.path(is_outer, &body), "body": body})
        });
        let timer = 1_000 + self.random.below(20_000);
        json!({"do": "together", "posts": posts, "timer": self.random.once_in(2).then_some(timer)})
    }

    /// The path of a request with this body. The server may refuse it a few times.
    fn path(&mut self, is_outer: bool, body: &str) -> &'static str {
        let times = if self.random.once_in(3) { 1 + self.random.below(2) } else { 0 };
        self.limited.extend(std::iter::repeat_n(body.to_owned(), times));
        let is_once = is_outer && self.may_doubt && times == 0 && self.random.once_in(2);
        if is_once { ONCE } else { IDEMPOTENT }
    }
}
