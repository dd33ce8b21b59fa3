//! The turns of a conversation, from the end of its feed.

use dispatch::ports::{BegunTurns, Position, StoreFault};
use domain::{ConversationId, TurnId, turn::TurnState};

use super::reader::{Reader, damaged};
use super::{feeds, keys};
use crate::fault::fault;

/// The maximum number of entries that are read for one page.
const MAX_EXAMINED: usize = 1_000;

impl Reader {
    /// Reads the entries of the feed and no record. The first commit of a turn is its beginning.
    pub(super) async fn turns(
        &self,
        conversation: &ConversationId,
        before: Option<Position>,
        limit: usize,
    ) -> Result<BegunTurns, StoreFault> {
        let (mut page, prefix) = (BegunTurns::default(), keys::feed(conversation));
        let on_disk = self.durable.borrow().until();
        let last = before.map_or(on_disk, |before| Position(before.0.saturating_sub(1)).min(on_disk));
        let entries = self.tree.range(keys::at(&prefix, Position(0))..=keys::at(&prefix, last)).rev();
        for (examined, entry) in entries.enumerate() {
            if page.turns.len() == limit || examined == MAX_EXAMINED {
                return Ok(page);
            }
            let (key, value) = entry.map_err(fault("read the turns of a conversation"))?;
            let position = keys::tail_u64(&key).map(Position).ok_or_else(|| damaged("a feed"))?;
            page.next = Some(position);
            match keys::read_pointer(&value) {
                Some((turn, 0)) => page.turns.push((position, turn)),
                Some(_) => {}
                None => self.set_aside.take(&key, damaged("a feed"))?,
            }
        }
        page.next = None;
        Ok(page)
    }

    pub(super) async fn states(&self, turns: &[TurnId]) -> Result<Vec<Option<TurnState>>, StoreFault> {
        turns.iter().map(|turn| self.state(*turn)).collect()
    }

    /// The state of a turn, by the entry of its end, which is at the position of its last commit.
    fn state(&self, turn: TurnId) -> Result<Option<TurnState>, StoreFault> {
        let failed = || fault("read the state of a turn");
        if self.tree.contains_key(keys::unfinished(turn)).map_err(failed())? {
            return Ok(Some(TurnState::Open));
        }
        let Some(last) = self.tree.scan_prefix(keys::log_of(turn)).next_back() else { return Ok(None) };
        let (_, value) = last.map_err(failed())?;
        let Some((position, _)) = keys::stamped(&value) else { return Ok(None) };
        let entry = self.tree.get(keys::at(&[keys::ENDS], position)).map_err(failed())?;
        let ending = entry.as_deref().and_then(feeds::read).filter(|ending| ending.turn == turn);
        Ok(ending.map(|ending| TurnState::Ended(ending.end, ending.at)))
    }
}
