//! Reading the indexes of turns and calls.

use std::collections::BTreeMap;

use dispatch::ports::{BegunTurns, FoundSubmission, Position, StoreFault};
use domain::{CallId, ConversationId, PrincipalId, Timestamp, TurnId, effect::Due, turn::TurnState};
use tokio_postgres::Row;

use super::reads::Reader;
use super::rows::{self, column, damaged, limit, millis, of_turn, position, signed, time, turn, unsigned};

/// The maximum number of commits that are looked at for one page of turns.
const MAX_EXAMINED: usize = 1_000;

const OWNER: &str = "SELECT owner FROM conversations WHERE conversation = $1";
const CONVERSATIONS: &str = "SELECT conversation, owner FROM conversations WHERE conversation > $1 \
    ORDER BY conversation LIMIT $2";
const CALL: &str = "SELECT turn FROM calls WHERE conversation = $1 AND id = $2";
/// Each row has the same owner and usage, and one of the calls that were found. There is one look at the index for each id. Otherwise
/// the server may read all calls of the conversation. The subselect hides the length of the array, so that the server keeps a plan.
const SUBMISSION: &str = "SELECT owner, coalesce(kept.bytes, 0) AS kept, found.id, found.turn, \
    coalesce(turns, 0) AS turns, coalesce(open.bytes, 0) AS bytes, coalesce(suspensions, 0) AS suspensions \
    FROM (SELECT) AS submission LEFT JOIN conversations ON conversation = $1 LEFT JOIN kept ON kept.principal = $3 \
    LEFT JOIN open_turns AS open ON open.principal = $3 LEFT JOIN (unnest((SELECT $2::text[])) AS wanted (id) CROSS JOIN LATERAL (\
    SELECT id, turn FROM calls WHERE calls.conversation = $1 AND calls.id = wanted.id LIMIT 1) AS found) ON true";
const KEPT: &str = "SELECT bytes FROM kept WHERE principal = $1";
const TURNS: &str = "SELECT position, turn, number FROM commits WHERE conversation = $1 AND position < $2 \
    AND record IS NOT NULL ORDER BY position DESC LIMIT $3";
const OPEN: &str = "SELECT turn FROM unfinished_turns WHERE turn = ANY ($1)";
const ENDED: &str = "SELECT turn, ending, ended_at FROM ended_turns WHERE turn = ANY ($1) AND position IS NOT NULL";
const DUE: &str = "SELECT turn, due_at, running FROM unfinished_turns WHERE (due_at, turn) > ($1, $2) AND due_at <= $3 \
    ORDER BY due_at, turn LIMIT $4";
const FIRST_DUE: &str = "SELECT turn, due_at, running FROM unfinished_turns WHERE due_at <= $1 \
    ORDER BY due_at, turn LIMIT $2";
const UNFINISHED: &str = "SELECT turn, due_at, running FROM unfinished_turns WHERE turn > $1 ORDER BY turn LIMIT $2";
const FIRST_UNFINISHED: &str = "SELECT turn, due_at, running FROM unfinished_turns ORDER BY turn LIMIT $1";

fn due(row: &Row) -> Result<(TurnId, Due), StoreFault> {
    Ok((turn(row, "turn")?, Due { at: time(row, "due_at")?, running: column(row, "running")? }))
}

impl Reader {
    pub(super) async fn owner(&self, conversation: &ConversationId) -> Result<Option<PrincipalId>, StoreFault> {
        let row = self.first(OWNER, &[&conversation.as_str()]).await?;
        row.map(|row| rows::principal(&row, "owner")).transpose()
    }

    pub(super) async fn conversations(
        &self,
        after: Option<&ConversationId>,
        conversations: usize,
    ) -> Result<Vec<(ConversationId, PrincipalId)>, StoreFault> {
        // No id is empty.
        let after = after.map_or("", ConversationId::as_str);
        let page = self.query(CONVERSATIONS, &[&after, &limit(conversations)]).await?;
        self.intact(&page, |row| Ok((rows::conversation(row)?, rows::principal(row, "owner")?)))
    }

    pub(super) async fn find_call(
        &self,
        conversation: &ConversationId,
        call: &CallId,
    ) -> Result<Option<TurnId>, StoreFault> {
        let row = self.first(CALL, &[&conversation.as_str(), &call.as_str()]).await?;
        row.map(|row| turn(&row, "turn")).transpose()
    }

