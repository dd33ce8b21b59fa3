//! The journal of a durable call: the results of its host functions, in their order. A later run gets them instead of
//! calling the functions again.

use std::sync::Arc;

use crate::{Digest, Span, Timestamp};

/// An entry of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// From 0.
    pub number: u32,
    /// The number of steps that had ended before it.
    pub step: u32,
    /// The run that recorded it. `None`: an older host did not store it.
    pub run: Option<u32>,
    /// The function and the place that it reaches, for people: no arguments, and no secrets of the host. `None`: an older
    /// host did not store it.
    pub function: Option<Arc<str>>,
    /// Digest of the function and its arguments. A later run must call the same.
    pub digest: Digest,
    pub at: Timestamp,
    /// Random, in the first entry. Without it, a reader of a digest could guess a short result.
    pub salt: Option<Digest>,
    /// The bytes of a request. `None`: it sent none, or an older host did not store them. Another function has none.
    pub transferred: Option<Transferred>,
    pub record: Record,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// The result of a host function, in a form of its capability.
    Result(Arc<str>),
    /// An effect is about to begin. This text names it for people. Its result is the next entry. Without one, nobody
    /// knows whether it happened. If the effect is begun once more, somebody has decided to repeat it.
    Begun(Arc<str>),
    /// The server refused the request for now. A later run sends it again.
    Refused(RefusedForNow),
}

/// A refusal for now: the server asks to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedForNow {
    /// The request is not sent again before this time.
    pub until: Timestamp,
    /// The time that the server asked for.
    pub wait: Span,
    /// Whether an earlier sending may have been carried out, so that only a request that may be repeated is sent again.
    pub in_doubt: bool,
}

/// The bytes that requests sent and received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transferred {
    pub sent: u64,
    pub received: u64,
}

/// The size of an entry besides its text.
const ENTRY: usize = 128;

impl Entry {
    /// Its size, for the bounds of a journal.
    #[must_use]
    pub fn size(&self) -> usize {
        ENTRY + self.text().len() + self.function.as_ref().map_or(0, |function| function.len())
    }

    fn text(&self) -> &str {
        match &self.record {
            Record::Result(text) | Record::Begun(text) => text,
            Record::Refused(_) => "",
        }
    }
}

/// The length of a journal, and a digest over its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JournalSummary {
    pub entries: u32,
    /// As the bounds of a journal count them.
    pub bytes: u64,
    /// Each entry continues the digest of the entries before it.
    pub digest: Digest,
}

impl Default for JournalSummary {
    fn default() -> Self {
        Self { entries: 0, bytes: 0, digest: Digest::of("toolgate journal") }
    }
}

impl JournalSummary {
    #[must_use]
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        entries.into_iter().fold(Self::default(), Self::then)
    }

    /// With one more entry.
    #[must_use]
    pub fn then(self, entry: &Entry) -> Self {
        let (kind, refused): (&[u8], _) = match &entry.record {
            Record::Result(_) => (b"result", None),
            Record::Begun(_) => (b"begun", None),
            Record::Refused(refused) => (b"refused", Some(refused)),
        };
        let until = refused.map(|refused| refused.until.millis().to_be_bytes());
        let wait = refused.map(|refused| refused.wait.millis().to_be_bytes());
        let in_doubt = refused.map(|refused| [u8::from(refused.in_doubt)]);
        let run = entry.run.map(u32::to_be_bytes);
        let transferred =
            entry.transferred.map(|Transferred { sent, received }| [sent, received].map(u64::to_be_bytes));
        let parts: [&[u8]; 13] = [
            self.digest.as_bytes(),
            &entry.number.to_be_bytes(),
            &entry.step.to_be_bytes(),
            run.as_ref().map_or(&[], |run| run.as_slice()),
            entry.function.as_ref().map_or(&[], |function| function.as_bytes()),
            entry.digest.as_bytes(),
            &entry.at.millis().to_be_bytes(),
            entry.salt.as_ref().map_or(&[], |salt| salt.as_bytes().as_slice()),
            kind,
            entry.text().as_bytes(),
            until.as_ref().map_or(&[], |until| until.as_slice()),
            wait.as_ref().map_or(&[], |wait| wait.as_slice()),
            in_doubt.as_ref().map_or(&[], |in_doubt| in_doubt.as_slice()),
        ];
        // Entries of older hosts have the digests that they had.
        let transferred = transferred.iter().flatten().map(<[u8; 8]>::as_slice);
        let parts: Vec<_> = parts.into_iter().chain(transferred).collect();
        let size = u64::try_from(entry.size()).unwrap_or(u64::MAX);
        Self {
            entries: self.entries.saturating_add(1),
            bytes: self.bytes.saturating_add(size),
            digest: Digest::of_parts(&parts),
        }
    }
}

/// The maximum size of the journal of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalBounds {
    pub entries: usize,
    pub bytes: usize,
}

impl Default for JournalBounds {
    fn default() -> Self {
        Self { entries: 10_000, bytes: 4 << 20 }
    }
}

/// A change of a plugin's key-value data that is written together with entries of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueChange {
    /// The key of the store.
    pub key: Vec<u8>,
    /// The value that is replaced. `None`: the key is absent.
    pub old: Option<Vec<u8>>,
    /// `None` removes the key.
    pub value: Option<Vec<u8>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u32) -> Entry {
        Entry {
            number,
            step: 1,
            run: Some(2),
            function: Some("key-value get".into()),
            digest: Digest::of("a call"),
            at: Timestamp::from_millis(3),
            salt: None,
            transferred: None,
            record: Record::Result("1".into()),
        }
    }

    #[test]
    fn summary_depends_on_every_member_and_on_the_order() {
        let of = |entries: &[Entry]| JournalSummary::of(entries);
        let [zero, one] = [entry(0), entry(1)];
        let both = of(&[zero.clone(), one.clone()]);
        assert_eq!((both.entries, both.bytes), (2, (zero.size() + one.size()) as u64));
        assert_eq!(of(std::slice::from_ref(&zero)).then(&one), both);
        let others = [
            Entry { number: 2, ..one.clone() },
            Entry { step: 2, ..one.clone() },
            Entry { run: None, ..one.clone() },
            Entry { function: None, ..one.clone() },
            Entry { digest: Digest::of("another call"), ..one.clone() },
            Entry { at: Timestamp::from_millis(4), ..one.clone() },
            Entry { salt: Some(Digest::of("salt")), ..one.clone() },
            Entry { transferred: Some(Transferred::default()), ..one.clone() },
            Entry { transferred: Some(Transferred { sent: 1, received: 0 }), ..one.clone() },
            Entry { record: Record::Result("2".into()), ..one.clone() },
            Entry { record: Record::Begun("1".into()), ..one.clone() },
        ];
        for other in others {
            assert_ne!(of(&[zero.clone(), other.clone()]).digest, both.digest, "{other:?}");
        }
        assert_ne!(of(&[one, zero]).digest, both.digest);
    }
}
