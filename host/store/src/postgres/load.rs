//! Reads the rows that a batch of commits is checked against, under the lock of the head. The statements are sent at once, in
//! this order, so the lock comes first, and every later statement sees all earlier commits.

use std::collections::BTreeSet;

use dispatch::ports::{EndedTurn, FaultKind, NewFacts, Position, RowChange, StoreFault};
use domain::{CallId, CallIndex, ConversationId, Digest, SignalName, StandingId, SuspensionId, TurnId};
use futures::future::try_join_all;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::connect::check_disk;
use super::fence::OwnRow;
use super::hosts::Me;
use super::plan::Plan;
use super::rows::{self, column, damaged, decode, number, of_suspension, of_turn, time, unsigned};
use super::session::{Column, Failure, Session, column_of};
use super::state::{EndedRow, JournalHead, Length, RunLogRow, Sizes, State, signal_of};
use crate::record::Record;

pub(super) const STATEMENTS: &[&str] = &[
    BEGIN, HEAD, OWN, LOGS, OWNERS, CALLS, SIGNALS, STANDINGS, DENIALS, RUN_LOGS, JOURNALS, VALUES, ENDED, OWED, SIZES,
];

const BEGIN: &str = "BEGIN";
/// The transaction writes the id `next`, which says after a lost connection whether it was committed.
/// It also reads the settings by which the server keeps commits, because running sessions take new ones between two messages. Until the
/// transaction ends, `synchronous_commit` stays as it was read.
const HEAD: &str = "SELECT position, hash, gen_random_uuid() AS next, current_setting('fsync') AS fsync, \
    set_config('synchronous_commit', current_setting('synchronous_commit'), true) AS synchronous_commit FROM head FOR UPDATE";
/// Other hosts wait with the removal of the row until the transaction has ended.
const OWN: &str = "SELECT position, hash, mark, run FROM hosts WHERE name = $1 AND owner = $2 FOR NO KEY UPDATE";
/// The limits keep the server from a join with all rows of an index, which it would choose while a table is almost empty.
const LOGS: &str = "SELECT wanted.turn, last.number, last.record IS NULL AS is_removed \
    FROM unnest($1::uuid[]) AS wanted (turn) CROSS JOIN LATERAL (SELECT number, record FROM commits \
    WHERE source = 'turn' AND commits.turn = wanted.turn ORDER BY number DESC LIMIT 1) AS last";
const OWNERS: &str = "SELECT conversation, owner FROM conversations WHERE conversation = ANY ($1)";
const CALLS: &str = "SELECT found.* FROM unnest($1::text[], $2::text[]) AS wanted (conversation, id) CROSS JOIN LATERAL (\
    SELECT conversation, id, turn FROM calls WHERE calls.conversation = wanted.conversation AND calls.id = wanted.id LIMIT 1) AS found";
const SIGNALS: &str = "SELECT found.* FROM unnest($1::text[], $2::text[]) AS wanted (conversation, signal) CROSS JOIN LATERAL (\
    SELECT id, conversation, signal FROM suspensions WHERE suspensions.conversation = wanted.conversation \
    AND suspensions.signal = wanted.signal AND is_open AND suspensions.signal IS NOT NULL LIMIT 1) AS found";
const STANDINGS: &str = "SELECT used, revoked_by, revoked_at, record FROM standing_approvals WHERE id = ANY ($1)";
const DENIALS: &str = "SELECT found.* FROM unnest($1::text[], $2::bytea[]) AS wanted (conversation, alike) CROSS JOIN LATERAL (\
    SELECT conversation, alike, denied_at FROM denials WHERE denials.conversation = wanted.conversation \
    AND denials.alike = wanted.alike LIMIT 1) AS found";
const RUN_LOGS: &str = "SELECT found.* FROM unnest($1::uuid[], $2::int[], $3::bigint[]) AS wanted (turn, call, run) CROSS JOIN LATERAL (\
    SELECT turn, call, run, written FROM run_logs WHERE run_logs.turn = wanted.turn AND run_logs.call = wanted.call \
    AND run_logs.run = wanted.run LIMIT 1) AS found";
const JOURNALS: &str = "SELECT found.* FROM unnest($1::uuid[], $2::int[]) AS wanted (turn, call) CROSS JOIN LATERAL (\
    SELECT turn, call, run, length FROM journals WHERE journals.turn = wanted.turn AND journals.call = wanted.call LIMIT 1) AS found";
