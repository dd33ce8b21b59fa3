//! Relays the messages of a client on standard input and output to the `/mcp` of a running host. Each message is one request.
//! Its answer is a line, or a stream whose messages become lines as they arrive.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::Body;
use ureq::http::{Response, header};

use super::marked;
use crate::address;
use crate::client::Client;
use crate::report::Report;

const PATH: &str = "/mcp";

/// The media type of a stream.
const EVENTS: &str = "text/event-stream";

/// The maximum size of a message, and of the answer to one, in bytes.
const MAX_MESSAGE: u64 = 64 << 20;

/// The maximum number of requests that wait for their answers. The next message waits for one of them.
const MAX_REQUESTS: usize = 64;

/// The maximum time of a request. The host answers earlier.
const TIME: Duration = Duration::from_secs(120);

/// How long to wait before a stream that has ended begins again.
const BEFORE_NEXT: Duration = Duration::from_secs(1);

/// The first revision whose requests carry the headers about their content.
const WITH_HEADERS: &str = "2026-07-28";

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

const LIST_CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// JSON-RPC: the host has not answered.
const INTERNAL_ERROR: i64 = -32603;

/// The headers of a request do not repeat what they must.
const HEADER_MISMATCH: i64 = -32020;

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Params,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    task_id: Option<String>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    request_id: Option<Value>,
    #[serde(default, rename = "_meta")]
    meta: serde_json::Map<String, Value>,
}

/// An answer of the host.
enum Answer {
    /// One message, or none to a notification.
    Whole(Option<String>),
    /// Notifications, and then the message.
    Stream(Box<dyn BufRead>),
}

impl Answer {
    fn whole(&self) -> Option<&str> {
        match self {
            Self::Whole(answer) => answer.as_deref(),
            Self::Stream(_) => None,
        }
    }
}

/// The members of an answer that the relay reads.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Negotiated {
    protocol_version: String,
}

/// The requests of the client.
struct Relay {
    client: Client,
    state: Mutex<State>,
    /// Notified when a request ends.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// The revision that `initialize` agreed on.
    version: Option<String>,
    /// Whether the changes of the tools are passed on.
    is_following: bool,
    requests: usize,
    /// The ids of requests under way, and whether the client has cancelled each. It expects no answers to those.
    under_way: HashMap<String, bool>,
}

/// Relays until the client closes standard input.
pub(super) fn run(client: Client) -> Result<(), Report> {
    let relay = Arc::new(Relay { client, state: Mutex::default(), ended: Condvar::new() });
    let mut input = BufReader::new(io::stdin().lock());
    loop {
        let mut line = Vec::new();
        let read = (&mut input).take(MAX_MESSAGE).read_until(b'\n', &mut line).context("cannot read standard input")?;
        if read == 0 {
            return Ok(());
        }
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        match serde_json::from_slice::<Message>(line) {
            Ok(message) => relay.take(message, line.to_vec()),
            // The host says what is wrong with it.
            Err(_) => relay.take(Message { id: None, method: None, params: Params::default() }, line.to_vec()),
        }
    }
}

