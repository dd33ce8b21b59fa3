//! A connection to a URL (Streamable HTTP): one request of HTTP for each message, and one session.

mod exchange;
mod sse;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dispatch::ports::Clock;
use domain::Span;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::exchange::{Answered, Http, NoResponse};
use self::sse::{Event, Events};
use crate::message::{self, Answer, Incoming, NoAnswer};
use crate::pause::Pause;
use crate::settings::{Endpoint, Parts};
use crate::unasked::Unasked;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The longest id of a session, in bytes.
const MAX_SESSION: usize = 1 << 10;

/// The time for a message without an answer.
const NOTICE: Duration = Duration::from_secs(5);

/// The streams of one answer, and the pauses between them, in milliseconds.
const MAX_STREAMS: usize = 32;
const MIN_PAUSE: u64 = 100;
const MAX_PAUSE: u64 = 10_000;

/// Ends its session when it is dropped.
pub(crate) struct Remote {
    shared: Arc<Shared>,
    /// The threads for I/O.
    runtime: Handle,
}

struct Shared {
    http: Http,
    max: usize,
    clock: Arc<dyn Clock>,
    next: AtomicU64,
    session: Mutex<Session>,
    pause: Arc<Pause>,
    unasked: Mutex<Unasked>,
    /// Why the connection has ended.
    ended: watch::Sender<Option<String>>,
    has_lost_session: AtomicBool,
    /// Whether the server said that its tools have changed.
    changed: AtomicBool,
}

#[derive(Default)]
struct Session {
    id: Option<HeaderValue>,
    revision: Option<HeaderValue>,
}

impl Remote {
    /// # Errors
    /// Why no request can be sent. The text continues a sentence about the server.
    pub(crate) fn new(endpoint: &Endpoint, max: usize, parts: &Parts, pause: Arc<Pause>) -> Result<Self, String> {
        Ok(Self::over(Http::new(endpoint)?, max, parts, pause))
    }

    fn over(http: Http, max: usize, parts: &Parts, pause: Arc<Pause>) -> Self {
        let (clock, runtime) = (parts.clock.clone(), parts.runtime.clone());
        let shared = Shared {
            http,
            max,
            next: AtomicU64::default(),
            session: Mutex::default(),
            pause,
            unasked: Mutex::new(Unasked::new(clock.now(), max)),
            clock,
            ended: watch::Sender::default(),
            has_lost_session: AtomicBool::default(),
            changed: AtomicBool::default(),
        };
        Self { shared: Arc::new(shared), runtime }
    }

    pub(crate) async fn initialized(&self, revision: &str) -> Result<(), String> {
        self.shared.session().revision = HeaderValue::try_from(revision).ok();
        let (shared, text) = (self.shared.clone(), message::notification("notifications/initialized", "{}"));
        let sent = self.runtime.spawn(async move { shared.notify(text).await });
        sent.await.unwrap_or_else(|_| Err("could not be asked for its tools".to_owned()))
    }

    pub(crate) fn ended(&self) -> Option<String> {
        self.shared.ended.borrow().clone()
    }

    pub(crate) fn has_lost_session(&self) -> bool {
        self.shared.has_lost_session.load(Ordering::Acquire)
    }

    pub(crate) fn kill(&self, why: &str) {
        self.shared.end(why);
    }

    pub(crate) fn take_changed(&self) -> bool {
        self.shared.changed.swap(false, Ordering::AcqRel)
    }

    /// Sends a request and waits for its answer. If the future is dropped, the server gets a cancellation.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub(crate) async fn request(&self, method: &str, params: &str, at_most: Span) -> Result<Answer, NoAnswer> {
        if let Some(why) = self.ended() {
            return Err(NoAnswer::NotSent(why));
        }
        if self.has_lost_session() {
            return Err(NoAnswer::SessionEnded);
        }
        self.shared.pause.check().map_err(NoAnswer::NotSent)?;
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let (shared, text) = (self.shared.clone(), message::request(id, method, params));
        let is_first = method == "initialize";
        let running = self.runtime.spawn(async move { shared.asked(id, text, is_first).await });
        let mut waiting = Waiting { remote: self, id, running, is_open: true };
        let mut ended = self.shared.ended.subscribe();
        let answered = async {
            tokio::select! {
                // An answer counts, also if the connection ends at the same moment.
                biased;
                answer = &mut waiting.running => {
                    waiting.is_open = false;
                    answer.unwrap_or_else(|_| Err(NoAnswer::Unknown("could not be asked".to_owned())))
                }
                _ = ended.wait_for(Option::is_some) => {
                    Err(NoAnswer::Unknown(self.ended().unwrap_or_else(|| "has ended".to_owned())))
                }
            }
        };
        let answered = tokio::time::timeout(Duration::from_millis(at_most.millis()), answered).await;
        answered.unwrap_or(Err(NoAnswer::OutOfTime))
    }

    /// Tells the server something that it need not hear.
    fn tell(&self, text: String) {
        let shared = self.shared.clone();
        drop(self.runtime.spawn(async move { shared.notify(text).await }));
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.shared.end("was stopped");
        if self.shared.session().id.is_some() && !self.has_lost_session() {
            let shared = self.shared.clone();
            let end =
                async move { tokio::time::timeout(NOTICE, shared.sent(Method::DELETE, String::new(), None)).await };
            drop(self.runtime.spawn(end));
        }
    }
}

