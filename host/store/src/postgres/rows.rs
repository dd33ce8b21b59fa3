//! Values of the domain as columns, and columns as values.

use dispatch::ports::{Footprint, Head, Position, Source, StoreFault, Subject};
use domain::{
    ConversationId, Digest, PrincipalId, SuspensionId, Timestamp, TurnId, event::TurnEnd, standing::StandingRow,
    suspension::SuspensionKind,
};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use super::fault::database_fault;
use crate::record::{Record, Unreadable};

/// For `map_err` and `ok_or_else`: a row is not what this store writes.
pub(super) fn damaged(what: impl std::fmt::Display) -> StoreFault {
    StoreFault::damaged("read what is stored", format!("{what} is damaged"))
}

/// The value of a column.
pub(super) fn column<'a, T: FromSql<'a>>(row: &'a Row, name: &str) -> Result<T, StoreFault> {
    row.try_get(name).map_err(database_fault("read a column"))
}

/// Decodes a record.
pub(super) fn decode<T>(
    record: &[u8],
    read: fn(&[u8]) -> Result<T, Unreadable>,
    what: impl FnOnce() -> String,
) -> Result<T, StoreFault> {
    read(record).map_err(|unreadable| StoreFault::damaged("read what is stored", format!("{}: {unreadable}", what())))
}

/// No number of the store is above the largest of a column, except limits.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

pub(super) fn millis(at: Timestamp) -> i64 {
    signed(at.millis())
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(super) fn number(row: &Row, name: &str) -> Result<u32, StoreFault> {
    u32::try_from(column::<i64>(row, name)?).map_err(|_| damaged(name))
}

pub(super) fn position(row: &Row, name: &str) -> Result<Position, StoreFault> {
    Ok(Position(unsigned(column(row, name)?)))
}

/// The head of the audit, or an entry of its chain.
pub(super) fn head(row: &Row) -> Result<Head, StoreFault> {
    Ok(Head { position: position(row, "position")?, hash: digest(row, "hash")? })
}

pub(super) fn time(row: &Row, name: &str) -> Result<Timestamp, StoreFault> {
    Ok(Timestamp::from_millis(unsigned(column(row, name)?)))
}

pub(super) fn uuid(bits: u128) -> Uuid {
    Uuid::from_u128(bits)
}

pub(super) fn of_turn(turn: TurnId) -> Uuid {
    uuid(turn.bits())
}

pub(super) fn of_suspension(suspension: SuspensionId) -> Uuid {
    uuid(suspension.bits())
}

pub(super) fn turn(row: &Row, name: &str) -> Result<TurnId, StoreFault> {
    Ok(TurnId::from_bits(column::<Uuid>(row, name)?.as_u128()))
}

pub(super) fn digest(row: &Row, name: &str) -> Result<Digest, StoreFault> {
    let bytes: &[u8] = column(row, name)?;
    bytes.try_into().map(Digest::from_bytes).map_err(|_| damaged(name))
}

pub(super) fn conversation(row: &Row) -> Result<ConversationId, StoreFault> {
    ConversationId::new(column(row, "conversation")?).map_err(|_| damaged("the id of a conversation"))
}

pub(super) fn principal(row: &Row, name: &str) -> Result<PrincipalId, StoreFault> {
    PrincipalId::new(column(row, name)?).map_err(|_| damaged("the id of a principal"))
}

/// The usage of open turns: their number, their bytes, and their suspensions.
pub(super) fn footprint(footprint: Footprint) -> [i64; 3] {
    let Footprint { turns, bytes, suspensions } = footprint;
    [turns, bytes, suspensions].map(limit)
}

pub(super) fn read_footprint(row: &Row) -> Result<Footprint, StoreFault> {
    let number = |name| Ok::<_, StoreFault>(usize::try_from(column::<i64>(row, name)?).unwrap_or(0));
    Ok(Footprint { turns: number("turns")?, bytes: number("bytes")?, suspensions: number("suspensions")? })
}

/// The number of a kind in a column.
pub(super) fn kind(kind: SuspensionKind) -> i16 {
    let place = SuspensionKind::ALL.iter().position(|each| *each == kind);
    place.and_then(|place| i16::try_from(place).ok()).unwrap_or(i16::MAX)
}

/// The name of an end in a column.
pub(super) const fn ending(end: TurnEnd) -> &'static str {
    match end {
        TurnEnd::Settled => "settled",
        TurnEnd::Aborted => "aborted",
        TurnEnd::Cancelled => "cancelled",
    }
}

pub(super) fn read_ending(row: &Row) -> Result<TurnEnd, StoreFault> {
    let name: &str = column(row, "ending")?;
    let ends = [TurnEnd::Settled, TurnEnd::Aborted, TurnEnd::Cancelled];
    ends.into_iter().find(|end| ending(*end) == name).ok_or_else(|| damaged("the end of a turn"))
}

/// A standing approval with its usage.
pub(super) fn standing(row: &Row) -> Result<StandingRow, StoreFault> {
    let given = decode(column(row, "record")?, StandingRow::read, || "a standing approval".to_owned())?;
    let revoked = match column::<Option<&str>>(row, "revoked_by")? {
        Some(_) => Some((principal(row, "revoked_by")?, time(row, "revoked_at")?)),
        None => None,
    };
    Ok(StandingRow { used: number(row, "used")?, revoked, ..given })
}

/// The name of a source in a column.
pub(super) const fn source(source: Source) -> &'static str {
    match source {
        Source::Turn { .. } => "turn",
        Source::Plugin => "plugin",
        Source::Started => "started",
        Source::Revoked => "revoked",
        Source::Removal => "removal",
    }
}

pub(super) fn read_source(row: &Row) -> Result<Source, StoreFault> {
    Ok(match column(row, "source")? {
        "turn" => Source::Turn { turn: turn(row, "turn")?, number: number(row, "number")? },
        "plugin" => Source::Plugin,
        "started" => Source::Started,
        "revoked" => Source::Revoked,
        "removal" => Source::Removal,
        _ => return Err(damaged("the source of a commit")),
    })
}

/// Whether a delivery is about a turn, and the id.
pub(super) fn subject(subject: Subject) -> (bool, Uuid) {
    match subject {
        Subject::Suspension(id) => (false, of_suspension(id)),
        Subject::Turn(id) => (true, of_turn(id)),
    }
}
