//! Reads lines of bounded length from a process that may write anything.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

const CHUNK: usize = 16 << 10;

/// The lines of a stream.
pub(crate) struct Lines<R> {
    from: R,
    held: Vec<u8>,
    /// How many held bytes have no line break.
    searched: usize,
    max: usize,
}

/// Why there is no further line.
#[derive(Debug)]
pub(crate) enum NoLine {
    End,
    TooLong(usize),
    Io(io::Error),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) const fn new(from: R, max: usize) -> Self {
        Self { from, held: Vec::new(), searched: 0, max }
    }

    /// The next line, without its break. A line without one at the end is dropped.
    pub(crate) async fn next(&mut self) -> Result<Vec<u8>, NoLine> {
        loop {
            if let Some(at) = self.held[self.searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.held.split_off(self.searched + at + 1);
                let mut line = std::mem::replace(&mut self.held, rest);
                self.searched = 0;
                line.pop();
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return if line.len() > self.max { Err(NoLine::TooLong(self.max)) } else { Ok(line) };
            }
            self.searched = self.held.len();
            if self.searched > self.max {
                return Err(NoLine::TooLong(self.max));
            }
            self.held.reserve(CHUNK);
            let read = (&mut self.from).take(CHUNK as u64).read_buf(&mut self.held).await.map_err(NoLine::Io)?;
            if read == 0 {
                return Err(NoLine::End);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn endless_line_ends_the_reading() {
        let mut lines = Lines::new(tokio::io::repeat(b'a'), 100_000);
        assert!(matches!(lines.next().await, Err(NoLine::TooLong(100_000))));
        assert!(lines.held.len() <= 100_000 + CHUNK);
    }

    #[tokio::test]
    async fn lines_are_split_and_a_long_one_is_refused() {
        let mut lines = Lines::new(b"one\r\n\ntwo\n1234567\nlast".as_slice(), 6);
        for expected in ["one", "", "two"] {
            assert_eq!(lines.next().await.unwrap(), expected.as_bytes());
        }
        assert!(matches!(lines.next().await, Err(NoLine::TooLong(6))));
        assert_eq!(lines.next().await.map_err(|end| matches!(end, NoLine::End)), Err(true));
    }
}
