//! Forgetting rows that nobody asks for any more. They are found here and removed by the committing thread, which leaves what
//! has changed since.

use dispatch::ports::StoreFault;
use domain::{StandingId, StandingRow, Timestamp};

use super::committer::Work;
use super::plan::Entry;
use super::reader::{damaged, following};
use super::{SledStore, keys};
use crate::fault::fault;
use crate::record::Record;

/// How many rows are looked at, and at most removed, at a time.
const PAGE: usize = 1_000;

impl SledStore {
    pub(super) async fn forget_rows(&self, denied: Timestamp, ended: Timestamp) -> Result<usize, StoreFault> {
        let mut forgotten = 0;
        for index in [keys::DENIED, keys::STANDING] {
            let mut from = vec![index];
            loop {
                let page: Vec<_> = self.reader.tree.range(from..vec![index + 1]).take(PAGE).collect();
                let mut over = Vec::new();
                let mut last = None;
                for entry in page {
                    let (key, value) = entry.map_err(fault("look for what is over"))?;
                    let (key, value) = (key.to_vec(), value.to_vec());
                    last = Some(key.clone());
                    match index {
                        keys::DENIED => over.extend(is_denied_before(&value, denied)?.then(|| vec![(key, value)])),
                        _ => over.extend(self.standing_over((key, value), ended).await?),
                    }
                }
                let Some(last) = last else { break };
                from = following(last);
                if !over.is_empty() {
                    forgotten += self.ask("forget what is over", |reply| Work::Forget(over, reply)).await??;
                }
            }
        }
        Ok(forgotten)
    }

    /// The entries of a standing approval, if its time was over before this.
    async fn standing_over(&self, row: Entry, ended: Timestamp) -> Result<Option<Vec<Entry>>, StoreFault> {
        let what = || "a standing approval".to_owned();
        let (_, record) = keys::stamped(&row.1).ok_or_else(|| damaged(what()))?;
        let standing = self.reader.decode(record, StandingRow::read, &what).await?.standing;
        if standing.expires_at >= ended {
            return Ok(None);
        }
        let id = keys::tail_u128(&row.0).map(StandingId::from_bits).ok_or_else(|| damaged(what()))?;
        let key = keys::standing(keys::STANDING_STATE, id);
        let state = self.reader.tree.get(&key).map_err(fault("look for what is over"))?;
        Ok(Some([row].into_iter().chain(state.map(|state| (key, state.to_vec()))).collect()))
    }
}

fn is_denied_before(value: &[u8], time: Timestamp) -> Result<bool, StoreFault> {
    let at = keys::tail_u64(value).ok_or_else(|| damaged("when a call was denied"))?;
    Ok(Timestamp::from_millis(at) < time)
}
