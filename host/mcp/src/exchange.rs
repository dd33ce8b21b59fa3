//! The answer to one HTTP request: one message, or a stream of events with the answer as the last. The host encodes each event
//! itself, so each message travels with its count, and the host learns when HTTP takes it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use domain::Span;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Response};
use http_body::{Frame, SizeHint};
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use http_body_util::{BodyExt as _, StreamBody};
use rmcp::model::{ServerJsonRpcMessage, ServerNotification};
use tokio::sync::mpsc;

use crate::parts::Shared;
use crate::unread::{Unread, Unsent};

/// The body of an answer.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The media type of a stream.
pub(crate) const EVENTS: &str = "text/event-stream";

/// How often a stream without news has a comment, so that a client that has left is noticed.
const KEEP_ALIVE: Span = Span::from_secs(15);

/// The events of a stream that HTTP has not taken yet.
const MAX_EVENTS: usize = 16;

/// The way of messages to the client of one request.
pub(crate) struct Exchange {
    unread: Arc<dyn Unread>,
    events: mpsc::Sender<Event>,
    /// The count of the answer.
    answer: Mutex<Option<Unsent>>,
}

/// An event as HTTP sends it.
struct Event {
    text: Bytes,
    unsent: Option<Unsent>,
}

/// Makes the answer of rmcp.
type Answering = Pin<Box<dyn Future<Output = Response<BoxBody<Bytes, Infallible>>> + Send>>;

/// The response to one request.
pub(crate) struct Exchanged {
    shared: Arc<Shared>,
    exchange: Arc<Exchange>,
    events: mpsc::Receiver<Event>,
    first: Option<Event>,
    /// `None`: the answer is there.
    answering: Option<Answering>,
    last: Option<Event>,
}

impl Exchange {
    /// The next answer to the client has this count.
    pub(crate) fn answers(&self, unsent: Unsent) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(unsent);
    }

    fn take_answer(&self) -> Option<Unsent> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Sends a notification. It is counted, unless it was. Returns false if the client has left.
    ///
    /// # Errors
    /// The reason, if the client has too much unread. Then it is not sent.
    pub(crate) async fn notify(
        &self,
        notification: ServerNotification,
        counted: Option<Unsent>,
    ) -> Result<bool, String> {
        let message = ServerJsonRpcMessage::notification(notification);
        let text = event(&serde_json::to_vec(&message).map_err(|error| error.to_string())?);
        let unsent = match counted {
            Some(unsent) => unsent,
            None => Unsent::new(self.unread.charge(text.len())?, None),
        };
        Ok(self.events.send(Event { text, unsent: Some(unsent) }).await.is_ok())
    }
}

/// The event with this message, which has one line.
fn event(message: &[u8]) -> Bytes {
    [b"data: ", message, b"\n\n"].concat().into()
}

impl Exchanged {
    /// `answer` makes the answer, with the exchange that the messages before it go to. If this is dropped, it stops.
    pub(crate) fn new<F>(shared: Arc<Shared>, unread: Arc<dyn Unread>, answer: impl FnOnce(Arc<Exchange>) -> F) -> Self
    where
        F: Future<Output = Response<BoxBody<Bytes, Infallible>>> + Send + 'static,
    {
        let (sender, events) = mpsc::channel(MAX_EVENTS);
        let exchange = Arc::new(Exchange { unread, events: sender, answer: Mutex::default() });
        let answering: Answering = Box::pin(answer(exchange.clone()));
        Self { shared, exchange, events, first: None, answering: Some(answering), last: None }
    }

    /// The answer alone, or a stream if a notification comes before it.
    pub(crate) async fn response(mut self) -> Response<Body> {
        if let Some(answering) = &mut self.answering {
            tokio::select! {
                biased;
                first = self.events.recv() => self.first = first,
                response = answering => {
                    self.first = self.events.try_recv().ok();
                    if self.first.is_none() {
                        let unsent = self.exchange.take_answer();
                        return response.map(|body| Whole { body, unsent }.boxed_unsync());
                    }
                    self.end(response).await;
                }
            }
        }
        self.stream()
    }

    /// A stream.
    pub(crate) fn stream(self) -> Response<Body> {
        let events = futures::stream::unfold(self, |mut this| async move {
            let Event { text, unsent } = this.next().await?;
            if let Some(unsent) = unsent {
                unsent.sent();
            }
            Some((Ok(Frame::data(text)), this))
        });
        let mut response = Response::new(StreamBody::new(events).boxed_unsync());
        let headers = [
            (CONTENT_TYPE, EVENTS),
            (CACHE_CONTROL, "no-cache"),
            // For proxies that would keep events back.
            (HeaderName::from_static("x-accel-buffering"), "no"),
        ];
        let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
        response.headers_mut().extend(HeaderMap::from_iter(headers));
        response
    }

    async fn next(&mut self) -> Option<Event> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        while let Some(answering) = &mut self.answering {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => return Some(event),
                response = answering => self.end(response).await,
                () = self.shared.parts.handle.sleep(KEEP_ALIVE) => {
                    return Some(Event { text: Bytes::from_static(b":\n\n"), unsent: None });
                }
            }
        }
        // Notifications that were sent before the answer.
        self.events.try_recv().ok().or_else(|| self.last.take())
    }

    /// The answer is there. It is the last event.
    async fn end(&mut self, response: Response<BoxBody<Bytes, Infallible>>) {
        self.answering = None;
        let is_message = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
        let body = response.into_body().collect().await.unwrap_or_else(|never| match never {});
        let unsent = self.exchange.take_answer();
        self.last = is_message.then(|| Event { text: event(&body.to_bytes()), unsent });
    }
}

/// An answer without a stream. It counts as sent when HTTP takes it.
struct Whole {
    body: BoxBody<Bytes, Infallible>,
    unsent: Option<Unsent>,
}

impl http_body::Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(unsent) = self.unsent.take() {
            unsent.sent();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
