//! The soak: many turns of every kind against the real host, with retention on. Afterwards nothing is left over in the
//! host, its memory, descriptors, threads and disk were flat after the first tenth, retention has removed the old turns, the
//! sums of a ledger in key-value data are right, and the audit and the newest signed checkpoint verify.

mod follow;
mod ledger;
mod pager;
mod turns;
mod vitals;

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;

use crate::guests::fixture;
use crate::host::{Host, Setup};
use follow::Followers;
use ledger::Ledger;
use turns::{Clients, Worker};
pub use vitals::{Flatness, Vitals, flatness};

/// The size of the ended turns that retention keeps: a few hundred turns of the mix.
const KEPT_BYTES: u64 = 4 << 20;

/// The database's cache. A long soak fills it in its first tenth, so that it does not hide a leak afterwards.
const CACHE_BYTES: u64 = 16 << 20;

/// The principals that submit.
const CALLERS: usize = 4;

/// Turns that run at once. The callers share them.
const WORKERS: usize = 8;

/// The number of samples of the host's vitals.
const SAMPLES: u64 = 200;

/// Turns whose removal is checked at the end.
const PROBES: u64 = 64;

/// The fewest turns that show something: retention must have removed half of them.
pub const MIN_TURNS: u64 = 1_000;

/// Only a host that hangs ends no turn for so long.
const PATIENCE: Duration = Duration::from_secs(120);

/// A soak takes at most so long for each turn, and `PATIENCE` for all the rest.
const PER_TURN: Duration = Duration::from_millis(200);

/// A soak to run.
#[derive(Clone, Copy)]
pub struct Plan {
    /// The number of turns.
    pub turns: u64,
    /// The seed of the mix. Threads interleave differently each time.
    pub seed: u64,
    /// Receives a line of progress for each tenth.
    pub say: fn(&str),
}

