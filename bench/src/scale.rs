//! Several hosts on one PostgreSQL database, each a process: durable turns per second against the rate of plain transactions with the
//! same rows, the time until another host takes a call over, and the time until a follower at another host sees a commit.

mod floor;
mod following;
mod hosts;
mod rates;
mod takeover;

#[path = "../../host/store/tests/laws/server.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "the tests start their servers with it")]
mod server;

use std::time::Duration;

use anyhow::{Context as _, Result};

use self::hosts::Cluster;

/// How much is measured.
#[derive(Clone, Copy)]
struct Sizes {
    window: Duration,
    /// The windows of each rate.
    rounds: usize,
    /// The commits that followers wait for.
    followed: usize,
    /// How often all hosts but one are killed.
    kills: usize,
    /// The calls that each of them runs then.
    calls: usize,
}

const FULL: Sizes = Sizes { window: Duration::from_secs(3), rounds: 3, followed: 300, kills: 3, calls: 8 };

/// Enough to see that it works.
const SHORT: Sizes = Sizes { window: Duration::from_millis(300), rounds: 1, followed: 5, kills: 1, calls: 2 };

/// The defaults of a server, which the tests change.
const OPTIONS: &str = "-c max_connections=100 -c shared_buffers=128MB";

pub(crate) fn scale() -> Result<()> {
    let sizes = if crate::is_short() { SHORT } else { FULL };
    // Not in memory: a commit waits for the disk.
    let server = server::started_in(&std::env::temp_dir(), OPTIONS, None).context("PostgreSQL does not start")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build()?;
    runtime.block_on(async {
        let floor = floor::Floor::new(&server).await?;
        let mut cluster = Cluster::new(&server, "turns").await?;
        rates::rates(&mut cluster, floor, sizes).await?;
        following::following(&cluster, sizes).await?;
        takeover::takeover(&mut cluster, sizes).await
    })
}
