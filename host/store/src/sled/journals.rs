//! The journals of durable calls: their keys, and reading them. A journal has a head, which says which run may append and
//! how many entries there are.

use async_trait::async_trait;
use dispatch::ports::{Journals, StoreFault};
use domain::{CallIndex, TurnId, journal::Entry};

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
    pub(super) async fn journal(&self, turn: TurnId, call: CallIndex) -> Result<Vec<Entry>, StoreFault> {
        let what = || format!("the journal of call {} of {turn}", call.0);
        let length = match self.stamped(&head(turn, call)).await? {
            Some(value) => read_head(&value).ok_or_else(|| damaged(what()))?.1,
            None => 0,
        };
        let mut entries = Vec::new();
        for number in 0..length {
            let value = self.stamped(&entry(turn, call, number)).await?.ok_or_else(|| damaged(what()))?;
            let read = self.decode(&value, Entry::read, &what).await?;
            if read.number != number {
                return Err(damaged(what()));
            }
            entries.push(read);
        }
        // The head is lost, or older than its entries.
        if self.tree.contains_key(entry(turn, call, length)).map_err(fault("read a journal"))? {
            return Err(damaged(what()));
        }
        Ok(entries)
    }
}

#[async_trait]
impl Journals for SledStore {
    async fn journal(&self, turn: TurnId, call: CallIndex) -> Result<Vec<Entry>, StoreFault> {
        self.reads.run(move |reader| async move { reader.journal(turn, call).await }).await
    }
}
