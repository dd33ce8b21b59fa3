//! The part of a guest that belongs to one run: its reports, its time and its usage.

use std::sync::Arc;
use std::time::Duration;

use capabilities::{States, Stop, Usage};
use domain::{Limits, call::Level};

use crate::clock::Stopwatch;
use crate::job::RunUsage;
use crate::limits::Meter;
use crate::report::{Log, Progress, Sink};

pub(crate) struct Run {
    pub(crate) meter: Meter,
    pub(crate) usage: Usage,
    pub(crate) log: Log,
    sink: Arc<dyn Sink>,
    watch: Stopwatch,
    progress: Progress,
    streaming: bool,
    limits: Limits,
    host_calls: u64,
    /// The usage of the runs before this one.
    before: Counts,
}

/// The usage of an instance.
#[derive(Clone, Copy, Default)]
struct Counts {
    host_calls: u64,
    bytes_in: u64,
    bytes_out: u64,
}

impl Run {
    pub(crate) fn new(
        limits: &Limits,
        streaming: bool,
        watch: Stopwatch,
        meter: Meter,
        usage: Usage,
        log: Log,
        sink: Arc<dyn Sink>,
    ) -> Self {
        let progress = Progress::new(Arc::clone(&sink), streaming, limits);
        Self {
            meter,
            usage,
            log,
            sink,
            watch,
            progress,
            streaming,
            limits: *limits,
            host_calls: 0,
            before: Counts::default(),
        }
    }

    /// Counts a host call. The limit is for the call: a run that repeats the code before a wait repeats its host calls too.
    ///
    /// # Errors
    /// If they are too many.
    pub(crate) fn count_host_call(&mut self) -> Result<(), Stop> {
        let max = self.limits.host_calls;
        if self.host_calls >= max {
            let what = format!("called host functions more than {max} times");
            return Err(Stop::Limit { what, key: "host_calls" });
        }
        self.host_calls += 1;
        Ok(())
    }

    /// The usage so far.
    pub(crate) fn spent(&self, states: &States) -> RunUsage {
        let (now, before) = (self.counts(states), self.before);
        RunUsage {
            time: self.watch.spent(),
            peak_memory: self.meter.memory(),
            peak_host_bytes: self.usage.memory.peak(),
            host_calls: now.host_calls - before.host_calls,
            bytes_in: now.bytes_in - before.bytes_in,
            bytes_out: now.bytes_out - before.bytes_out,
        }
    }

    fn counts(&self, states: &States) -> Counts {
        let ([bytes_in, bytes_out], transferred) = (self.usage.bytes.total(), states.transferred());
        let (bytes_in, bytes_out) = (bytes_in + transferred.received, bytes_out + transferred.sent);
        Counts { host_calls: self.host_calls, bytes_in, bytes_out }
    }

    pub(crate) fn update(&mut self, message: String, fraction: Option<f64>, data: Option<String>) {
        self.usage.bytes.count_out(message.len() + data.as_ref().map_or(0, String::len));
        self.progress.update(message, fraction, data);
    }

    /// Whether somebody asks the call to stop, or its time is almost over.
    pub(crate) fn should_stop(&self) -> bool {
        let last_part = self.limits.stop_grace.millis().min(self.limits.time.millis() / 2);
        self.watch.left() < Duration::from_millis(last_part) || self.sink.stop_requested()
    }

    /// Ends its reports.
    pub(crate) fn finish(&mut self) {
        let dropped = self.progress.dropped_updates();
        self.log.finish(self.limits.log_bytes);
        if dropped > 0 {
            let note = format!(
                "{dropped} progress updates were dropped: the tool is not declared `streaming`, their data is not JSON, or \
                 they are beyond `limits.progress_updates` and `limits.progress_bytes`"
            );
            self.sink.log(Level::Warn, &note);
        }
    }

    /// Begins the run that continues the guest. As a run that repeats the code before a wait, it has all of its time and of its
    /// reports. The limits on the whole call go on.
    pub(crate) fn restart(&mut self, states: &States) {
        self.watch.restart();
        self.log.restart(self.limits.log_bytes);
        self.progress = Progress::new(Arc::clone(&self.sink), self.streaming, &self.limits);
        self.before = self.counts(states);
    }
}
