//! The environment in which the kit runs guests: its clocks, randomness and buckets are the same for each run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use capabilities::journal::Recording;
use capabilities::keyvalue::{MemoryBuckets, Service};
use capabilities::{Grants, Services};
use domain::journal::JournalBounds;
use domain::step::{Durable, RunEnd, Step};
use domain::{Json, Limits, Outcome, PluginName, Span, Timestamp, call::Level};
use sandbox::{GuestClock, GuestEnd, Job, Plugin, Random, RunUsage, Sink, Update};
use serde_json::Value;

use crate::journal::MemoryJournal;
use crate::{TestedComponent, steps};

/// The environment of a guest. All of it comes from the kit, and nothing is sent anywhere.
#[derive(Debug, Clone, Default)]
pub struct Surroundings(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    buckets: Arc<MemoryBuckets>,
    /// Reads of the clocks since the call began.
    reads: AtomicU64,
    /// The position in the sequence of random numbers.
    seed: AtomicU64,
}

/// A plugin's stored data, by bucket and key.
pub(crate) type Entries = BTreeMap<(String, String), Vec<u8>>;

impl Surroundings {
    /// Sandbox settings with these surroundings.
    #[must_use]
    pub fn around(&self, settings: sandbox::SandboxSettings) -> sandbox::SandboxSettings {
        sandbox::SandboxSettings {
            services: Services { keyvalue: Service::over(self.0.buckets.clone()), ..Services::default() },
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

/// The wall clock at the start of each call: 2026-01-01T00:00:00Z.
const BEGIN: Duration = Duration::from_secs(1_767_225_600);

/// Each read advances the clock by a microsecond, so that a loop that polls the clock ends.
impl GuestClock for Surroundings {
    fn wall(&self) -> Duration {
        BEGIN + self.monotonic()
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.0.reads.fetch_add(1, Ordering::Relaxed))
    }
}

/// Pseudo-random numbers that are the same for each call (splitmix64).
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

/// The reports of one call.
#[derive(Default)]
struct Heard {
    /// Whether the call is asked to stop from the start.
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

/// The result of a call.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    pub(crate) spent: Option<RunUsage>,
    pub(crate) updates: Vec<Update>,
    pub(crate) lines: Vec<String>,
    /// Why the kit ended a call that waited.
    pub(crate) cut_off: Option<CutOff>,
    /// The number of answers that the call did not ask for.
    pub(crate) unasked: usize,
}

/// Why the kit ended a call that waited.
#[derive(Debug)]
pub(crate) enum CutOff {
    /// It waited too often, or its runs took too long together.
    Bound(String),
    /// No host accepts the next answer of the example.
    Answer(String),
}

/// Runs one plugin, each time independently.
pub(crate) struct World<'a> {
    plugin: &'a Plugin,
    around: &'a Surroundings,
    grants: Arc<Grants>,
    pub(crate) limits: Limits,
    homes: AtomicU64,
    calls: AtomicU64,
}

/// The storage of a plugin. Calls with the same home see each other's data.
#[derive(Debug, Clone)]
pub(crate) struct Home(PluginName);

/// The tool to call, its declared time limit, whether it may wait, and the answers to its questions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) name: &'a str,
    pub(crate) time: Option<Span>,
    pub(crate) durable: bool,
    /// As an example has them. Nobody answers more questions.
    pub(crate) answers: &'a [Value],
}

/// The maximum number of waits of a durable call. A tool that asks again after each expiry ends here.
const MAX_WAITS: usize = 100;

/// The maximum time of all runs of a call. It also bounds larger limits of the operator, so that the report does not take too
/// long.
const MAX_TIME: Span = Span::from_secs(10);

impl<'a> World<'a> {
    pub(crate) fn new(plugin: &'a Plugin, subject: &TestedComponent<'_>, around: &'a Surroundings) -> Self {
        let mut limits = subject.settings.limits(subject.name);
        limits.time = limits.time.min(MAX_TIME);
        Self {
            plugin,
            around,
            grants: subject.settings.grants(subject.name),
            limits,
            homes: AtomicU64::new(0),
            calls: AtomicU64::new(0),
        }
    }