/// Another host can change a value outside of commits. It waits until this transaction has ended. It can also set an absent value
/// meanwhile; then the insertion of this transaction fails, and the transaction is repeated.
const VALUES: &str = "SELECT key, value FROM plugin_values WHERE key = ANY ($1) ORDER BY key FOR UPDATE";
const ENDED: &str = "SELECT turn, position, ending, bytes, record FROM ended_turns WHERE turn = ANY ($1)";
const OWED: &str = "SELECT EXISTS (SELECT FROM (SELECT true, unnest($1::uuid[]) UNION ALL SELECT false, unnest($2::uuid[])) \
    AS removed (is_about_turn, subject) CROSS JOIN LATERAL (SELECT FROM deliveries WHERE deliveries.is_about_turn = removed.is_about_turn \
    AND deliveries.subject = removed.subject AND next_at IS NOT NULL LIMIT 1) AS owed) AS is_owed";
const SIZES: &str = "SELECT turn, 'log' AS of, NULL::int AS call, NULL::bigint AS run, sum(octet_length(record)) AS bytes \
    FROM commits WHERE source = 'turn' AND turn = ANY ($1) GROUP BY turn \
    UNION ALL SELECT turn, 'journal', NULL, NULL, sum(octet_length(record)) FROM journal_entries WHERE turn = ANY ($1) GROUP BY turn \
    UNION ALL SELECT turn, 'run', call, run, octet_length(record) FROM run_logs WHERE turn = ANY ($1)";

/// The keys of the rows that a batch needs.
#[derive(Default)]
struct Keys {
    logs: BTreeSet<TurnId>,
    owners: BTreeSet<ConversationId>,
    calls: BTreeSet<(ConversationId, CallId)>,
    signals: BTreeSet<(ConversationId, SignalName)>,
    standings: BTreeSet<StandingId>,
    denials: BTreeSet<(ConversationId, Digest)>,
    run_logs: BTreeSet<(TurnId, CallIndex, u32)>,
    /// Turns that have ended and whose size changes.
    changed_ends: BTreeSet<TurnId>,
    journals: BTreeSet<(TurnId, CallIndex)>,
    values: BTreeSet<Vec<u8>>,
    /// The turns to remove.
    removed: BTreeSet<TurnId>,
    /// Their suspensions.
    suspensions: Vec<Uuid>,
    /// The turns that end.
    ends: BTreeSet<TurnId>,
}

impl Keys {
    fn of<'a>(plans: impl IntoIterator<Item = &'a Plan>) -> Self {
        let mut keys = Self::default();
        for plan in plans {
            match &plan.commit.facts {
                Some(NewFacts::Turn { turn, .. }) => drop(keys.logs.insert(*turn)),
                Some(NewFacts::Revoked(revoked)) => drop(keys.standings.insert(revoked.id)),
                Some(NewFacts::Removal(removal)) => {
                    for turn in &removal.turns {
                        keys.logs.insert(turn.ended.turn);
                        keys.removed.insert(turn.ended.turn);
                        keys.suspensions.extend(turn.suspensions.iter().copied().map(of_suspension));
                    }
                }
                Some(NewFacts::Plugin(_) | NewFacts::Started(_)) | None => {}
            }
            plan.commit.rows.iter().for_each(|row| keys.add(row));
        }
        keys
    }

    fn add(&mut self, row: &RowChange) {
        match row {
            RowChange::Owner { conversation, .. } => drop(self.owners.insert(conversation.clone())),
            RowChange::Call { conversation, id, .. } => drop(self.calls.insert((conversation.clone(), id.clone()))),
            RowChange::Ended(ended, _) => drop(self.ends.insert(ended.turn)),
            RowChange::Forget(_, row, _) => {
                self.ends.insert(row.turn);
                self.changed_ends.insert(row.turn);
            }
            RowChange::RunLog(log) => {
                self.logs.insert(log.turn);
                self.run_logs.insert((log.turn, log.call, log.run));
            }
            RowChange::JournalRun { turn, call, .. } => drop(self.journals.insert((*turn, *call))),
            RowChange::JournalEntry(row) => drop(self.journals.insert((row.turn, row.call))),
            RowChange::StandingUse(id) => drop(self.standings.insert(*id)),
            RowChange::ForgetStanding(row) => drop(self.standings.insert(row.standing.id)),
            RowChange::ForgetDenial(row) => drop(self.denials.insert((row.conversation.clone(), row.alike))),
            RowChange::Value(change) => drop(self.values.insert(change.key.clone())),
            RowChange::Length { turn, .. } => drop(self.logs.insert(*turn)),
            RowChange::Suspension(row) => self.signals.extend(signal_of(row)),
            RowChange::Due { .. }
            | RowChange::Open { .. }
            | RowChange::Audience(_)
            | RowChange::Kept(_)
            | RowChange::RetentionTime(_)
            | RowChange::Delivery(_)
            | RowChange::Standing(_)
            | RowChange::Denied(_) => {}
        }
    }
}

