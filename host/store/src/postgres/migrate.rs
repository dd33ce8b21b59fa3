//! The format of the tables. Each format is a file of statements. It runs once, in one transaction of a session that has the lock of
//! the tables.

use std::cmp::Ordering;
use std::time::Duration;

use super::error::PostgresError;
use super::lock::Lock;
use super::session::Session;

mod open_turns;

/// The schema of all tables.
pub(super) const SCHEMA: &str = "toolgate";

/// The statements that make each format from the one before.
const FORMATS: [&str; 3] = [include_str!("schema/1.sql"), include_str!("schema/2.sql"), include_str!("schema/3.sql")];

/// The newest format.
const KNOWN: i32 = FORMATS.len() as i32;

/// Makes the tables of the newest format, unless they are there. Waits as long for those who use older tables.
pub(super) async fn migrate(session: &Session, wait: Duration) -> Result<(), PostgresError> {
    if is_new(found(session).await?)? {
        return Ok(());
    }
    if let Some(by) = Lock::TABLES.take(session, wait).await? {
        return Err(PostgresError::TablesInUse { by });
    }
    let found = found(session).await?;
    if !is_new(found)? {
        make(session, found).await?;
    }
    Lock::TABLES.free(session).await
}

/// Checks that the tables have the newest format, and changes nothing.
pub(super) async fn check(session: &Session) -> Result<(), PostgresError> {
    match found(session).await? {
        0 => Err(PostgresError::NoTables),
        found if is_new(found)? => Ok(()),
        found => Err(PostgresError::NotMigrated { found, known: KNOWN }),
    }
}

/// Whether a format is the newest.
fn is_new(found: i32) -> Result<bool, PostgresError> {
    match found.cmp(&KNOWN) {
        Ordering::Greater => Err(PostgresError::Newer { found, known: KNOWN }),
        Ordering::Equal => Ok(true),
        Ordering::Less => Ok(false),
    }
}

async fn make(session: &Session, found: i32) -> Result<(), PostgresError> {
    let refused = PostgresError::refused;
    session.run("BEGIN").await.map_err(refused("begin a migration"))?;
    if found == 0 {
        let made = format!(
            "CREATE SCHEMA IF NOT EXISTS {SCHEMA}; \
             CREATE TABLE format (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), version integer NOT NULL); \
             INSERT INTO format (version) VALUES (0)"
        );
        session.run(&made).await.map_err(refused("make the schema `toolgate`"))?;
    }
    let new = (1..=KNOWN).zip(FORMATS).skip(usize::try_from(found).unwrap_or(0));
    for (version, statements) in new {
        tracing::info!(version, "migrating the database");
        session.run(statements).await.map_err(refused("make its tables"))?;
        if version == 3 {
            open_turns::count(session).await.map_err(refused("count the open turns"))?;
        }
        session
            .run(&format!("UPDATE format SET version = {version}"))
            .await
            .map_err(refused("record the format of its tables"))?;
    }
    session.run("COMMIT").await.map_err(refused("commit a migration"))
}

/// The format of the database; 0 before the first migration.
async fn found(session: &Session) -> Result<i32, PostgresError> {
    let refused = PostgresError::refused;
    let table = session
        .query("SELECT to_regclass('toolgate.format') IS NOT NULL AS is_there", &[])
        .await
        .map_err(refused("look for its tables"))?;
    let is_there = table.first().is_some_and(|row| row.try_get("is_there").unwrap_or(false));
    if !is_there {
        return Ok(0);
    }
    let versions =
        session.query("SELECT version FROM toolgate.format", &[]).await.map_err(refused("tell its format"))?;
    let version = versions.first().and_then(|row| row.try_get("version").ok());
    version.ok_or(PostgresError::Refused { attempted: "tell its format", reason: "the table is empty".to_owned() })
}