    /// The number of calls so far, including the current one.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// A new, empty home.
    pub(crate) fn home(&self) -> Home {
        let n = self.homes.fetch_add(1, Ordering::Relaxed);
        #[expect(clippy::unwrap_used, reason = "it is a name")]
        Home(PluginName::new(&format!("home-{n}")).unwrap())
    }

    /// The data in a home.
    pub(crate) fn kept(&self, home: &Home) -> Entries {
        self.around.0.buckets.entries(&home.0)
    }

    /// Runs a call. Collects progress even if the tool does not declare any.
    pub(crate) async fn run(&self, home: &Home, tool: Asked<'_>, arguments: &Json, attempt: u32) -> Ran {
        self.heard(home, tool, arguments, attempt, Heard::default()).await
    }

    /// Runs a call that is asked to stop from the start.
    pub(crate) async fn run_unwanted(&self, tool: Asked<'_>, arguments: &Json) -> Ran {
        self.heard(&self.home(), tool, arguments, 1, Heard { stop: true, ..Heard::default() }).await
    }

    async fn heard(&self, home: &Home, tool: Asked<'_>, arguments: &Json, attempt: u32, heard: Heard) -> Ran {
        self.around.begin();
        self.calls.fetch_add(1, Ordering::Relaxed);
        let heard = Arc::new(heard);
        let mut job = Job {
            plugin: home.0.clone(),
            grants: self.grants.clone(),
            call_id: "call_conform".into(),
            tool: tool.name.into(),
            arguments: arguments.clone(),
            idempotency_key: "conform-1".into(),
            attempt,
            scope: Json::unchecked(r#"{"conversation":"conform","turn":"turn_conform","caller":"conform"}"#),
            streaming: true,
            durable: None,
            recording: None,
        };
        let time = tool.time.map_or(self.limits.time, |time| time.min(self.limits.time));
        let (end, cut_off, unasked) = self.to_its_end(&mut job, tool, Limits { time, ..self.limits }, &heard).await;
        let updates = std::mem::take(&mut *heard.updates.lock().unwrap_or_else(PoisonError::into_inner));
        let lines = std::mem::take(&mut *heard.lines.lock().unwrap_or_else(PoisonError::into_inner));
        Ran { outcome: end.ended.last(), spent: end.spent, updates, lines, cut_off, unasked }
    }

    /// Runs a call until it waits no more. Its sleeps end at once. Also returns why it ended if it waits still, and the number
    /// of answers that are left.
    async fn to_its_end(
        &self,
        job: &mut Job,
        tool: Asked<'_>,
        limits: Limits,
        heard: &Arc<Heard>,
    ) -> (GuestEnd, Option<CutOff>, usize) {
        let started_at = Timestamp::from_millis(BEGIN.as_millis().try_into().unwrap_or(u64::MAX));
        let (mut steps, mut answers) = (Vec::<Step>::new(), tool.answers.iter());
        let (journal, mut left) = (Arc::<MemoryJournal>::default(), Duration::from_millis(MAX_TIME.millis()));
        let recording = || Recording { writer: journal.clone(), bounds: JournalBounds::default() };
        job.recording = tool.durable.then(recording);
        loop {
            let durable = || Durable {
                started_at,
                steps: steps.as_slice().into(),
                journal: journal.entries(),
                decided: [].into(),
            };
            job.durable = tool.durable.then(durable);
            let time = Span::from_millis(left.as_millis().try_into().unwrap_or(u64::MAX));
            let limits = Limits { time: limits.time.min(time), ..limits };
            let end = self.plugin.run(job, &limits, heard.clone()).await;
            let RunEnd::Waits(request) = &end.ended else { return (end, None, answers.len()) };
            left = left.saturating_sub(end.spent.map(|spent| spent.time).unwrap_or_default());
            let next = if steps.len() == MAX_WAITS {
                Err(CutOff::Bound(format!("it waited more than {MAX_WAITS} times")))
            } else if left.as_millis() == 0 {
                Err(CutOff::Bound(format!("its runs took more than {} ms together", MAX_TIME.millis())))
            } else {
                let before = steps.last().map_or(started_at, |step| step.ended_at);
                steps::ended(request, &mut answers, before).map_err(CutOff::Answer)
            };
            match next {
                Ok(step) => steps.push(step),
                Err(cut_off) => return (end, Some(cut_off), answers.len()),
            }
            self.around.begin();
        }
    }
}
