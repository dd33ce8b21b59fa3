//! A ring of items for several followers, bounded in number and in bytes. Each item is kept until all followers have read
//! it. A follower that falls behind loses the oldest items.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The bounds of a ring.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) items: usize,
    pub(crate) bytes: usize,
}

/// Where items are sent.
pub(crate) struct Ring<T> {
    bounds: Bounds,
    kept: Mutex<Kept<T>>,
    sent: watch::Sender<()>,
}

struct Kept<T> {
    items: VecDeque<Entry<T>>,
    /// The number of the first item.
    first: u64,
    bytes: usize,
    followers: usize,
}

struct Entry<T> {
    item: T,
    bytes: usize,
    /// The followers that have not read it.
    unread: usize,
}

/// Reads the items that were sent since it began to follow.
pub(crate) struct Receiver<T> {
    ring: Arc<Ring<T>>,
    /// The number of the next item.
    next: u64,
    sent: watch::Receiver<()>,
}

/// The follower was too slow, and items are lost.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lagged;

impl<T> Ring<T> {
    pub(crate) fn new(bounds: Bounds) -> Arc<Self> {
        let kept = Kept { items: VecDeque::new(), first: 0, bytes: 0, followers: 0 };
        Arc::new(Self { bounds, kept: Mutex::new(kept), sent: watch::Sender::new(()) })
    }

    pub(crate) fn follow(self: &Arc<Self>) -> Receiver<T> {
        let mut kept = self.kept();
        kept.followers += 1;
        Receiver { ring: self.clone(), next: kept.end(), sent: self.sent.subscribe() }
    }

    pub(crate) fn is_followed(&self) -> bool {
        self.kept().followers > 0
    }

    /// Sends an item to all followers. Items that do not fit any more are lost, the oldest first.
    pub(crate) fn send(&self, item: T, bytes: usize) {
        let mut kept = self.kept();
        let unread = kept.followers;
        kept.bytes += bytes;
        kept.items.push_back(Entry { item, bytes, unread });
        while kept.items.len() > self.bounds.items || kept.bytes > self.bounds.bytes {
            kept.drop_first();
        }
        kept.drop_read();
        drop(kept);
        self.sent.send_replace(());
    }

    /// Tells all followers that items are lost.
    pub(crate) fn skip(&self) {
        let mut kept = self.kept();
        while !kept.items.is_empty() {
            kept.drop_first();
        }
        kept.first += 1;
        drop(kept);
        self.sent.send_replace(());
    }

    fn kept(&self) -> MutexGuard<'_, Kept<T>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Kept<T> {
    /// The number of the next item to be sent.
    fn end(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    fn drop_first(&mut self) {
        if let Some(entry) = self.items.pop_front() {
            self.first += 1;
            self.bytes -= entry.bytes;
        }
    }

    fn drop_read(&mut self) {
        while self.items.front().is_some_and(|entry| entry.unread == 0) {
            self.drop_first();
        }
    }
}

impl<T: Clone> Receiver<T> {
    /// The next item. Safe to cancel: an item that was not returned is returned next.
    ///
    /// # Errors
    /// [`Lagged`], once for all items that are lost.
    pub(crate) async fn recv(&mut self) -> Result<T, Lagged> {
        loop {
            self.sent.mark_unchanged();
            if let Some(read) = self.read() {
                return read;
            }
            // The sender lives as long as this does.
            if self.sent.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn read(&mut self) -> Option<Result<T, Lagged>> {
        let mut kept = self.ring.kept();
        if self.next < kept.first {
            self.next = kept.first;
            return Some(Err(Lagged));
        }
        let at = usize::try_from(self.next - kept.first).ok()?;
        let entry = kept.items.get_mut(at)?;
        entry.unread -= 1;
        let item = entry.item.clone();
        self.next += 1;
        kept.drop_read();
        Some(Ok(item))
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut kept = self.ring.kept();
        kept.followers -= 1;
        let read = usize::try_from(self.next.saturating_sub(kept.first)).unwrap_or(usize::MAX);
        kept.items.iter_mut().skip(read).for_each(|entry| entry.unread -= 1);
        kept.drop_read();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn ring(items: usize, bytes: usize) -> Arc<Ring<u32>> {
        Ring::new(Bounds { items, bytes })
    }

    /// The number of items that are kept, and their bytes.
    fn kept(ring: &Ring<u32>) -> (usize, usize) {
        let kept = ring.kept();
        (kept.items.len(), kept.bytes)
    }

    fn next(follower: &mut Receiver<u32>) -> Option<Result<u32, Lagged>> {
        follower.recv().now_or_never()
    }

    #[test]
    fn a_ring_is_bounded_in_bytes_and_in_number() {
        for (items, bytes, fit) in [(5, 1_000_000, 5), (1_000, 100, 10)] {
            let ring = ring(items, bytes);
            let mut slow = ring.follow();
            (0..50).for_each(|n| ring.send(n, 10));
            assert_eq!(kept(&ring), (fit, fit * 10));
            assert_eq!(next(&mut slow), Some(Err(Lagged)));
            for n in (0..50).skip(50 - fit) {
                assert_eq!(next(&mut slow), Some(Ok(n)));
            }
            assert_eq!(next(&mut slow), None);
            ring.send(50, bytes + 1);
            assert_eq!((kept(&ring), next(&mut slow)), ((0, 0), Some(Err(Lagged))), "it never fits");
            ring.send(51, 0);
            assert_eq!(next(&mut slow), Some(Ok(51)));
        }
    }

    #[test]
    fn an_item_is_kept_until_all_have_read_it() {
        let ring = ring(10, 100);
        ring.send(0, 10);
        assert_eq!(kept(&ring), (0, 0), "nobody follows");
        let (mut one, mut two) = (ring.follow(), ring.follow());
        ring.send(1, 10);
        ring.send(2, 10);
        assert_eq!((next(&mut one), next(&mut one), next(&mut one)), (Some(Ok(1)), Some(Ok(2)), None));
        let mut late = ring.follow();
        assert_eq!((kept(&ring), next(&mut two), kept(&ring)), ((2, 20), Some(Ok(1)), (1, 10)));
        ring.send(3, 10);
        drop(two);
        assert_eq!((next(&mut one), next(&mut late)), (Some(Ok(3)), Some(Ok(3))));
        assert_eq!(kept(&ring), (0, 0));
        drop((one, late));
        assert!(!ring.is_followed());
    }

    #[tokio::test]
    async fn a_follower_waits_for_the_next_item() {
        let ring = ring(10, 100);
        let mut follower = ring.follow();
        let waiting = tokio::spawn(async move { follower.recv().await });
        tokio::task::yield_now().await;
        ring.send(7, 1);
        assert_eq!(waiting.await.unwrap(), Ok(7));
    }
}
