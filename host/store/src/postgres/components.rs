//! The components that all hosts share, so that each host can run the calls that are pinned to them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use dispatch::ports::StoreFault;
use domain::Digest;
use tokio_postgres::Row;

use super::reads::{Reader, Reads};
use super::rows::{column, digest};
use crate::fault::fault;
use crate::portable::bounds::{MAX_COMPONENT, MAX_COMPONENT_RECORD};

const TOUCH: &str =
    "UPDATE components SET last_live = clock_timestamp(), record = $2 WHERE digest = $1 RETURNING digest";
const MAKE: &str = "INSERT INTO components (digest, bytes, record, last_live) VALUES ($1, $2, $3, clock_timestamp()) \
    ON CONFLICT (digest) DO UPDATE SET last_live = excluded.last_live";
const BYTES: &str = "SELECT bytes FROM components WHERE digest = $1";
const RECORD: &str = "SELECT record FROM components WHERE digest = $1";
// Hosts lock rows in one order, so that none waits for another one in a circle.
const LIVE: &str = "UPDATE components SET last_live = clock_timestamp() WHERE digest IN \
    (SELECT digest FROM components WHERE digest = ANY($1) ORDER BY digest FOR UPDATE) RETURNING digest";
// A row that is locked is being marked as live.
const COLLECT: &str = "DELETE FROM components WHERE digest IN (SELECT digest FROM components \
    WHERE digest <> ALL($1) AND last_live < clock_timestamp() - make_interval(secs => $2) FOR UPDATE SKIP LOCKED) \
    RETURNING digest";

pub(super) const ATTEMPTED: &str = "read or write a component that hosts share";

/// The number of connections. A component that is being kept delays no call that needs another one.
pub(super) const CONNECTIONS: usize = 2;

/// The components that all hosts on a database share, with their records.
#[derive(Clone)]
pub struct SharedComponents(Arc<Reads>);

impl SharedComponents {
    pub(super) fn new(requests: Reads) -> Self {
        Self(Arc::new(requests))
    }

    /// Keeps a component, which is live now. If it is kept already, only its record is replaced.
    ///
    /// # Errors
    /// [`StoreFault`]. If no answer arrived, it may have been kept.
    pub async fn keep(&self, component: Digest, bytes: &[u8], record: &[u8]) -> Result<(), StoreFault> {
        if bytes.len() > MAX_COMPONENT || record.len() > MAX_COMPONENT_RECORD {
            return Err(fault(ATTEMPTED)("a component has at most 64 MiB, and its record at most 128 MiB"));
        }
        let (key, content) = (key(component), record.to_vec());
        let touch = move |connection: Reader| async move { connection.first(TOUCH, &[&key, &content]).await };
        if self.0.run(touch).await?.is_some() {
            return Ok(());
        }
        let (key, bytes, content) = (self::key(component), bytes.to_vec(), record.to_vec());
        self.0.run(|connection| async move { connection.query(MAKE, &[&key, &bytes, &content]).await }).await.map(drop)
    }

    /// The bytes of a component. Nobody has compared them with its digest.
    ///
    /// # Errors
    /// [`StoreFault`].
    pub async fn bytes(&self, component: Digest) -> Result<Option<Vec<u8>>, StoreFault> {
        self.read(BYTES, component, "bytes").await
    }

    /// The record of a component.
    ///
    /// # Errors
    /// [`StoreFault`].
    pub async fn record(&self, component: Digest) -> Result<Option<Vec<u8>>, StoreFault> {
        self.read(RECORD, component, "record").await
    }

    /// These components are live, or calls need them. Returns those of them that are kept.
    ///
    /// # Errors
    /// [`StoreFault`].
    pub async fn live(&self, components: &HashSet<Digest>) -> Result<HashSet<Digest>, StoreFault> {
        let keys = keys(components);
        let rows = self.0.run(|connection| async move { connection.query(LIVE, &[&keys]).await }).await?;
        rows.iter().map(|row| digest(row, "digest")).collect()
    }

    /// Removes the components that are not pinned and that no host needed for this time. Returns how many.
    ///
    /// # Errors
    /// [`StoreFault`]. If no answer arrived, they may have been removed.
    pub async fn collect(&self, pinned: &HashSet<Digest>, older_than: Duration) -> Result<usize, StoreFault> {
        let (keys, age) = (keys(pinned), older_than.as_secs_f64());
        let rows = self.0.run(move |connection| async move { connection.query(COLLECT, &[&keys, &age]).await }).await?;
        Ok(rows.len())
    }

    async fn read(
        &self,
        statement: &'static str,
        component: Digest,
        name: &'static str,
    ) -> Result<Option<Vec<u8>>, StoreFault> {
        let key = key(component);
        let row = self.0.run(move |connection| async move { connection.first(statement, &[&key]).await }).await?;
        row.map(|row: Row| column(&row, name)).transpose()
    }
}

fn key(component: Digest) -> Vec<u8> {
    component.as_bytes().to_vec()
}

fn keys(components: &HashSet<Digest>) -> Vec<Vec<u8>> {
    components.iter().copied().map(key).collect()
}
