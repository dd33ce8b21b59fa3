//! Finds steps that wait for the disk for too long: reads, reads that wait for other reads, and flushes of the committing thread.
//!
//! A thread counts time in ticks. It also wakes flushes. sled 0.34 writes its buffers in threads of its own, and a
//! flush sleeps until the write has ended. If such a write fails after a plugin's thread was the last to leave the
//! buffer, sled stores the error and wakes nobody (`exit_reservation`). Any later write finds the error and wakes all
//! sleepers, so the thread writes while a flush is overdue.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{self, Id};

/// The number of ticks in the maximum time for a step.
pub(super) const TICKS: u32 = 10;

/// The steps that wait for the disk.
#[derive(Default)]
pub(super) struct Watch {
    now: AtomicU64,
    ticked: Notify,
    steps: Mutex<Steps>,
}

#[derive(Default)]
struct Steps {
    next: u64,
    /// When each step began.
    begun: BTreeMap<u64, Begun>,
    /// When the last read ended.
    read_at: u64,
}

struct Begun {
    at: u64,
    kind: Kind,
    /// The task that takes the step.
    task: Option<Id>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    /// A read that waits until others have ended. It fails when it has waited for as long as a read may take, so it is
    /// overdue after half of that time, counted from the end of the last read: a long queue that moves is no fault of the
    /// disk.
    Queued,
    Flush,
}

impl Kind {
    /// The maximum time in ticks.
    fn most(self) -> u64 {
        match self {
            Self::Read | Self::Flush => TICKS.into(),
            Self::Queued => u64::from(TICKS) / 2,
        }
    }
}

/// A step. It ends when this is dropped.
pub(super) struct Step {
    watch: Arc<Watch>,
    number: u64,
}

impl Drop for Step {
    fn drop(&mut self) {
        let mut steps = self.watch.steps();
        if steps.begun.remove(&self.number).is_some_and(|begun| begun.kind == Kind::Read) {
            steps.read_at = self.watch.now.load(Ordering::Relaxed);
        }
    }
}

impl Watch {
    pub(super) fn begin_read(self: &Arc<Self>) -> Step {
        self.begin(Kind::Read)
    }

    pub(super) fn begin_queued(self: &Arc<Self>) -> Step {
        self.begin(Kind::Queued)
    }

    pub(super) fn begin_flush(self: &Arc<Self>) -> Step {
        self.begin(Kind::Flush)
    }

    fn begin(self: &Arc<Self>, kind: Kind) -> Step {
        let mut steps = self.steps();
        let number = steps.next;
        steps.next += 1;
        let at = self.now.load(Ordering::Relaxed);
        steps.begun.insert(number, Begun { at, kind, task: task::try_id() });
        drop(steps);
        Step { watch: self.clone(), number }
    }

    /// The number of steps that have taken too long and still wait.
    pub(super) fn overdue(&self) -> usize {
        self.count(|step, age| age > step.kind.most())
    }

    /// Waits until a read that runs in this task is overdue.
    pub(super) async fn overdue_in(&self, task: Id) {
        loop {
            let mut ticked = pin!(self.ticked.notified());
            // Registered before the check, so no tick is missed.
            ticked.as_mut().enable();
            if self.count(|step, age| step.task == Some(task) && age > step.kind.most()) > 0 {
                return;
            }
            ticked.await;
        }
    }

    /// The number of steps for which `holds` is true, given their age in ticks. A tick may have begun just before a step.
    fn count(&self, holds: impl Fn(&Begun, u64) -> bool) -> usize {
        let now = self.now.load(Ordering::Relaxed);
        let steps = self.steps();
        let since = |step: &Begun| if step.kind == Kind::Queued { step.at.max(steps.read_at) } else { step.at };
        steps.begun.values().filter(|step| holds(step, now.saturating_sub(since(step)))).count()
    }

    /// One more tick has passed. Returns whether a flush has waited for a whole one.
    pub(super) fn tick(&self) -> bool {
        self.now.fetch_add(1, Ordering::Relaxed);
        self.ticked.notify_waiters();
        self.count(|step, age| age > 1 && step.kind == Kind::Flush) > 0
    }

    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that counts ticks and wakes flushes. It ends when this is dropped.
pub(super) struct Watchdog {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Runs `wake` after each tick in which a flush has waited for the whole tick before.
    pub(super) fn start(
        watch: Arc<Watch>,
        tick: Duration,
        mut wake: impl FnMut() + Send + 'static,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new().name("toolgate-watchdog".into()).spawn(move || {
            while stopped.recv_timeout(tick) == Err(RecvTimeoutError::Timeout) {
                if watch.tick() {
                    wake();
                }
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that watches the disk panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_overdue_until_it_ends() {
        let watch = Arc::new(Watch::default());
        let first = watch.begin_read();
        for _ in 0..TICKS {
            watch.tick();
        }
        let second = watch.begin_read();
        assert_eq!(watch.overdue(), 0);
        watch.tick();
        assert_eq!(watch.overdue(), 1);
        drop(first);
        assert_eq!(watch.overdue(), 0);
        drop(second);
        assert!(watch.steps().begun.is_empty());
    }

    #[test]
    fn a_queued_read_is_overdue_before_it_fails() {
        let watch = Arc::new(Watch::default());
        let queued = watch.begin_queued();
        for _ in 0..TICKS / 2 {
            assert_eq!(watch.overdue(), 0);
            watch.tick();
        }
        watch.tick();
        assert_eq!(watch.overdue(), 1);
        drop(queued);
        assert_eq!(watch.overdue(), 0);
    }

    #[test]
    fn queue_that_moves_is_not_overdue() {
        let watch = Arc::new(Watch::default());
        let (first, second) = (watch.begin_read(), watch.begin_read());
        let _queued = watch.begin_queued();
        for read in [first, second] {
            for _ in 0..TICKS / 2 {
                watch.tick();
            }
            drop(read);
            assert_eq!(watch.overdue(), 0);
        }
        for _ in 0..=TICKS / 2 {
            watch.tick();
        }
        assert_eq!(watch.overdue(), 1, "nothing has ended since");
    }

    #[test]
    fn only_a_flush_that_waits_is_woken() {
        let watch = Arc::new(Watch::default());
        let _read = watch.begin_read();
        assert!(!watch.tick() && !watch.tick());
        let flush = watch.begin_flush();
        assert!(!watch.tick(), "the tick may have begun before the flush");
        assert!(watch.tick() && watch.tick(), "it is woken until it ends");
        drop(flush);
        assert!(!watch.tick());
    }

    #[test]
    fn watchdog_wakes_a_flush() {
        let watch = Arc::new(Watch::default());
        let (wake, woken) = mpsc::channel();
        let flush = watch.begin_flush();
        let watchdog = Watchdog::start(watch, Duration::from_millis(1), move || {
            let _ = wake.send(());
        })
        .unwrap();
        woken.recv().unwrap();
        drop(flush);
        drop(watchdog);
        assert!(woken.iter().count() < usize::MAX, "the thread has ended");
    }
}
