//! Where the kit runs guests: clocks, randomness and buckets that are the same each time, and a count of what was kept.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use capabilities::Grants;
use capabilities::keyvalue::MemoryBuckets;
use domain::{Json, Limits, Outcome, PluginName, Span};
use sandbox::{Clock, Job, Level, Plugin, Random, Sink, Spent, Update};

use crate::Subject;

/// What a guest reads of the world outside: all of it is the kit's. Nothing is sent anywhere.
#[derive(Debug, Clone, Default)]
pub struct Surroundings(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    buckets: Arc<MemoryBuckets>,
    /// Reads of the clocks since the call began.
    reads: AtomicU64,
    /// Where the sequence of random numbers is.
    seed: AtomicU64,
}

/// What a plugin keeps: by bucket and key.
pub(crate) type Entries = BTreeMap<(String, String), Vec<u8>>;

impl Surroundings {
    /// The settings of a sandbox, with these surroundings.
    #[must_use]
    pub fn around(&self, settings: sandbox::SandboxSettings) -> sandbox::SandboxSettings {
        sandbox::SandboxSettings {
            keyvalue: Some(self.0.buckets.clone()),
            http: None,
            clock: Arc::new(self.clone()),
            random: Arc::new(self.clone()),
            ..settings
        }
    }

    fn begin(&self) {
        self.0.reads.store(0, Ordering::Relaxed);
        self.0.seed.store(0, Ordering::Relaxed);
    }
}

/// 2026-01-01T00:00:00Z.
const BEGIN: Duration = Duration::from_secs(1_767_225_600);

/// Each read advances the clock by a microsecond, so that a loop that waits for it ends.
impl Clock for Surroundings {
    fn wall(&self) -> Duration {
        BEGIN + self.monotonic()
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.0.reads.fetch_add(1, Ordering::Relaxed))
    }
}

/// Numbers that look random and are the same for each call (the sequence of splitmix64).
impl Random for Surroundings {
    fn fill(&self, buffer: &mut [u8]) -> std::io::Result<()> {
        for chunk in buffer.chunks_mut(8) {
            let mut z = self.0.seed.fetch_add(1, Ordering::Relaxed).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

/// What a call reported.
#[derive(Default)]
struct Heard {
    /// Whether it is asked to stop, from its first step.
    stop: bool,
    updates: Mutex<Vec<Update>>,
    lines: Mutex<Vec<String>>,
}

impl Sink for Heard {
    fn progress(&self, update: Update) {
        self.updates.lock().unwrap_or_else(PoisonError::into_inner).push(update);
    }

    fn log(&self, level: Level, line: &str) {
        let line = format!("{}: {line}", level.as_str());
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    fn stop_requested(&self) -> bool {
        self.stop
    }
}

/// How a call went.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    pub(crate) spent: Option<Spent>,
    pub(crate) updates: Vec<Update>,
    pub(crate) lines: Vec<String>,
}

/// One plugin, and runs of it that know nothing of each other.
pub(crate) struct World<'a> {
    plugin: &'a Plugin,
    around: &'a Surroundings,
    grants: Arc<Grants>,
    pub(crate) limits: Limits,
    homes: AtomicU64,
    calls: AtomicU64,
}

/// Where a plugin keeps what it keeps. Calls in the same home find what the others left.
#[derive(Debug, Clone)]
pub(crate) struct Home(PluginName);

/// A tool that is asked for, and how long it says that it takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) name: &'a str,
    pub(crate) time: Option<Span>,
}

/// The longest run. The operator's limit does not count here: a report must not take longer.
const MOST: Span = Span::from_secs(10);

impl<'a> World<'a> {
    pub(crate) fn new(plugin: &'a Plugin, subject: &Subject<'_>, around: &'a Surroundings) -> Self {
        let mut limits = subject.settings.limits(subject.name);
        limits.time = limits.time.min(MOST);
        Self {
            plugin,
            around,
            grants: subject.settings.grants(subject.name),
            limits,
            homes: AtomicU64::new(0),
            calls: AtomicU64::new(0),
        }
    }

    /// How many calls it carried out, or began to.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// A home in which nothing was kept yet.
    pub(crate) fn home(&self) -> Home {
        let n = self.homes.fetch_add(1, Ordering::Relaxed);
        let fallback = || PluginName::new("home");
        #[expect(clippy::unwrap_used, reason = "both are names")]
        Home(PluginName::new(&format!("home-{n}")).or_else(|_| fallback()).unwrap())
    }

    /// What is kept in a home.
    pub(crate) fn kept(&self, home: &Home) -> Entries {
        self.around.0.buckets.entries(&home.0)
    }

    /// Carries out a call. Progress is heard whether the tool is declared to report it or not.
    pub(crate) async fn run(&self, home: &Home, tool: Asked<'_>, arguments: &Json, attempt: u32) -> Ran {
        self.heard(home, tool, arguments, attempt, Heard::default()).await
    }

    /// Likewise, for a call that is asked to stop from its first step.
    pub(crate) async fn run_unwanted(&self, tool: Asked<'_>, arguments: &Json) -> Ran {
        self.heard(&self.home(), tool, arguments, 1, Heard { stop: true, ..Heard::default() }).await
    }

    async fn heard(&self, home: &Home, tool: Asked<'_>, arguments: &Json, attempt: u32, heard: Heard) -> Ran {
        self.around.begin();
        self.calls.fetch_add(1, Ordering::Relaxed);
        let heard = Arc::new(heard);
        let job = Job {
            plugin: home.0.clone(),
            grants: self.grants.clone(),
            call_id: "call_conform".into(),
            tool: tool.name.into(),
            arguments: arguments.clone(),
            idempotency_key: "conform-1".into(),
            attempt,
            scope: Json::new(r#"{"conversation":"conform","turn":"turn_conform","caller":"conform"}"#),
            streaming: true,
        };
        let time = tool.time.map_or(self.limits.time, |time| time.min(self.limits.time));
        let end = self.plugin.run(&job, &Limits { time, ..self.limits }, heard.clone()).await;
        let updates = std::mem::take(&mut *heard.updates.lock().unwrap_or_else(PoisonError::into_inner));
        let lines = std::mem::take(&mut *heard.lines.lock().unwrap_or_else(PoisonError::into_inner));
        Ran { outcome: end.outcome, spent: end.spent, updates, lines }
    }
}
