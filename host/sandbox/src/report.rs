//! The progress and the log of a running call. Both have limits. The host drops the rest, and a warning says how much. If a
//! log is too long, the host keeps its beginning and its last lines, because the last lines explain a crash. A call that
//! reports too much still returns its result.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capabilities::interface::AuthorLog;
use capabilities::{Charge, Stop, Usage, Vault};
use domain::{Json, Limits, Span, call::Level};

use crate::stream::Stream;
use crate::tail::Tail;

/// Receives the reports of a running call, and knows whether the call should stop. The guest's thread calls it, so it must not
/// wait.
pub trait Sink: Send + Sync {
    /// Announces that the guest is about to run, and how long it may take to stop if it is asked to. Returns false if the
    /// call was stopped before; then the guest does not run.
    fn try_start(&self, _grace: Span) -> bool {
        true
    }
    /// Whether the call was asked to stop.
    fn stop_requested(&self) -> bool {
        false
    }
    /// One update of a streaming tool.
    fn progress(&self, update: Update);
    /// A text for the log, usually one line. The guest wrote it, and it can contain any character, also a line break.
    fn log(&self, level: Level, text: &str);
}

/// Drops every report.
impl Sink for () {
    fn progress(&self, _update: Update) {}
    fn log(&self, _level: Level, _line: &str) {}
}

#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// One line for people, from the guest.
    pub message: String,
    /// From 0 to 1.
    pub fraction: Option<f64>,
    /// For programs that show the call.
    pub data: Option<Json>,
}

/// The progress of one call.
pub(crate) struct Progress {
    sink: Arc<dyn Sink>,
    updates_left: u32,
    bytes_left: usize,
    dropped_updates: u64,
}

impl Progress {
    /// Without `streaming`, every update is dropped.
    pub(crate) fn new(sink: Arc<dyn Sink>, streaming: bool, limits: &Limits) -> Self {
        let updates_left = if streaming { limits.progress_updates } else { 0 };
        Self { sink, updates_left, bytes_left: limits.progress_bytes, dropped_updates: 0 }
    }

    /// Passes an update to the sink, or drops it.
    pub(crate) fn update(&mut self, message: String, fraction: Option<f64>, data: Option<String>) {
        let bytes = message.len() + data.as_ref().map_or(0, String::len);
        let (Some(updates), Some(left)) = (self.updates_left.checked_sub(1), self.bytes_left.checked_sub(bytes)) else {
            self.dropped_updates += 1;
            return;
        };
        let Ok(data) = data.map(Json::parse).transpose() else {
            self.dropped_updates += 1;
            return;
        };
        self.updates_left = updates;
        self.bytes_left = left;
        let fraction = fraction.filter(|fraction| (0.0..=1.0).contains(fraction));
        self.sink.progress(Update { message, fraction, data });
    }

    pub(crate) fn dropped_updates(&self) -> u64 {
        self.dropped_updates
    }
}

/// The log of one call: lines that the guest logs, output that it prints, and warnings of the host.
#[derive(Clone)]
pub(crate) struct Log(Arc<Mutex<Lines>>);

struct Lines {
    sink: Arc<dyn Sink>,
    /// The bytes that the beginning may still take.
    left: usize,
    /// The bytes that the last lines may take.
    last: usize,
    /// The last lines. `None`: the beginning still has room.
    tail: Option<Tail>,
    dropped_bytes: u64,
    /// Output after the last line break, by stream.
    partial: [Vec<u8>; 2],
    ended: bool,
    /// Whether lines of the guest are dropped.
    muted: bool,
    last_words: VecDeque<String>,
    /// The host memory that the log takes.
    charge: Charge,
    usage: Usage,
}

/// The number of lines of standard error that are kept to explain a crash.
const LAST_WORDS: usize = 3;

/// The beginning of a line that Rust prints after the message of each panic. It does not explain the crash.
const HOW_TO_SEE_MORE: &str = "note: run with `RUST_BACKTRACE";

impl Log {
    /// A quarter of the limit is for the last lines.
    pub(crate) fn new(sink: Arc<dyn Sink>, limit: usize, usage: &Usage) -> Self {
        Self(Arc::new(Mutex::new(Lines::new(sink, limit, usage))))
    }

