//! The first commit of a host: that it started, and what it grants.

use domain::{HostStarted, OwnerId};

use crate::ports::{Clock, Head, Store, StoreFault};

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
/// commits of the host, so before there is a handle.
///
/// # Errors
/// [`StoreFault`]; nothing is recorded.
pub async fn begin(store: &dyn Store, clock: &dyn Clock, start: Start) -> Result<Head, StoreFault> {
    let before = store.last_start().await?.map(|start| start.grants).unwrap_or_default();
    let without = |all: &[String], others: &[String]| -> Vec<String> {
        all.iter().filter(|grant| !others.contains(grant)).cloned().collect()
    };
    let Start { owner, version, grants } = start;
    let (added, removed) = (without(&grants, &before), without(&before, &grants));
    let at = clock.now();
    store.started(HostStarted { owner, version: version.to_owned(), grants, added, removed, at }).await?;
    store.head().await
}
