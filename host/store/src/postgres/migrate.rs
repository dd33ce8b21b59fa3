//! The format of the tables. Each format is a file of statements. It runs once, in one transaction of a session that has the lock of
//! the tables.

use std::cmp::Ordering;
use std::time::Duration;

use tokio_postgres::Row;

use super::error::PostgresError;
use super::lock::Lock;
use super::session::Session;

mod open_turns;

/// The schema of all tables.
pub(super) const SCHEMA: &str = "toolgate";

/// The statements that make each format from the one before.
const FORMATS: [&str; 7] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
    include_str!("schema/6.sql"),
    include_str!("schema/7.sql"),
];

/// The newest format.
pub(super) const KNOWN: i32 = FORMATS.len() as i32;

/// The oldest format whose hosts may use tables of the newest one, and understand all records that hosts of the newest one write.
const OLDEST: i32 = 6;

/// The format that introduced the table of hosts, and the one from which each host says which format it knows.
const HOSTS: i32 = 3;
const KNOWN_BY_HOST: i32 = 6;

/// The format of a database.
#[derive(Debug, Clone, Copy)]
pub(super) struct Format {
    version: i32,
    /// The oldest format whose hosts may use it.
    oldest: i32,
}

impl Format {
    /// Whether this host can use the tables as they are.
    pub(super) fn is_usable(self) -> Result<bool, PostgresError> {
        if self.oldest > KNOWN {
            return Err(PostgresError::Newer { found: self.version, known: KNOWN });
        }
        Ok(self.version >= KNOWN)
    }

    /// Whether there is a table of hosts.
    pub(super) const fn has_hosts(self) -> bool {
        self.version >= HOSTS
    }
}

/// Makes the tables of the newest format, unless they are there. Waits at most `wait` for the lock of those who use older
/// tables, and at most `lease` for hosts that may have ended. `me` is the name of the host whose lock the session has.
pub(super) async fn migrate(
    session: &Session,
    wait: Duration,
    lease: Duration,
    me: Option<&str>,
) -> Result<(), PostgresError> {
    let found = found(session).await?;
    if found.is_usable()? {
        return Ok(());
    }
    // Without the lock, so that others wait as well.
    await_leases(session, found, lease, me).await?;
    if let Some(by) = Lock::TABLES.take(session, wait).await? {
        return Err(PostgresError::TablesInUse { by });
    }
    let found = self::found(session).await?;
    if !found.is_usable()? {
        make(session, found.version, me).await?;
    }
    Lock::TABLES.free(session).await
}

/// Makes the tables unless they exist, for a command that is no host. Only the start of a host migrates older ones.
pub(super) async fn make_or_check(session: &Session, wait: Duration, lease: Duration) -> Result<(), PostgresError> {
    let found = found(session).await?;
    if found.version == 0 {
        return migrate(session, wait, lease, None).await;
    }
    if found.is_usable()? { Ok(()) } else { Err(PostgresError::NotMigrated { found: found.version, known: KNOWN }) }
}

/// Checks that the tables have the newest format, and changes nothing. An export would leave out what a newer format has.
pub(super) async fn check(session: &Session) -> Result<(), PostgresError> {
    let found = found(session).await?.version;
    match found.cmp(&KNOWN) {
        Ordering::Less if found == 0 => Err(PostgresError::NoTables),
        Ordering::Less => Err(PostgresError::NotMigrated { found, known: KNOWN }),
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(PostgresError::Newer { found, known: KNOWN }),
    }
}

async fn make(session: &Session, found: i32, me: Option<&str>) -> Result<(), PostgresError> {
    let refused = PostgresError::refused;
    // It may read turns between two statements.
    session
        .run("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0")
        .await
        .map_err(refused("begin a migration"))?;
    if found == 0 {
        let made = format!(
            "CREATE SCHEMA IF NOT EXISTS {SCHEMA}; \
             CREATE TABLE format (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), version integer NOT NULL); \
             INSERT INTO format (version) VALUES (0)"
        );
        session.run(&made).await.map_err(refused("make the schema `toolgate`"))?;
    }
    if found >= HOSTS {
        end_older_hosts(session, found, me).await?;
    }
    let new = (1..=KNOWN).zip(FORMATS).skip(usize::try_from(found).unwrap_or(0));
    for (version, statements) in new {
        tracing::info!(version, "migrating the database");
        session.run(statements).await.map_err(refused("make its tables"))?;
        if version == HOSTS {
            open_turns::count(session).await.map_err(refused("count the open turns"))?;
        }
    }
    let recorded = format!("UPDATE format SET version = {KNOWN}, oldest = {OLDEST}");
    session.run(&recorded).await.map_err(refused("record the format of its tables"))?;
    session.run("COMMIT").await.map_err(refused("commit a migration"))
}

