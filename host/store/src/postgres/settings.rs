//! The operator's settings of the store, and the name by which other hosts know this one.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use domain::{Digest, OwnerId};
use uuid::Uuid;

/// The facts about a host that the other hosts on its database know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostIdentity {
    /// No two hosts that run have the same. A host that starts knows that the one before it with its name has ended.
    pub name: String,
    /// This run of the host.
    pub owner: OwnerId,
    /// The version of the program.
    pub version: String,
    /// Where it serves HTTP.
    pub address: Option<String>,
    /// Of the configuration that all hosts should share. If that of another host differs, the log says so.
    pub config: Digest,
    /// Of the key that all hosts must share. If that of another host differs, the start is refused.
    pub key: Digest,
}

/// The operator's settings of the store.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresSettings {
    /// The connection string, such as `postgres://toolgate@db.example/toolgate`. It may contain the password.
    pub url: String,
    /// The password, unless the connection string has it or the server needs none.
    pub password: Option<String>,
    /// The number of connections for reads.
    pub readers: usize,
    /// The number of connections for the plugins' data.
    pub values: usize,
    /// The maximum time for a read, for a transaction, and for a new connection after a loss.
    pub deadline: Duration,
    /// How long the start waits for another host with the same name to end.
    pub lock_wait: Duration,
    pub host: HostIdentity,
    /// How long a host that says nothing is treated as alive. Then another host recovers its calls.
    pub lease: Duration,
    /// The file that says where the host left the database, while it must be started again. The next start compares the database
    /// with it. `None`: nothing is compared.
    pub left: Option<PathBuf>,
    /// The time between two looks for commits of other hosts, as long as no hint of one arrives.
    #[doc(hidden)]
    pub poll: Duration,
}

/// Without the password and the connection string, which may contain it.
impl fmt::Debug for PostgresSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url: _, password: _, readers, values, deadline, lock_wait, host, lease, left, poll } = self;
        f.debug_struct("PostgresSettings")
            .field("readers", readers)
            .field("values", values)
            .field("deadline", deadline)
            .field("lock_wait", lock_wait)
            .field("host", host)
            .field("lease", lease)
            .field("left", left)
            .field("poll", poll)
            .finish_non_exhaustive()
    }
}

impl PostgresSettings {
    /// The defaults, for a host that is alone.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            password: None,
            readers: 8,
            values: 4,
            deadline: Duration::from_secs(10),
            lock_wait: Duration::from_secs(5),
            host: HostIdentity {
                name: "toolgate".to_owned(),
                owner: new_owner(),
                version: String::new(),
                address: None,
                config: Digest::of([]),
                key: Digest::of([]),
            },
            lease: Duration::from_secs(15),
            left: None,
            poll: Duration::from_secs(1),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "each run needs an owner of its own, also one that has no `Parts`")]
fn new_owner() -> OwnerId {
    OwnerId::from_bits(Uuid::new_v4().as_u128())
}
