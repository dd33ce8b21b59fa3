//! The feeds, and the entries for the ends of turns. Such an entry is complete, so that a follower of the ends of all
//! turns reads none of their logs:
//!
//! ```text
//! turn(16) time(8) end(1) length(1) conversation caller
//! ```

use dispatch::ports::{Committed, Facts, Feed, Position, StoreFault, TurnEnding};
use domain::{
    ConversationId, PrincipalId, Timestamp, TurnId,
    event::{PluginEvent, TurnEnd},
};

use super::keys::{self, Entry};
use super::reader::{Reader, damaged};
use super::remains::lost;
use crate::record::{self, Record};

/// The ways a turn can end. The byte of each is its place.
const ENDS: [TurnEnd; 3] = [TurnEnd::Settled, TurnEnd::Aborted, TurnEnd::Cancelled];

/// The entries for the end of a turn. The position of its commit follows each key.
pub(super) fn entries(ending: &TurnEnding) -> [Entry; 2] {
    let value = written(ending);
    [(vec![keys::ENDS], value.clone()), (keys::ends_of(&ending.caller), value)]
}

fn written(TurnEnding { turn, conversation, caller, end, at }: &TurnEnding) -> Vec<u8> {
    let end = ENDS.iter().position(|each| each == end).map_or(u8::MAX, |place| place as u8);
    let conversation = conversation.as_str().as_bytes();
    // A conversation's id has at most 128 bytes.
    let length = u8::try_from(conversation.len()).unwrap_or(u8::MAX);
    let (turn, at) = (turn.bits().to_be_bytes(), at.millis().to_be_bytes());
    [turn.as_slice(), &at, &[end, length], conversation, caller.as_str().as_bytes()].concat()
}

/// Reads the value of an entry.
pub(super) fn read(value: &[u8]) -> Option<TurnEnding> {
    let (turn, rest) = value.split_first_chunk::<16>()?;
    let (at, rest) = rest.split_first_chunk::<8>()?;
    let (&[end, length], rest) = rest.split_first_chunk::<2>()?;
    let (conversation, caller) = rest.split_at_checked(usize::from(length))?;
    Some(TurnEnding {
        turn: TurnId::from_bits(u128::from_be_bytes(*turn)),
        conversation: ConversationId::new(std::str::from_utf8(conversation).ok()?).ok()?,
        caller: PrincipalId::new(std::str::from_utf8(caller).ok()?).ok()?,
        end: *ENDS.get(usize::from(end))?,
        at: Timestamp::from_millis(u64::from_be_bytes(*at)),
    })
}

/// An entry of a feed, with its index.
type Found = (Position, u8, sled::IVec);

impl Reader {
    pub(super) async fn follow(
        &self,
        feed: &Feed,
        mut after: Position,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Committed>, StoreFault> {
        let prefixes = match feed {
            Feed::Conversation(conversation) => vec![keys::feed(conversation)],
            Feed::Host => vec![vec![keys::HOST_FEED], vec![keys::ENDS]],
            Feed::Caller(caller) => vec![keys::ends_of(caller)],
        };
        loop {
            let page = self.page(&prefixes, after, limit)?;
            let last = page.last().map(|(position, ..)| *position);
            let commits = self.commits(page, bytes).await?;
            match last {
                // Every turn of the page was removed since the page was read. A page without commits would be the last.
                Some(last) if commits.is_empty() => after = last,
                _ => return Ok(commits),
            }
        }
    }

    /// The entries under these prefixes, in the order of their positions.
    fn page(&self, prefixes: &[Vec<u8>], after: Position, limit: usize) -> Result<Vec<Found>, StoreFault> {
        // All prefixes are read up to the same position. Otherwise a commit between the reads could be left out.
        let until = self.durable.borrow().until();
        let mut page = Vec::new();
        for prefix in prefixes {
            let index = prefix.first().copied().unwrap_or_default();
            let entries = self.positions_until(prefix, after, until, limit)?;
            page.extend(entries.into_iter().map(|(position, value)| (position, index, value)));
        }
        page.sort_by_key(|(position, ..)| *position);
        page.truncate(limit);
        Ok(page)
    }

    /// The commits of these entries, without those of turns that were removed meanwhile.
    async fn commits(&self, page: Vec<Found>, mut bytes: usize) -> Result<Vec<Committed>, StoreFault> {
        let mut commits = Vec::new();
        for (position, index, value) in page {
            let what = || format!("the commit at position {}", position.0);
            let (turn, record) = match index {
                keys::FEED => match self.pointed(&value, &what).await {
                    Ok((turn, Some(log))) => (Some(turn), log),
                    Ok((turn, None)) if self.removal_on_disk(turn).await? => continue,
                    missing => {
                        let fault = missing.err().unwrap_or_else(|| damaged(what()));
                        let turn = keys::read_pointer(&value).map(|(turn, _)| turn);
                        commits.push(Committed { position, facts: self.unreadable(turn, position, fault)? });
                        continue;
                    }
                },
                _ => (None, value),
            };
            // The end of a turn is no record, and could look like the reference to a large one.
            let is_end = matches!(index, keys::ENDS | keys::ENDS_OF);
            let size = if is_end { record.len() } else { self.blobs.size(&record) };
            if size > bytes && !commits.is_empty() {
                break;
            }
            bytes = bytes.saturating_sub(size);
            let facts = match turn {
                None if is_end => read(&record).map(Facts::Ended).ok_or_else(|| damaged(what())),
                None if lost(&record).is_some() => Ok(Facts::Unreadable { turn }),
                None => self.decode(&record, PluginEvent::read, &what).await.map(Facts::Plugin),
                Some(turn) => match self.decode(&record, record::read_events, &what).await {
                    Err(_) if self.removal_on_disk(turn).await? => continue,
                    events => events.map(|events| Facts::Turn { turn, events }),
                },
            };
            let facts = facts.or_else(|fault| self.unreadable(turn, position, fault))?;
            commits.push(Committed { position, facts });
        }
        Ok(commits)
    }

    /// The turn and the record of a commit that an entry of a feed points to.
    async fn pointed(
        &self,
        entry: &[u8],
        what: &(dyn Fn() -> String + Sync),
    ) -> Result<(TurnId, Option<sled::IVec>), StoreFault> {
        let (turn, number) = keys::read_pointer(entry).ok_or_else(|| damaged(what()))?;
        Ok((turn, self.stamped(&keys::log(turn, number)).await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        for end in ENDS {
            let ending = TurnEnding {
                turn: TurnId::from_bits(7 << 100),
                conversation: ConversationId::new("c").unwrap(),
                caller: PrincipalId::new("ann").unwrap(),
                end,
                at: Timestamp::from_millis(9),
            };
            let value = written(&ending);
            assert_eq!(read(&value), Some(ending));
            assert_eq!(value.len(), 16 + 8 + 2 + 1 + 3);
            for length in 0..value.len() - 2 {
                assert_eq!(read(&value[..length]), None, "{length}");
            }
            assert_eq!(read(&[&value[..24], &[3], &value[25..]].concat()), None, "no turn ends so");
        }
    }
}
