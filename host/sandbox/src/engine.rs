//! The engine: one configuration for every guest, and the thread that advances its epoch.
//!
//! `docs/performance.md` has the measurements behind each choice. Compiled code is deterministic except for its imports, so
//! that calls can be replayed from a journal later. A change of such a setting needs a new [`CONFIGURATION`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::Context as _;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, WasmBacktraceDetails};

use crate::{clock, features};

/// Part of the cache's key. Increase it when code of an older configuration may not run any more.
pub(crate) const CONFIGURATION: u32 = 2;

/// Bytes of stack for a guest's own frames.
pub(crate) const WASM_STACK: usize = 512 << 10;

/// The maximum number of each part of one component. The engine loads no component with more. The limits of a call may allow less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComponentParts {
    pub core_instances: u32,
    /// Linear memories. Almost every toolchain makes one; composed components have one for each part.
    pub memories: u32,
    pub tables: u32,
}

impl ComponentParts {
    /// The largest values that an operator can set.
    pub const MAX: Self = Self { core_instances: 1_000, memories: 100, tables: 100 };
}

impl Default for ComponentParts {
    fn default() -> Self {
        Self { core_instances: 64, memories: 4, tables: 8 }
    }
}

/// Elements of one table.
const ELEMENTS_PER_TABLE: usize = 100_000;

/// Bytes of a linear memory that stay in the process for the next instance. Without them each call asks the kernel for its
/// pages again.
const KEPT_BYTES: usize = 2 << 20;

/// Unused memories that keep such bytes for their own component, so that new ones use fresh memories. Beyond this number
/// the next component uses the memory that has waited longest. Components that are loaded and refused one after the other,
/// with 2 MiB each, so leave 64 MiB and not 200.
const KEPT_MEMORIES: u32 = 32;

/// The configuration of the engine for `pool` instances at once, each of at most these parts.
///
/// It is public so that a benchmark can compare bare wasmtime with the same settings.
#[must_use]
pub fn engine_config(pool: u32, parts: ComponentParts) -> Config {
    let mut config = code_config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pooling(pool, parts)));
    config
}

/// The part of the configuration on which compiled code depends. It does not read the environment, because a compiler in
/// another process must use the same configuration.
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

/// An engine that only compiles: it has no pool.
pub(crate) fn compiler() -> anyhow::Result<Engine> {
    Engine::new(&code_config()).map_err(|error| anyhow::anyhow!("{error:#}"))
}

/// Disables `pagemap_scan` explicitly: wasmtime 48.0.8 does not reset dirty pages that were swapped out, so a guest could
/// read data of an earlier guest (wasmtime pull request 14357).
fn pooling(pool: u32, parts: ComponentParts) -> PoolingAllocationConfig {
    let mut pooling = PoolingAllocationConfig::new();
    pooling
        .total_component_instances(pool)
        .total_stacks(pool)
        // Counted and not reserved, so it only has to exceed the limit of a call.
        .total_core_instances(pool.saturating_mul(parts.core_instances))
        .total_memories(pool.saturating_mul(2))
        .total_tables(pool.saturating_mul(4))
        .max_memories_per_component(parts.memories)
        .max_tables_per_component(parts.tables)
        .max_core_instances_per_component(parts.core_instances)
        .table_elements(ELEMENTS_PER_TABLE)
        .max_unused_warm_slots(KEPT_MEMORIES)
        .linear_memory_keep_resident(KEPT_BYTES)
        .table_keep_resident(64 << 10)
        .pagemap_scan(Enabled::No);
    pooling
}

/// Makes the engine and reserves its pool.
pub(crate) fn engine(pool: u32, parts: ComponentParts) -> anyhow::Result<Engine> {
    Engine::new(&engine_config(pool, parts)).map_err(|error| anyhow::anyhow!("{error:#}")).with_context(|| {
        format!(
            "could not reserve address space for {pool} instances (about 9 GiB each, none of it memory): lower the pool, \
             or raise the limit of this process (`ulimit -v`)"
        )
    })
}

/// Advances the epoch once a millisecond. At each tick a guest that computes yields to others, or ends if its time is over.
///
/// It has its own thread, because the ticks matter most when every worker of the runtime is busy.
pub(crate) struct Ticker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// `is_idle` tells whether no guest runs.
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
            // The thread does not panic, and nothing depends on its result.
            let _ = thread.join();
        }
    }
}

/// A runtime for guests only, so that a guest that computes never delays the server, the clock or the committing thread.
///
/// A worker checks its timers and the shared queue after every poll: a guest's poll takes up to one tick, and with the
/// default intervals (61 and 31 polls) eight computing guests delay a timer by half a second.
///
/// # Errors
/// If the threads cannot be started.
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

    /// As when components are loaded and refused one after the other.
    #[test]
    fn unused_memories_of_many_components_are_bounded() {
        let engine = engine(64, ComponentParts::default()).expect("an engine");
        for n in 0..40 {
            let text = format!("(module (memory 32) (data (i32.const 0) \"{n}\"))");
            let module = wasmtime::Module::new(&engine, wat::parse_str(text).expect("a module")).expect("it compiles");
            let mut store = wasmtime::Store::new(&engine, ());
            wasmtime::Instance::new(&mut store, &module, &[]).expect("an instance");
        }
        let unused = engine.pooling_allocator_metrics().expect("a pool").unused_warm_memories();
        assert!((1..=KEPT_MEMORIES).contains(&unused), "{unused} memories");
    }

    #[test]
    fn engine_accepts_the_compilers_code() {
        let (compiles, runs) =
            (compiler().expect("an engine"), engine(1, ComponentParts::default()).expect("an engine"));
        assert_eq!(fingerprint(&compiles), fingerprint(&runs));
    }
}
