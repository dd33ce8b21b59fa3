//! The first commit of a host: that it started, and what it grants.

use std::sync::Arc;

use domain::{OwnerId, event::HostStarted};

use crate::committer::Committer;
use crate::ports::{Clock, Head, NewFacts, Store, StoreFault};

/// What a host records about itself when it starts.
pub struct Start {
    /// This run of the host.
    pub owner: OwnerId,
    /// The version of the program.
    pub version: &'static str,
    /// What the configuration grants, one grant of one plugin each.
    pub grants: Vec<String>,
}

/// Records that a host starts, and how its grants differ from those of the host before it. This comes before all other
/// commits of the host, so nothing observes it yet.
///
/// # Errors
/// [`StoreFault`]; nothing is recorded.
pub async fn begin(store: Arc<dyn Store>, clock: &dyn Clock, start: Start) -> Result<Head, StoreFault> {
    let before = store.last_start().await?.map(|start| start.grants).unwrap_or_default();
    let without = |all: &[String], others: &[String]| -> Vec<String> {
        all.iter().filter(|grant| !others.contains(grant)).cloned().collect()
    };
    let Start { owner, version, grants } = start;
    let (added, removed) = (without(&grants, &before), without(&before, &grants));
    let at = clock.now();
    let started = HostStarted { owner, version: version.to_owned(), grants, added, removed, at };
    let committer = Committer::new(store.clone(), Vec::new(), Vec::new());
    let recorded = committer.record(NewFacts::Started(started)).await;
    recorded.map_err(|error| error.into_fault("record the start of a host"))?;
    store.head().await
}