impl Relay {
    /// Takes a message. Requests are answered on threads of their own, except `initialize`, which decides how later ones are
    /// sent.
    fn take(self: &Arc<Self>, message: Message, text: Vec<u8>) {
        match (&message.id, message.method.as_deref()) {
            // The host keeps nothing between two requests, so no other notification changes anything.
            (None, Some(method)) => {
                if let ("notifications/cancelled", Some(id)) = (method, &message.params.request_id)
                    && let Some(is_cancelled) = self.locked().under_way.get_mut(&id.to_string())
                {
                    *is_cancelled = true;
                }
                if method == "notifications/initialized" && !std::mem::replace(&mut self.locked().is_following, true) {
                    let relay = self.clone();
                    std::thread::spawn(move || relay.pass_on_changes());
                }
            }
            (_, Some("initialize")) => self.answer(&message, &text),
            _ => {
                let mut state = self.locked();
                while state.requests >= MAX_REQUESTS {
                    state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                state.requests += 1;
                state.under_way.extend(message.id.as_ref().map(|id| (id.to_string(), false)));
                drop(state);
                let relay = self.clone();
                std::thread::spawn(move || {
                    relay.answer(&message, &text);
                    relay.locked().requests -= 1;
                    relay.ended.notify_one();
                });
            }
        }
    }

    fn answer(&self, message: &Message, text: &[u8]) {
        let passed = match self.exchange(message, text) {
            Ok(Answer::Whole(answer)) => {
                self.write(message, answer.as_deref());
                Ok(())
            }
            Ok(Answer::Stream(events)) => self.pass_on(message, events),
            Err(why) => Err(why),
        };
        if let Err(why) = passed {
            self.write(message, Some(&failed(message.id.as_ref(), &why)));
        }
        if let Some(id) = &message.id {
            self.locked().under_way.remove(&id.to_string());
        }
    }

    /// Writes a message of the answer as a line, unless the client has cancelled the request.
    fn write(&self, request: &Message, line: Option<&str>) {
        if let Some(line) = line.filter(|_| !self.is_cancelled(request)) {
            let mut output = io::stdout().lock();
            // If nobody reads it, the client ends soon.
            let _ = writeln!(output, "{line}").and_then(|()| output.flush());
        }
    }

    fn is_cancelled(&self, request: &Message) -> bool {
        let id = request.id.as_ref();
        id.is_some_and(|id| self.locked().under_way.get(&id.to_string()) == Some(&true))
    }

    /// Writes the messages of a stream until its answer. It reads the next one when the client has read this one.
    fn pass_on(&self, request: &Message, mut events: impl BufRead) -> Result<(), String> {
        while !self.is_cancelled(request) {
            let line = event(&mut events).map_err(|error| format!("the answer of the host is incomplete: {error}"))?;
            let line = line.ok_or("the host has ended the answer; send the request again")?;
            self.write(request, Some(&line).filter(|line| !line.is_empty()).map(String::as_str));
            let is_answer = serde_json::from_str::<Message>(&line).is_ok_and(|message| message.method.is_none());
            if is_answer {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Writes the changes of the tools, for a client of an older revision. It begins again when the host has restarted. The tools
    /// may have changed in between.
    fn pass_on_changes(&self) {
        let none = Message { id: None, method: None, params: Params::default() };
        let mut has_begun = false;
        loop {
            let version = self.locked().version.clone();
            let version = version.iter().map(|version| ("mcp-protocol-version", version.as_str()));
            let headers: Vec<_> = version.chain([("accept", EVENTS)]).collect();
            match self.client.stream(PATH, &[], &headers) {
                Ok(events) => {
                    self.write(&none, Some(LIST_CHANGED).filter(|_| has_begun));
                    has_begun = true;
                    // The error says that the stream has ended.
                    drop(self.pass_on(&none, events));
                }
                Err(report) if report.is_temporary() => {}
                // The host has no such stream, or not for this client.
                Err(_) => return,
            }
            std::thread::sleep(BEFORE_NEXT);
        }
    }

    /// Sends a message, and returns the answer.
    fn exchange(&self, message: &Message, text: &[u8]) -> Result<Answer, String> {
        let of_message = message.params.meta.get(VERSION).and_then(Value::as_str).map(str::to_owned);
        let version = of_message.or_else(|| self.locked().version.clone());
        let mut headers = vec![("accept", "application/json, text/event-stream")];
        headers.extend(version.as_deref().map(|version| ("mcp-protocol-version", version)));
        if version.as_deref().is_some_and(|version| version >= WITH_HEADERS) {
            headers.extend(message.method.as_deref().map(|method| ("mcp-method", method)));
            let params = &message.params;
            let name = [&params.name, &params.task_id, &params.uri].into_iter().flatten().next();
            headers.extend(name.map(|name| ("mcp-name", &**name)));
        }
        // It lasts until the client or the host ends it.
        let time = Some(TIME).filter(|_| message.method.as_deref() != Some("subscriptions/listen"));
        let mut answer = self.send(&headers, text, time)?;
        if message.method.as_deref() == Some("tools/call") && is_mismatch(&answer) {
            let marked = self.marked(message, text, &headers)?;
            headers.extend(marked.iter().map(|(name, value)| (name.as_str(), value.as_str())));
            answer = self.send(&headers, text, time)?;
        }
        if message.method.as_deref() == Some("initialize") {
            let result = answer.whole().and_then(|answer| serde_json::from_str::<Value>(answer).ok());
            let result = result.and_then(|mut answer| answer.get_mut("result").map(Value::take));
            let negotiated = result.and_then(|result| serde_json::from_value::<Negotiated>(result).ok());
            self.locked().version = negotiated.map(|negotiated| negotiated.protocol_version);
        }
        Ok(answer)
    }

    fn send(&self, headers: &[(&str, &str)], text: &[u8], time: Option<Duration>) -> Result<Answer, String> {
        let mut answer = self.client.send(PATH, headers, text, time);
        if answer.as_ref().is_err_and(address::was_not_sent) {
            answer = self.client.send(PATH, headers, text, time);
        }
        read(answer.map_err(|error| format!("the host does not answer: {error}"))?)
    }

    /// The headers that repeat arguments of this call. A client over a pipe sends none.
    fn marked(&self, call: &Message, text: &[u8], headers: &[(&str, &str)]) -> Result<Vec<(String, String)>, String> {
        let list =
            json!({ "jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": { "_meta": call.params.meta } });
        let of_list = headers.iter().filter(|(name, _)| *name != "mcp-method" && *name != "mcp-name");
        let of_list: Vec<_> = of_list.copied().chain([("mcp-method", "tools/list")]).collect();
        let answer = self.send(&of_list, list.to_string().as_bytes(), Some(TIME))?;
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let listed = answer.whole().map(read).unwrap_or_default();
        let tools = listed.pointer("/result/tools").and_then(Value::as_array);
        let name = call.params.name.as_deref();
        let tool = tools.and_then(|tools| tools.iter().find(|tool| tool["name"].as_str() == name));
        let arguments = read(str::from_utf8(text).unwrap_or_default());
        let of_tool = |tool: &Value| marked::headers(&tool["inputSchema"], &arguments["params"]["arguments"]);
        Ok(tool.map(of_tool).unwrap_or_default())
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the answer is that headers are missing.
fn is_mismatch(answer: &Answer) -> bool {
    #[derive(Deserialize)]
    struct Refused {
        error: Code,
    }
    #[derive(Deserialize)]
    struct Code {
        code: i64,
    }
    let refused = answer.whole().and_then(|answer| serde_json::from_str::<Refused>(answer).ok());
    refused.is_some_and(|refused| refused.error.code == HEADER_MISMATCH)
}

/// Reads an answer, except for a stream. A refusal of the host's API is an error.
fn read(answer: Response<Body>) -> Result<Answer, String> {
    let status = answer.status();
    let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if status.is_success() && kind == EVENTS {
        let events = answer.into_body().into_with_config().limit(u64::MAX).reader();
        return Ok(Answer::Stream(Box::new(BufReader::new(events))));
    }
    let text = answer.into_body().into_with_config().limit(MAX_MESSAGE).read_to_string();
    let text = text.map_err(|error| format!("the answer of the host is incomplete: {error}"))?;
    if kind == "application/json" {
        // JSON has line ends only between its tokens.
        return Ok(Answer::Whole(Some(text.replace(['\n', '\r'], " "))));
    }
    if status.is_success() {
        return Ok(Answer::Whole(None));
    }
    let problem: api::Problem = serde_json::from_str(&text).unwrap_or_default();
    Err(if problem.detail.is_empty() { format!("the host answered {status}") } else { problem.detail })
}

/// The message of the next event. Empty for a comment. `None` at the end of the stream.
fn event(events: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut message = String::new();
    loop {
        let mut line = String::new();
        let rest = MAX_MESSAGE - message.len() as u64;
        if events.by_ref().take(rest).read_line(&mut line)? == 0 {
            return if rest == 0 { Err(io::Error::other("a message is too large")) } else { Ok(None) };
        }
        match line.strip_prefix("data:") {
            Some(data) => message.push_str(data.trim()),
            None if line.trim().is_empty() => return Ok(Some(message)),
            None => {}
        }
    }
}

/// The answer to a request that failed on its way.
fn failed(id: Option<&Value>, why: &str) -> String {
    let mut answer = json!({ "jsonrpc": "2.0", "error": { "code": INTERNAL_ERROR, "message": why } });
    if let Some(id) = id {
        answer["id"] = id.clone();
    }
    answer.to_string()
}
