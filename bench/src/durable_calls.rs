//! Durable calls: the cost of a journal, the time to continue a call after an answer, and 100,000 calls that wait in the middle of
//! their code.

mod guests;
mod host;
mod journaling;
mod resuming;
mod server;
mod waiting;

use anyhow::Result;

use crate::measure::progress;

/// How much is measured.
#[derive(Clone, Copy)]
struct Sizes {
    /// Interleaved measurements.
    rounds: usize,
    /// The calls of each.
    calls: usize,
    /// The calls that wait in the middle of their code, few and many.
    waiting: [usize; 2],
    /// The answers while they wait.
    answers: usize,
}

const FULL: Sizes = Sizes { rounds: 15, calls: 20, waiting: [1_000, 100_000], answers: 200 };

/// Enough to see that it works.
const SHORT: Sizes = Sizes { rounds: 2, calls: 2, waiting: [20, 40], answers: 5 };

pub(crate) fn durable_calls() -> Result<()> {
    let sizes = if crate::is_short() { SHORT } else { FULL };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build()?;
    let server = runtime.block_on(server::serve())?;
    progress("Rust: building bench/guests");
    let component = guests::build(guests::RUST, server)?;
    runtime.block_on(async {
        journaling::journaling(&component, server, sizes).await?;
        waiting::waiting(&component, server, sizes).await
    })?;
    resuming::resuming(&runtime, &component, server, sizes)
}
