//! How far an export or an import is, for people at a terminal.

use std::io::{self, IsTerminal as _, Read, Write};
use std::time::{Duration, Instant};

use crate::terminal::Terminal;

/// The time between two lines.
const PAUSE: Duration = Duration::from_secs(1);

/// Counts the bytes that go through it, and prints their number each second if standard error is a terminal.
pub(super) struct Counted<'a, T> {
    inner: T,
    verb: &'static str,
    terminal: Option<&'a Terminal>,
    bytes: u64,
    last: Instant,
}

impl<'a, T> Counted<'a, T> {
    #[expect(clippy::disallowed_methods, reason = "the time between lines for a person is no time of a host")]
    pub(super) fn new(inner: T, verb: &'static str, terminal: &'a Terminal) -> Self {
        let terminal = io::stderr().is_terminal().then_some(terminal);
        Self { inner, verb, terminal, bytes: 0, last: Instant::now() }
    }

    fn count(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        if let Some(terminal) = self.terminal.filter(|_| self.last.elapsed() >= PAUSE) {
            self.last += self.last.elapsed();
            terminal.note(&format!("\r{} {} MiB", self.verb, self.bytes >> 20));
        }
    }
}

/// Ends the line with the number.
impl<T> Drop for Counted<'_, T> {
    fn drop(&mut self) {
        if let Some(terminal) = self.terminal.filter(|_| self.bytes >> 20 > 0) {
            terminal.note("\n");
        }
    }
}

impl<T: Write> Write for Counted<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.count(written);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<T: Read> Read for Counted<'_, T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count(read);
        Ok(read)
    }
}
