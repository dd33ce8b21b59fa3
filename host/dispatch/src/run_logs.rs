//! The logs of running calls. A guest writes its lines to memory, and only the last ones are kept. They are stored with
//! the next commit of the turn, such as the outcome of the call, with the next entries of the call's journal, or a second
//! later with those of other calls. No line has a commit of its own. A crash loses at most the lines of the last second. A
//! durable call loses none before its last entry on disk, because its next run does not write them again.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeBounds;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::{CallIndex, Span, Timestamp, TurnId, call::Level};
use tokio::sync::Notify;

use crate::committer::{Committer, Contributor, Observer, TurnChange};
use crate::ports::{Clock, Commit, LogLine, RowChange, RunLog};

/// The time between the first line that is not stored and the commit of the lines.
const PAUSE: Span = Span::from_secs(1);

/// The time after a commit that failed. Until then the lines are in memory.
const PAUSE_AFTER_FAULT: Span = Span::from_secs(10);

/// The logs that are stored with one commit.
const AT_ONCE: usize = 64;

/// How much of the log of one run is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBounds {
    /// The size of the texts of the lines in JSON. Zero: nothing is kept.
    pub bytes: usize,
    /// The number of lines.
    pub lines: usize,
}

impl Default for LogBounds {
    fn default() -> Self {
        Self { bytes: 16 << 10, lines: 200 }
    }
}

/// A run: its turn, its call, and the attempt.
type Key = (TurnId, CallIndex, u32);

/// The logs of the runs of stored turns, until they are stored.
pub(crate) struct RunLogs {
    bounds: LogBounds,
    clock: Arc<dyn Clock>,
    /// The logs that have lines, of runs that still write or whose last lines are not stored.
    open: Mutex<BTreeMap<Key, Arc<RunBuffer>>>,
    unstored: Notify,
}

impl RunLogs {
    pub(crate) fn new(bounds: LogBounds, clock: Arc<dyn Clock>) -> Self {
        Self { bounds, clock, open: Mutex::default(), unstored: Notify::new() }
    }

    /// The log of a run that begins now.
    pub(crate) fn begin(self: &Arc<Self>, turn: TurnId, call: CallIndex, run: u32) -> RunWriter {
        let logs = (self.bounds.bytes > 0 && self.bounds.lines > 0).then(|| self.clone());
        let buffer = RunBuffer { key: (turn, call, run), bounds: self.bounds, state: Mutex::default() };
        RunWriter { buffer: Arc::new(buffer), clock: self.clock.clone(), logs }
    }

    /// As [`RunLogs::begin`], for a run of an ephemeral turn. Its lines are only numbered.
    pub(crate) fn begin_unstored(&self, turn: TurnId, call: CallIndex, run: u32) -> RunWriter {
        let bounds = LogBounds { bytes: 0, lines: 0 };
        let buffer = RunBuffer { key: (turn, call, run), bounds, state: Mutex::default() };
        RunWriter { buffer: Arc::new(buffer), clock: self.clock.clone(), logs: None }
    }

    /// The number of logs in memory.
    pub(crate) fn len(&self) -> usize {
        self.open().len()
    }

    /// The logs in memory of the runs of a call. Some may be stored as well.
    pub(crate) fn of_call(&self, turn: TurnId, call: CallIndex) -> Vec<RunLog> {
        self.open().range((turn, call, 0)..=(turn, call, u32::MAX)).map(|(_, buffer)| buffer.log()).collect()
    }

    /// Stores the logs of calls that take long, for as long as the host runs.
    pub(crate) async fn watch(self: Arc<Self>, committer: Arc<Committer>) {
        loop {
            self.unstored.notified().await;
            self.clock.sleep(PAUSE).await;
            for rows in self.unstored(..).chunks(AT_ONCE) {
                if let Err(error) = committer.record(Commit::rows(rows.to_vec())).await {
                    tracing::error!(%error, "the logs of running calls could not be stored");
                    self.clock.sleep(PAUSE_AFTER_FAULT).await;
                    self.unstored.notify_one();
                    break;
                }
            }
        }
    }

    /// The log of a run, if it has lines that are not stored.
    pub(crate) fn unstored_of(&self, turn: TurnId, call: CallIndex, run: u32) -> Vec<RowChange> {
        let key = (turn, call, run);
        self.unstored(key..=key)
    }

