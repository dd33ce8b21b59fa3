//! Counts the bytes of a call's connections on the wire. Heads, framing, informational responses and trailers count
//! too.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use domain::Limits;
use domain::journal::Transferred;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The bytes that all requests of one call may still send and receive.
#[derive(Debug)]
pub(super) struct Budget {
    sent_left: AtomicUsize,
    received_left: AtomicUsize,
    max: (usize, usize),
}

impl Budget {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            sent_left: AtomicUsize::new(limits.http_sent),
            received_left: AtomicUsize::new(limits.http_received),
            max: (limits.http_sent, limits.http_received),
        }
    }

    /// A budget of its own with what is left.
    pub(super) fn rest(&self) -> Self {
        let [sent, received] = [&self.sent_left, &self.received_left].map(|left| left.load(Ordering::Relaxed));
        Self { sent_left: AtomicUsize::new(sent), received_left: AtomicUsize::new(received), max: (sent, received) }
    }

    /// Takes the bytes of a request.
    pub(super) fn spend(&self, Transferred { sent, received }: Transferred) {
        for (left, bytes) in [(&self.sent_left, sent), (&self.received_left, received)] {
            take(left, usize::try_from(bytes).unwrap_or(usize::MAX));
        }
    }

    /// Counts bytes that were received or unpacked. False if the budget is exceeded.
    pub(super) fn receive(&self, bytes: usize) -> bool {
        take(&self.received_left, bytes) == bytes
    }

    /// The bytes that were taken from it.
    pub(super) fn used(&self) -> Transferred {
        let used = |max: usize, left: &AtomicUsize| max.saturating_sub(left.load(Ordering::Relaxed)) as u64;
        Transferred { sent: used(self.max.0, &self.sent_left), received: used(self.max.1, &self.received_left) }
    }

    pub(super) fn sent_left(&self) -> usize {
        self.sent_left.load(Ordering::Relaxed)
    }
}

/// Takes the requested number of bytes, or all that are left if there are fewer.
fn take(left: &AtomicUsize, requested: usize) -> usize {
    let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(requested)));
    before.unwrap_or_default().min(requested)
}

/// The limits that a connection has reached.
#[derive(Debug, Default)]
pub(super) struct Over {
    pub(super) sent: AtomicBool,
    pub(super) received: AtomicBool,
}

/// A stream that counts its bytes and fails when the budget is exceeded.
pub(super) struct Counted<S> {
    stream: S,
    budget: Arc<Budget>,
    over: Arc<Over>,
}

impl<S> Counted<S> {
    pub(super) fn new(stream: S, budget: Arc<Budget>, over: Arc<Over>) -> Self {
        Self { stream, budget, over }
    }
}

fn too_much(over: &AtomicBool) -> io::Error {
    over.store(true, Ordering::Relaxed);
    io::Error::other("the call has reached its limit on bytes")
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let read = buffer.filled().len() - before;
        Poll::Ready(if self.budget.receive(read) { Ok(()) } else { Err(too_much(&self.over.received)) })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    /// Bytes are taken from the budget before they are written, because a write cannot be undone.
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let taken = take(&self.budget.sent_left, bytes.len());
        if taken == 0 && !bytes.is_empty() {
            return Poll::Ready(Err(too_much(&self.over.sent)));
        }
        let written = Pin::new(&mut self.stream).poll_write(cx, &bytes[..taken]);
        let used = if let Poll::Ready(Ok(written)) = written { written } else { 0 };
        self.budget.sent_left.fetch_add(taken - used, Ordering::Relaxed);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_of_a_budget_counts_only_when_it_is_spent() {
        let budget = Budget::new(&Limits { http_sent: 10, http_received: 20, ..Limits::default() });
        budget.spend(Transferred { sent: 3, received: 5 });
        let rest = budget.rest();
        assert!(rest.receive(15) && !rest.receive(1));
        assert_eq!(take(&rest.sent_left, 9), 7);
        assert_eq!(rest.used(), Transferred { sent: 7, received: 15 });
        assert_eq!(budget.used(), Transferred { sent: 3, received: 5 });
        budget.spend(rest.used());
        budget.spend(Transferred { sent: 1, received: u64::MAX });
        assert_eq!(budget.used(), Transferred { sent: 10, received: 20 }, "no more than there is");
    }
}
