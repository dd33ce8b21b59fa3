//! Faults of the server and of the connections to it.

use std::error::Error as _;

use deadpool_postgres::PoolError;
use dispatch::ports::{FaultKind, StoreFault};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// For `map_err`: what was attempted, and why the server did not do it.
pub(super) fn database_fault(attempted: &'static str) -> impl FnOnce(Error) -> StoreFault {
    move |error| StoreFault { kind: kind(&error), attempted, reason: reason(&error) }
}

/// For `map_err`: why there is no connection.
pub(super) fn pool_fault(attempted: &'static str) -> impl FnOnce(PoolError) -> StoreFault {
    move |error| match error {
        PoolError::Backend(error) => database_fault(attempted)(error),
        PoolError::Timeout(_) => no_answer(attempted),
        error => StoreFault { kind: FaultKind::NoAnswer, attempted, reason: error.to_string() },
    }
}

/// The server did not answer in time.
pub(super) fn no_answer(attempted: &'static str) -> StoreFault {
    let reason = "the database server does not answer in time".to_owned();
    StoreFault { kind: FaultKind::NoAnswer, attempted, reason }
}

/// Whether the server may still work on the statement, or has done it: no answer of it arrived.
pub(super) fn is_lost(error: &Error) -> bool {
    error.code().is_none_or(|code| kind_of(code) == FaultKind::NoAnswer)
}

/// Whether another host was faster: it set a value that was absent, or the two waited for each other.
pub(super) fn is_overtaken(error: &Error) -> bool {
    let Some(refusal) = error.as_db_error() else { return false };
    refusal.code().code().starts_with("40")
        || (*refusal.code() == SqlState::UNIQUE_VIOLATION && refusal.constraint() == Some("plugin_values_pkey"))
}

fn kind(error: &Error) -> FaultKind {
    error.code().map_or(FaultKind::NoAnswer, kind_of)
}

fn kind_of(code: &SqlState) -> FaultKind {
    match code.code().get(..2) {
        _ if *code == SqlState::DISK_FULL => FaultKind::NoSpace,
        _ if *code == SqlState::IO_ERROR => FaultKind::Disk,
        // The connection failed, or the server stops or has just been started; a standby took its place; the host was paused.
        Some("08" | "57") => FaultKind::NoAnswer,
        _ if *code == SqlState::READ_ONLY_SQL_TRANSACTION => FaultKind::NoAnswer,
        _ if *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => FaultKind::NoAnswer,
        Some("XX") if *code != SqlState::INTERNAL_ERROR => FaultKind::Damaged,
        _ => FaultKind::Program,
    }
}

/// The words of the server, or why it did not answer. No connection string is in it.
pub(super) fn reason(error: &Error) -> String {
    let Some(answer) = error.as_db_error() else {
        let mut reason = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !reason.contains(&text) {
                reason = format!("{reason}: {text}");
            }
            source = cause.source();
        }
        return reason;
    };
    let detail = answer.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{}{detail} (SQLSTATE {})", answer.message(), answer.code().code())
}
