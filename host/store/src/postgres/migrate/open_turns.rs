//! Fills the columns and the table of format 3 that need the records: the usage of open turns, and the names of signals.

use std::collections::{BTreeMap, BTreeSet};

use dispatch::ports::{Footprint, SuspensionRow};
use domain::{suspension::SuspensionKind, turn::Turn};
use tokio_postgres::Row;
use uuid::Uuid;

use super::super::rows::{self, column, decode, footprint, kind};
use super::super::session::{Failure, Session, column_of};
use crate::record::{self, Record as _};

const TURNS: &str = "SELECT turn FROM unfinished_turns ORDER BY turn";
const LOGS: &str = "SELECT turn, record FROM commits WHERE source = 'turn' AND turn = ANY ($1) ORDER BY turn, number";
const OPEN: &str = "INSERT INTO open_turns (principal, turns, bytes, suspensions) \
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])";
const WAITING: &str = "SELECT id, conversation, record FROM suspensions WHERE is_open AND kind = $1 ORDER BY id";
const SIGNAL: &str = "UPDATE suspensions SET signal = named.signal \
    FROM unnest($1::uuid[], $2::text[]) AS named (id, signal) WHERE suspensions.id = named.id";

/// The turns whose logs are read at once.
const AT_ONCE: usize = 64;

/// Counts what the open turns use. A damaged turn uses nothing.
pub(super) async fn count(session: &Session) -> Result<(), Failure> {
    let turns = session.query(TURNS, &[]).await?;
    let turns = turns.iter().map(|row| column::<Uuid>(row, "turn")).collect::<Result<Vec<_>, _>>()?;
    let mut open = BTreeMap::<String, [i64; 3]>::new();
    for turns in turns.chunks(AT_ONCE) {
        let rows = session.query(LOGS, &[&turns]).await?;
        let mut logs = BTreeMap::<Uuid, Vec<&Row>>::new();
        for row in &rows {
            logs.entry(column(row, "turn")?).or_default().push(row);
        }
        for log in logs.values() {
            let Some(turn) = turn(log) else { continue };
            let sums = open.entry(turn.caller.to_string()).or_default();
            for (sum, more) in sums.iter_mut().zip(footprint(Footprint::of(&turn))) {
                *sum += more;
            }
        }
    }
    let open: Vec<_> = open.into_iter().collect();
    let sum = |of: usize| column_of(&open, move |(_, sums)| sums[of]);
    let principals = column_of(&open, |(principal, _)| principal.clone());
    session.execute(OPEN, &[&*principals, &*sum(0), &*sum(1), &*sum(2)]).await?;
    name_signals(session).await
}

fn turn(log: &[&Row]) -> Option<Turn> {
    let mut events = Vec::new();
    for row in log {
        let decoded =
            column(row, "record").and_then(|record| decode(record, record::read_events, || "a log".to_owned()));
        match decoded {
            Ok(mut decoded) => events.append(&mut decoded),
            Err(fault) => {
                tracing::warn!(%fault, "a turn is not counted");
                return None;
            }
        }
    }
    Turn::replay(&events)
}

/// Before, two hosts could have taken the same name. Then the first suspension has it.
async fn name_signals(session: &Session) -> Result<(), Failure> {
    let rows = session.query(WAITING, &[&kind(SuspensionKind::External)]).await?;
    let (mut taken, mut named) = (BTreeSet::new(), Vec::new());
    for row in &rows {
        let waiting = decode(column(row, "record")?, SuspensionRow::read, || "a suspension".to_owned());
        let Ok(Some(signal)) = waiting.map(|row| row.signal) else { continue };
        if taken.insert((rows::conversation(row)?, signal.clone())) {
            named.push((column::<Uuid>(row, "id")?, signal.to_string()));
        }
    }
    let (ids, signals) = (column_of(&named, |row| row.0), column_of(&named, |row| row.1.clone()));
    session.execute(SIGNAL, &[&*ids, &*signals]).await.map(drop)
}
