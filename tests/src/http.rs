//! A client of the host's HTTP API for one principal. A test expects a status or the code of a problem.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::{HeaderMap, Request};
use ureq::{Agent, Body};

use crate::sse::Events;

/// The time limit of a request. It is longer than the longest wait that a host grants, so only a host that hangs
/// reaches it.
const PATIENCE: Duration = Duration::from_secs(90);

/// How long a connection is kept for the next request. The host keeps it for longer, so it does not close it while a
/// request arrives.
const KEPT: Duration = Duration::from_secs(5);

/// The maximum number of times that a request is sent. Each time, the host closes the connection.
const SENDS: u32 = 100;

/// The maximum number of reads of [`Client::until`].
const TRIES: u32 = 1_000_000;

/// How long a test waits for a turn. Only a turn that hangs reaches it.
const WAIT: &str = "wait_ms=60000";

/// The number of ids for calls so far.
static CALLS: AtomicU64 = AtomicU64::new(1);

/// The address of the host. Its port changes with each start.
#[derive(Clone, Default)]
pub struct Address(Arc<Mutex<String>>);

impl Address {
    /// The URL without a path.
    #[must_use]
    pub fn get(&self) -> String {
        self.locked().clone()
    }

    pub(crate) fn set(&self, url: String) {
        *self.locked() = url;
    }

    /// Clients wait for the address until the guard is dropped.
    pub(crate) fn locked(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A principal that uses a host.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    address: Address,
    token: Option<String>,
}

/// A response.
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub text: String,
    /// The request, for messages.
    asked: String,
}

impl Client {
    /// A client without a token, or with this one.
    #[must_use]
    pub fn new(address: &Address, token: Option<&str>) -> Self {
        Self { agent: agent(PATIENCE), address: address.clone(), token: token.map(str::to_owned) }
    }

    /// The same principal on connections of its own. It closes one on which it has waited for a response for this long.
    #[must_use]
    pub fn leaving_after(&self, patience: Duration) -> Self {
        Self { agent: agent(patience), ..self.clone() }
    }

    /// The same principal at another host.
    #[must_use]
    pub fn at(&self, address: &Address) -> Self {
        Self { address: address.clone(), agent: agent(PATIENCE), ..self.clone() }
    }

    /// Where the host listens.
    #[must_use]
    pub fn url(&self) -> String {
        self.address.get()
    }

    /// The token.
    #[must_use]
    pub fn token(&self) -> &str {
        self.token.as_deref().unwrap_or_default()
    }

