//! Counts what goes over a call's connections, beneath everything that could be amplified: heads, framing, informational
//! answers and trailers are bytes like all others.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use domain::Limits;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What all requests of one call together may still send and receive.
#[derive(Debug)]
pub(super) struct Traffic {
    sent_left: AtomicUsize,
    received_left: AtomicUsize,
    most: (usize, usize),
}

impl Traffic {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            sent_left: AtomicUsize::new(limits.http_sent),
            received_left: AtomicUsize::new(limits.http_received),
            most: (limits.http_sent, limits.http_received),
        }
    }

    /// Counts bytes that were received or unpacked. `false` if they are too many.
    pub(super) fn receive(&self, bytes: usize) -> bool {
        take(&self.received_left, bytes) == bytes
    }

    /// What was sent and what was received.
    pub(super) fn passed(&self) -> (usize, usize) {
        let left = (self.sent_left(), self.received_left.load(Ordering::Relaxed));
        (self.most.0.saturating_sub(left.0), self.most.1.saturating_sub(left.1))
    }

    /// How much may still be sent.
    pub(super) fn sent_left(&self) -> usize {
        self.sent_left.load(Ordering::Relaxed)
    }
}

/// Takes as much of so many bytes as is left.
fn take(left: &AtomicUsize, wanted: usize) -> usize {
    let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(wanted)));
    before.unwrap_or_default().min(wanted)
}

/// Which limit a connection ran into.
#[derive(Debug, Default)]
pub(super) struct Over {
    pub(super) sent: AtomicBool,
    pub(super) received: AtomicBool,
}

/// A stream whose bytes are counted, and which fails when they are too many.
pub(super) struct Counted<S> {
    stream: S,
    traffic: Arc<Traffic>,
    over: Arc<Over>,
}

impl<S> Counted<S> {
    pub(super) fn new(stream: S, traffic: Arc<Traffic>, over: Arc<Over>) -> Self {
        Self { stream, traffic, over }
    }
}

fn too_much(over: &AtomicBool) -> io::Error {
    over.store(true, Ordering::Relaxed);
    io::Error::other("the call's limit on traffic is reached")
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let read = buffer.filled().len() - before;
        Poll::Ready(if self.traffic.receive(read) { Ok(()) } else { Err(too_much(&self.over.received)) })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    /// What is written is taken from the budget before, since it cannot be called back.
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let taken = take(&self.traffic.sent_left, bytes.len());
        if taken == 0 && !bytes.is_empty() {
            return Poll::Ready(Err(too_much(&self.over.sent)));
        }
        let written = Pin::new(&mut self.stream).poll_write(cx, &bytes[..taken]);
        let used = if let Poll::Ready(Ok(written)) = written { written } else { 0 };
        self.traffic.sent_left.fetch_add(taken - used, Ordering::Relaxed);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
