//! The journals of durable calls: their keys, and reading them. A journal has a head, which says which run may append and
//! how many entries there are.

use async_trait::async_trait;
use dispatch::ports::{JournalPage, Journals, StoreFault};
use domain::{
    CallIndex, TurnId,
    journal::{Entry, JournalBounds},
};

use super::SledStore;
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

/// The run and the length in the value of a head, without its stamp. Run 0 means that no run may append.
pub(super) fn read_head(value: &[u8]) -> Option<(u32, u32)> {
    let (run, length) = value.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*run), u32::from_be_bytes(length.try_into().ok()?)))
}

pub(super) fn head_value(run: u32, length: u32) -> Vec<u8> {
    [run.to_be_bytes(), length.to_be_bytes()].concat()
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
        head.map_or(Ok(0), |head| Ok(read_head(&head).ok_or_else(what)?.1))
    }
}

#[async_trait]
impl Journals for SledStore {
    async fn journal_page(
        &self,
        turn: TurnId,
        call: CallIndex,
        from: u32,
        max: JournalBounds,
    ) -> Result<JournalPage, StoreFault> {
        self.reads.run(move |reader| async move { reader.journal_page(turn, call, from, max).await }).await
    }
}
