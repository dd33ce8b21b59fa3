//! The row of this host among those of all hosts. It is made at the start. As long as it exists, the host is alive. Each transaction
//! of commits locks it, right after the head.

use std::path::PathBuf;
use std::time::Duration;

use dispatch::ports::StoreFault;
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::PostgresError;
use super::fence::{Fence, Known, OwnRow};
use super::left;
use super::migrate;
use super::rows::{self, column, damaged, uuid};
use super::session::{Failure, Session};
use super::settings::{HostIdentity, PostgresSettings};

/// This host, as the others know it.
#[derive(Debug, Clone)]
pub(super) struct Me {
    pub(super) identity: HostIdentity,
    pub(super) lease: Duration,
    /// Says where the last host on the data folder left the database, if it failed.
    pub(super) left: Option<PathBuf>,
}

impl Me {
    pub(super) fn new(settings: &PostgresSettings) -> Self {
        Self { identity: settings.host.clone(), lease: settings.lease, left: settings.left.clone() }
    }

    pub(super) fn name(&self) -> &str {
        &self.identity.name
    }

    pub(super) fn owner(&self) -> Uuid {
        uuid(self.identity.owner.bits())
    }

    /// In seconds.
    pub(super) fn lease(&self) -> f64 {
        self.lease.as_secs_f64()
    }
}

const BEGIN: &str = "BEGIN";
const LOCK: &str = "SELECT position FROM head FOR UPDATE";
const OTHER_KEY: &str = "SELECT name FROM hosts WHERE name <> $1 AND key <> $2 AND lease_until > clock_timestamp() \
    ORDER BY name LIMIT 1";
const FORGET: &str = "DELETE FROM hosts WHERE name = $1";
const REGISTER: &str = "INSERT INTO hosts (name, owner, position, hash, lease_until, version, address, config, key, format) \
    SELECT $1, $2, position, hash, clock_timestamp() + make_interval(secs => $3), $4, $5, $6, $7, $8 FROM head \
    RETURNING position, hash, mark, run";
const COMMIT: &str = "COMMIT";
const FOUND: &str = "SELECT hosts.position, hosts.hash, hosts.mark, hosts.run, head.position AS head \
    FROM head CROSS JOIN hosts WHERE name = $1 AND owner = $2";
const LEAVE: &str = "DELETE FROM hosts WHERE name = $1 AND owner = $2";

pub(super) const STATEMENTS: &[&str] = &[FOUND, LEAVE];

/// Makes the row of this host, or compares the database with what the host knows about it, and begins a new term of its writes of
/// values. The session has the lock of the host's name.
pub(super) async fn take_over(
    session: &Session,
    me: &Me,
    known: Option<Known>,
    fence: &Fence,
) -> Result<OwnRow, PostgresError> {
    let own = match known {
        None => register(session, me).await?,
        Some(known) => find(session, me, known).await?,
    };
    fence.begin(session, me.owner()).await?;
    Ok(own)
}

/// A host before this one with its name has ended, because this session has the lock of the name.
async fn register(session: &Session, me: &Me) -> Result<OwnRow, PostgresError> {
    const ATTEMPTED: &str = "make the row of this host";
    let refused = PostgresError::refused;
    session.run(BEGIN).await.map_err(refused(ATTEMPTED))?;
    session.query(LOCK, &[]).await.map_err(refused(ATTEMPTED))?;
    // Another host may have migrated the tables since they were looked at.
    migrate::found(session).await?.is_usable()?;
    left::check(session, me.left.as_deref(), me.name()).await?;
    let HostIdentity { version, address, config, key, .. } = &me.identity;
    let (config, key) = (config.as_bytes().as_slice(), key.as_bytes().as_slice());
    let others = session.query(OTHER_KEY, &[&me.name(), &key]).await.map_err(refused(ATTEMPTED))?;
    if let Some(other) = others.first() {
        let host = column(other, "name").map_err(Failure::from).map_err(refused(ATTEMPTED))?;
        return Err(PostgresError::OtherKey { host });
    }
    session.execute(FORGET, &[&me.name()]).await.map_err(refused(ATTEMPTED))?;
    let made = session
        .query(REGISTER, &[&me.name(), &me.owner(), &me.lease(), version, address, &config, &key, &migrate::KNOWN])
        .await
        .map_err(refused(ATTEMPTED))?;
    session.run(COMMIT).await.map_err(refused(ATTEMPTED))?;
    left::remove(me.left.as_deref());
    let own = made.first().ok_or_else(|| damaged("the head of the audit")).and_then(OwnRow::read);
    own.map_err(Failure::from).map_err(refused(ATTEMPTED))
}

async fn find(session: &Session, me: &Me, known: Known) -> Result<OwnRow, PostgresError> {
    let refused = PostgresError::refused("read its own row");
    let found = session.query(FOUND, &[&me.name(), &me.owner()]).await;
    let read = |row: &Row| Ok::<_, StoreFault>((OwnRow::read(row)?, rows::position(row, "head")?));
    let found = found.and_then(|rows| Ok(rows.first().map(read).transpose()?)).map_err(refused)?;
    let (own, head) = found.ok_or(PostgresError::Ended)?;
    if known.has(own.mark, head) { Ok(own) } else { Err(known.differs(head)) }
}

/// Removes the row of this host, so that the others know that it has ended.
pub(super) async fn leave(session: &Session, me: &Me) -> Result<(), Failure> {
    session.execute(LEAVE, &[&me.name(), &me.owner()]).await.map(drop)
}
