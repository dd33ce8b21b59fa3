//! Finds the values of secrets in texts and replaces them by their names.

use std::sync::Arc;

use super::forms::{Forms, Scratch};

/// The values to find and their replacements. Cheap to clone.
#[derive(Clone)]
pub(super) struct Redaction(Arc<Secrets>);

struct Secrets {
    /// The forms of each value, and its replacement.
    all: Vec<(Forms, String)>,
    /// The bytes with which a form can begin, so that most positions cost one look-up.
    first: [bool; 256],
    /// Bytes of the longest form.
    longest: usize,
    /// Whether no form holds a line break.
    by_line: bool,
}

impl Redaction {
    /// Redacts these secrets: names and values.
    pub(super) fn of<'a>(secrets: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        // A name needs no escape in a JSON string.
        let all: Vec<_> = secrets.map(|(name, value)| (Forms::of(value), format!("[secret {name}]"))).collect();
        let mut first = [false; 256];
        for byte in all.iter().flat_map(|(forms, _)| forms.first()) {
            first[usize::from(byte)] = true;
        }
        let longest = all.iter().map(|(forms, _)| forms.longest()).max().unwrap_or_default();
        let by_line = !all.iter().any(|(forms, _)| forms.has_byte(b'\n'));
        Self(Arc::new(Secrets { all, first, longest, by_line }))
    }

    pub(super) fn text(&self, text: String) -> String {
        let mut redactor = self.stream();
        let mut redacted = redactor.push(text.as_bytes());
        redacted.extend(redactor.finish());
        whole(redacted)
    }

    /// Bytes of the longest form.
    pub(super) fn longest(&self) -> usize {
        self.0.longest
    }

    /// Redacts bytes that come in pieces.
    pub(super) fn stream(&self) -> Redactor {
        Redactor { redaction: self.clone(), held: Vec::new(), scratch: Scratch::default() }
    }
}

/// A redacted text. Each replacement begins and ends between characters, except in a text that ends within one.
pub(super) fn whole(redacted: Vec<u8>) -> String {
    String::from_utf8(redacted).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Redacts bytes that come in pieces. It holds back the end of each piece, because a secret may begin in it.
///
/// The length that it holds back depends only on the lengths of the secrets and on the ends of lines. It must not depend on
/// whether the end looks like the beginning of a secret. Otherwise a server that works with the guest could send guesses of the
/// beginning and hang up: the missing bytes would tell the guest which guess was right, character by character. For the same
/// reason a text that ends with the beginning of a secret stays as it is.
pub(crate) struct Redactor {
    redaction: Redaction,
    held: Vec<u8>,
    scratch: Scratch,
}

impl Redactor {
    /// Takes a piece and returns the bytes in which no secret can begin any more.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let Secrets { longest, by_line, .. } = *self.redaction.0;
        let before = self.held.len();
        self.held.extend_from_slice(piece);
        // A secret that begins before `certain`, or in a complete line, is complete.
        let certain = self.held.len().saturating_sub(longest.saturating_sub(1));
        let line = piece.iter().rposition(|byte| *byte == b'\n').filter(|_| by_line);
        self.release(certain.max(line.map_or(0, |at| before + at + 1)))
    }

    /// The bytes that are held back now.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns the rest.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.release(self.held.len())
    }

    /// Returns the bytes before `until`.
    fn release(&mut self, until: usize) -> Vec<u8> {
        let secrets = &*self.redaction.0;
        let (mut out, mut copied, mut at) = (Vec::with_capacity(until), 0, 0);
        while at < until {
            let rest = &self.held[at..];
            let found = if secrets.first[usize::from(rest[0])] {
                let lengths = secrets.all.iter().map(|(forms, name)| (forms.at(rest, &mut self.scratch), name));
                lengths.filter_map(|(length, name)| Some((length?, name))).max_by_key(|(length, _)| *length)
            } else {
                None
            };
            let Some((length, name)) = found else {
                at += 1;
                continue;
            };
            out.extend_from_slice(&self.held[copied..at]);
            out.extend_from_slice(name.as_bytes());
            at += length;
            copied = at;
        }
        out.extend_from_slice(&self.held[copied..at]);
        self.held.drain(..at);
        out
    }
}
