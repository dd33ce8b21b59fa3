//! Finding secrets in what goes by, and writing their names in their place.

use std::sync::Arc;

use domain::{Json, Span};

use super::Vault;
use super::forms::{Forms, Scratch};
use crate::report::{Level, Sink, Update};

/// What is looked for, and what stands there afterwards. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Mask(Arc<Secrets>);

struct Secrets {
    /// The forms of each value, and what is written in its place.
    all: Vec<(Forms, String)>,
    /// Which bytes a form can begin with, so that most places cost one look.
    first: [bool; 256],
    /// The most bytes that a form has.
    longest: usize,
    /// Whether no form goes over the end of a line.
    by_line: bool,
}

impl Mask {
    /// A mask over these secrets: names and values.
    pub(super) fn of<'a>(secrets: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        // Safe within a JSON string: a name has no character that would need an escape.
        let all: Vec<_> = secrets.map(|(name, value)| (Forms::of(value), format!("[secret {name}]"))).collect();
        let mut first = [false; 256];
        for byte in all.iter().flat_map(|(forms, _)| forms.first()) {
            first[usize::from(byte)] = true;
        }
        let longest = all.iter().map(|(forms, _)| forms.longest()).max().unwrap_or_default();
        let by_line = !all.iter().any(|(forms, _)| forms.has_byte(b'\n'));
        Self(Arc::new(Secrets { all, first, longest, by_line }))
    }

    /// A text with the secrets masked.
    pub(crate) fn text(&self, text: String) -> String {
        let mut masker = self.stream();
        let mut masked = masker.push(text.as_bytes());
        masked.extend(masker.finish());
        whole(masked)
    }

    /// The most bytes that a secret takes in any form.
    pub(super) fn longest(&self) -> usize {
        self.0.longest
    }

    /// A mask for bytes that come in pieces.
    pub(super) fn stream(&self) -> Masker {
        Masker { mask: self.clone(), held: Vec::new(), scratch: Scratch::default() }
    }
}

/// A masked text. What is taken out begins and ends where a character does, save in a text that was made to end otherwise.
pub(super) fn whole(masked: Vec<u8>) -> String {
    String::from_utf8(masked).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Masks what comes in pieces. It holds back the end of what came, since a secret may begin in it.
///
/// How much it holds back depends on nothing but how long the secrets are and where lines end. If it depended on whether the
/// end looks like the beginning of a secret, a server of a guest's choice could send beginnings and hang up, and what is
/// missing at the guest would tell which of them was right: a secret would be found out character by character. For the same
/// reason a text that ends with the beginning of a secret is left as it is.
pub(crate) struct Masker {
    mask: Mask,
    held: Vec<u8>,
    scratch: Scratch,
}

impl Masker {
    /// Takes a piece and gives out what is certain.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let Secrets { longest, by_line, .. } = *self.mask.0;
        let before = self.held.len();
        self.held.extend_from_slice(piece);
        // A secret that begins here may end after what came; one that begins further ahead, or in a line that is whole, is seen
        // as a whole.
        let certain = self.held.len().saturating_sub(longest.saturating_sub(1));
        let line = piece.iter().rposition(|byte| *byte == b'\n').filter(|_| by_line);
        self.release(certain.max(line.map_or(0, |at| before + at + 1)))
    }

    /// How many bytes it holds back now.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Gives out the rest.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.release(self.held.len())
    }

    /// Gives out what begins before this place.
    fn release(&mut self, until: usize) -> Vec<u8> {
        let secrets = &*self.mask.0;
        let (mut out, mut told, mut at) = (Vec::with_capacity(until), 0, 0);
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
            out.extend_from_slice(&self.held[told..at]);
            out.extend_from_slice(name.as_bytes());
            at += length;
            told = at;
        }
        out.extend_from_slice(&self.held[told..at]);
        self.held.drain(..at);
        out
    }
}

/// Masks what a call reports while it runs.
pub(crate) struct Masking {
    sink: Arc<dyn Sink>,
    vault: Vault,
}

impl Masking {
    /// The sink behind a mask, if there is anything to mask.
    pub(crate) fn over(sink: Arc<dyn Sink>, vault: &Vault) -> Arc<dyn Sink> {
        if vault.is_empty() { sink } else { Arc::new(Self { sink, vault: vault.clone() }) }
    }
}

impl Sink for Masking {
    fn begins(&self, grace: Span) -> bool {
        self.sink.begins(grace)
    }

    fn stop_requested(&self) -> bool {
        self.sink.stop_requested()
    }

    fn progress(&self, update: Update) {
        let data = update.data.map(|data| Json::new(self.vault.masked(data.as_str().to_owned())));
        self.sink.progress(Update { message: self.vault.masked(update.message), data, ..update });
    }

    fn log(&self, level: Level, line: &str) {
        self.sink.log(level, &self.vault.masked(line.to_owned()));
    }
}
