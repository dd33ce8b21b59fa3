//! Passes an answer from the task of a request to the guest: first the head, then one piece of the body at a time, so that a
//! guest that does not read delays only its own request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use wasmtime_wasi_http::{Error, WasiBody};

use crate::usage::Charge;

/// Bytes of one piece of a body.
const PIECE: usize = 64 << 10;

/// The end of an answer: with trailers, without, or with an error.
type End = Result<Option<HeaderMap>, Error>;

/// The body of a request, which may not have trailers: the host checks no rule and no secret in them.
pub(super) struct WithoutTrailers(pub(super) WasiBody);

impl Body for WithoutTrailers {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.0).poll_frame(cx));
        let trailed = frame.as_ref().is_some_and(|frame| frame.as_ref().is_ok_and(Frame::is_trailers));
        Poll::Ready(if trailed { Some(Err(Error::HttpRequestTrailerSectionSize(Some(0)))) } else { frame })
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// The task's end of the channel.
pub(super) struct Answer {
    head: Option<oneshot::Sender<Result<Head, Error>>>,
    body: Option<(mpsc::Sender<Bytes>, oneshot::Sender<End>)>,
    /// The host memory of the exchange. Both sides keep it, because either may outlive the other.
    charge: Option<Arc<Charge>>,
}

/// The guest's end of the channel.
pub(super) struct AnswerReceiver(oneshot::Receiver<Result<Head, Error>>);

struct Head {
    head: Response<()>,
    pieces: mpsc::Receiver<Bytes>,
    end: oneshot::Receiver<End>,
    charge: Option<Arc<Charge>>,
}

/// The guest does not wait for the answer any more.
#[derive(Debug)]
pub(super) struct ReceiverClosed;

/// Both sides of one exchange.
pub(super) fn answer(charge: Option<Charge>) -> (Answer, AnswerReceiver) {
    let (head, awaited) = oneshot::channel();
    (Answer { head: Some(head), body: None, charge: charge.map(Arc::new) }, AnswerReceiver(awaited))
}

impl Answer {
    /// Passes the head.
    pub(super) fn head(&mut self, head: Response<()>) -> Result<(), ReceiverClosed> {
        let (pieces, body) = mpsc::channel(1);
        let (end, ended) = oneshot::channel();
        self.body = Some((pieces, end));
        let head = Head { head, pieces: body, end: ended, charge: self.charge.clone() };
        let sent = self.head.take().is_some_and(|sender| sender.send(Ok(head)).is_ok());
        if sent { Ok(()) } else { Err(ReceiverClosed) }
    }

    /// Passes a piece of the body, after the guest has taken the previous one.
    pub(super) async fn piece(&mut self, mut bytes: Bytes) -> Result<(), ReceiverClosed> {
        let Some((pieces, _)) = &self.body else { return Err(ReceiverClosed) };
        while !bytes.is_empty() {
            pieces.send(bytes.split_to(bytes.len().min(PIECE))).await.map_err(|_| ReceiverClosed)?;
        }
        Ok(())
    }

    /// Passes the end, if the guest still waits for it.
    pub(super) fn end(self, end: End) {
        // Frees the memory first, so that the guest can send its next request.
        drop(self.charge);
        match (self.head, self.body, end) {
            (Some(sender), _, Err(error)) => drop(sender.send(Err(error))),
            (_, Some((pieces, sender)), end) => {
                drop(pieces);
                drop(sender.send(end));
            }
            _ => {}
        }
    }
}

impl AnswerReceiver {
    /// Waits for the head. Dropping this future, or the body that it returns, ends the task.
    pub(super) async fn response(self, task: Task) -> Result<Response<WasiBody>, Error> {
        let Head { head, pieces, end, charge } = self.0.await.unwrap_or_else(|_| Err(broken()))?;
        Ok(head.map(|()| Incoming { pieces, end: Some(end), charge, _task: task }.boxed_unsync()))
    }
}

/// The task ended without an answer: it panicked, or the host shuts down.
fn broken() -> Error {
    Error::InternalError(Some("the host failed while it carried out the request".to_owned()))
}

/// A task that ends when this is dropped.
pub(super) struct Task(pub(super) JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The body of an answer, for the guest.
struct Incoming {
    pieces: mpsc::Receiver<Bytes>,
    end: Option<oneshot::Receiver<End>>,
    /// Kept until the guest has read the end.
    charge: Option<Arc<Charge>>,
    _task: Task,
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(piece) = ready!(self.pieces.poll_recv(cx)) {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        let Some(end) = &mut self.end else { return Poll::Ready(None) };
        let end = ready!(Pin::new(end).poll(cx)).unwrap_or_else(|_| Err(broken()));
        (self.end, self.charge) = (None, None);
        Poll::Ready(end.map(|trailers| trailers.map(Frame::trailers)).transpose())
    }
}
