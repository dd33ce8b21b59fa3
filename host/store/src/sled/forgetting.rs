//! Removes old rows. They are found here and removed by the committing thread, which keeps those that have changed
//! since.

use dispatch::ports::StoreFault;
use domain::{StandingId, StandingRow, Timestamp};

use super::committer::Work;
use super::plan::Entry;
use super::reader::{damaged, following};
use super::{SledStore, keys};
use crate::fault::fault;
use crate::record::Record;

/// The most rows that are read and removed at a time.
const PAGE: usize = 1_000;

/// The most bytes of them: above it no further row is copied.
const PAGE_BYTES: usize = 1 << 20;

impl SledStore {
    pub(super) async fn forget_rows(&self, denied: Timestamp, ended: Timestamp) -> Result<usize, StoreFault> {
        let mut forgotten = 0;
        for index in [keys::DENIED, keys::STANDING] {
            let mut from = vec![index];
            loop {
                let mut over = Vec::new();
                let mut last = None;
                for (key, value) in page(&self.reader.tree, from, index)? {
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

    /// The entries of a standing approval that ended before this time.
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

/// The next rows of an index.
fn page(tree: &sled::Tree, from: Vec<u8>, index: u8) -> Result<Vec<Entry>, StoreFault> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for entry in tree.range(from..vec![index + 1]).take(PAGE) {
        let (key, value) = entry.map_err(fault("look for what is over"))?;
        bytes += key.len() + value.len();
        rows.push((key.to_vec(), value.to_vec()));
        if bytes >= PAGE_BYTES {
            break;
        }
    }
    Ok(rows)
}

fn is_denied_before(value: &[u8], time: Timestamp) -> Result<bool, StoreFault> {
    let at = keys::tail_u64(value).ok_or_else(|| damaged("when a call was denied"))?;
    Ok(Timestamp::from_millis(at) < time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_bounded_by_bytes_and_rows_and_complete() {
        let db = sled::Config::new().temporary(true).flush_every_ms(None).open().unwrap();
        let sizes = (0..40_u32).map(|_| 60_000).chain((40..2_100).map(|_| 8));
        for (n, size) in (0..).zip(sizes) {
            db.insert([vec![keys::STANDING], u32::to_be_bytes(n).to_vec()].concat(), vec![7; size]).unwrap();
        }
        db.insert([keys::STANDING + 1], "of another index").unwrap();
        let (mut from, mut seen, mut pages) = (vec![keys::STANDING], 0, Vec::new());
        loop {
            let rows = page(&db, from, keys::STANDING).unwrap();
            let Some((last, _)) = rows.last() else { break };
            let bytes: usize = rows.iter().map(|(key, value)| key.len() + value.len()).sum();
            assert!(bytes < PAGE_BYTES + 60_005 && rows.len() <= PAGE, "{bytes} {}", rows.len());
            (from, seen) = (following(last.clone()), seen + rows.len());
            pages.push(rows.len());
        }
        assert_eq!((seen, pages), (2_100, vec![18, 18, 1_000, 1_000, 64]));
    }
}
