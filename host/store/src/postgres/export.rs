//! Writes a database in the portable form of a store (`portable.rs`). One snapshot has all of it, so hosts may commit meanwhile.

use std::io::Write;
use std::pin::pin;

use dispatch::ports::{Position, StoreFault};
use domain::{CallIndex, ConversationId, StandingId};
use futures::TryStreamExt as _;
use tokio_postgres::Row;

use super::connect::Connector;
use super::error::PostgresError;
use super::migrate;
use super::rows::{self, column, damaged, digest, number, position, principal, time, turn, unsigned};
use super::session::{Failure, Session};
use super::settings::PostgresSettings;
use crate::portable::{ExportError, Hex, Line, LineWriter, Moved, Place, Revocation, Stored, StoredRecord};

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const HEAD: &str = "SELECT position, hash, retention_time FROM head";

// In the order of the keys of sled, so that both backends write the same lines.
const COMMITS: &str = "SELECT position, hash, source, turn, number, conversation, record, digest, removed_by FROM commits \
    ORDER BY position";
const OWNERS: &str = "SELECT conversation, owner FROM conversations ORDER BY conversation";
const CALLS: &str = "SELECT conversation, id, turn FROM calls WHERE NOT EXISTS (SELECT FROM commits \
    WHERE source = 'turn' AND commits.turn = calls.turn AND record IS NOT NULL) \
    ORDER BY octet_length(conversation), conversation, id";
const SUSPENSIONS: &str = "SELECT record FROM suspensions ORDER BY id";
const ENDED: &str = "SELECT position, ending, bytes, record FROM ended_turns ORDER BY ended_at, turn";
const STANDINGS: &str = "SELECT id, used, revoked_by, revoked_at, record FROM standing_approvals ORDER BY id";
const DENIALS: &str = "SELECT conversation, alike, denied_at FROM denials \
    ORDER BY octet_length(conversation), conversation, alike";
const DELIVERIES: &str = "SELECT record FROM deliveries ORDER BY subject, number, webhook";
const RUN_LOGS: &str = "SELECT record FROM run_logs ORDER BY turn, call, run";
const JOURNALS: &str = "SELECT turn, call, run, length FROM journals ORDER BY turn, call";
const ENTRIES: &str = "SELECT turn, call, record FROM journal_entries ORDER BY turn, call, number";
const DOCUMENTS: &str = "SELECT name, body FROM documents ORDER BY name";
const COMPONENTS: &str = "SELECT digest, bytes, record FROM components ORDER BY digest";
const VALUES: &str = "SELECT key, value FROM plugin_values ORDER BY key";

/// The line of a row.
type LineOf = fn(&Row) -> Result<Line, StoreFault>;

const TABLES: [(&str, LineOf); 14] = [
    (COMMITS, commit),
    (OWNERS, |row| Ok(Line::Owner { conversation: rows::conversation(row)?, owner: principal(row, "owner")? })),
    (CALLS, |row| {
        let id = column::<&str>(row, "id")?.parse().map_err(|_| damaged("a call id"))?;
        Ok(Line::Call { conversation: rows::conversation(row)?, id, turn: turn(row, "turn")? })
    }),
    (SUSPENSIONS, |row| Ok(Line::Suspension(record(row, "a suspension")?))),
    (ENDED, |row| {
        let position = column::<Option<i64>>(row, "position")?.map(unsigned);
        let (end, bytes) = (rows::read_ending(row)?, unsigned(column(row, "bytes")?));
        Ok(Line::EndedTurn { position, end, bytes, record: record(row, "an ended turn")? })
    }),
    (STANDINGS, standing),
    (DENIALS, |row| {
        let (conversation, alike) = (rows::conversation(row)?, digest(row, "alike")?);
        Ok(Line::Denial { conversation, alike, at: time(row, "denied_at")? })
    }),
    (DELIVERIES, |row| Ok(Line::Delivery(record(row, "a delivery")?))),
    (RUN_LOGS, |row| Ok(Line::RunLog(record(row, "the log of a call")?))),
    (JOURNALS, |row| {
        let run = column::<Option<i64>>(row, "run")?.map(u32::try_from).transpose();
        let run = run.map_err(|_| damaged("the run of a journal"))?;
        Ok(Line::Journal { turn: turn(row, "turn")?, call: call(row)?, run, length: number(row, "length")? })
    }),
    (ENTRIES, |row| {
        let (turn, call) = (turn(row, "turn")?, call(row)?);
        Ok(Line::JournalEntry { turn, call, record: record(row, "an entry of a journal")? })
    }),
    (VALUES, |row| Ok(Line::Value { key: Hex(column(row, "key")?), value: Hex(column(row, "value")?) })),
    (DOCUMENTS, |row| Ok(Line::Document { name: column(row, "name")?, body: Hex(column(row, "body")?) })),
    (COMPONENTS, |row| {
        let (bytes, record) = (Hex(column(row, "bytes")?), Hex(column(row, "record")?));
        Ok(Line::Component { digest: digest(row, "digest")?, bytes, record })
    }),
];

