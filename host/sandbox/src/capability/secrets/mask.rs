//! Finding secrets in what goes by, and writing their names in their place.

use std::sync::Arc;

use domain::{Json, Span};

use super::forms::{At, Forms};
use super::{LEAST_SECRET, Vault};
use crate::report::{Level, Sink, Update};

/// What is looked for, and what stands there afterwards. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Mask(Arc<Secrets>);

struct Secrets {
    /// The forms of each value, and what is written in its place.
    all: Vec<(Forms, String)>,
    /// Which bytes a form can begin with, so that most places cost one look.
    first: [bool; 256],
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
        Self(Arc::new(Secrets { all, first }))
    }

    /// A text with the secrets masked.
    pub(crate) fn text(&self, text: String) -> String {
        let mut masker = self.stream();
        let mut masked = masker.push(text.as_bytes());
        masked.extend(masker.finish());
        // What is taken out begins and ends where a character does, save in a text that was made to end otherwise.
        String::from_utf8(masked).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// A mask for bytes that come in pieces.
    pub(super) fn stream(&self) -> Masker {
        Masker { mask: self.clone(), held: Vec::new() }
    }

    /// What is at a place: how long the secret is that stands there, and what is written for it.
    fn at(&self, bytes: &[u8], is_last: bool) -> Found<'_> {
        let mut longest = Found::Nothing;
        for (forms, name) in &self.0.all {
            let length = match forms.at(bytes) {
                At::No => continue,
                At::Whole(length) => length,
                At::Begun(_) if !is_last => return Found::Undecided,
                // Something was cut off in the middle of a secret. Its beginning is not told either.
                At::Begun(known) if known >= LEAST_SECRET => bytes.len(),
                At::Begun(_) => continue,
            };
            if !matches!(longest, Found::Secret(other, _) if other >= length) {
                longest = Found::Secret(length, name);
            }
        }
        longest
    }
}

/// What stands at a place.
enum Found<'a> {
    Nothing,
    /// What follows decides.
    Undecided,
    /// A secret of so many bytes, and its name.
    Secret(usize, &'a str),
}

/// Masks what comes in pieces. It holds back what may be the beginning of a secret.
pub(crate) struct Masker {
    mask: Mask,
    held: Vec<u8>,
}

impl Masker {
    /// Takes a piece and gives out what is certain.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        self.release(false)
    }

    /// Gives out the rest.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.release(true)
    }

    fn release(&mut self, is_last: bool) -> Vec<u8> {
        let (mut out, mut told, mut at) = (Vec::with_capacity(self.held.len()), 0, 0);
        while let Some(byte) = self.held.get(at) {
            if !self.mask.0.first[usize::from(*byte)] {
                at += 1;
                continue;
            }
            match self.mask.at(&self.held[at..], is_last) {
                Found::Nothing => at += 1,
                Found::Undecided => break,
                Found::Secret(length, name) => {
                    out.extend_from_slice(&self.held[told..at]);
                    out.extend_from_slice(name.as_bytes());
                    at += length;
                    told = at;
                }
            }
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
