//! Why a database cannot be used.

use std::path::PathBuf;

use super::session::Failure;
use crate::portable::{ExportError, ImportError};

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// The operator's connection string is wrong.
    #[error("the connection string of the store is not valid: {0}")]
    Url(String),
    /// No connection.
    #[error("the database server {server} cannot be reached: {reason}; start it, or correct the connection string")]
    Unreachable { server: String, reason: String },
    /// The connection ended.
    #[error("the connection to the database server was lost while it should {attempted}: {reason}")]
    Lost { attempted: &'static str, reason: String },
    /// The server is older than this host supports.
    #[error("the database server has the version {0}, and this host needs PostgreSQL 14 or newer; upgrade the server")]
    TooOld(String),
    /// With this setting, the server confirms commits that a crash can undo.
    #[error(
        "the database server has `{setting} = off`, so a crash of it can undo confirmed commits; set `{setting} = on` for \
         the server, this database and this user"
    )]
    Unsafe { setting: &'static str },
    /// A pool in between keeps the settings of the connection back. Without its timeouts, a host that is paused stops all others.
    #[error(
        "the settings of the connection do not arrive at the database server, as with a pool that ignores `options`; connect to the \
         server itself"
    )]
    Options,
    /// The database stores text in another encoding.
    #[error(
        "the database has the encoding {0}, and this host needs UTF8; create another with `CREATE DATABASE … ENCODING 'UTF8'`"
    )]
    Encoding(String),
    /// The server is a standby, or the user or the database is read-only.
    #[error("the database server accepts no writes: it is a standby or read-only; connect to the primary server")]
    ReadOnly,
    /// Another host has the lock of the name.
    #[error(
        "another host with the name `{name}` uses this database ({by}); stop that one, or give this host another name with \
         `host` in `[store]`"
    )]
    InUse { name: String, by: String },
    /// Somebody uses tables that must be migrated.
    #[error(
        "the tables of the database must be migrated, and somebody uses them ({by}); stop all hosts on it, and start again"
    )]
    TablesInUse { by: String },
    /// Hosts of an older version run that could not use the new tables.
    #[error(
        "the tables of the database must be migrated, and hosts of an older version use them: `{names}`; stop all of them, and \
         start again; one that was killed counts until its lease has ended"
    )]
    OlderHosts { names: String },
    /// Hosts with different keys would not accept each other's sessions and links.
    #[error(
        "the host `{host}` on this database has another key; give all hosts the same `key_file` in `[store]`, or stop that one"
    )]
    OtherKey { host: String },
    /// The row of the host was removed.
    #[error(
        "another host found that the lease of this host had ended, and recovers its calls, or the database was restored from \
         before the start of this host; start the host again"
    )]
    Ended,
    /// The last transaction in the database is not that of this host.
    #[error(
        "the database is not as this host left it: it is at position {found} of the audit, and this host left it at {left}. \
         It was restored, another server without the last commits took over, or a commit happened that was answered with an \
         error; start the host again, which refuses a database without the commits that this host relied on"
    )]
    Changed { found: u64, left: u64 },
    /// The database lacks commits that the host relied on before it ended.
    #[error(
        "the database lacks commits that this host relied on: this host left it at position {left} of the audit, and it is at \
         {found}. It was restored, or another server without the last commits took over. Bring the right database back, and \
         start the host again. Or remove {}: then the host goes on without these commits",
        .file.display()
    )]
    LostCommits { file: PathBuf, left: u64, found: u64 },
    /// The file that says where the host left the database cannot be read.
    #[error(
        "{} says where this host left the database, and cannot be read: {reason}; if the database has all commits, remove the file",
        .file.display()
    )]
    Left { file: PathBuf, reason: String },
    /// The server has lost writes of plugins that it had confirmed.
    #[error(
        "the database server has lost data of plugins that they had written since the last commit, as after a crash of it; \
         start the host again, which ends the calls that rely on the data"
    )]
    LostValues,
    /// No host has used it.
    #[error("the database has no turns: no host has used it; correct the connection string")]
    NoTables,
    /// An older host wrote it.
    #[error(
        "the database has the format {found}, and this toolgate knows {known}; start a host of this version on it, which migrates it"
    )]
    NotMigrated { found: i32, known: i32 },
    /// A newer host wrote it.
    #[error("the database has the format {found} and this host knows {known}; start a newer toolgate")]
    Newer { found: i32, known: i32 },
    /// The server refused a statement.
    #[error("the database server refused to {attempted}: {reason}")]
    Refused { attempted: &'static str, reason: String },
}

impl From<PostgresError> for ExportError {
    fn from(error: PostgresError) -> Self {
        Self::Database(Box::new(error))
    }
}

impl From<PostgresError> for ImportError {
    fn from(error: PostgresError) -> Self {
        Self::Database(Box::new(error))
    }
}

impl PostgresError {
    /// Whether it can end without a change of the settings.
    pub(super) const fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Lost { .. } | Self::ReadOnly)
    }

    /// Whether the host must be started again.
    pub(super) const fn is_final(&self) -> bool {
        matches!(self, Self::Changed { .. } | Self::LostValues | Self::Ended)
    }

    pub(super) fn refused(attempted: &'static str) -> impl FnOnce(Failure) -> Self {
        move |failure| match failure {
            Failure::Refused(fault) | Failure::Overtaken(fault) => Self::Refused { attempted, reason: fault.reason },
            Failure::Lost(fault) => Self::Lost { attempted, reason: fault.reason },
        }
    }
}
