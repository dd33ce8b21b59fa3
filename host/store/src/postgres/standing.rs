//! Reading standing approvals and denials, and the ended turns that retention removes.

use dispatch::ports::{Denial, EndedTurn, StoreFault};
use domain::{ConversationId, Digest, StandingId, Timestamp, TurnId, standing::StandingRow};

use super::reads::Reader;
use super::rows::{self, column, decode, limit, millis, of_turn, time, unsigned, uuid};
use crate::record::Record;

const STANDING: &str = "SELECT used, revoked_by, revoked_at, record FROM standing_approvals WHERE id = $1";
const STANDINGS: &str = "SELECT id, used, revoked_by, revoked_at, record FROM standing_approvals \
    WHERE $1::uuid IS NULL OR id > $1 ORDER BY id LIMIT $2";
const DENIED: &str = "SELECT denied_at FROM denials WHERE conversation = $1 AND alike = $2";
const DENIALS: &str = "SELECT conversation, alike, denied_at FROM denials WHERE (conversation, alike) > ($1, $2) \
    ORDER BY conversation, alike LIMIT $3";
const ENDED: &str = "SELECT bytes, record FROM ended_turns WHERE (ended_at, turn) > ($1, $2) \
    ORDER BY ended_at, turn LIMIT $3";
const FIRST_ENDED: &str = "SELECT bytes, record FROM ended_turns ORDER BY ended_at, turn LIMIT $1";
const RETENTION_TIME: &str = "SELECT retention_time FROM head WHERE retention_time IS NOT NULL";

impl Reader {
    pub(super) async fn standing(&self, id: StandingId) -> Result<Option<StandingRow>, StoreFault> {
        let Some(row) = self.first(STANDING, &[&uuid(id.bits())]).await? else { return Ok(None) };
        match rows::standing(&row) {
            Ok(row) => Ok(Some(row)),
            Err(fault) => self.noted(fault),
        }
    }

    /// Another row takes the place of a damaged one, because a page that is not full is the last.
    pub(super) async fn standings(
        &self,
        after: Option<StandingId>,
        standings: usize,
    ) -> Result<Vec<StandingRow>, StoreFault> {
        let (mut found, mut after) = (Vec::new(), after.map(|after| uuid(after.bits())));
        while found.len() < standings {
            let wanted = standings - found.len();
            let page = self.query(STANDINGS, &[&after, &limit(wanted)]).await?;
            found.extend(self.intact(&page, rows::standing)?);
            match page.last() {
                Some(last) if page.len() == wanted => after = Some(column(last, "id")?),
                _ => break,
            }
        }
        Ok(found)
    }

    pub(super) async fn denied(
        &self,
        conversation: &ConversationId,
        alike: Digest,
    ) -> Result<Option<Timestamp>, StoreFault> {
        let row = self.first(DENIED, &[&conversation.as_str(), &alike.as_bytes().as_slice()]).await?;
        row.map(|row| time(&row, "denied_at")).transpose()
    }

    pub(super) async fn denials(&self, after: Option<&Denial>, denials: usize) -> Result<Vec<Denial>, StoreFault> {
        // No id is empty.
        let conversation = after.map_or("", |after| after.conversation.as_str());
        let alike: &[u8] = after.map_or(&[], |after| after.alike.as_bytes());
        let page = self.query(DENIALS, &[&conversation, &alike, &limit(denials)]).await?;
        self.intact(&page, |row| {
            let (conversation, alike) = (rows::conversation(row)?, rows::digest(row, "alike")?);
            Ok(Denial { conversation, alike, at: time(row, "denied_at")? })
        })
    }

    pub(super) async fn ended(
        &self,
        after: Option<(Timestamp, TurnId)>,
        turns: usize,
    ) -> Result<Vec<(EndedTurn, u64)>, StoreFault> {
        let page = match after {
            None => self.query(FIRST_ENDED, &[&limit(turns)]).await?,
            Some((at, turn)) => self.query(ENDED, &[&millis(at), &of_turn(turn), &limit(turns)]).await?,
        };
        self.intact(&page, |row| {
            let ended = decode(column(row, "record")?, EndedTurn::read, || "the row of an ended turn".to_owned())?;
            Ok((ended, unsigned(column(row, "bytes")?)))
        })
    }

    pub(super) async fn retention_time(&self) -> Result<Option<Timestamp>, StoreFault> {
        let row = self.first(RETENTION_TIME, &[]).await?;
        row.map(|row| time(&row, "retention_time")).transpose()
    }
}
