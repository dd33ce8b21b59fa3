//! What a running call tells those who follow it: progress and its log, both within bounds. What is beyond them is dropped
//! and counted, and the count is the log's last line: a guest that talks too much still gets its result.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::{Json, Limits, Span};

use crate::ending::Stop;
use crate::json;
use crate::spending::{Charge, Held, Traffic};

/// Receives what a call reports while it runs, and knows whether it should stop. Called from the guest's thread: hand it on,
/// do not wait.
pub trait Sink: Send + Sync {
    /// The guest is about to run; should it be told to stop, it needs so long for that. False: it was told so already, and
    /// does not run.
    fn begins(&self, _grace: Span) -> bool {
        true
    }
    /// Whether nobody waits for the result of the call any more.
    fn stop_requested(&self) -> bool {
        false
    }
    /// One update of a streaming tool.
    fn progress(&self, update: Update);
    /// One line of the log. It comes from the guest and may hold any characters.
    fn log(&self, level: Level, line: &str);
}

/// A sink for those who follow nothing.
impl Sink for () {
    fn progress(&self, _update: Update) {}
    fn log(&self, _level: Level, _line: &str) {}
}

/// How far a call has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// One line for people, as the guest wrote it.
    pub message: String,
    /// From 0 to 1.
    pub fraction: Option<f64>,
    /// For whoever renders the call.
    pub data: Option<Json>,
}

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For the author of the plugin.
    Debug,
    /// Worth knowing; also what the guest prints to its standard output.
    Info,
    /// Something is off; also what it prints to its standard error.
    Warn,
    /// The call will not have its result.
    Error,
}

impl Level {
    /// The name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// The progress of one call.
pub(crate) struct Progress {
    sink: Arc<dyn Sink>,
    updates_left: u32,
    bytes_left: usize,
    dropped: u64,
}

impl Progress {
    /// For a tool that does not stream there is no budget at all.
    pub(crate) fn new(sink: Arc<dyn Sink>, streaming: bool, limits: &Limits) -> Self {
        let updates_left = if streaming { limits.progress_updates } else { 0 };
        Self { sink, updates_left, bytes_left: limits.progress_bytes, dropped: 0 }
    }

    /// Hands one update on, or drops it.
    pub(crate) fn update(&mut self, message: String, fraction: Option<f64>, data: Option<String>) {
        let bytes = message.len() + data.as_ref().map_or(0, String::len);
        let (Some(updates), Some(left)) = (self.updates_left.checked_sub(1), self.bytes_left.checked_sub(bytes)) else {
            self.dropped += 1;
            return;
        };
        if data.as_deref().is_some_and(|text| json::check(text).is_err()) {
            self.dropped += 1;
            return;
        }
        self.updates_left = updates;
        self.bytes_left = left;
        let fraction = fraction.filter(|fraction| (0.0..=1.0).contains(fraction));
        self.sink.progress(Update { message, fraction, data: data.map(Json::new) });
    }

    /// How many updates were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// The log of one call: its own lines and what it prints. Shared with its output streams.
#[derive(Clone)]
pub(crate) struct Log(Arc<Mutex<Lines>>);

struct Lines {
    sink: Arc<dyn Sink>,
    left: usize,
    dropped: u64,
    /// What was printed after the last line break, by stream.
    partial: [Vec<u8>; 2],
    ended: bool,
    last_words: VecDeque<String>,
    held: Held,
    /// What the host holds of lines that have not ended, and of the last words.
    charge: Option<Charge>,
    traffic: Traffic,
}

/// Lines of standard error that explain a crash.
const LAST_WORDS: usize = 3;

/// How the line begins that follows the message of every Rust panic and explains nothing.
const HOW_TO_SEE_MORE: &str = "note: run with `RUST_BACKTRACE";

/// The streams that a guest prints to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    const fn level(self) -> Level {
        match self {
            Self::Stdout => Level::Info,
            Self::Stderr => Level::Warn,
        }
    }
}

