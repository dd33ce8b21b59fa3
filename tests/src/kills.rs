//! Kills the real host at random moments, some of them during its start, with concurrent submissions and answers. On
//! demand retention removes turns meanwhile, plugins are loaded again, and the disk fills up before a kill.
//!
//! Money shows a lost or repeated effect: an approved transfer moves it exactly once, all others never.

mod disturbances;
mod drivers;
mod gate;
pub mod languages;
mod verdict;

use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::json;

use crate::host::{Host, Setup};
use crate::random::Random;
use disturbances::Disturbances;
use drivers::{Driver, Record};
use gate::Gate;
use verdict::Books;

const SUBMITTERS: u64 = 3;
const APPROVERS: [&str; 2] = ["ann", "bob"];
const CONVERSATION: &str = "crash";
const ACCOUNTS: u64 = 6;
const OPENED_WITH: u64 = 10_000_000;

/// Only a host that hangs stops all drivers for so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Kills of one host. After them, the next host begins with an empty folder.
const PER_HOST: u32 = 200;

/// The rounds after which each disturbance has happened.
const ENOUGH: u32 = 200;

/// The kills to carry out.
#[derive(Clone, Copy)]
pub struct Plan {
    /// The number of kills.
    pub rounds: u32,
    /// The seed of the moments and of the requests. Threads interleave differently each time.
    pub seed: u64,
    /// The rounds between two checks of the laws.
    pub checked_every: u32,
    /// Whether retention runs, plugins are loaded again and the disk fills up.
    pub disturbed: bool,
    /// Receives lines of progress.
    pub say: fn(&str),
}

/// Counts of things that happened.
#[derive(Debug, Default)]
pub struct Tally {
    pub kills: u32,
    /// Acknowledged turns.
    pub turns: usize,
    /// Acknowledged answers.
    pub answers: usize,
    /// Answers that came after another one.
    pub late: usize,
    /// Calls that ran again because of a kill.
    pub repeated: usize,
    /// Transfers that a full disk ended.
    pub failed: usize,
    /// Other components of a plugin that the host loaded, as its audit says.
    pub reloads: usize,
    /// Rounds with a full disk.
    pub full: usize,
    /// Requests that the host refused because of it.
    pub refused: usize,
    /// Turns that were read again after later kills, and those of them that retention had removed.
    pub reread: usize,
    pub removed: usize,
}

/// Carries them out. `store` gives the setting of an empty store for each host, or nothing for its data folder.
///
/// # Panics
/// When something acknowledged is lost, something happens twice, or the audit does not verify.
#[must_use]
pub fn run(plan: Plan, store: &dyn Fn() -> String) -> Tally {
    let mut tally = Tally::default();
    while tally.kills < plan.rounds {
        let rounds = PER_HOST.min(plan.rounds - tally.kills);
        let seed = plan.seed.wrapping_add(tally.kills.into());
        one_host(Plan { rounds, seed, ..plan }, &store(), &mut tally);
    }
    if plan.disturbed && plan.rounds >= ENOUGH {
        tally.was_disturbed();
    }
    tally
}

impl Tally {
    /// Checks that the disturbances reached the host.
    fn was_disturbed(&self) {
        let Self { reloads, full, refused, removed, .. } = *self;
        for (what, count) in [("reloads", reloads), ("full disks", full), ("refusals", refused), ("removals", removed)]
        {
            assert!(count > 0, "no {what} in {} rounds: {self:?}", self.kills);
        }
    }
}

fn one_host(plan: Plan, store: &str, tally: &mut Tally) {
    let mut host = host(plan.disturbed, store);
    for account in 0..ACCOUNTS {
        let arguments = json!({"account": format!("a{account}"), "opening_balance": OPENED_WITH});
        let opened = host.agent.call(CONVERSATION, "ledger_open", arguments);
        assert_eq!(opened["calls"][0]["outcome"], "ok", "{opened:#}");
    }
    let (drivers, field, progress) = drivers(&host, plan.seed);
    let (mut random, mut books) = (Random::new(plan.seed), Books::new(plan.disturbed));
    let mut disturbances = Disturbances::default();
    for round in 1..=plan.rounds {
        let is_full =
            plan.disturbed && disturbances.before(&host, &field.record, &mut random, || acknowledgements(&progress, 4));
        // A host without space acknowledges nothing.
        let acknowledged = if is_full { 0 } else { random.below(16) };
        kill(&mut host, &plan, round, &mut random, || acknowledgements(&progress, acknowledged));
        host.start();
        field.starts.another();
        // Acknowledgements from before this start do not count for the next kill.
        while progress.try_recv().is_ok() {}
        if round % plan.checked_every == 0 || round == plan.rounds {
            field.gate.close();
            books.check(&host, &field.record, &mut random);
            if round < plan.rounds {
                field.gate.open();
            }
        }
        if plan.disturbed {
            (plan.say)(&format!("kill {}: {}", tally.kills + round, disturbances.last()));
        }
    }
    field.gate.end();
    for driver in drivers {
        driver.join().expect("a driver ends well");
    }
    books.audited(&host);
    let verified = if store.is_empty() {
        host.kill();
        host.cli(None, &["audit", "verify"])
    } else {
        host.cli(Some(&host.admin), &["audit", "verify", "--url", &host.admin.url()])
    };
    assert_eq!(verified.code, 0, "the kills left the chain whole: {verified:?}");
    (plan.say)(verified.out.trim());
    tally.kills += plan.rounds;
    books.count(tally);
    disturbances.count(tally);
    field.record.count(tally);
}

