//! The last lines of a log whose limit is used up. They replace each other, so they take no more than their share of the
//! limit, however much a guest writes.

use std::collections::VecDeque;

use domain::call::Level;

use crate::stream::Stream;

/// The last lines of a log.
///
/// Every line is kept from its beginning. The rest of a line whose beginning is lost could hold the end of a secret, which
/// nothing would redact.
pub(crate) struct Tail {
    /// The bytes of the lines, and of each incomplete line.
    limit: usize,
    lines: VecDeque<TailLine>,
    bytes: usize,
    /// Output after the last line break, by stream. `None`: the beginning of the line is lost.
    partial: [Option<Vec<u8>>; 2],
    dropped: u64,
}

/// A line, with the stream that it was printed to, if it was printed.
pub(crate) struct TailLine {
    pub(crate) level: Level,
    pub(crate) stream: Option<Stream>,
    pub(crate) text: Vec<u8>,
}

impl Tail {
    /// The host memory that a tail of this limit takes: the lines, and an incomplete line of each stream.
    pub(crate) const fn memory(limit: usize) -> usize {
        limit.saturating_mul(3)
    }

    /// A tail that begins now. `cut` names the streams with an incomplete line whose beginning the host kept.
    pub(crate) fn new(limit: usize, cut: [bool; 2]) -> Self {
        let partial = cut.map(|cut| (!cut).then(Vec::new));
        Self { limit, lines: VecDeque::new(), bytes: 0, partial, dropped: 0 }
    }

    /// Takes a line.
    pub(crate) fn line(&mut self, level: Level, text: &[u8]) {
        self.push(level, None, text.to_vec());
    }

    /// Takes printed output. Looks only at its end, so that its cost has a bound.
    pub(crate) fn print(&mut self, stream: Stream, bytes: &[u8]) {
        let skipped = bytes.len().saturating_sub(self.limit);
        if skipped > 0 {
            let lost = self.partial[stream as usize].take().map_or(0, |partial| partial.len());
            self.drop(skipped + lost);
        }
        let mut rest = &bytes[skipped..];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.extend(stream, &rest[..end]);
            match self.partial[stream as usize].replace(Vec::new()) {
                Some(line) => self.push(stream.level(), Some(stream), line),
                None => self.drop(1),
            }
            rest = &rest[end + 1..];
        }
        self.extend(stream, rest);
    }

    /// The bytes that were dropped, and the lines.
    pub(crate) fn finish(mut self) -> (u64, VecDeque<TailLine>) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            if let Some(line) = self.partial[stream as usize].take().filter(|line| !line.is_empty()) {
                self.push(stream.level(), Some(stream), line);
            }
        }
        (self.dropped, self.lines)
    }

    /// Adds to an incomplete line, of which only the beginning is kept.
    fn extend(&mut self, stream: Stream, more: &[u8]) {
        let kept = match &mut self.partial[stream as usize] {
            Some(line) => {
                let kept = more.len().min(self.limit.saturating_sub(line.len()));
                line.extend_from_slice(&more[..kept]);
                kept
            }
            None => 0,
        };
        self.drop(more.len() - kept);
    }

    /// Adds a line, which costs its bytes and one for its end. Older lines make room for it.
    fn push(&mut self, level: Level, stream: Option<Stream>, mut text: Vec<u8>) {
        let kept = text.len().min(self.limit.saturating_sub(1));
        self.drop(text.len() - kept);
        text.truncate(kept);
        self.lines.push_back(TailLine { level, stream, text });
        self.bytes += kept + 1;
        while self.bytes > self.limit {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.text.len() + 1;
            self.drop(oldest.text.len() + 1);
        }
    }

    fn drop(&mut self, bytes: usize) {
        self.dropped += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(tail: Tail) -> (u64, Vec<String>) {
        let (dropped, lines) = tail.finish();
        (dropped, lines.into_iter().map(|line| String::from_utf8(line.text).unwrap()).collect())
    }

    #[test]
    fn the_last_lines_replace_older_ones() {
        let mut tail = Tail::new(10, [false; 2]);
        tail.print(Stream::Stdout, b"one\ntwo\nth");
        tail.print(Stream::Stdout, b"ree\n");
        tail.line(Level::Info, b"4");
        assert_eq!(finished(tail), (8, vec!["three".into(), "4".into()]));
    }

    #[test]
    fn a_line_without_its_beginning_is_dropped() {
        let mut tail = Tail::new(10, [true, false]);
        tail.print(Stream::Stdout, b"end\nnew\n");
        assert_eq!(finished(tail), (4, vec!["new".into()]));
        let mut tail = Tail::new(10, [false; 2]);
        tail.print(Stream::Stderr, b"begun");
        tail.print(Stream::Stderr, b"0123456789 long\nlast");
        assert_eq!(finished(tail), (5 + 16, vec!["last".into()]));
    }

    #[test]
    fn a_tail_never_has_more_than_its_limit() {
        let mut tail = Tail::new(4, [false; 2]);
        for _ in 0..1_000 {
            tail.line(Level::Info, &[b'x'; 1_000]);
            tail.print(Stream::Stdout, &[b'y'; 3]);
            assert!(tail.bytes <= 4 && tail.partial.iter().flatten().all(|line| line.len() <= 4));
        }
        assert_eq!(finished(tail).1, ["yyy"]);
        let mut none = Tail::new(0, [false; 2]);
        none.line(Level::Info, b"x");
        none.print(Stream::Stdout, b"y\nz");
        assert!(finished(none).1.is_empty());
    }
}
