//! The instance of a durable call that the host keeps while the call waits.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use capabilities::Vault;
use capabilities::journal::Journal;
use domain::journal::JournalSummary;
use domain::step::Step;
use domain::{Digest, Limits};

use crate::durable::{PausedGuest, Waits};
use crate::job::{Durable, GuestEnd, Job};
use crate::pool::Reservation;
use crate::report::{CurrentSink, Sink};

/// A guest that several runs continue.
pub(crate) struct Instance {
    pub(crate) guest: Pin<Box<dyn Future<Output = GuestEnd> + Send>>,
    pub(crate) paused: Arc<PausedGuest>,
    pub(crate) sink: Arc<CurrentSink>,
    pub(crate) journal: Option<Journal>,
    pub(crate) vault: Vault,
    pub(crate) reservation: Arc<Reservation>,
    /// The job of its last run, without the journal.
    pub(crate) job: Job,
    pub(crate) limits: Limits,
}

/// The end of a run, or a wait at which its instance can be kept.
pub(crate) enum Driven {
    Ended(GuestEnd),
    Waits(Waits),
}

/// An instance, and the wait that it has come to.
pub(crate) struct KeptInstance {
    instance: Instance,
    /// The digest of the step.
    step: Digest,
    /// The journal at the wait.
    head: JournalSummary,
    /// Bytes of memory that it keeps from others.
    pub(crate) held: usize,
}

impl Instance {
    /// Drives the guest to its end or to its next wait.
    pub(crate) async fn drive(&mut self) -> Driven {
        let Self { guest, paused, reservation, .. } = self;
        let driven = poll_fn(|context| match guest.as_mut().poll(context) {
            Poll::Ready(end) => Poll::Ready(Driven::Ended(end)),
            Poll::Pending => paused.waits().map_or(Poll::Pending, |waits| Poll::Ready(Driven::Waits(waits))),
        });
        reservation.fair_share().drive(driven).await
    }
}

impl KeptInstance {
    /// Its run has ended, and reports nothing more. `guest`: the memory that a new instance would reserve for its next run.
    pub(crate) fn new(instance: Instance, step: Digest, head: JournalSummary, guest: usize) -> Self {
        instance.sink.set(Arc::new(()));
        if let Some(journal) = &instance.journal {
            journal.forget_passed();
        }
        let job = &instance.job;
        let steps = job.repeated_bytes();
        instance.reservation.shrink(guest, steps);
        let inputs = job.arguments.size() + job.scope.size();
        let held = instance.reservation.reserved().saturating_add(inputs);
        Self { instance, step, head, held }
    }

    pub(crate) fn job(&self) -> &Job {
        &self.instance.job
    }

    /// Whether this run of this call is the next one after the wait: it repeats exactly what the instance has done, and its journal
    /// is the one that the instance has written.
    pub(crate) fn is_continued_by(&self, job: &Job, limits: &Limits) -> bool {
        let Instance { job: last, limits: of_last, .. } = &self.instance;
        let (Some(before), Some(now)) = (&last.durable, &job.durable) else { return false };
        let is_same_call = last.plugin == job.plugin
            && last.call_id == job.call_id
            && last.tool == job.tool
            && last.arguments == job.arguments
            && last.scope == job.scope
            && last.idempotency_key == job.idempotency_key
            && last.attempt == job.attempt
            && last.streaming == job.streaming
            && Arc::ptr_eq(&last.grants, &job.grants)
            && of_last == limits;
        let is_next_step = now
            .steps
            .split_last()
            .is_some_and(|(step, earlier): (&Step, _)| step.digest == self.step && earlier == &*before.steps);
        let head = job.recording.as_ref().and_then(|recording| recording.writer.head());
        is_same_call
            && is_next_step
            && before.started_at == now.started_at
            && before.decided == now.decided
            && head == Some(self.head)
    }

    /// Reserves what a new instance would reserve for this run. Returns false if there is too little.
    pub(crate) fn is_covered(&self, job: &Job, guest: usize) -> bool {
        self.instance.reservation.covers_next_run(guest, job.repeated_bytes())
    }

    /// The instance, for this run. `None`: the run is not of a durable call.
    pub(crate) fn continued(self, job: &Job, sink: Arc<dyn Sink>) -> Option<Instance> {
        let (recording, durable) = (job.recording.as_ref()?, job.durable.as_ref()?);
        let mut instance = self.instance;
        if let Some(journal) = &instance.journal {
            journal.continues(Arc::clone(&recording.writer));
        }
        instance.paused.continues(Arc::clone(&durable.steps));
        instance.sink.set(sink);
        instance.job = without_journal(job);
        Some(instance)
    }
}

/// The job without the entries of its journal, which the host does not hold while the call waits.
pub(crate) fn without_journal(job: &Job) -> Job {
    let durable = job.durable.clone().map(|durable| Durable { journal: [].into(), ..durable });
    Job { durable, ..job.clone() }
}
