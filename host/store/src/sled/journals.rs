//! The journals of durable calls: their keys, and reading them. A journal has a head, which says which run may append, how
//! many entries there are, and how much of them counts for the caller.

use dispatch::ports::{JournalPage, StoreFault};
use domain::{
    CallIndex, TurnId,
    journal::{Entry, JournalBounds},
};

use super::keys::{JOURNAL, JOURNAL_ENTRY, of_calls};
use super::reader::{Reader, damaged};
use crate::fault::fault;
use crate::record::Record;

/// The key of the head.
pub(super) fn head(turn: TurnId, call: CallIndex) -> Vec<u8> {
    [of_calls(JOURNAL, turn).as_slice(), &call.0.to_be_bytes()].concat()
}

pub(super) fn entry(turn: TurnId, call: CallIndex, number: u32) -> Vec<u8> {
    [of_calls(JOURNAL_ENTRY, turn).as_slice(), &call.0.to_be_bytes(), &number.to_be_bytes()].concat()
}

/// The key of the head of the journal that an entry belongs to.
pub(super) fn head_of(entry: &[u8]) -> Option<Vec<u8>> {
    let call = entry.strip_prefix(&[JOURNAL_ENTRY])?.first_chunk::<18>()?;
    Some([&[JOURNAL], call.as_slice()].concat())
}

/// The value of a head, without its stamp. The default is a journal without a head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct JournalHead {
    /// The run that may append. Run 0 means that no run may append.
    pub(super) run: u32,
    pub(super) length: u32,
    /// The size of the entries that were counted as they were appended. Heads of older hosts do not have it, because their
    /// entries count when the turn ends.
    pub(super) counted: u64,
}

impl JournalHead {
    pub(super) fn read(value: &[u8]) -> Option<Self> {
        let (run, rest) = value.split_first_chunk()?;
        let (length, counted) = rest.split_first_chunk()?;
        let counted = if counted.is_empty() { 0 } else { u64::from_be_bytes(counted.try_into().ok()?) };
        Some(Self { run: u32::from_be_bytes(*run), length: u32::from_be_bytes(*length), counted })
    }

    pub(super) fn value(self) -> Vec<u8> {
        let Self { run, length, counted } = self;
        [run.to_be_bytes().as_slice(), &length.to_be_bytes(), &counted.to_be_bytes()].concat()
    }
}

/// The size of a journal.
#[derive(Clone, Copy, Default)]
pub(super) struct JournalSize {
    pub(super) stored: u64,
    /// As in [`JournalHead`].
    pub(super) counted: u64,
}

impl JournalSize {
    /// The part that the end of the turn counts.
    pub(super) fn uncounted(self) -> u64 {
        self.stored.saturating_sub(self.counted)
    }
}

impl Reader {
    /// Fails if an entry is damaged or missing, or if the head is lost, because a run without them would repeat an effect.
    pub(super) async fn journal_page(
        &self,
        turn: TurnId,
        call: CallIndex,
        from: u32,
        max: JournalBounds,
    ) -> Result<JournalPage, StoreFault> {
        let what = || format!("the journal of call {} of {turn}", call.0);
        let length = self.journal_length(turn, call).await?;
        let (mut entries, mut bytes) = (Vec::new(), 0_usize);
        for number in from..length {
            if entries.len() >= max.entries {
                break;
            }
            let Some(value) = self.stamped(&entry(turn, call, number)).await? else {
                // It may have been removed meanwhile.
                return match self.journal_length(turn, call).await? {
                    0 => Ok(JournalPage::default()),
                    _ => Err(damaged(what())),
                };
            };
            let read = self.decode(&value, Entry::read, &what).await?;
            if read.number != number {
                return Err(damaged(what()));
            }
            bytes = bytes.saturating_add(read.size());
            if bytes > max.bytes && !entries.is_empty() {
                break;
            }
            entries.push(read);
        }
        // The head is lost, or older than its entries. A run may have appended meanwhile.
        let is_beyond = self.tree.contains_key(entry(turn, call, length)).map_err(fault("read a journal"))?;
        if is_beyond && self.journal_length(turn, call).await? == length {
            return Err(damaged(what()));
        }
        Ok(JournalPage { entries, length })
    }

    async fn journal_length(&self, turn: TurnId, call: CallIndex) -> Result<u32, StoreFault> {
        let head = self.stamped(&head(turn, call)).await?;
        let what = || damaged(format!("the journal of call {} of {turn}", call.0));
        head.map_or(Ok(0), |head| Ok(JournalHead::read(&head).ok_or_else(what)?.length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_of_an_older_host_has_counted_nothing() {
        let head = JournalHead { run: 3, length: 7, counted: 900 };
        assert_eq!(JournalHead::read(&head.value()), Some(head));
        let older = [3_u32.to_be_bytes(), 7_u32.to_be_bytes()].concat();
        assert_eq!(JournalHead::read(&older), Some(JournalHead { counted: 0, ..head }));
        for damaged in [&older[..7], &head.value()[..15], &[0; 17]] {
            assert_eq!(JournalHead::read(damaged), None);
        }
    }
}