fn uuids<'a>(turns: impl IntoIterator<Item = &'a TurnId>) -> Vec<Uuid> {
    turns.into_iter().copied().map(of_turn).collect()
}

fn call(row: &Row) -> Result<CallIndex, Failure> {
    let call = u16::try_from(column::<i32>(row, "call")?).map_err(|_| damaged("the number of a call"))?;
    Ok(CallIndex(call))
}

impl Keys {
    /// The statements that read the rows, each with its parameters.
    fn statements(&self, me: &Me) -> Vec<(&'static str, Vec<Column>)> {
        let (logs, removed, ends) = (uuids(&self.logs), uuids(&self.removed), uuids(&self.ends));
        let ended: Vec<Uuid> = removed.iter().copied().chain(uuids(&self.changed_ends)).collect();
        let (calls, denials, run_logs, journals): (Vec<_>, Vec<_>, Vec<_>, Vec<_>) = (
            self.calls.iter().collect(),
            self.denials.iter().collect(),
            self.run_logs.iter().collect(),
            self.journals.iter().collect(),
        );
        let owners: Vec<_> = self.owners.iter().collect();
        let standings: Vec<Uuid> = self.standings.iter().map(|id| rows::uuid(id.bits())).collect();
        let mut needed: Vec<(&'static str, Vec<Column>)> = vec![
            (BEGIN, Vec::new()),
            (HEAD, Vec::new()),
            (OWN, vec![Box::new(me.name().to_owned()), Box::new(me.owner())]),
        ];
        let mut add = |is_needed: bool, statement, columns| {
            if is_needed {
                needed.push((statement, columns));
            }
        };
        add(!logs.is_empty(), LOGS, vec![Box::new(logs)]);
        add(!owners.is_empty(), OWNERS, vec![column_of(&owners, |id| id.to_string())]);
        let columns = vec![column_of(&calls, |key| key.0.to_string()), column_of(&calls, |key| key.1.to_string())];
        add(!calls.is_empty(), CALLS, columns);
        let signals: Vec<_> = self.signals.iter().collect();
        let columns = vec![column_of(&signals, |key| key.0.to_string()), column_of(&signals, |key| key.1.to_string())];
        add(!signals.is_empty(), SIGNALS, columns);
        add(!standings.is_empty(), STANDINGS, vec![Box::new(standings)]);
        let alike = column_of(&denials, |key| key.1.as_bytes().to_vec());
        add(!denials.is_empty(), DENIALS, vec![column_of(&denials, |key| key.0.to_string()), alike]);
        let columns = vec![
            column_of(&run_logs, |key| of_turn(key.0)),
            column_of(&run_logs, |key| i32::from(key.1.0)),
            column_of(&run_logs, |key| i64::from(key.2)),
        ];
        add(!run_logs.is_empty(), RUN_LOGS, columns);
        let columns = vec![column_of(&journals, |key| of_turn(key.0)), column_of(&journals, |key| i32::from(key.1.0))];
        add(!journals.is_empty(), JOURNALS, columns);
        let values: Vec<_> = self.values.iter().cloned().collect();
        add(!values.is_empty(), VALUES, vec![Box::new(values)]);
        add(!ended.is_empty(), ENDED, vec![Box::new(ended)]);
        add(!removed.is_empty(), OWED, vec![Box::new(removed), Box::new(self.suspensions.clone())]);
        add(!ends.is_empty(), SIZES, vec![Box::new(ends)]);
        needed
    }
}

/// A transaction that has begun.
pub(super) struct Begun {
    /// The rows that the commits are checked against.
    pub(super) state: State,
    /// The row of this host. `None`: the host has ended.
    pub(super) own: Option<OwnRow>,
    /// The id for the mark of the transaction.
    pub(super) next: Uuid,
}