fn host(disturbed: bool, store: &str) -> Host {
    let setup = Setup::with(&["ledger", "textkit", "ask"]);
    // Equal transfers occur by chance, and each must be asked about.
    let setup = setup.tables("[approvals]\ndenied_again_ms = 0").settings("max_attempts = 1000").settings(store);
    if !disturbed {
        return setup.start();
    }
    // Larger than the turns between two checks, so that each can be checked before it is removed.
    let setup = setup.tables("[retention]\nturns_bytes = 6_000_000\nturns_bytes_minutes = 0\ninterval_ms = 100");
    // A write beyond the limit of disturbances must fail and not end the host.
    setup.around(&["bash", "-c", "trap '' XFSZ; exec \"$@\"", "bash"]).start()
}

/// The state that the drivers share.
#[derive(Default)]
struct Field {
    starts: Starts,
    gate: Gate,
    record: Record,
}

fn drivers(host: &Host, seed: u64) -> (Vec<JoinHandle<()>>, Arc<Field>, Receiver<()>) {
    let field = Arc::<Field>::default();
    let (acknowledged, progress) = mpsc::channel();
    let (mut threads, mut tell) = (Vec::new(), Vec::new());
    let driver = |by, seed| Driver::new(by, field.clone(), acknowledged.clone(), seed);
    for (number, name) in (100..).zip(APPROVERS) {
        let (asked, questions) = mpsc::channel();
        tell.push(asked);
        let mut approver = driver(host.token(name, &["approver"], None), seed.wrapping_mul(number));
        threads.push(thread::spawn(move || approver.answer(name, &questions)));
    }
    for number in 0..SUBMITTERS {
        let mut submitter = driver(host.agent.clone(), seed.wrapping_mul(1 + number));
        let tell = tell.clone();
        threads.push(thread::spawn(move || submitter.submit(number, &tell)));
    }
    (threads, field, progress)
}

/// Kills the host after some acknowledgements and a random pause. Every sixth kill is during its start, and half of these
/// starts find a full disk.
fn kill(host: &mut Host, plan: &Plan, round: u32, random: &mut Random, acknowledged: impl Fn()) {
    if round.is_multiple_of(6) {
        host.kill();
        host.start_unready();
        if plan.disturbed && random.once_in(2) {
            moment(random, 20_000);
            disturbances::fill(host, random);
        }
        moment(random, 80_000);
        host.end();
    } else {
        acknowledged();
        moment(random, 6_000);
        host.kill();
    }
}

fn acknowledgements(progress: &Receiver<()>, count: usize) {
    for _ in 0..count {
        progress.recv_timeout(PATIENCE).expect("the drivers continue");
    }
}

/// Pauses for up to this many microseconds, to make the moment of the kill random.
fn moment(random: &mut Random, most: usize) {
    thread::sleep(Duration::from_micros(random.below(most) as u64));
}

/// The number of starts of the host. A client that lost its connection waits for the next start.
#[derive(Default)]
struct Starts {
    count: Mutex<u32>,
    next: Condvar,
}

impl Starts {
    fn count(&self) -> u32 {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn another(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.next.notify_all();
    }

    /// Returns once the host was started again after the given start. A connection can also break for another reason,
    /// so no client waits forever.
    fn wait_for_another(&self, seen: u32, at_most: Duration) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.next.wait_timeout_while(count, at_most, |count| *count == seen));
    }
}

#[cfg(test)]
mod tests {
    use std::panic;

    use super::*;

    #[test]
    fn a_disturbance_that_never_happens_is_found() {
        let of = |reloads, full, refused, removed| Tally { reloads, full, refused, removed, ..Tally::default() };
        let is_found = |tally: Tally| panic::catch_unwind(|| tally.was_disturbed()).is_err();
        assert!(!is_found(of(1, 1, 1, 1)));
        for tally in [of(0, 1, 1, 1), of(1, 0, 1, 1), of(1, 1, 0, 1), of(1, 1, 1, 0)] {
            assert!(is_found(tally));
        }
    }
}
