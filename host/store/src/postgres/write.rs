//! Writes the changes of a batch of commits: a few statements for each table, all sent at once, and the `COMMIT` behind them. The
//! server skips what follows a failed statement, and its `COMMIT` then ends the transaction without a change.

use std::collections::BTreeMap;

use dispatch::ports::Source;
use domain::{CallIndex, ConversationId, Digest, standing::StandingRow};
use futures::future::{BoxFuture, join_all};
use tokio_postgres::types::ToSql;

use super::fence::Mark;
use super::hosts::Me;
use super::plan::encoded;
use super::rows::{self, millis, of_suspension, of_turn, signed};
use super::session::{Column, Failure, Session, column_of};
use super::state::{OpenChange, State};
use crate::record::stored_state;

pub(super) mod sql;

use self::sql::{
    AUDIENCES, CALLS, COMMITS, COUNTS, DELIVERIES, DENIALS, DUE, ENDED, ENDED_BY, ENDED_UNFINISHED, ENTRIES,
    FORGET_AUDIENCES, FORGET_COUNTS, FORGET_DENIALS, FORGET_ENDED_BY, FORGET_JOURNALS, FORGET_OPEN, FORGET_RUN_LOGS,
    FORGET_STANDINGS, FORGET_VALUES, FORGET_WAITING, JOURNALS, KEPT_LESS, KEPT_MORE, NEW_VALUES, OPEN, OWNERS,
    RETENTION_TIME, RUN_LOGS, STANDINGS, SUSPENSIONS, VALUES, WAITING,
};

/// The changes of a batch, as columns. Each statement is sent as soon as its future is polled, so they arrive in order.
struct Writing<'a> {
    session: &'a Session,
    sent: Vec<BoxFuture<'a, Result<(), Failure>>>,
}

impl Writing<'_> {
    /// Adds a statement, unless it has no rows.
    fn add(&mut self, rows: usize, statement: &'static str, columns: Vec<Column>) {
        if rows == 0 {
            return;
        }
        let session = self.session;
        self.sent.push(Box::pin(async move {
            let columns: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| &**column as _).collect();
            session.execute(statement, &columns).await.map(drop)
        }));
    }
}

/// Writes the changes and the mark, extends the lease of the host, and commits all of it.
pub(super) async fn write(session: &Session, me: &Me, run: i32, state: &State, mark: Mark) -> Result<(), Failure> {
    let mut writing = Writing::of(session, state)?;
    writing.commits(me, run, state, mark);
    if let Some(removal) = &state.removal {
        for (statement, columns) in super::removal::statements(removal, state.head.position) {
            writing.add(1, statement, columns);
        }
    }
    writing.sent.push(Box::pin(session.run("COMMIT")));
    writing.finish().await
}

/// Writes the changes of rows, but no commits.
pub(super) async fn write_rows(session: &Session, state: &State) -> Result<(), Failure> {
    Writing::of(session, state)?.finish().await
}

impl<'a> Writing<'a> {
    /// The changes of rows.
    fn of(session: &'a Session, state: &State) -> Result<Self, Failure> {
        let mut writing = Self { session, sent: Vec::new() };
        if let Some(at) = state.added.retention_time {
            writing.add(1, RETENTION_TIME, vec![Box::new(millis(at))]);
        }
        writing.usage(state);
        writing.turns(state);
        writing.suspensions(state);
        writing.audiences(state);
        writing.calls(state);
        writing.standings(state)?;
        writing.values(state);
        Ok(writing)
    }

    /// All of them are polled, so all are sent, also behind a failed one. The first failure is the cause of the others.
    async fn finish(self) -> Result<(), Failure> {
        join_all(self.sent).await.into_iter().collect()
    }
}