impl Log {
    /// An empty log.
    pub(crate) fn new(sink: Arc<dyn Sink>, limit: usize, held: Held, traffic: Traffic) -> Self {
        Self(Arc::new(Mutex::new(Lines {
            sink,
            left: limit,
            dropped: 0,
            partial: [Vec::new(), Vec::new()],
            ended: false,
            last_words: VecDeque::new(),
            held,
            charge: None,
            traffic,
        })))
    }

    /// Writes one line. It costs its bytes and one for its end, as if it had been printed: empty lines are not free. What
    /// the host has to say after the end, of a request that nobody waited for, is not written any more.
    pub(crate) fn line(&self, level: Level, text: &str) {
        let mut lines = self.lines();
        if lines.ended {
            return;
        }
        lines.traffic.out_of_guest(text.len());
        let granted = lines.take(text.len() + 1);
        if granted > 0 {
            let kept = text.floor_char_boundary(granted.min(text.len()));
            lines.sink.log(level, &text[..kept]);
        }
    }

    /// Takes what the guest printed.
    pub(crate) fn print(&self, stream: Stream, bytes: &[u8]) -> Result<(), Stop> {
        let mut lines = self.lines();
        lines.traffic.out_of_guest(bytes.len());
        let kept = lines.take(bytes.len());
        lines.hold(kept)?;
        let mut rest = &bytes[..kept];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            lines.partial[stream as usize].extend_from_slice(&rest[..end]);
            lines.emit(stream);
            rest = &rest[end + 1..];
        }
        lines.partial[stream as usize].extend_from_slice(rest);
        Ok(())
    }

    /// Writes what is left, and how much was dropped.
    pub(crate) fn finish(&self, limit: usize) {
        let mut lines = self.lines();
        lines.ended = true;
        for stream in [Stream::Stdout, Stream::Stderr] {
            if !lines.partial[stream as usize].is_empty() {
                lines.emit(stream);
            }
        }
        if lines.dropped > 0 {
            let note =
                format!("{} bytes of this log were dropped: it may hold {limit} (limit `log_bytes`)", lines.dropped);
            lines.sink.log(Level::Warn, &note);
        }
    }

    /// The last lines that went to standard error, which is where a language says why it gave up.
    pub(crate) fn last_words(&self) -> String {
        self.lines().last_words.make_contiguous().join(" ")
    }

    /// A sink that panicked leaves the lines as they are, and they are fine.
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    /// How much of so many bytes may be kept; the rest is counted as dropped.
    fn take(&mut self, wanted: usize) -> usize {
        let kept = wanted.min(self.left);
        self.left -= kept;
        self.dropped += (wanted - kept) as u64;
        kept
    }

    /// Charges what was printed for as long as the call lasts: how much of it is given away again and how much is kept as
    /// last words is not worth knowing, since all of it together is bounded by the limit `log_bytes`.
    fn hold(&mut self, bytes: usize) -> Result<(), Stop> {
        match &mut self.charge {
            Some(charge) => charge.grow(bytes),
            charge => {
                *charge = Some(self.held.charge(bytes)?);
                Ok(())
            }
        }
    }

    fn emit(&mut self, stream: Stream) {
        let line = std::mem::take(&mut self.partial[stream as usize]);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches('\r');
        self.sink.log(stream.level(), line);
        if stream == Stream::Stderr && !line.trim().is_empty() && !line.starts_with(HOW_TO_SEE_MORE) {
            if self.last_words.len() == LAST_WORDS {
                self.last_words.pop_front();
            }
            self.last_words.push_back(line.trim().to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

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
    fn empty_lines_spend_the_log_too() {
        let sink = Arc::new(Counting::default());
        let log = Log::new(sink.clone(), 10, Held::new(0), Traffic::default());
        for _ in 0..1_000 {
            log.line(Level::Debug, "");
        }
        log.finish(10);
        assert_eq!(sink.0.load(Ordering::Relaxed), 11, "ten lines, and the note of how much was dropped");
        log.line(Level::Warn, "too late");
        assert_eq!(sink.0.load(Ordering::Relaxed), 11, "the note is the last line");
    }
}
