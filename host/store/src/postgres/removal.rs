//! Removes ended turns. Their commits keep their rows with the digests of the records, so the chain of the audit stays as it is.

use dispatch::ports::{Position, TurnsToRemove};
use uuid::Uuid;

use super::rows::{of_suspension, of_turn, signed};
use super::session::Column;

pub(super) const STATEMENTS: &[&str] = &[RECORDS, ENDED, OF_TURNS, OF_SUSPENSIONS, SUSPENSIONS];

/// `OFFSET` keeps the server from a join with all commits.
const RECORDS: &str = "UPDATE commits SET digest = sha256(record), record = NULL, removed_by = $2 WHERE ctid = ANY (ARRAY(\
    SELECT place FROM unnest($1::uuid[]) AS removed (turn) CROSS JOIN LATERAL (SELECT ctid AS place FROM commits AS kept \
    WHERE kept.source = 'turn' AND kept.turn = removed.turn AND kept.record IS NOT NULL OFFSET 0) AS found))";
const ENDED: &str = "DELETE FROM ended_turns WHERE turn = ANY ($1)";
const OF_TURNS: &str = "DELETE FROM deliveries WHERE is_about_turn AND subject = ANY ($1)";
const OF_SUSPENSIONS: &str = "DELETE FROM deliveries WHERE NOT is_about_turn AND subject = ANY ($1)";
const SUSPENSIONS: &str = "DELETE FROM suspensions WHERE id = ANY ($1)";

/// A statement with its parameters.
type Statement = (&'static str, Vec<Column>);

/// The statements of a removal whose fact has this position. Logs and journals are removed as everywhere.
pub(super) fn statements(removal: &TurnsToRemove, by: Position) -> Vec<Statement> {
    let turns: Vec<Uuid> = removal.turns.iter().map(|turn| of_turn(turn.ended.turn)).collect();
    let suspensions: Vec<Uuid> =
        removal.turns.iter().flat_map(|turn| &turn.suspensions).copied().map(of_suspension).collect();
    let of_turns = [ENDED, OF_TURNS].map(|statement| (statement, turns.clone()));
    let of_suspensions = [OF_SUSPENSIONS, SUSPENSIONS].map(|statement| (statement, suspensions.clone()));
    let with_ids = of_turns.into_iter().chain(of_suspensions);
    let records: Statement = (RECORDS, vec![Box::new(turns), Box::new(signed(by.0))]);
    std::iter::once(records)
        .chain(with_ids.map(|(statement, ids)| -> Statement { (statement, vec![Box::new(ids)]) }))
        .collect()
}
