//! The engine: one configuration for every guest, and the thread that advances its epoch.
//!
//! The figures behind each choice are in `docs/performance.md`. What is compiled is deterministic apart from its
//! imports, because a later stage replays calls from a journal: changing one of those settings is changing
//! [`CONFIGURATION`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::Context as _;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, WasmBacktraceDetails};

use crate::{clock, features};

/// Counted up whenever code compiled under an older configuration may no longer be used; part of the cache's key.
pub(crate) const CONFIGURATION: u32 = 2;

/// What the stack of a guest's own frames may take.
pub(crate) const WASM_STACK: usize = 512 << 10;

/// Linear memories of one component. Almost every toolchain makes one; composed components have one for each part.
const MEMORIES_PER_COMPONENT: u32 = 4;

/// Tables of one component.
const TABLES_PER_COMPONENT: u32 = 8;

/// Core instances of one component that can be loaded at all; how many a call may have is one of its limits.
const INSTANCES_PER_COMPONENT: u32 = 64;

/// Elements of one table.
const ELEMENTS_PER_TABLE: usize = 100_000;

/// The configuration of the engine, with room for `pool` instances at once.
///
/// Public so that a benchmark can compare with bare wasmtime under the very same settings.
#[must_use]
pub fn engine_config(pool: u32) -> Config {
    let mut config = code_config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pooling(pool)));
    config
}

/// The part of the configuration that compiled code depends on. The environment has no say in it: the compiler may be a
/// process of its own, and both must come to the same.
fn code_config() -> Config {
    let mut config = Config::new();
    features::decide(&mut config);
    config
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .concurrency_support(false)
        .epoch_interruption(true)
        .consume_fuel(false)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(1 << 20)
        .memory_init_cow(true)
        .cranelift_nan_canonicalization(true);
    config
}

/// An engine that compiles for the others and runs nothing: it has no pool.
pub(crate) fn compiler() -> anyhow::Result<Engine> {
    Engine::new(&code_config()).map_err(|error| anyhow::anyhow!("{error:#}"))
}

/// `pagemap_scan` stays off and is said so: wasmtime 48.0.8 does not reset dirty pages that were swapped out, so a guest
/// could read what its predecessor left (wasmtime pull request 14357).
fn pooling(pool: u32) -> PoolingAllocationConfig {
    let mut pooling = PoolingAllocationConfig::new();
    pooling
        .total_component_instances(pool)
        .total_stacks(pool)
        // Counted and not reserved, so the bound only has to be out of the way of a call's own limit.
        .total_core_instances(pool.saturating_mul(16))
        .total_memories(pool.saturating_mul(2))
        .total_tables(pool.saturating_mul(4))
        .max_memories_per_component(MEMORIES_PER_COMPONENT)
        .max_tables_per_component(TABLES_PER_COMPONENT)
        .max_core_instances_per_component(INSTANCES_PER_COMPONENT)
        .table_elements(ELEMENTS_PER_TABLE)
        .linear_memory_keep_resident(2 << 20)
        .table_keep_resident(64 << 10)
        .pagemap_scan(Enabled::No);
    pooling
}

/// Makes the engine and reserves its pool.
pub(crate) fn engine(pool: u32) -> anyhow::Result<Engine> {
    Engine::new(&engine_config(pool)).map_err(|error| anyhow::anyhow!("{error:#}")).with_context(|| {
        format!(
            "could not reserve address space for {pool} instances (about 9 GiB each, none of it memory): lower the pool, \
             or raise the limit of this process (`ulimit -v`)"
        )
    })
}

/// Advances the epoch once a millisecond, which is when a guest that computes is looked at: it yields to its neighbours,
/// or ends if its time is spent.
///
/// A thread of its own, because the tick must come most surely when every worker of the runtime is busy.
pub(crate) struct Ticker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts the thread. `is_idle` says whether no guest runs.
    pub(crate) fn start(engine: &Engine, is_idle: impl Fn() -> bool + Send + 'static) -> anyhow::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let engine = engine.clone();
        let stopped = Arc::clone(&stop);
        let tick = move || {
            while !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(if is_idle() { clock::IDLE_TICK } else { clock::TICK });
                engine.increment_epoch();
            }
        };
        let thread = std::thread::Builder::new()
            .name("toolgate-epoch".into())
            .spawn(tick)
            .context("could not start the thread that interrupts guests")?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It panics nowhere, and if it did there would be nothing left to do about it.
            let _ = thread.join();
        }
    }
}

/// A runtime for guests alone, so that one that computes never delays a door, the clock or the committing thread.
///
/// A worker looks at its timers and at the shared queue after every poll: a guest's poll lasts up to one tick, and with
/// the usual intervals (61 and 31 polls) eight spinning guests delay a timer by half a second.
///
/// # Errors
/// When the threads cannot be started.
pub fn guest_runtime(threads: usize) -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads.max(1))
        .thread_name("toolgate-guest")
        .event_interval(1)
        .global_queue_interval(1)
        .enable_time()
        .build()
}

#[cfg(test)]
mod tests {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};

    use super::*;

    fn fingerprint(engine: &Engine) -> u64 {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn what_the_compiler_makes_fits_the_engine_that_runs_it() {
        let (compiles, runs) = (compiler().expect("an engine"), engine(1).expect("an engine"));
        assert_eq!(fingerprint(&compiles), fingerprint(&runs));
    }
}