    /// Begins the log of one more run, which has the whole limit.
    pub(crate) fn restart(&self, limit: usize) {
        let lines = &mut *self.lines();
        *lines = Lines::new(Arc::clone(&lines.sink), limit, &lines.usage);
    }

    /// Sets whether everything is dropped. While a run repeats the code of an earlier run, it does not report again.
    pub(crate) fn mute(&self, muted: bool) {
        self.lines().muted = muted;
    }

    /// Writes one line. It costs its bytes and one more, so that the number of empty lines is limited too.
    ///
    /// After the end of the call, lines are dropped. They are warnings of the host about requests that nobody waits for.
    pub(crate) fn line(&self, level: Level, text: &str) {
        let lines = &mut *self.lines();
        if lines.ended || lines.muted {
            return;
        }
        lines.usage.bytes.count_out(text.len());
        if let Some(tail) = &mut lines.tail {
            return tail.line(level, text.as_bytes());
        }
        let cost = text.len() + 1;
        let granted = lines.reserve(cost);
        if granted > 0 {
            let kept = text.floor_char_boundary(granted.min(text.len()));
            lines.sink.log(level, &text[..kept]);
        }
        if granted < cost {
            lines.begin_tail();
            match &mut lines.tail {
                Some(tail) if granted == 0 => tail.line(level, text.as_bytes()),
                _ => lines.dropped_bytes += (cost - granted) as u64,
            }
        }
    }

    /// Takes output that the guest prints, and writes the lines that it completes.
    pub(crate) fn print(&self, stream: Stream, bytes: &[u8]) -> Result<(), Stop> {
        let lines = &mut *self.lines();
        if lines.muted {
            return Ok(());
        }
        lines.usage.bytes.count_out(bytes.len());
        let kept = if lines.tail.is_some() { 0 } else { lines.reserve(bytes.len()) };
        // The charge is kept until the call ends, also for lines that were written. `log_bytes` limits it.
        lines.charge.grow(kept)?;
        let mut rest = &bytes[..kept];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            lines.partial[stream as usize].extend_from_slice(&rest[..end]);
            lines.emit(stream);
            rest = &rest[end + 1..];
        }
        lines.partial[stream as usize].extend_from_slice(rest);
        if kept < bytes.len() {
            lines.begin_tail();
            if let Some(tail) = &mut lines.tail {
                tail.print(stream, &bytes[kept..]);
            }
        }
        Ok(())
    }

    /// Ends the log. Writes what is left: incomplete lines, a note about dropped bytes, and the last lines.
    pub(crate) fn finish(&self, limit: usize) {
        let lines = &mut *self.lines();
        lines.ended = true;
        lines.emit_partial();
        let (dropped, last) = lines.tail.take().map(Tail::finish).unwrap_or_default();
        lines.dropped_bytes += dropped;
        if lines.dropped_bytes > 0 {
            let (dropped, follow) = (lines.dropped_bytes, if last.is_empty() { "" } else { ". The last lines follow" });
            let note =
                format!("dropped {dropped} bytes of this log; the limit `limits.log_bytes` is {limit} bytes{follow}");
            lines.sink.log(Level::Warn, &note);
        }
        for line in last {
            lines.write(line.level, line.stream, &line.text);
        }
    }

    /// The last lines of standard error, where most languages explain a crash.
    pub(crate) fn last_words(&self) -> String {
        self.lines().last_words.make_contiguous().join(" ")
    }

    /// Locks the lines. A sink that panics leaves them consistent, so a poisoned lock is no error.
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    fn new(sink: Arc<dyn Sink>, limit: usize, usage: &Usage) -> Self {
        Self {
            sink,
            left: limit - limit / 4,
            last: limit / 4,
            tail: None,
            dropped_bytes: 0,
            partial: [Vec::new(), Vec::new()],
            ended: false,
            muted: false,
            last_words: VecDeque::new(),
            charge: usage.memory.nothing(),
            usage: usage.clone(),
        }
    }

    /// Reserves bytes of the beginning. Returns their number, which is smaller than requested at the limit.
    fn reserve(&mut self, requested: usize) -> usize {
        let kept = requested.min(self.left);
        self.left -= kept;
        kept
    }

    /// Ends the beginning of the log, with its incomplete lines. From now on, only the last lines are kept.
    fn begin_tail(&mut self) {
        if self.tail.is_none() {
            let cut = [!self.partial[0].is_empty(), !self.partial[1].is_empty()];
            self.emit_partial();
            // If the call may not use this memory, its log has no last lines.
            let limit = if self.charge.grow(Tail::memory(self.last)).is_ok() { self.last } else { 0 };
            self.tail = Some(Tail::new(limit, cut));
        }
    }

    fn emit_partial(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            if !self.partial[stream as usize].is_empty() {
                self.emit(stream);
            }
        }
    }

    fn emit(&mut self, stream: Stream) {
        let line = std::mem::take(&mut self.partial[stream as usize]);
        self.write(stream.level(), Some(stream), &line);
    }

    fn write(&mut self, level: Level, stream: Option<Stream>, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let line = if stream.is_some() { line.trim_end_matches('\r') } else { &line };
        self.sink.log(level, line);
        if stream == Some(Stream::Stderr) && !line.trim().is_empty() && !line.starts_with(HOW_TO_SEE_MORE) {
            if self.last_words.len() == LAST_WORDS {
                self.last_words.pop_front();
            }
            self.last_words.push_back(line.trim().to_owned());
        }
    }
}

