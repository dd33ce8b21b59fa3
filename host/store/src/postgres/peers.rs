//! The knowledge of a host about the other hosts on its database.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use dispatch::ports::{Footprint, LivePlugins, News, Peers, RunningHost, Share, StoreFault};
use domain::{ConversationId, OwnerId, PrincipalId, ToolName};
use tokio::sync::{Mutex, mpsc, watch};
use tokio_postgres::Row;
use uuid::Uuid;

use super::hosts::Me;
use super::life::{Members, Report};
use super::live_plugins;
use super::migrate::KNOWN;
use super::reads::{Reader, Reads};
use super::rows::{self, column, damaged, unsigned, uuid};
use crate::fault::fault;

const ALIVE: &str = "SELECT owner FROM hosts WHERE owner = ANY ($1)";
const HOSTS: &str = "SELECT name, owner, version, address, (extract(epoch FROM since) * 1000)::bigint AS since, \
    (extract(epoch FROM renewed_at) * 1000)::bigint AS renewed, running, draining, names, digests, \
    CASE WHEN version = $1 AND format = $2 THEN config END AS config FROM hosts LEFT JOIN live_plugins ON host = name ORDER BY name";
const ATTACHED: &str = "SELECT tools FROM attachments WHERE conversation = $1 AND host <> $2";
const ATTACH: &str = "INSERT INTO attachments (host, conversation, tools) SELECT name, $3, $4 FROM hosts \
    WHERE name = $1 AND owner = $2 ON CONFLICT (conversation, host) DO UPDATE SET tools = excluded.tools RETURNING host";
const DETACH: &str = "DELETE FROM attachments WHERE host = $1 AND conversation = $2";
const OPEN: &str = "SELECT turns, bytes, suspensions FROM open_turns WHERE principal = $1";
const ALL_OPEN: &str = "SELECT coalesce(sum(turns), 0)::bigint AS turns, coalesce(sum(bytes), 0)::bigint AS bytes, \
    coalesce(sum(suspensions), 0)::bigint AS suspensions FROM open_turns";

/// This host among the others.
pub(super) struct Peer {
    pub(super) me: Me,
    pub(super) report: Arc<Report>,
    pub(super) members: watch::Receiver<Members>,
    pub(super) news: Mutex<mpsc::Receiver<News>>,
    /// For writes.
    pub(super) requests: Arc<Reads>,
}

fn running(row: &Row) -> Result<RunningHost, StoreFault> {
    Ok(RunningHost {
        name: column(row, "name")?,
        owner: OwnerId::from_bits(column::<Uuid>(row, "owner")?.as_u128()),
        version: column(row, "version")?,
        address: column(row, "address")?,
        config: column::<Option<&[u8]>>(row, "config")?.map(|_| rows::digest(row, "config")).transpose()?,
        plugins: live_plugins::read(row)?,
        since: rows::time(row, "since")?,
        renewed: rows::time(row, "renewed")?,
        running_calls: unsigned(column(row, "running")?),
        is_draining: column(row, "draining")?,
    })
}

#[async_trait]
impl Peers for super::PostgresStore {
    fn is_shared(&self) -> bool {
        true
    }

    fn share(&self) -> Share {
        if self.peer.report.is_draining.load(Ordering::Relaxed) {
            return Share::NONE;
        }
        self.peer.members.borrow().share
    }

    async fn news(&self) -> News {
        match self.peer.news.lock().await.recv().await {
            Some(news) => news,
            // The store takes no commits any more.
            None => std::future::pending().await,
        }
    }

    async fn ended_hosts(&self, owners: Vec<OwnerId>) -> Result<Vec<OwnerId>, StoreFault> {
        let asked: Vec<Uuid> = owners.iter().map(|owner| uuid(owner.bits())).collect();
        let alive = self.reads.run(|reader| async move { reader.query(ALIVE, &[&asked]).await }).await?;
        let alive = alive.iter().map(|row| column::<Uuid>(row, "owner")).collect::<Result<BTreeSet<_>, _>>()?;
        let me = self.peer.me.identity.owner;
        Ok(owners.into_iter().filter(|owner| *owner != me && !alive.contains(&uuid(owner.bits()))).collect())
    }

    async fn hosts(&self) -> Result<Vec<RunningHost>, StoreFault> {
        let version = self.peer.me.identity.version.clone();
        let read = |reader: Reader| async move { reader.query(HOSTS, &[&version, &KNOWN]).await };
        let rows = self.reads.run(read).await?;
        rows.iter().map(running).collect()
    }

    fn report(&self, running_calls: usize) {
        self.peer.report.running.store(running_calls as u64, Ordering::Relaxed);
    }

    fn report_plugins(&self, live: LivePlugins) {
        *self.peer.report.plugins.lock().unwrap_or_else(PoisonError::into_inner) = Some(live);
    }

    fn drain(&self) {
        self.peer.report.is_draining.store(true, Ordering::Relaxed);
    }

    async fn attached(&self, conversation: &ConversationId) -> Result<Vec<ToolName>, StoreFault> {
        let (conversation, me) = (conversation.to_string(), self.peer.me.name().to_owned());
        let read = move |reader: Reader| async move { reader.query(ATTACHED, &[&conversation, &me]).await };
        let mut found = BTreeSet::new();
        for row in &self.reads.run(read).await? {
            for tool in column::<Vec<&str>>(row, "tools")? {
                found.insert(ToolName::new(tool).map_err(|_| damaged("the name of a tool"))?);
            }
        }
        Ok(found.into_iter().collect())
    }

    async fn attach(&self, conversation: &ConversationId, tools: Vec<ToolName>) -> Result<(), StoreFault> {
        let (conversation, me) = (conversation.to_string(), self.peer.me.clone());
        let tools: Vec<String> = tools.iter().map(ToString::to_string).collect();
        let write = move |connection: Reader| async move {
            if tools.is_empty() {
                return connection.query(DETACH, &[&me.name(), &conversation]).await.map(|_| true);
            }
            let written = connection.first(ATTACH, &[&me.name(), &me.owner(), &conversation, &tools]).await;
            Ok(written?.is_some())
        };
        let is_alive = self.peer.requests.run(write).await?;
        if is_alive { Ok(()) } else { Err(fault("attach a client")("the lease of this host has ended")) }
    }

    async fn open_turns(&self, of: Option<&PrincipalId>) -> Result<Option<Footprint>, StoreFault> {
        let of = of.cloned();
        let read = move |reader: Reader| async move { reader.open_turns(of.as_ref()).await };
        self.reads.run(read).await.map(Some)
    }
}

impl Reader {
    /// The usage of the open turns of a principal, or of all principals.
    pub(super) async fn open_turns(&self, of: Option<&PrincipalId>) -> Result<Footprint, StoreFault> {
        let row = match of {
            None => self.first(ALL_OPEN, &[]).await?,
            Some(principal) => self.first(OPEN, &[&principal.as_str()]).await?,
        };
        row.map_or(Ok(Footprint::default()), |row| rows::read_footprint(&row))
    }
}