impl Writing<'_> {
    fn commits(&mut self, me: &Me, run: i32, state: &State, mark: Mark) {
        let commits = &state.added.commits;
        let of_turn = |source| if let Source::Turn { turn, number } = source { Some((turn, number)) } else { None };
        self.add(
            1,
            COMMITS,
            vec![
                column_of(commits, |row| signed(row.head.position.0)),
                column_of(commits, |row| row.head.hash.as_bytes().to_vec()),
                column_of(commits, |row| rows::source(row.source)),
                column_of(commits, |row| of_turn(row.source).map(|(turn, _)| rows::of_turn(turn))),
                column_of(commits, |row| of_turn(row.source).map(|(_, number)| i64::from(number))),
                column_of(commits, |row| row.conversation.as_ref().map(ToString::to_string)),
                column_of(commits, |row| row.record.clone()),
                Box::new(run),
                Box::new(signed(mark.head.position.0)),
                Box::new(mark.head.hash.as_bytes().to_vec()),
                Box::new(mark.id),
                Box::new(me.name().to_owned()),
                Box::new(me.lease()),
            ],
        );
    }

    /// The usage of principals. The changes of a batch are summed, because a statement changes a row once.
    fn usage(&mut self, state: &State) {
        let mut kept: BTreeMap<String, i64> = BTreeMap::new();
        for (principal, by) in &state.added.kept {
            let bytes = kept.entry(principal.to_string()).or_default();
            *bytes = bytes.saturating_add(*by);
        }
        let (more, less): (Vec<_>, Vec<_>) = kept.into_iter().partition(|(_, by)| *by >= 0);
        for (statement, kept) in [(KEPT_MORE, more), (KEPT_LESS, less)] {
            let columns = vec![column_of(&kept, |(principal, _)| principal.clone()), column_of(&kept, |row| row.1)];
            self.add(kept.len(), statement, columns);
        }
        let mut open: BTreeMap<String, [i64; 3]> = BTreeMap::new();
        for OpenChange { principal, less, more } in &state.added.open {
            let sums = open.entry(principal.to_string()).or_default();
            for (sum, (less, more)) in
                sums.iter_mut().zip(rows::footprint(*less).into_iter().zip(rows::footprint(*more)))
            {
                *sum += more - less;
            }
        }
        let open: Vec<_> = open.into_iter().filter(|(_, sums)| *sums != [0; 3]).collect();
        let principal = |(principal, _): &(String, _)| principal.clone();
        let sum = |of: usize| column_of(&open, move |(_, sums)| sums[of]);
        self.add(open.len(), OPEN, vec![column_of(&open, principal), sum(0), sum(1), sum(2)]);
        let fewer: Vec<_> = open.into_iter().filter(|(_, sums)| sums.iter().any(|sum| *sum < 0)).collect();
        self.add(fewer.len(), FORGET_OPEN, vec![column_of(&fewer, principal)]);
    }

    fn turns(&mut self, state: &State) {
        let owners = state.owners.written();
        let columns = vec![column_of(&owners, |row| row.0.to_string()), column_of(&owners, |row| row.1.to_string())];
        self.add(owners.len(), OWNERS, columns);
        let calls = state.calls.written();
        self.add(
            calls.len(),
            CALLS,
            vec![
                column_of(&calls, |row| row.0.0.to_string()),
                column_of(&calls, |row| row.0.1.to_string()),
                column_of(&calls, |row| of_turn(*row.1)),
            ],
        );
        let due = state.unfinished.written();
        self.add(
            due.len(),
            DUE,
            vec![
                column_of(&due, |row| of_turn(*row.0)),
                column_of(&due, |row| millis(row.1.at)),
                column_of(&due, |row| row.1.running),
            ],
        );
        let finished = state.unfinished.removed();
        self.add(finished.len(), ENDED_UNFINISHED, vec![column_of(&finished, |turn| of_turn(**turn))]);
        let ended = state.ended.written();
        self.add(
            ended.len(),
            ENDED,
            vec![
                column_of(&ended, |row| of_turn(*row.0)),
                column_of(&ended, |row| millis(row.1.ended.at)),
                column_of(&ended, |row| row.1.position.map(|position| signed(position.0))),
                column_of(&ended, |row| rows::ending(row.1.end)),
                column_of(&ended, |row| row.1.ended.conversation.to_string()),
                column_of(&ended, |row| row.1.ended.caller.to_string()),
                column_of(&ended, |row| signed(row.1.bytes)),
                column_of(&ended, |row| row.1.record.clone()),
            ],
        );
    }

    fn suspensions(&mut self, state: &State) {
        let written = state.suspensions.written();
        let ending = |state| Digest::of(stored_state(state)).as_bytes().to_vec();
        self.add(
            written.len(),
            SUSPENSIONS,
            vec![
                column_of(&written, |row| of_suspension(*row.0)),
                column_of(&written, |row| row.1.row.conversation.of_caller().to_string()),
                column_of(&written, |row| row.1.row.caller.to_string()),
                column_of(&written, |row| row.1.row.tool.clone()),
                column_of(&written, |row| rows::kind(row.1.row.kind)),
                column_of(&written, |row| row.1.row.is_open()),
                column_of(&written, |row| (!row.1.row.is_open()).then(|| ending(&row.1.row.state))),
                column_of(&written, |row| row.1.record.clone()),
                column_of(&written, |row| row.1.row.signal.as_ref().map(ToString::to_string)),
            ],
        );
        let closed: Vec<_> = written.iter().map(|row| &row.1.row).filter(|row| !row.is_open()).collect();
        let by: Vec<_> = closed.iter().flat_map(|row| row.ended_by.iter().map(move |by| (by, *row))).collect();
        self.add(closed.len(), FORGET_ENDED_BY, vec![column_of(&closed, |row| of_suspension(row.id))]);
        self.add(
            by.len(),
            ENDED_BY,
            vec![
                column_of(&by, |(by, _)| by.to_string()),
                column_of(&by, |(_, row)| rows::kind(row.kind)),
                column_of(&by, |(_, row)| of_suspension(row.id)),
            ],
        );
        let deliveries = state.deliveries.written();
        self.add(
            deliveries.len(),
            DELIVERIES,
            vec![
                column_of(&deliveries, |row| rows::subject(row.0.0).0),
                column_of(&deliveries, |row| rows::subject(row.0.0).1),
                column_of(&deliveries, |row| i64::from(row.0.1)),
                column_of(&deliveries, |row| row.0.2.clone()),
                column_of(&deliveries, |row| row.1.row.next().map(millis)),
                column_of(&deliveries, |row| row.1.record.clone()),
            ],
        );
    }

    fn audiences(&mut self, state: &State) {
        let (mut audiences, mut counts) = (BTreeMap::new(), BTreeMap::new());
        for change in &state.added.waiting {
            let digest = change.audience.as_bytes().to_vec();
            audiences.entry(digest.clone()).or_insert((0, change)).0 += change.by;
            for (scope, tool) in &change.counts {
                *counts.entry((scope.clone(), tool.clone(), digest.clone())).or_insert(0) += change.by;
            }
        }
        let (audiences, counts): (Vec<_>, Vec<_>) = (audiences.into_iter().collect(), counts.into_iter().collect());
        self.add(
            audiences.len(),
            AUDIENCES,
            vec![
                column_of(&audiences, |row| row.0.clone()),
                column_of(&audiences, |row| row.1.0),
                column_of(&audiences, |row| row.1.1.record.clone()),
            ],
        );
        let keys = || {
            vec![
                column_of(&counts, |row| row.0.0.clone()),
                column_of(&counts, |row| row.0.1.clone()),
                column_of(&counts, |row| row.0.2.clone()),
            ]
        };
        let mut columns = keys();
        columns.push(column_of(&counts, |row| row.1));
        self.add(counts.len(), COUNTS, columns);
        self.add(counts.len(), FORGET_COUNTS, keys());
        self.add(audiences.len(), FORGET_AUDIENCES, vec![column_of(&audiences, |row| row.0.clone())]);
        let waiting = state.waiting.written();
        self.add(
            waiting.len(),
            WAITING,
            vec![
                column_of(&waiting, |row| of_suspension(*row.0)),
                column_of(&waiting, |row| row.1.0.as_bytes().to_vec()),
                column_of(&waiting, |row| row.1.1.conversation.of_caller().to_string()),
                column_of(&waiting, |row| row.1.1.caller.to_string()),
                column_of(&waiting, |row| row.1.1.tool.clone()),
            ],
        );
        let over = state.waiting.removed();
        self.add(over.len(), FORGET_WAITING, vec![column_of(&over, |id| of_suspension(**id))]);
    }

    fn calls(&mut self, state: &State) {
        let call = |call: CallIndex| i32::from(call.0);
        let forgotten = &state.added.forgotten_logs;
        self.add(forgotten.len(), FORGET_RUN_LOGS, vec![column_of(forgotten, |turn| of_turn(*turn))]);
        let forgotten = &state.added.forgotten_journals;
        self.add(forgotten.len(), FORGET_JOURNALS, vec![column_of(forgotten, |turn| of_turn(*turn))]);
        let logs = state.run_logs.written();
        self.add(
            logs.len(),
            RUN_LOGS,
            vec![
                column_of(&logs, |row| of_turn(row.0.0)),
                column_of(&logs, |row| call(row.0.1)),
                column_of(&logs, |row| i64::from(row.0.2)),
                column_of(&logs, |row| signed(row.1.written)),
                column_of(&logs, |row| row.1.record.clone()),
            ],
        );
        let journals = state.journals.written();
        self.add(
            journals.len(),
            JOURNALS,
            vec![
                column_of(&journals, |row| of_turn(row.0.0)),
                column_of(&journals, |row| call(row.0.1)),
                column_of(&journals, |row| row.1.run.map(i64::from)),
                column_of(&journals, |row| i64::from(row.1.length)),
            ],
        );
        let entries = &state.added.entries;
        self.add(
            entries.len(),
            ENTRIES,
            vec![
                column_of(entries, |row| of_turn(row.turn)),
                column_of(entries, |row| call(row.call)),
                column_of(entries, |row| i64::from(row.number)),
                column_of(entries, |row| row.record.clone()),
            ],
        );
    }

    fn standings(&mut self, state: &State) -> Result<(), Failure> {
        let standings = state.standings.written();
        let records = standings.iter().map(|row| encoded(row.1)).collect::<Result<Vec<_>, _>>()?;
        let revoked = |row: &StandingRow| row.revoked.as_ref().map(|(by, at)| (by.to_string(), millis(*at)));
        self.add(
            standings.len(),
            STANDINGS,
            vec![
                column_of(&standings, |row| rows::uuid(row.0.bits())),
                column_of(&standings, |row| i64::from(row.1.used)),
                column_of(&standings, |row| revoked(row.1).map(|(by, _)| by)),
                column_of(&standings, |row| revoked(row.1).map(|(_, at)| at)),
                Box::new(records),
            ],
        );
        let forgotten = state.standings.removed();
        self.add(forgotten.len(), FORGET_STANDINGS, vec![column_of(&forgotten, |id| rows::uuid(id.bits()))]);
        Ok(())
    }

    fn values(&mut self, state: &State) {
        let denials = state.denials.written();
        let of = |key: &(ConversationId, Digest)| (key.0.to_string(), key.1.as_bytes().to_vec());
        self.add(
            denials.len(),
            DENIALS,
            vec![
                column_of(&denials, |row| of(row.0).0),
                column_of(&denials, |row| of(row.0).1),
                column_of(&denials, |row| millis(*row.1)),
            ],
        );
        let forgotten = state.denials.removed();
        let columns = vec![column_of(&forgotten, |key| of(key).0), column_of(&forgotten, |key| of(key).1)];
        self.add(forgotten.len(), FORGET_DENIALS, columns);
        let is_stored = |key: &Vec<u8>| state.stored_values.contains(key);
        let (values, new): (Vec<_>, Vec<_>) = state.values.written().into_iter().partition(|row| is_stored(row.0));
        for (statement, rows) in [(NEW_VALUES, new), (VALUES, values)] {
            let columns = vec![column_of(&rows, |row| row.0.clone()), column_of(&rows, |row| row.1.clone())];
            self.add(rows.len(), statement, columns);
        }
        let removed: Vec<_> = state.values.removed().into_iter().filter(|key| is_stored(key)).collect();
        self.add(removed.len(), FORGET_VALUES, vec![column_of(&removed, |key| (*key).clone())]);
    }
}