    /// The logs with lines that are not stored.
    fn unstored(&self, runs: impl RangeBounds<Key>) -> Vec<RowChange> {
        let open = self.open();
        let unstored = open.range(runs).filter(|(_, buffer)| buffer.state().is_unstored());
        unstored.map(|(_, buffer)| RowChange::RunLog(buffer.log())).collect()
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<RunBuffer>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contributor for RunLogs {
    /// The lines of a turn's calls are stored with its next commit.
    fn contribute(&self, change: &TurnChange<'_>, _: &Commit) -> Vec<RowChange> {
        let turn = change.after.id;
        self.unstored((turn, CallIndex(0), 0)..=(turn, CallIndex(u16::MAX), u32::MAX))
    }
}

impl Observer for RunLogs {
    fn committed(&self, commit: &Commit, _: Option<&TurnChange<'_>>) {
        for row in &commit.rows {
            let RowChange::RunLog(RunLog { turn, call, run, written, .. }) = row else { continue };
            let (mut open, key) = (self.open(), (*turn, *call, *run));
            let is_over = open.get(&key).is_some_and(|buffer| {
                let mut state = buffer.state();
                state.stored = state.stored.max(*written);
                state.has_ended && !state.is_unstored()
            });
            if is_over {
                open.remove(&key);
            }
        }
    }
}

/// The log of one run.
struct RunBuffer {
    key: Key,
    bounds: LogBounds,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    lines: VecDeque<LogLine>,
    bytes: usize,
    /// The number of lines that the run wrote.
    written: u64,
    /// The number of lines that it had written when the log was last stored.
    stored: u64,
    has_ended: bool,
}

impl State {
    const fn is_unstored(&self) -> bool {
        self.written > self.stored
    }
}

/// The size of a text in JSON, as it is stored. So a log of control characters takes no more of the disk than others.
fn stored_size(text: &str) -> usize {
    let size = |byte: u8| match byte {
        b'"' | b'\\' | 0x08 | b'\t' | b'\n' | 0x0c | b'\r' => 2,
        0..=0x1f => 6,
        _ => 1,
    };
    text.bytes().map(size).sum()
}

/// The prefix of a text that takes at most `bytes` bytes when it is stored.
fn beginning(text: &str, bytes: usize) -> &str {
    let mut size = 0;
    for (at, letter) in text.char_indices() {
        size += stored_size(&text[at..at + letter.len_utf8()]);
        if size > bytes {
            return &text[..at];
        }
    }
    text
}

impl RunBuffer {
    /// Adds a line, cut at the bound. Returns its number.
    fn add(&self, at: Timestamp, level: Level, text: &str) -> u64 {
        let LogBounds { bytes, lines } = self.bounds;
        let mut state = self.state();
        state.written += 1;
        if lines > 0 {
            let text = beginning(text, bytes).to_owned();
            state.bytes += stored_size(&text);
            state.lines.push_back(LogLine { at, level, text });
            while state.bytes > bytes || state.lines.len() > lines {
                let Some(oldest) = state.lines.pop_front() else { break };
                state.bytes -= stored_size(&oldest.text);
            }
        }
        state.written
    }

    fn log(&self) -> RunLog {
        let (turn, call, run) = self.key;
        let state = self.state();
        RunLog { turn, call, run, written: state.written, lines: state.lines.iter().cloned().collect() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the log of one run. The log is complete when this is dropped.
pub(crate) struct RunWriter {
    buffer: Arc<RunBuffer>,
    clock: Arc<dyn Clock>,
    /// `None`: nothing is kept.
    logs: Option<Arc<RunLogs>>,
}

impl RunWriter {
    /// The attempt, from 1.
    pub(crate) fn run(&self) -> u32 {
        self.buffer.key.2
    }

    /// Writes a line, and returns its number. The first one is 1.
    pub(crate) fn line(&self, level: Level, text: &str) -> u64 {
        let number = self.buffer.add(self.clock.now(), level, text);
        if let Some(logs) = &self.logs {
            if number == 1 {
                logs.open().insert(self.buffer.key, self.buffer.clone());
            }
            logs.unstored.notify_one();
        }
        number
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        let Some(logs) = &self.logs else { return };
        let is_stored = {
            let mut state = self.buffer.state();
            state.has_ended = true;
            !state.is_unstored()
        };
        if is_stored {
            logs.open().remove(&self.buffer.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_count_as_they_are_stored() {
        let texts = [("plain", 5), ("a\"b\\c", 7), ("\u{0}\u{1f}\u{1b}[31m", 22), ("tab\tnew\nline", 14), ("ü😀", 6)];
        for (text, size) in texts {
            assert_eq!(stored_size(text), size, "{text:?}");
        }
        let key = (TurnId::from_bits(1), CallIndex(0), 1);
        let bounds = LogBounds { bytes: 60, lines: 9 };
        let buffer = RunBuffer { key, bounds, state: Mutex::default() };
        buffer.add(Timestamp::from_millis(0), Level::Info, "first");
        buffer.add(Timestamp::from_millis(0), Level::Info, &"\u{0}".repeat(100));
        let lines: Vec<_> = buffer.log().lines.into_iter().map(|line| line.text.len()).collect();
        assert_eq!(lines, [10], "the long line is cut, and leaves no room for the first");
    }
}
