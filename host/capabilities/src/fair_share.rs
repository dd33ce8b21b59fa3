//! Processor time of threads that many plugins share. Without this, a plugin with many calls would get as many shares of the
//! threads as it has calls, and a plugin with one call would get one.
//!
//! The runtime polls the tasks that are ready one after the other. So a plugin's share is the number of its tasks that are
//! ready at once. Each plugin has as many permits as the runtime has threads, so it can use all of them if no other plugin needs
//! them. If a plugin has more tasks than permits, each of its tasks waits for a permit before every poll.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use futures::future::poll_fn;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// The share of one plugin in the threads of one runtime.
pub struct FairShare {
    free: Semaphore,
    max: usize,
    tasks: AtomicUsize,
}

impl FairShare {
    /// As many permits as the runtime has threads.
    #[must_use]
    pub fn on(runtime: &Handle) -> Arc<Self> {
        let max = runtime.metrics().num_workers().max(1);
        Arc::new(Self { free: Semaphore::new(max), max, tasks: AtomicUsize::new(0) })
    }

    /// The number of tasks that it drives.
    #[cfg(test)]
    pub(crate) fn tasks(&self) -> usize {
        self.tasks.load(Ordering::Relaxed)
    }

    /// Drives a task of the plugin to its end.
    pub async fn drive<T>(&self, task: impl Future<Output = T>) -> T {
        let mut task = pin!(task);
        let _counted = Counted::new(&self.tasks);
        loop {
            let permit = if self.tasks.load(Ordering::Relaxed) > self.max {
                // Nothing closes the semaphore. Without a permit the task would still run.
                let permit = self.free.acquire().await.ok();
                // Goes to the end of the runtime's queue, with the permit, so that tasks that became ready earlier run first.
                yield_to_others(true).await;
                permit
            } else {
                None
            };
            let polled = poll_fn(|context| Poll::Ready(task.as_mut().poll(context))).await;
            drop(permit);
            match polled {
                Poll::Ready(done) => return done,
                // The task has stored the waker, so this continues when the task is ready.
                Poll::Pending => yield_to_others(false).await,
            }
        }
    }
}

/// Waits until the runtime polls this task again.
async fn yield_to_others(wake_again: bool) {
    let mut is_over = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        if wake_again {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await;
}

/// Counts a task until it is dropped.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(tasks: &'a AtomicUsize) -> Self {
        tasks.fetch_add(1, Ordering::Relaxed);
        Self(tasks)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts its polls until `end`, and is always ready for the next one.
    async fn spin(polls: Arc<AtomicUsize>, end: Arc<AtomicUsize>) {
        while end.load(Ordering::Relaxed) == 0 {
            polls.fetch_add(1, Ordering::Relaxed);
            yield_to_others(true).await;
        }
    }

    #[tokio::test]
    async fn plugin_with_many_tasks_gets_one_share() {
        const ROUNDS: usize = 1_000;
        let runtime = Handle::current();
        let (many, one) = (FairShare::on(&runtime), FairShare::on(&runtime));
        let (end, of_many) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..16)
            .map(|_| {
                let (share, polls, end) = (Arc::clone(&many), Arc::clone(&of_many), Arc::clone(&end));
                tokio::spawn(async move { share.drive(spin(polls, end)).await })
            })
            .collect();
        let alone = tokio::spawn(async move {
            one.drive(async {
                for _ in 0..ROUNDS {
                    yield_to_others(true).await;
                }
            })
            .await;
        });
        alone.await.expect("no panic");
        let polls = of_many.load(Ordering::Relaxed);
        assert!((ROUNDS / 4..=ROUNDS + 16).contains(&polls), "{polls} polls of sixteen tasks, {ROUNDS} of one");
        end.store(1, Ordering::Relaxed);
        for task in tasks {
            task.await.expect("each task ends");
        }
        assert_eq!((many.free.available_permits(), many.tasks.load(Ordering::Relaxed)), (1, 0));
    }

    #[tokio::test]
    async fn task_that_is_dropped_returns_its_permit() {
        let share = FairShare::on(&Handle::current());
        let spins = || {
            let share = Arc::clone(&share);
            tokio::spawn(async move { share.drive(spin(Arc::default(), Arc::default())).await })
        };
        let tasks = [spins(), spins(), spins()];
        tokio::task::yield_now().await;
        assert_eq!(share.free.available_permits(), 0);
        for task in tasks {
            task.abort();
            assert!(task.await.expect_err("it never ends").is_cancelled());
        }
        assert_eq!(share.free.available_permits(), 1);
    }
}
