//! Small files that all hosts share, such as tokens. Each is replaced as a whole, and only if no other host replaced it meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use dispatch::ports::StoreFault;

use super::connect::Connector;
use super::error::PostgresError;
use super::reads::Reads;
use super::rows::{column, unsigned};
use super::settings::PostgresSettings;
use super::threads::Threads;
use crate::fault::fault;
use crate::portable::bounds::MAX_DOCUMENT;

const VERSIONS: &str = "SELECT name, version FROM documents";
const READ: &str = "SELECT version, body FROM documents WHERE name = $1";
const MAKE: &str = "INSERT INTO documents (name, body) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING name";
const REPLACE: &str = "UPDATE documents SET version = nextval('document_versions'), body = $2 \
    WHERE name = $1 AND version = $3 RETURNING name";
const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now";
const DELETE: &str = "DELETE FROM documents WHERE name = $1";

pub(super) const ATTEMPTED: &str = "write what hosts share";

/// The number of connections.
pub(super) const CONNECTIONS: usize = 2;

/// Small files that all hosts on a database share. They can be used without being a host.
#[derive(Clone)]
pub struct Documents {
    requests: Arc<Reads>,
    /// `None` if the store has them.
    _threads: Option<Arc<Threads>>,
}

impl Documents {
    /// Connects to a server and checks it. Makes the tables unless they exist. Refuses tables that the start of a host would migrate.
    ///
    /// # Errors
    /// [`PostgresError`].
    pub async fn connect(settings: &PostgresSettings) -> Result<Self, PostgresError> {
        let threads = Threads::start(1)?;
        let connector = Connector::new(settings, Vec::new())?;
        let pool = connector.requests(CONNECTIONS)?;
        threads.run(async move { connector.check().await }).await?;
        let requests = Arc::new(Reads::new(threads.handle().clone(), pool, settings.deadline, ATTEMPTED));
        Ok(Self { requests, _threads: Some(Arc::new(threads)) })
    }

    /// Those of a store, as long as it is open.
    pub(super) const fn of_store(requests: Arc<Reads>) -> Self {
        Self { requests, _threads: None }
    }

    /// The version of each document.
    ///
    /// # Errors
    /// [`StoreFault`].
    pub async fn versions(&self) -> Result<BTreeMap<String, i64>, StoreFault> {
        let rows = self.requests.run(|connection| async move { connection.query(VERSIONS, &[]).await }).await?;
        rows.iter().map(|row| Ok((column(row, "name")?, column(row, "version")?))).collect()
    }

    /// A document with its version.
    ///
    /// # Errors
    /// [`StoreFault`].
    pub async fn read(&self, name: &str) -> Result<Option<(i64, Vec<u8>)>, StoreFault> {
        let name = name.to_owned();
        let row = self.requests.run(|connection| async move { connection.first(READ, &[&name]).await }).await?;
        row.map(|row| Ok((column(&row, "version")?, column(&row, "body")?))).transpose()
    }

    /// Replaces a document that has the expected version. `None`: makes one that does not exist yet. Returns whether it did so.
    ///
    /// # Errors
    /// [`StoreFault`]. If no answer arrived, the document may have been replaced.
    pub async fn replace(&self, name: &str, expected: Option<i64>, bytes: Vec<u8>) -> Result<bool, StoreFault> {
        if bytes.len() > MAX_DOCUMENT {
            return Err(fault(ATTEMPTED)("a document has at most 16 MiB"));
        }
        let name = name.to_owned();
        let replace = move |connection: super::reads::Reader| async move {
            match expected {
                None => connection.first(MAKE, &[&name, &bytes]).await,
                Some(version) => connection.first(REPLACE, &[&name, &bytes, &version]).await,
            }
        };
        Ok(self.requests.run(replace).await?.is_some())
    }

    /// The time of the database, in milliseconds since 1970.
    ///
    /// # Errors
    /// [`StoreFault`].
    pub async fn now(&self) -> Result<u64, StoreFault> {
        let now = self.requests.run(|connection| async move { connection.first(NOW, &[]).await }).await?;
        now.map_or_else(|| Err(fault(ATTEMPTED)("the server sent no time")), |row| column(&row, "now").map(unsigned))
    }

    /// Deletes a document, if there is one.
    ///
    /// # Errors
    /// [`StoreFault`].
    pub async fn delete(&self, name: &str) -> Result<(), StoreFault> {
        let name = name.to_owned();
        self.requests.run(|connection| async move { connection.query(DELETE, &[&name]).await }).await.map(drop)
    }
}