    /// Sends any request. After an error of the connection, it is unknown whether the host carried the request out.
    ///
    /// # Errors
    /// When the response is incomplete.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Answer, ureq::Error> {
        let response = self.run(method, path, headers, body)?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.into_body().into_with_config().limit(u64::MAX).read_to_string()?;
        Ok(Answer { status, headers, text, asked: format!("{method} {path}") })
    }

    /// Sends a request, and sends it again while the host closes its connection: a host with too many connections closes
    /// those that wait, and a request can be on its way to one. A host that restarts is waited for. The request must have
    /// the same effect if the host carries it out twice.
    ///
    /// # Errors
    /// When the response is incomplete.
    pub fn send_again(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, ureq::Error> {
        let send = || self.send(method, path, headers, body);
        let answered = (1..SENDS).find_map(|_| Some(send()).filter(|answer| !is_disconnected(answer)));
        answered.unwrap_or_else(send)
    }

    fn run(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<ureq::http::Response<Body>, ureq::Error> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.address.get()));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        // Some methods have no body.
        if body.is_empty() { self.agent.run(request.body(())?) } else { self.agent.run(request.body(body.to_vec())?) }
    }

    fn must(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        // The methods of RFC 9110, section 9.2.2, that have the same effect if they are carried out twice.
        let answer = match method {
            "GET" | "PUT" | "DELETE" => self.send_again(method, path, headers, body),
            _ => self.send(method, path, headers, body),
        };
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// The status of a response. Does not wait for the body, because that of a stream never ends.
    ///
    /// # Panics
    /// When there is no response.
    #[must_use]
    pub fn status(&self, method: &str, path: &str, body: &str) -> u16 {
        let headers: &[_] = if body.is_empty() { &[] } else { &[("content-type", "application/json")] };
        let response = self.run(method, path, headers, body.as_bytes());
        response.unwrap_or_else(|error| panic!("{method} {path}: {error}")).status().as_u16()
    }

    /// Reads.
    #[must_use]
    pub fn get(&self, path: &str) -> Answer {
        self.must("GET", path, &[], b"")
    }

    /// Reads until this finds something in the response.
    ///
    /// # Panics
    /// When it is not found after very many reads, which take minutes.
    pub fn until<T>(&self, path: &str, find: impl Fn(&Answer) -> Option<T>) -> T {
        for _ in 0..TRIES {
            if let Some(found) = find(&self.get(path)) {
                return found;
            }
            std::thread::yield_now();
        }
        panic!("{path}: nothing found in {}", self.get(path).text)
    }

    /// Posts JSON.
    #[must_use]
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_text(path, &body.to_string())
    }

    /// Posts any text as JSON.
    #[must_use]
    pub fn post_text(&self, path: &str, body: &str) -> Answer {
        self.must("POST", path, &[("content-type", "application/json")], body.as_bytes())
    }

    /// Posts without a body.
    #[must_use]
    pub fn post_nothing(&self, path: &str) -> Answer {
        self.must("POST", path, &[], b"")
    }

    /// Puts a component.
    #[must_use]
    pub fn put(&self, path: &str, body: &[u8]) -> Answer {
        self.must("PUT", path, &[("content-type", "application/wasm")], body)
    }

    /// Deletes.
    #[must_use]
    pub fn delete(&self, path: &str) -> Answer {
        self.must("DELETE", path, &[], b"")
    }

    /// Submits these calls as a new turn, and returns it when no guest of it runs.
    #[must_use]
    pub fn submit(&self, conversation: &str, calls: Value) -> Value {
        self.submit_turn(conversation, &json!({"calls": calls}))
    }

    /// Submits a new turn with this body, and returns it when no guest of it runs.
    #[must_use]
    pub fn submit_turn(&self, conversation: &str, body: &Value) -> Value {
        let path = format!("/v1/conversations/{conversation}/turns?{WAIT}");
        let (headers, text) = ([("content-type", "application/json")], body.to_string());
        let answer = self.send("POST", &path, &headers, text.as_bytes());
        if is_disconnected(&answer) {
            // The calls have ids, so the turn can be sent again. The host may have it already.
            let again = self.send_again("POST", &path, &headers, text.as_bytes());
            let again = again.unwrap_or_else(|error| panic!("POST {path}: {error}"));
            let status = if again.status == 200 { 200 } else { 201 };
            return again.ok(status);
        }
        answer.unwrap_or_else(|error| panic!("POST {path}: {error}")).ok(201)
    }

    /// Submits one call as a turn, and returns it when no guest of it runs.
    #[must_use]
    pub fn call(&self, conversation: &str, tool: &str, arguments: Value) -> Value {
        let id = format!("call-{}", CALLS.fetch_add(1, Ordering::Relaxed));
        self.submit(conversation, json!([{"id": id, "tool": tool, "arguments": arguments}]))
    }

    /// Waits for the end of a turn.
    ///
    /// # Panics
    /// When it does not end.
    #[must_use]
    pub fn settled(&self, turn: &Value) -> Value {
        let turn = self.get(&format!("{}?{WAIT}", path(turn))).ok(200);
        assert_ne!(turn["state"], "open", "the turn does not end: {turn:#}");
        turn
    }

    /// Answers a suspension.
    #[must_use]
    pub fn resolve(&self, suspension: &str, answer: Value) -> Answer {
        self.post(&format!("/v1/suspensions/{suspension}/resolve"), &answer)
    }

    /// Follows a stream of events.
    ///
    /// # Panics
    /// Without one.
    #[must_use]
    pub fn events(&self, path: &str) -> Events {
        self.events_after(path, None)
    }

    /// Follows a stream of events after the one with this id.
    ///
    /// # Panics
    /// Without one.
    #[must_use]
    pub fn events_after(&self, path: &str, last: Option<&str>) -> Events {
        let stream = self.stream(path, last);
        let (status, events) = stream.unwrap_or_else(|error| panic!("GET {path}: {error}"));
        assert_eq!(status, 200, "GET {path}");
        events
    }

    /// As [`Client::events_after`], with the status of the response. A host that refuses sends no events.
    ///
    /// # Errors
    /// When there is no response.
    pub fn stream(&self, path: &str, last: Option<&str>) -> Result<(u16, Events), ureq::Error> {
        let headers: Vec<_> = last.map(|last| ("last-event-id", last)).into_iter().collect();
        let response = self.run("GET", path, &headers, b"")?;
        let status = response.status().as_u16();
        Ok((status, Events::new(response.into_body().into_with_config().limit(u64::MAX).reader())))
    }
}