/// Writes everything that hosts have stored in a database. They may run: one snapshot has all of it.
///
/// # Errors
/// [`ExportError`]; the lines that were written are no whole export.
pub async fn export(settings: &PostgresSettings, out: &mut dyn Write) -> Result<Moved, ExportError> {
    let session = Connector::new(settings, Vec::new())?.long_session().await?;
    let exported = exported(&session, out).await;
    session.close();
    exported
}

async fn exported(session: &Session, out: &mut dyn Write) -> Result<Moved, ExportError> {
    session.run(BEGIN).await.map_err(PostgresError::refused("begin an export"))?;
    // In the snapshot of the export, so that no migration comes in between.
    migrate::check(session).await?;
    let heads = session.query(HEAD, &[]).await.map_err(fault)?;
    let head = heads.first().ok_or_else(|| damaged("the head of the audit"))?;
    let mut lines = LineWriter::begin(out, rows::head(head)?)?;
    if column::<Option<i64>>(head, "retention_time")?.is_some() {
        lines.line(&Line::RetentionTime { at: time(head, "retention_time")? })?;
    }
    for (statement, line) in TABLES {
        let mut rows = pin!(session.stream(statement).await.map_err(fault)?);
        while let Some(row) = rows.try_next().await.map_err(Failure::of("export")).map_err(fault)? {
            lines.line(&line(&row)?)?;
        }
    }
    lines.end()
}

fn fault(failure: Failure) -> StoreFault {
    failure.into()
}

fn commit(row: &Row) -> Result<Line, StoreFault> {
    let (source, conversation) = (rows::read_source(row)?, column::<Option<&str>>(row, "conversation")?);
    let Position(position) = position(row, "position")?;
    let what = || format!("the commit at position {position}");
    let content = match column::<Option<i64>>(row, "removed_by")? {
        Some(by) => Stored::Removed { digest: digest(row, "digest")?, by: unsigned(by) },
        None => Stored::Record(record(row, &what())?),
    };
    let conversation = conversation.map(ConversationId::new).transpose().map_err(|_| damaged(what()))?;
    let source = Place::of(source, conversation).ok_or_else(|| damaged(what()))?;
    Ok(Line::Commit { position, hash: digest(row, "hash")?, source, content })
}

fn standing(row: &Row) -> Result<Line, StoreFault> {
    let id = StandingId::from_bits(column::<uuid::Uuid>(row, "id")?.as_u128());
    let revoked = match column::<Option<&str>>(row, "revoked_by")? {
        Some(_) => Some(Revocation { by: principal(row, "revoked_by")?, at: time(row, "revoked_at")? }),
        None => None,
    };
    let record = record(row, &format!("the standing approval {id}"))?;
    Ok(Line::Standing { used: number(row, "used")?, revoked, record })
}

fn record(row: &Row, what: &str) -> Result<StoredRecord, StoreFault> {
    StoredRecord::of(column(row, "record")?).ok_or_else(|| damaged(what))
}

fn call(row: &Row) -> Result<CallIndex, StoreFault> {
    u16::try_from(column::<i32>(row, "call")?).map(CallIndex).map_err(|_| damaged("the number of a call"))
}
