//! From the task that carries out a request to the guest that reads the answer: the head once, then pieces of the body, one
//! at a time, so that a guest which does not read holds up nothing but its own request.

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

use crate::spending::Charge;

/// Bytes of one piece.
const PIECE: usize = 64 << 10;

/// How an answer ends: with trailers, without, or too early.
type End = Result<Option<HeaderMap>, Error>;

/// The body of a request without trailers: a field in them would be one that no rule and no secret was held against.
pub(super) struct Untrailed(pub(super) WasiBody);

impl Body for Untrailed {
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

/// The end of the task.
pub(super) struct Answer {
    head: Option<oneshot::Sender<Result<Head, Error>>>,
    body: Option<(mpsc::Sender<Bytes>, oneshot::Sender<End>)>,
    /// What the exchange holds. Both ends have it: either may be there without the other.
    charge: Option<Arc<Charge>>,
}

/// The end of the guest.
pub(super) struct Awaited(oneshot::Receiver<Result<Head, Error>>);

struct Head {
    head: Response<()>,
    pieces: mpsc::Receiver<Bytes>,
    end: oneshot::Receiver<End>,
    charge: Option<Arc<Charge>>,
}

/// Nobody waits for the answer any more.
#[derive(Debug)]
pub(super) struct Gone;

/// Both ends, of an exchange for which so much is held.
pub(super) fn answer(charge: Option<Charge>) -> (Answer, Awaited) {
    let (head, awaited) = oneshot::channel();
    (Answer { head: Some(head), body: None, charge: charge.map(Arc::new) }, Awaited(awaited))
}

impl Answer {
    /// Tells the head.
    pub(super) fn head(&mut self, head: Response<()>) -> Result<(), Gone> {
        let (pieces, body) = mpsc::channel(1);
        let (end, ended) = oneshot::channel();
        self.body = Some((pieces, end));
        let head = Head { head, pieces: body, end: ended, charge: self.charge.clone() };
        let told = self.head.take().is_some_and(|teller| teller.send(Ok(head)).is_ok());
        if told { Ok(()) } else { Err(Gone) }
    }

    /// Tells a piece of the body, once the guest has taken the one before.
    pub(super) async fn piece(&mut self, mut bytes: Bytes) -> Result<(), Gone> {
        let Some((pieces, _)) = &self.body else { return Err(Gone) };
        while !bytes.is_empty() {
            pieces.send(bytes.split_to(bytes.len().min(PIECE))).await.map_err(|_| Gone)?;
        }
        Ok(())
    }

    /// Tells the end. Whether anybody hears of it is not our affair.
    pub(super) fn end(self, end: End) {
        // Before the guest hears of it, so that it finds room for the next one.
        drop(self.charge);
        match (self.head, self.body, end) {
            (Some(teller), _, Err(error)) => drop(teller.send(Err(error))),
            (_, Some((pieces, teller)), end) => {
                drop(pieces);
                drop(teller.send(end));
            }
            _ => {}
        }
    }
}

impl Awaited {
    /// Waits for the head. The task ends with the body that this returns, or with this future, whichever is there.
    pub(super) async fn response(self, task: Task) -> Result<Response<WasiBody>, Error> {
        let Head { head, pieces, end, charge } = self.0.await.unwrap_or_else(|_| Err(broken()))?;
        Ok(head.map(|()| Incoming { pieces, end: Some(end), charge, _task: task }.boxed_unsync()))
    }
}

/// The task ended and did not say how: it panicked, or the host shuts down.
fn broken() -> Error {
    Error::InternalError(Some("the host failed while it carried out the request".to_owned()))
}

/// A task that ends with this.
pub(super) struct Task(pub(super) JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The body of an answer, as the guest reads it.
struct Incoming {
    pieces: mpsc::Receiver<Bytes>,
    end: Option<oneshot::Receiver<End>>,
    /// A piece may be here, and one more waits: until the guest has heard of the end.
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