/// The result of a soak that found no error.
pub struct Report {
    /// The time without the start and the checks at the end.
    pub took: Duration,
    /// Each vital sign after the first tenth and in the last.
    pub rows: Vec<Flatness>,
    /// The turns of each kind.
    pub kinds: Vec<(&'static str, u64)>,
    /// The line of `toolgate audit verify`.
    pub verified: String,
}

/// The state that the workers share.
struct Shared {
    plan: Plan,
    next: AtomicU64,
    stop: AtomicBool,
    ended: Sender<()>,
    /// The numbers and paths of some turns, to look for at the end.
    probes: Mutex<Vec<(u64, String)>>,
}

/// Runs it.
///
/// # Errors
/// When the soak is too short, does not end, or something is left over in the host.
///
/// # Panics
/// When a turn does not end as it must.
pub fn run(plan: Plan) -> Result<Report> {
    ensure!(plan.turns >= MIN_TURNS, "a soak has at least {MIN_TURNS} turns");
    let mut host = host()?;
    let followers = Followers::start(&host);
    let ledger = Arc::new(Ledger::open(&host, plan.turns));
    let (ended, progress) = mpsc::channel();
    let shared = Arc::new(Shared {
        plan,
        next: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        ended,
        probes: Mutex::default(),
    });
    let callers = Clients::of(&host, CALLERS);
    let begun = now();
    let workers = (0..WORKERS).map(|number| {
        let (clients, shared, ledger) = (callers[number % CALLERS].clone(), shared.clone(), ledger.clone());
        thread::spawn(move || {
            let _stop = StopOnPanic(&shared);
            work(Worker::new(clients, number, shared.plan.seed, ledger), &shared)
        })
    });
    let workers: Vec<_> = workers.collect();
    let samples = watch(&host, &shared, &progress, begun);
    shared.stop.store(true, Ordering::Relaxed);
    let took = begun.elapsed();
    let mut kinds = turns::kinds();
    // All of them end before an error ends the host.
    let ends: Vec<_> = workers.into_iter().map(thread::JoinHandle::join).collect();
    for end in ends {
        let Ok(done) = end else { bail!("a turn did not end as it must; the panic above says how") };
        kinds.iter_mut().zip(done).for_each(|((_, total), count)| *total += count);
    }
    let mut rows = flatness(&samples?);

    followers.let_go();
    idle(&host)?;
    ledger.check(&host)?;
    removed(&host, &shared)?;
    let checkpoint = host.cli(None, &["audit", "checkpoint"]);
    ensure!(checkpoint.code == 0, "there is no signed checkpoint: {checkpoint:?}");
    fs::write(host.folder().join("checkpoint.json"), checkpoint.out)?;
    host.kill();
    followers.join();
    rows.push(vitals::contents(&host.data(), KEPT_BYTES, plan.turns)?);
    let verified = host.cli(None, &["audit", "verify", "--checkpoint", "checkpoint.json"]);
    ensure!(verified.code == 0, "the audit does not verify: {verified:?}");
    Ok(Report { took, rows, kinds, verified: verified.out.trim().to_owned() })
}

/// A host with the tools of the mix, and with retention that always has something to do.
fn host() -> Result<Host> {
    let tools = json!([
        {"name": "brief", "approval": "requires-approval", "options": {"expires_ms": 20}},
        {"name": "paged", "approval": "requires-approval"},
    ]);
    let retention = format!("[retention]\nturns_bytes = {KEPT_BYTES}\nturns_bytes_minutes = 0\ninterval_ms = 500");
    let pager = pager::start()?;
    let webhook = format!(
        "[[webhook]]\nname = \"pager\"\nurl = \"http://{pager}/\"\nsecret_file = \"{}\"\nprivate = true\ntools = \"paged\"",
        pager::SECRET_FILE
    );
    let rule = format!(
        "[[policy]]\nname = \"delegated\"\ntools = \"gated_echo\"\nrule = \"ask\"\nneeds = [{{ who = [\"principal:alice\"] }}]\n\
         arguments = [{{ pointer = \"/value\", equals = \"{}\" }}]",
        turns::DELEGATED
    );
    let setup = Setup::with(&["lab", "textkit", "ask", "browser", "ledger", "rollout"])
        .component("brief", fixture(&tools))
        .settings(&format!("database_cache_bytes = {CACHE_BYTES}"))
        .tables(&retention)
        // A soak submits as fast as it can.
        .tables("[quota]\nturns_per_second = 1_000_000\nbytes_per_second = 10_000_000_000")
        .tables(&webhook)
        .tables(&rule);
    let mut host = setup.prepare();
    fs::write(host.folder().join(pager::SECRET_FILE), pager::SECRET)?;
    host.start();
    Ok(host)
}

/// One of the threads that submit. Returns the number of turns of each kind.
fn work(mut worker: Worker, shared: &Shared) -> Vec<u64> {
    let mut done = vec![0; turns::kinds().len()];
    let stride = (shared.plan.turns / PROBES).max(1);
    while !shared.stop.load(Ordering::Relaxed) {
        let turn = shared.next.fetch_add(1, Ordering::Relaxed);
        if turn >= shared.plan.turns {
            break;
        }
        let (kind, path) = worker.turn(turn);
        done[kind] += 1;
        if let (Some(path), 0) = (path, turn % stride) {
            shared.probes.lock().expect("no worker panics here").push((turn, path));
        }
        // The watching thread may have given up.
        let _ = shared.ended.send(());
    }
    done
}

/// Takes samples until all turns have ended.
fn watch(host: &Host, shared: &Shared, progress: &Receiver<()>, begun: Instant) -> Result<Vec<Vitals>> {
    let turns = shared.plan.turns;
    let limit = PER_TURN.saturating_mul(u32::try_from(turns).unwrap_or(u32::MAX)).saturating_add(PATIENCE);
    let mut samples = Vec::new();
    for ended in 1..=turns {
        let waited = progress.recv_timeout(PATIENCE);
        waited.with_context(|| format!("no turn ended for {PATIENCE:?}, after {ended} turns"))?;
        ensure!(!shared.stop.load(Ordering::Relaxed), "a turn failed after {ended} turns");
        let took = begun.elapsed();
        ensure!(took < limit, "{ended} turns took {took:?}, and {turns} may take {limit:?}");
        if ended % (turns / SAMPLES).max(1) == 0 {
            samples.push(Vitals::of(host.process(), &host.data(), ended).context("sampling the host")?);
        }
        if let (0, Some(last)) = (ended % (turns / 10), samples.last()) {
            let rate = u128::from(ended) * 1000 / took.as_millis().max(1);
            (shared.plan.say)(&format!("{:>3} %  {ended} turns, {rate} turns/s, {last}", ended * 100 / turns));
        }
    }
    Ok(samples)
}

/// Checks that nothing of the turns is left in the host's memory. Cancelled guests may take a moment to end.
fn idle(host: &Host) -> Result<()> {
    const GAUGES: [&str; 6] = [
        "toolgate_turns_in_memory",
        "toolgate_open_turns",
        "toolgate_open_turn_bytes",
        "toolgate_pending_suspensions",
        "toolgate_running_calls",
        "toolgate_waiting_calls",
    ];
    let begun = now();
    loop {
        let metrics = host.admin.get("/metrics").text;
        let is_zero = |name: &&str| metrics.lines().any(|line| line == format!("{name} 0"));
        let busy: Vec<_> = GAUGES.iter().filter(|name| !is_zero(name)).collect();
        if busy.is_empty() {
            return Ok(());
        }
        let lines: Vec<_> = metrics.lines().filter(|line| busy.iter().any(|name| line.starts_with(**name))).collect();
        ensure!(begun.elapsed() < PATIENCE, "all turns have ended, but the host counts {lines:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Checks that retention removed the turns of the first half.
fn removed(host: &Host, shared: &Shared) -> Result<()> {
    let probes = shared.probes.lock().expect("no worker panicked");
    let old: Vec<_> = probes.iter().filter(|(turn, _)| *turn < shared.plan.turns / 2).collect();
    ensure!(old.len() as u64 > PROBES / 8, "only {} turns can be looked for", old.len());
    for (turn, path) in old {
        let answer = host.admin.get(path);
        ensure!(answer.status == 410, "retention kept turn {turn}: {} {}", answer.status, answer.text);
        answer.problem(410, "removed");
    }
    Ok(())
}

/// Stops the other workers when one panics.
struct StopOnPanic<'a>(&'a Shared);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop.store(true, Ordering::Relaxed);
            // Wakes the watching thread, which may have given up.
            let _ = self.0.ended.send(());
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a soak has a time limit and reports its rate")]
fn now() -> Instant {
    Instant::now()
}
