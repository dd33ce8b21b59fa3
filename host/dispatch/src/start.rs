//! The first commit of a host: that it started, and what it grants.

use std::sync::Arc;

use domain::{OwnerId, event::HostStarted};

use crate::committer::Committer;
use crate::ports::{Audit, Clock, Head, Log, NewFacts, StoreFault};

/// The facts about a host that its start records.
pub struct Start {
    /// This run of the host.
    pub owner: OwnerId,
    /// The version of the program.
    pub version: &'static str,
    /// The grants of the configuration. Each is one grant of one plugin.
    pub grants: Vec<String>,
}

/// Records that a host starts, and how its grants differ from those of the host before it. This is the first commit of
/// a host. [`Dispatcher::start`](crate::Dispatcher::start) follows it.
///
/// # Errors
/// [`StoreFault`]; nothing is recorded.
pub async fn begin(log: Arc<dyn Log>, audit: &dyn Audit, clock: &dyn Clock, start: Start) -> Result<Head, StoreFault> {
    let before = audit.last_start().await?.map(|start| start.grants).unwrap_or_default();
    let without = |all: &[String], others: &[String]| -> Vec<String> {
        all.iter().filter(|grant| !others.contains(grant)).cloned().collect()
    };
    let Start { owner, version, grants } = start;
    let (added, removed) = (without(&grants, &before), without(&before, &grants));
    let at = clock.now();
    let started = HostStarted { owner, version: version.to_owned(), grants, added, removed, at };
    let recorded = Committer::without_host(log).record(NewFacts::Started(started)).await;
    recorded.map_err(|error| error.into_fault("record the start of a host"))?;
    audit.head().await
}