    pub(super) async fn find_submission(
        &self,
        conversation: &ConversationId,
        calls: Vec<CallId>,
        keeper: Option<&PrincipalId>,
    ) -> Result<FoundSubmission, StoreFault> {
        let ids: Vec<&str> = calls.iter().map(CallId::as_str).collect();
        let keeper = keeper.map(PrincipalId::as_str);
        let rows = self.query(SUBMISSION, &[&conversation.as_str(), &ids, &keeper]).await?;
        let row = rows.first().ok_or_else(|| damaged("a submission"))?;
        let owner = column::<Option<&str>>(row, "owner")?.map(|_| rows::principal(row, "owner")).transpose()?;
        let mut turns = BTreeMap::new();
        for row in &rows {
            if let Some(id) = column::<Option<&str>>(row, "id")? {
                turns.insert(id, turn(row, "turn")?);
            }
        }
        let first = calls.iter().filter(|_| owner.is_some());
        let call = first.filter_map(|call| Some((call.clone(), *turns.get(call.as_str())?))).next();
        let kept_bytes = keeper.filter(|_| call.is_none()).map(|_| column(row, "kept")).transpose()?.map(unsigned);
        let open_turns = keeper.map(|_| rows::read_footprint(row)).transpose()?;
        Ok(FoundSubmission { owner, call, kept_bytes, open_turns })
    }

    pub(super) async fn kept_bytes(&self, principal: &PrincipalId) -> Result<u64, StoreFault> {
        let row = self.first(KEPT, &[&principal.as_str()]).await?;
        Ok(row.map(|row| column(&row, "bytes")).transpose()?.map_or(0, unsigned))
    }

    /// The first commit of a turn is its beginning.
    pub(super) async fn turns(
        &self,
        conversation: &ConversationId,
        before: Option<Position>,
        turns: usize,
    ) -> Result<BegunTurns, StoreFault> {
        let before = before.map_or(i64::MAX, |before| signed(before.0));
        let commits = self.query(TURNS, &[&conversation.as_str(), &before, &limit(MAX_EXAMINED + 1)]).await?;
        let mut page = BegunTurns::default();
        for (examined, row) in commits.iter().enumerate() {
            if page.turns.len() == turns || examined == MAX_EXAMINED {
                return Ok(page);
            }
            let position = position(row, "position")?;
            page.next = Some(position);
            if rows::number(row, "number")? == 0 {
                page.turns.push((position, turn(row, "turn")?));
            }
        }
        page.next = None;
        Ok(page)
    }

    pub(super) async fn states(&self, turns: &[TurnId]) -> Result<Vec<Option<TurnState>>, StoreFault> {
        let ids: Vec<uuid::Uuid> = turns.iter().copied().map(of_turn).collect();
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 1] = [&ids];
        // A turn that ends meanwhile is in the second answer.
        let (open, ended) = tokio::try_join!(self.query(OPEN, &parameters), self.query(ENDED, &parameters))?;
        let mut states = BTreeMap::new();
        for row in &open {
            states.insert(turn(row, "turn")?, TurnState::Open);
        }
        for row in &ended {
            let state = TurnState::Ended(rows::read_ending(row)?, time(row, "ended_at")?);
            states.insert(turn(row, "turn")?, state);
        }
        Ok(turns.iter().map(|turn| states.get(turn).copied()).collect())
    }

    pub(super) async fn due(
        &self,
        after: Option<(Timestamp, TurnId)>,
        until: Timestamp,
        turns: usize,
    ) -> Result<Vec<(TurnId, Due)>, StoreFault> {
        let (until, turns) = (millis(until), limit(turns));
        let page = match after {
            None => self.query(FIRST_DUE, &[&until, &turns]).await?,
            Some((at, turn)) => self.query(DUE, &[&millis(at), &of_turn(turn), &until, &turns]).await?,
        };
        self.intact(&page, due)
    }

    pub(super) async fn unfinished(
        &self,
        after: Option<TurnId>,
        turns: usize,
    ) -> Result<Vec<(TurnId, Due)>, StoreFault> {
        let page = match after {
            None => self.query(FIRST_UNFINISHED, &[&limit(turns)]).await?,
            Some(turn) => self.query(UNFINISHED, &[&of_turn(turn), &limit(turns)]).await?,
        };
        self.intact(&page, due)
    }
}
