//! Finding secrets in what goes by, and writing their names in their place.

use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use domain::Json;

use super::{Vault, forms};
use crate::report::{Level, Sink, Update};

/// What is looked for, and what stands there afterwards. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Mask(Arc<Forms>);

struct Forms {
    /// `None` if the searcher could not be made; then nothing may pass.
    found: Option<AhoCorasick>,
    /// For each form, what is written in its place.
    names: Vec<String>,
    longest: usize,
}

impl Mask {
    /// A mask over these secrets: names and values.
    pub(super) fn of<'a>(secrets: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let (mut patterns, mut names) = (Vec::new(), Vec::new());
        for (name, value) in secrets {
            for form in forms::of(value) {
                patterns.push(form);
                // Safe within a JSON string: a name has no character that would need an escape.
                names.push(format!("[secret {name}]"));
            }
        }
        let longest = patterns.iter().map(String::len).max().unwrap_or_default();
        let found = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(patterns).ok();
        Self(Arc::new(Forms { found, names, longest }))
    }

    /// A text with the secrets masked.
    pub(crate) fn text(&self, text: String) -> String {
        match &self.0.found {
            Some(found) if !found.is_match(&text) => text,
            Some(found) => found.replace_all(&text, &self.0.names),
            None => "[masked]".to_owned(),
        }
    }

    /// Bytes with the secrets masked.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut masker = self.stream();
        let mut masked = masker.push(bytes);
        masked.extend(masker.finish());
        masked
    }

    /// A mask for bytes that come in pieces.
    pub(super) fn stream(&self) -> Masker {
        Masker { mask: self.clone(), held: Vec::new() }
    }
}

/// Masks what comes in pieces. It holds back as much as could be the beginning of a secret: less than its longest form.
pub(crate) struct Masker {
    mask: Mask,
    held: Vec<u8>,
}

impl Masker {
    /// Takes a piece and gives out what is certain.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        // A form that begins before this place lies wholly in what is held, the longest one, too.
        let certain = (self.held.len() + 1).saturating_sub(self.mask.0.longest);
        self.release(certain)
    }

    /// Gives out the rest.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.release(self.held.len())
    }

    /// Gives out what was held up to a place, and a form that begins before it and ends behind it as a whole.
    fn release(&mut self, certain: usize) -> Vec<u8> {
        let forms = &self.mask.0;
        let Some(found) = &forms.found else {
            self.held.clear();
            return Vec::new();
        };
        let (mut out, mut done) = (Vec::with_capacity(certain), 0);
        for form in found.find_iter(&self.held) {
            if form.start() >= certain {
                break;
            }
            out.extend_from_slice(&self.held[done..form.start()]);
            out.extend_from_slice(forms.names[form.pattern().as_usize()].as_bytes());
            done = form.end();
        }
        if done < certain {
            out.extend_from_slice(&self.held[done..certain]);
            done = certain;
        }
        self.held.drain(..done);
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
    fn progress(&self, update: Update) {
        let data = update.data.map(|data| Json::new(self.vault.masked(data.as_str().to_owned())));
        self.sink.progress(Update { message: self.vault.masked(update.message), data, ..update });
    }

    fn log(&self, level: Level, line: &str) {
        self.sink.log(level, &self.vault.masked(line.to_owned()));
    }
}
