//! Advisory locks, which a session has until its connection ends. The server gives a lock away only after the session's
//! transaction has ended.

use std::time::Duration;

use domain::Digest;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use super::error::PostgresError;
use super::session::{Failure, Session};

/// A lock by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lock(i64);

impl Lock {
    /// Of those who change the tables. A host of format 2 or 1 has it as long as it runs.
    pub(super) const TABLES: Self = Self(0x0074_6f6f_6c67_6174);

    /// Of the host with this name.
    pub(super) fn of_host(name: &str) -> Self {
        let digest = Digest::of(["toolgate host ", name].concat());
        let [a, b, c, d, e, f, g, h, ..] = *digest.as_bytes();
        Self(i64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }

    /// Takes the lock. Returns the session that has it, if that one does not end in time.
    pub(super) async fn take(self, session: &Session, wait: Duration) -> Result<Option<String>, PostgresError> {
        let refused = PostgresError::refused;
        let wait = wait.as_millis().max(1);
        session.run(&format!("SET lock_timeout = {wait}")).await.map_err(refused("wait for its lock"))?;
        match session.lock(self.0).await {
            Ok(()) => {
                session.run("SET lock_timeout = 0").await.map_err(refused("wait for its lock"))?;
                Ok(None)
            }
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                let holders = session.query(HOLDER, &[&self.0]).await.map_err(refused("name the other host"))?;
                let by = holders.first().and_then(|row| row.try_get("holder").ok());
                Ok(Some(by.unwrap_or_else(|| "it has just ended".to_owned())))
            }
            Err(error) => Err(refused("lock the database")(Failure::of("lock")(error))),
        }
    }

    /// Ends the session that has the lock of a host, if nobody uses it: it was made by this run of the host, or by one whose lease has
    /// ended. The server may not know yet that their connections are cut.
    pub(super) async fn end_left_behind(self, session: &Session, host: &str, owner: Uuid) -> Result<(), PostgresError> {
        let ended = session.query(END_IDLE, &[&self.0, &host, &owner]).await;
        ended.map(drop).map_err(PostgresError::refused("end the session that the host left behind"))
    }

    /// Gives the lock away.
    pub(super) async fn free(self, session: &Session) -> Result<(), PostgresError> {
        let freed = session.query("SELECT pg_advisory_unlock($1)", &[&self.0]).await;
        freed.map(drop).map_err(PostgresError::refused("free its lock"))
    }
}

/// The sessions that have a lock.
macro_rules! holders {
    () => {
        "FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE locktype = 'advisory' AND granted AND objsubid = 1 \
         AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
         AND ((classid::bigint << 32) | objid::bigint) = $1"
    };
}

const HOLDER: &str = concat!(
    "SELECT format('%s from %s since %s', application_name, coalesce(host(client_addr), 'the same machine'), \
     to_char(backend_start, 'YYYY-MM-DD HH24:MI:SS TZ')) AS holder ",
    holders!()
);

// A session that executes a statement is in use.
const END_IDLE: &str = concat!(
    "SELECT pg_terminate_backend(pid) ",
    holders!(),
    " AND state LIKE 'idle%' AND state_change < clock_timestamp() - interval '1 second' \
     AND NOT EXISTS (SELECT FROM hosts WHERE name = $2 AND owner <> $3 AND lease_until > clock_timestamp())"
);