/// A request without an answer. If it is given up, its HTTP connection is closed, and the server gets a cancellation.
struct Waiting<'a> {
    remote: &'a Remote,
    id: u64,
    running: JoinHandle<Result<Answer, NoAnswer>>,
    is_open: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.running.abort();
            let params = format!(r#"{{"requestId":{}}}"#, self.id);
            self.remote.tell(message::notification("notifications/cancelled", &params));
        }
    }
}

impl Shared {
    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, why: &str) {
        self.ended.send_if_modified(|ended| {
            let is_first = ended.is_none();
            ended.get_or_insert_with(|| why.to_owned());
            is_first
        });
    }

    /// The server has broken a rule, so the connection ends.
    fn broken(&self, why: String) -> NoAnswer {
        self.end(&why);
        NoAnswer::Unknown(why)
    }

    /// Sends a message without an answer.
    async fn notify(&self, text: String) -> Result<(), String> {
        let sent = tokio::time::timeout(NOTICE, self.sent(Method::POST, text, None)).await;
        match sent {
            Err(_) => Err(format!("does not answer within {} seconds", NOTICE.as_secs())),
            Ok(Err(NoResponse::NotSent(why) | NoResponse::Unknown(why))) => Err(why),
            Ok(Ok(answered)) if answered.head.status.is_success() => Ok(()),
            Ok(Ok(answered)) => Err(self.refusal(&answered)),
        }
    }

    async fn sent(&self, method: Method, text: String, last: Option<&str>) -> Result<Answered, NoResponse> {
        let mut headers = Vec::new();
        {
            let session = self.session();
            headers.extend(session.id.clone().map(|id| (SESSION, id)));
            headers.extend(session.revision.clone().map(|revision| (REVISION, revision)));
        }
        headers.extend(last.and_then(|last| Some((LAST_EVENT, HeaderValue::try_from(last).ok()?))));
        self.http.send(method, headers, text).await
    }

    /// Sends a request and reads its answer.
    async fn asked(&self, id: u64, text: String, is_first: bool) -> Result<Answer, NoAnswer> {
        let answered = self.sent(Method::POST, text, None).await;
        let mut answered = answered.map_err(|none| match none {
            NoResponse::NotSent(why) => NoAnswer::NotSent(why),
            NoResponse::Unknown(why) => NoAnswer::Unknown(why),
        })?;
        let status = answered.head.status;
        if status == StatusCode::NOT_FOUND && self.session().id.is_some() {
            self.has_lost_session.store(true, Ordering::Release);
            return Err(NoAnswer::SessionEnded);
        }
        if !status.is_success() {
            return self.refused(id, &mut answered).await;
        }
        if is_first {
            self.begin(&answered).map_err(|why| self.broken(why))?;
        }
        if answered.head.headers.contains_key(CONTENT_ENCODING) {
            return Err(self.broken("compresses its answers, which this host did not accept".to_owned()));
        }
        match kind(&answered).as_str() {
            "application/json" => self.single(id, &mut answered).await,
            "text/event-stream" => self.streamed(id, answered).await,
            _ => {
                let why = format!("answered {status} to a request, with neither JSON nor events");
                Err(self.broken(why))
            }
        }
    }

    /// Keeps the id of the session.
    fn begin(&self, answered: &Answered) -> Result<(), String> {
        let Some(id) = answered.head.headers.get(SESSION) else { return Ok(()) };
        let is_legal =
            (1..=MAX_SESSION).contains(&id.len()) && id.as_bytes().iter().all(|byte| (b'!'..=b'~').contains(byte));
        if !is_legal {
            return Err("named its session with an illegal id".to_owned());
        }
        self.session().id = Some(id.clone());
        Ok(())
    }

    /// The answer to a request that the server refused. A status of 4xx says that nothing was carried out, except for 408.
    async fn refused(&self, id: u64, answered: &mut Answered) -> Result<Answer, NoAnswer> {
        let refusal = self.refusal(answered);
        if answered.head.status == StatusCode::BAD_REQUEST
            && kind(answered) == "application/json"
            && let Ok(body) = answered.whole(self.max).await
            && let Ok(Incoming::Answer { id: of, answer: answer @ Answer::Error { .. } }) = message::read(&body)
            && of == id
        {
            return Ok(answer);
        }
        let is_refused = answered.head.status.is_client_error() && answered.head.status != StatusCode::REQUEST_TIMEOUT;
        Err(if is_refused { NoAnswer::NotSent(refusal) } else { NoAnswer::Unknown(refusal) })
    }

    /// The meaning of a status. The text continues a sentence about the server.
    fn refusal(&self, answered: &Answered) -> String {
        let (status, headers) = (answered.head.status, &answered.head.headers);
        let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok());
        let is_busy = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        if is_busy && let Some(seconds) = seconds {
            let seconds = self.pause.begin(seconds);
            return format!("is busy (HTTP {}) and asks for a pause of {seconds} seconds", status.as_u16());
        }
        let number = status.as_u16();
        match (number, &self.http.endpoint().token) {
            (401, None) => "asks for a token (HTTP 401): name it with `token_file` or `token_env`".to_owned(),
            (401, Some(token)) => format!("refuses the token of {} (HTTP 401)", token.source),
            (403, Some(token)) => format!("does not allow this with the token of {} (HTTP 403)", token.source),
            (404, _) => "has no MCP endpoint at this URL (HTTP 404)".to_owned(),
            (429 | 503, _) => format!("is busy (HTTP {number})"),
            (300..=399, _) => self.redirection(headers.get(LOCATION)),
            _ => format!("answered with HTTP {number}"),
        }
    }

    /// A redirection is never followed. It may lead into the operator's network, and it would get the token.
    fn redirection(&self, location: Option<&HeaderValue>) -> String {
        let base = &self.http.endpoint().url;
        let to = location.and_then(|to| base.join(to.to_str().ok()?).ok());
        let to = match to {
            None => "to nowhere".to_owned(),
            Some(to) if to.origin() == base.origin() => format!("to the path {}", escape::excerpt(to.path(), 200)),
            Some(to) => format!("to another origin, {}", escape::excerpt(&to.origin().ascii_serialization(), 200)),
        };
        format!("redirects {to}; this host follows no redirection, so correct `url` if you trust it")
    }

    /// Reads one message as the whole body.
    async fn single(&self, id: u64, answered: &mut Answered) -> Result<Answer, NoAnswer> {
        let body = match answered.whole(self.max).await {
            Ok(body) => body,
            Err((true, why)) => return Err(self.broken(why)),
            Err((false, why)) => return Err(NoAnswer::Unknown(why)),
        };
        match self.read(&body)? {
            Incoming::Answer { id: of, answer } if of == id => Ok(answer),
            _ => Err(self.broken("answered with another message than the answer".to_owned())),
        }
    }

    fn read(&self, text: &[u8]) -> Result<Incoming, NoAnswer> {
        let malformed = |why: String| self.broken(format!("sent a malformed message: {}", escape::excerpt(&why, 200)));
        message::read(text).map_err(malformed)
    }

    /// Reads events until the answer. A stream that ends before it is continued if the server gave its events ids.
    async fn streamed(&self, id: u64, mut answered: Answered) -> Result<Answer, NoAnswer> {
        let mut events = Events::new(self.max);
        for number in 1.. {
            let why = loop {
                if let Some(event) = events.next().map_err(|why| self.broken(why))? {
                    if let Some(answer) = self.event(id, event).await? {
                        return Ok(answer);
                    }
                    continue;
                }
                match answered.piece().await {
                    Ok(Some(piece)) => events.push(&piece),
                    Ok(None) => break "ended the stream without an answer".to_owned(),
                    Err(why) => break why,
                }
            };
            self.count(events.unfinished())?;
            events.restart();
            let Some(last) = events.last_id.clone() else { return Err(NoAnswer::Unknown(why)) };
            if number == MAX_STREAMS {
                break;
            }
            let pause = Span::from_millis(events.retry.unwrap_or(MIN_PAUSE).clamp(MIN_PAUSE, MAX_PAUSE));
            self.clock.sleep(pause.max(self.pause.left())).await;
            answered = match self.sent(Method::GET, String::new(), Some(&last)).await {
                Ok(answered) if answered.head.status == StatusCode::OK && kind(&answered) == "text/event-stream" => {
                    answered
                }
                _ => return Err(NoAnswer::Unknown(why)),
            };
        }
        Err(NoAnswer::Unknown(format!("ended {MAX_STREAMS} streams without an answer")))
    }

    /// The answer, if the event is it.
    async fn event(&self, id: u64, event: Event) -> Result<Option<Answer>, NoAnswer> {
        let (size, incoming) = match event {
            Event::Other(size) => (size, None),
            Event::Message(text) => (text.len(), Some(self.read(&text)?)),
        };
        match incoming {
            Some(Incoming::Answer { id: of, answer }) if of == id => return Ok(Some(answer)),
            Some(Incoming::Request { id, method }) => {
                // If it does not arrive, the server waits for it in vain.
                let _ = self.notify(message::reply(&id, &method)).await;
            }
            Some(Incoming::Notification(method)) if method == "notifications/tools/list_changed" => {
                self.changed.store(true, Ordering::Release);
            }
            _ => {}
        }
        self.count(size)?;
        Ok(None)
    }

    /// Counts bytes that nobody asked for.
    fn count(&self, size: usize) -> Result<(), NoAnswer> {
        let counted = self.unasked.lock().unwrap_or_else(PoisonError::into_inner).take(self.clock.now(), size);
        counted.map_err(|why| self.broken(why))
    }
}

/// The media type of a response, in small letters.
fn kind(answered: &Answered) -> String {
    let value = answered.head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