/// Begins a transaction, and takes the lock of the head and that of the host's row.
pub(super) async fn load<'a>(
    session: &Session,
    me: &Me,
    plans: impl IntoIterator<Item = &'a Plan>,
) -> Result<Begun, Failure> {
    let keys = Keys::of(plans);
    // All of them are sent as they are polled, in this order.
    let sent = keys.statements(me).into_iter().map(async |(statement, columns)| {
        let parameters: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| &**column as _).collect();
        Ok::<_, Failure>((statement, session.query(statement, &parameters).await?))
    });
    let (mut state, mut own, mut next) = (State::default(), None, None);
    state.sizes = keys.ends.iter().map(|turn| (*turn, Sizes::default())).collect();
    for (statement, rows) in try_join_all(sent).await? {
        for row in &rows {
            match statement {
                HEAD => {
                    keeps_commits(row)?;
                    state.head = rows::head(row)?;
                    next = Some(column(row, "next")?);
                }
                OWN => own = Some(OwnRow::read(row)?),
                OWED => state.is_owed = column(row, "is_owed")?,
                ENDED => state.ended.load(rows::turn(row, "turn")?, ended_row(row)?),
                SIZES => size(&mut state, row)?,
                _ => entry(&mut state, statement, row)?,
            }
        }
    }
    Ok(Begun { state, own, next: next.ok_or_else(|| damaged("the head of the audit"))? })
}

fn keeps_commits(row: &Row) -> Result<(), Failure> {
    check_disk(column(row, "fsync")?, column(row, "synchronous_commit")?).map_err(|error| {
        Failure::Refused(StoreFault { kind: FaultKind::Disk, attempted: "commit", reason: error.to_string() })
    })
}

/// Adds a row of a table whose rows decide whether a commit may happen.
fn entry(state: &mut State, statement: &str, row: &Row) -> Result<(), Failure> {
    match statement {
        LOGS => {
            let commits = Length::Commits(number(row, "number")?.saturating_add(1));
            let length = if column(row, "is_removed")? { Length::Removed } else { commits };
            state.logs.load(rows::turn(row, "turn")?, length);
        }
        OWNERS => state.owners.load(rows::conversation(row)?, rows::principal(row, "owner")?),
        CALLS => {
            let id = CallId::new(column(row, "id")?).map_err(|_| damaged("the id of a call"))?;
            state.calls.load((rows::conversation(row)?, id), rows::turn(row, "turn")?);
        }
        SIGNALS => {
            let signal = SignalName::new(column(row, "signal")?).map_err(|_| damaged("the name of a signal"))?;
            let id = SuspensionId::from_bits(column::<Uuid>(row, "id")?.as_u128());
            state.signals.load((rows::conversation(row)?, signal), id);
        }
        STANDINGS => {
            let standing = rows::standing(row)?;
            state.standings.load(standing.standing.id, standing);
        }
        DENIALS => state.denials.load((rows::conversation(row)?, rows::digest(row, "alike")?), time(row, "denied_at")?),
        RUN_LOGS => {
            let key = (rows::turn(row, "turn")?, call(row)?, number(row, "run")?);
            state.run_logs.load(key, RunLogRow { written: unsigned(column(row, "written")?), record: Vec::new() });
        }
        VALUES => {
            let key: Vec<u8> = column(row, "key")?;
            state.stored_values.insert(key.clone());
            state.values.load(key, column(row, "value")?);
        }
        JOURNALS => {
            let run: Option<i64> = column(row, "run")?;
            let run = run.map(|run| u32::try_from(run).map_err(|_| damaged("a journal"))).transpose()?;
            let head = JournalHead { run, length: number(row, "length")? };
            state.journals.load((rows::turn(row, "turn")?, call(row)?), head);
        }
        _ => {}
    }
    Ok(())
}

/// Adds a size of a turn that ends.
fn size(state: &mut State, row: &Row) -> Result<(), Failure> {
    let sizes = state.sizes.entry(rows::turn(row, "turn")?).or_default();
    // A removed log has none.
    let bytes = unsigned(column::<Option<i64>>(row, "bytes")?.unwrap_or_default());
    match column(row, "of")? {
        "log" => sizes.log = bytes,
        "journal" => sizes.journals = bytes,
        _ => drop(sizes.run_logs.insert((call(row)?, number(row, "run")?), bytes)),
    }
    Ok(())
}

fn ended_row(row: &Row) -> Result<EndedRow, Failure> {
    let record: &[u8] = column(row, "record")?;
    let position: Option<i64> = column(row, "position")?;
    Ok(EndedRow {
        ended: decode(record, EndedTurn::read, || "the row of an ended turn".to_owned())?,
        end: rows::read_ending(row)?,
        position: position.map(|position| Position(unsigned(position))),
        bytes: unsigned(column(row, "bytes")?),
        record: record.to_vec(),
    })
}
