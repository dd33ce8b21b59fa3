//! A client's socket and its bodies. A client that does not read its response for too long is disconnected. A client
//! that still sends after its request was refused may finish, within limits: if the host closed the socket with unread
//! input, the client could lose the response and never learn the reason.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::slots::{Answering, Slot};

/// The maximum number of bytes that are read and discarded after a refusal: more than the largest component.
const MAX_UNREAD: usize = 128 << 20;

/// A socket with a limit on the time that it waits for its client.
pub(super) struct Socket<S> {
    stream: S,
    slot: Arc<Slot>,
    stall: Duration,
    /// Runs while the socket waits for the client.
    timer: Option<Pin<Box<Sleep>>>,
    /// The number of bytes that may still be discarded after our side is closed.
    unread: Option<usize>,
}

impl<S: AsyncRead + Unpin> Socket<S> {
    pub(super) fn new(stream: S, slot: Arc<Slot>, stall: Duration) -> Self {
        Self { stream, slot, stall, timer: None, unread: None }
    }

    /// Fails when the socket has waited too long for the client.
    fn patient<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            if self.timer.take().is_some() {
                self.slot.works();
            }
            return polled;
        }
        ready!(self.impatient(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its response")))
    }

    /// Ready when the socket has waited too long for the client.
    fn impatient(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.timer.is_none() {
            // A connection that waits for its client can be evicted.
            self.slot.waits();
        }
        #[expect(clippy::disallowed_methods, reason = "the speed of a client concerns its connection only")]
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.stall)));
        timer.as_mut().poll(cx)
    }

    /// Reads and discards input, until the client is done or the bounds are reached.
    fn throw_away(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0; 16 << 10];
        loop {
            let left = self.unread.unwrap_or_default();
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() && left > 0 => {
                    self.unread = Some(left.saturating_sub(buffer.filled().len()));
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return self.impatient(cx),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.patient(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.patient(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.unread.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            let unread = self.slot.unread.load(Ordering::Acquire);
            self.unread = Some(if unread { MAX_UNREAD } else { 0 });
        }
        if self.unread != Some(0) {
            ready!(self.throw_away(cx));
        }
        Poll::Ready(Ok(()))
    }
}

/// The body of a request, as it arrives.
pub(super) struct Arriving {
    body: Incoming,
    slot: Arc<Slot>,
    ended: bool,
}

impl Arriving {
    pub(super) fn new(body: Incoming, slot: Arc<Slot>) -> Self {
        Self { body, slot, ended: false }
    }
}

impl HttpBody for Arriving {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
            self.slot.waits_for_request();
            return Poll::Pending;
        };
        self.slot.works();
        self.ended |= frame.is_none();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        if !self.ended && !self.body.is_end_stream() {
            self.slot.unread.store(true, Ordering::Release);
        }
    }
}

/// The body of a response. When it is dropped, the connection waits for its client again.
pub(super) struct Leaving {
    body: Body,
    _answering: Answering,
}

impl Leaving {
    pub(super) fn new(body: Body, answering: Answering) -> Self {
        Self { body, _answering: answering }
    }
}

impl HttpBody for Leaving {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