impl AuthorLog for Log {
    fn warn(&self, line: &str) {
        self.line(Level::Warn, line);
    }
}

/// The sink of the current run. Several runs can continue one guest, and each has its own sink. Between two runs, reports are
/// dropped.
pub(crate) struct CurrentSink(Mutex<Arc<dyn Sink>>);

impl CurrentSink {
    pub(crate) fn new(sink: Arc<dyn Sink>) -> Self {
        Self(Mutex::new(sink))
    }

    pub(crate) fn set(&self, sink: Arc<dyn Sink>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = sink;
    }

    fn get(&self) -> Arc<dyn Sink> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Sink for CurrentSink {
    fn try_start(&self, grace: Span) -> bool {
        self.get().try_start(grace)
    }

    fn stop_requested(&self) -> bool {
        self.get().stop_requested()
    }

    fn progress(&self, update: Update) {
        self.get().progress(update);
    }

    fn log(&self, level: Level, line: &str) {
        self.get().log(level, line);
    }
}

/// Redacts secrets in the reports of a call.
pub(crate) struct Redacting {
    sink: Arc<dyn Sink>,
    vault: Vault,
}

impl Redacting {
    /// Wraps a sink, unless the call has no secrets.
    pub(crate) fn over(sink: Arc<dyn Sink>, vault: &Vault) -> Arc<dyn Sink> {
        if vault.is_empty() { sink } else { Arc::new(Self { sink, vault: vault.clone() }) }
    }
}

impl Sink for Redacting {
    fn try_start(&self, grace: Span) -> bool {
        self.sink.try_start(grace)
    }

    fn stop_requested(&self) -> bool {
        self.sink.stop_requested()
    }

    fn progress(&self, update: Update) {
        let data = update.data.map(|data| Json::unchecked(self.vault.redacted(data.as_str().to_owned())));
        self.sink.progress(Update { message: self.vault.redacted(update.message), data, ..update });
    }

    fn log(&self, level: Level, line: &str) {
        self.sink.log(level, &self.vault.redacted(line.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use capabilities::blocking::Permits;

    use super::*;

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Sink for Counting {
        fn progress(&self, _update: Update) {}

        fn log(&self, _level: Level, _line: &str) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn empty_lines_count_against_the_limit_of_the_log() {
        let sink = Arc::new(Counting::default());
        let log = Log::new(sink.clone(), 10, &Usage::new(&Permits::new(1), None, &Limits::default(), Arc::new(())));
        for _ in 0..1_000 {
            log.line(Level::Debug, "");
        }
        log.finish(10);
        assert_eq!(sink.0.load(Ordering::Relaxed), 11, "eight lines, the note of how much was dropped, and two lines");
        log.line(Level::Warn, "too late");
        assert_eq!(sink.0.load(Ordering::Relaxed), 11, "nothing follows the end");
    }
}