/// A host that was killed counts as alive until its lease has ended. Waits for that once, and at most for a lease.
async fn await_leases(
    session: &Session,
    found: Format,
    lease: Duration,
    me: Option<&str>,
) -> Result<(), PostgresError> {
    if found.version < HOSTS {
        return Ok(());
    }
    let refused = || PostgresError::refused("look for older hosts");
    let remaining = format!(
        "SELECT name, lease_until > until AS is_longer, extract(epoch FROM least(lease_until, until) - clock_timestamp())::float8 \
         AS remaining FROM hosts, LATERAL (SELECT clock_timestamp() + make_interval(secs => $2) AS until) AS bound WHERE {}",
        older(found.version)
    );
    let alive = session.query(&remaining, &[&me, &lease.as_secs_f64()]).await.map_err(refused())?;
    if alive.iter().any(|row| row.try_get("is_longer").unwrap_or(true)) {
        return Ok(());
    }
    let remaining = alive.iter().filter_map(|row| row.try_get("remaining").ok()).fold(0.0, f64::max);
    if remaining > 0.0 {
        let hosts: Vec<&str> = alive.iter().filter_map(|row| row.try_get("name").ok()).collect();
        tracing::warn!(
            ?hosts,
            "the tables must be migrated, and hosts of an older version have leases; waiting for their end"
        );
        session.query("SELECT pg_sleep($1)", &[&remaining]).await.map_err(refused())?;
    }
    Ok(())
}

/// The condition for rows of hosts that are alive and could not use the new tables. `$1` is the name of this host.
fn older(found: i32) -> String {
    format!(
        "{} < {OLDEST} AND name IS DISTINCT FROM $1 AND lease_until > clock_timestamp() ORDER BY name",
        known(found)
    )
}

/// The format that a host in a row knows.
fn known(found: i32) -> String {
    if found >= KNOWN_BY_HOST { "format".to_owned() } else { found.to_string() }
}

/// Refuses a migration while hosts are alive that could not use the new tables. One whose lease has ended commits nothing more. Others
/// that start wait for the lock of the head, and find the new format.
async fn end_older_hosts(session: &Session, found: i32, me: Option<&str>) -> Result<(), PostgresError> {
    let refused = || PostgresError::refused("look for older hosts");
    session.query("SELECT position FROM head FOR UPDATE", &[]).await.map_err(refused())?;
    let alive = format!("SELECT name FROM hosts WHERE {}", older(found));
    let alive = session.query(&alive, &[&me]).await.map_err(refused())?;
    let names: Vec<&str> = alive.iter().filter_map(|row| row.try_get("name").ok()).collect();
    if !names.is_empty() {
        return Err(PostgresError::OlderHosts { names: names.join("`, `") });
    }
    session.run(&format!("DELETE FROM hosts WHERE {} < {OLDEST}", known(found))).await.map_err(refused())
}

/// The format of the database; 0 before the first migration.
pub(super) async fn found(session: &Session) -> Result<Format, PostgresError> {
    let refused = PostgresError::refused;
    let table = session
        .query("SELECT to_regclass('toolgate.format') IS NOT NULL AS is_there", &[])
        .await
        .map_err(refused("look for its tables"))?;
    let is_there = table.first().is_some_and(|row| row.try_get("is_there").unwrap_or(false));
    if !is_there {
        return Ok(Format { version: 0, oldest: 0 });
    }
    // Tables before format 6 have no column for the oldest one. An unreleased version made the tables of format 5 and named them 3.
    let formats = session
        .query(
            "SELECT present.version, coalesce((to_jsonb(format) ->> 'oldest')::integer, present.version) AS oldest \
             FROM toolgate.format CROSS JOIN LATERAL (SELECT CASE WHEN format.version = 3 \
             AND to_regclass('toolgate.components') IS NOT NULL THEN 5 ELSE format.version END AS version) AS present",
            &[],
        )
        .await
        .map_err(refused("tell its format"))?;
    let read = |row: &Row| Some(Format { version: row.try_get("version").ok()?, oldest: row.try_get("oldest").ok()? });
    let format = formats.first().and_then(read);
    format.ok_or(PostgresError::Refused { attempted: "tell its format", reason: "the table is empty".to_owned() })
}