impl Answer {
    /// The body as JSON.
    ///
    /// # Panics
    /// When it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{}: {error}: {}", self.asked, self.text))
    }

    /// The body as JSON. Checks the status.
    ///
    /// # Panics
    /// When the status is another.
    #[must_use]
    #[track_caller]
    pub fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}: {}", self.asked, self.text);
        self.json()
    }

    /// The problem. Checks the status and the code.
    ///
    /// # Panics
    /// When the response is not this problem.
    #[track_caller]
    #[expect(clippy::must_use_candidate, reason = "a test often checks only the code of the problem")]
    pub fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}: {}", self.asked, self.text);
        let kind = self.headers.get("content-type").and_then(|kind| kind.to_str().ok());
        assert_eq!(kind, Some("application/problem+json"), "{}", self.asked);
        let problem = self.json();
        assert_eq!(problem["code"], code, "{}: {}", self.asked, self.text);
        assert_eq!(problem["status"], status, "{}: {}", self.asked, self.text);
        assert_eq!(problem["type"], format!("/problems/{code}"), "{}: {}", self.asked, self.text);
        problem
    }
}

fn agent(patience: Duration) -> Agent {
    let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(patience));
    config.max_redirects(0).max_idle_age(KEPT).build().new_agent()
}

/// Whether the host has closed the connection of a request, or was not there.
fn is_disconnected(answer: &Result<Answer, ureq::Error>) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, UnexpectedEof};
    let Err(ureq::Error::Io(error)) = answer else { return false };
    matches!(error.kind(), BrokenPipe | ConnectionRefused | ConnectionReset | UnexpectedEof)
}

/// The path of a turn.
#[must_use]
pub fn path(turn: &Value) -> String {
    let part = |name: &str| turn[name].as_str().unwrap_or_else(|| panic!("not a turn: {turn:#}")).to_owned();
    format!("/v1/conversations/{}/turns/{}", part("conversation"), part("turn"))
}

/// The outcome of each call of a turn, in order: `ok`, `denied`, `failed(out_of_time)`, or its status if it is open.
#[must_use]
pub fn outcomes(turn: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let outcome = |call: &Value| match call["outcome"].as_str() {
        None => word(&call["status"]),
        Some("failed") => format!("failed({})", word(&call["content"]["error"]["code"])),
        Some(outcome) => outcome.to_owned(),
    };
    turn["calls"].as_array().into_iter().flatten().map(outcome).collect()
}

/// The id of the only open suspension of a turn.
///
/// # Panics
/// When it has no or several open suspensions.
#[must_use]
#[track_caller]
pub fn suspension_of(turn: &Value) -> String {
    match turn["pending"].as_array().map(Vec::as_slice) {
        Some([one]) => one["suspension"].as_str().expect("an id").to_owned(),
        _ => panic!("the turn should have one open suspension: {turn:#}"),
    }
}
