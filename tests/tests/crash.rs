//! Kills the real host two hundred times at random moments, some of them during its start, with concurrent submissions
//! and answers. Afterwards, nothing acknowledged is lost, nothing was resolved twice, the ledger's sums are right, and
//! every turn settles.
//!
//! Money shows a lost or repeated effect: an approved transfer moves it exactly once, all others never.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

#[path = "crash/drivers.rs"]
mod drivers;
#[path = "crash/verdict.rs"]
mod verdict;

use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use drivers::{Record, answer, submit};
use serde_json::json;
use toolgate_tests::host::{Host, Setup, say};
use toolgate_tests::random::Random;

const KILLS: u32 = 200;
const SEED: u64 = 0x7001_6a7e;
const SUBMITTERS: u64 = 3;
pub(crate) const APPROVERS: [&str; 2] = ["ann", "bob"];
pub(crate) const CONVERSATION: &str = "crash";
pub(crate) const ACCOUNTS: u64 = 6;
pub(crate) const OPENED_WITH: u64 = 10_000_000;

/// Only a host that hangs stops all drivers for so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of starts of the host. A client that lost its connection waits for the next start.
#[derive(Default)]
pub(crate) struct Starts {
    count: Mutex<u32>,
    next: Condvar,
}

impl Starts {
    pub(crate) fn count(&self) -> u32 {
        *self.count.lock().unwrap()
    }

    fn another(&self) {
        *self.count.lock().unwrap() += 1;
        self.next.notify_all();
    }

    /// Returns once the host was started again after the given start. A connection can also break for another reason,
    /// so no client waits forever.
    pub(crate) fn wait_for_another(&self, seen: u32) {
        let count = self.count.lock().unwrap();
        drop(self.next.wait_timeout_while(count, Duration::from_secs(5), |count| *count == seen).unwrap());
    }
}

#[test]
fn two_hundred_kills_lose_nothing_and_repeat_nothing() {
    let setup = Setup::with(&["ledger", "textkit", "ask"]);
    // Equal transfers occur by chance, and each must be asked about.
    let setup = setup.tables("[approvals]\ndenied_again_ms = 0");
    let mut host = setup.settings("max_attempts = 1000").start();
    for account in 0..ACCOUNTS {
        let arguments = json!({"account": format!("a{account}"), "opening_balance": OPENED_WITH});
        let opened = host.agent.call(CONVERSATION, "ledger_open", arguments);
        assert_eq!(opened["calls"][0]["outcome"], "ok", "{opened:#}");
    }

    let (starts, record) = (Arc::new(Starts::default()), Arc::new(Record::default()));
    let (acknowledged, progress) = mpsc::channel();
    let mut submitters = Vec::new();
    let mut approvers = Vec::new();
    let mut tell = Vec::new();
    for (seed, name) in (100..).zip(APPROVERS) {
        let (asked, questions) = mpsc::channel();
        tell.push(asked);
        let by = host.token(name, &["approver"], None);
        let (starts, record, acknowledged) = (starts.clone(), record.clone(), acknowledged.clone());
        approvers.push(thread::spawn(move || answer(name, &by, seed, &questions, &starts, &record, &acknowledged)));
    }
    for number in 0..SUBMITTERS {
        let (by, tell) = (host.agent.clone(), tell.clone());
        let (starts, record, acknowledged) = (starts.clone(), record.clone(), acknowledged.clone());
        submitters.push(thread::spawn(move || submit(number, &by, &tell, &starts, &record, &acknowledged)));
    }
    drop((tell, acknowledged));

    kill_and_restart(&mut host, &starts, &progress);
    record.stop();
    for driver in submitters.into_iter().chain(approvers) {
        driver.join().expect("a driver ends well");
    }
    let interrupted = verdict::check(&host, &record);
    say(&format!(
        "{KILLS} kills (seed {SEED:#x}): {} turns and {} answers acknowledged, {} answers came too late, {interrupted} \
         calls ran again",
        record.turns().len(),
        record.answers().len(),
        record.late(),
    ));
    host.kill();
    let verified = host.cli(None, &["audit", "verify"]);
    assert_eq!(verified.code, 0, "two hundred kills left the chain whole: {verified:?}");
    say(verified.out.trim());
}

/// Kills the host after a random number of acknowledgements and a random pause. Every sixth kill is during its start.
fn kill_and_restart(host: &mut Host, starts: &Starts, progress: &Receiver<()>) {
    let mut random = Random::new(SEED);
    for kill in 0..KILLS {
        if kill % 6 == 5 {
            host.kill();
            host.start_unready();
            moment(&mut random, 80_000);
        } else {
            for _ in 0..random.below(16) {
                progress.recv_timeout(PATIENCE).expect("the drivers continue");
            }
            moment(&mut random, 6_000);
        }
        host.kill();
        host.start();
        starts.another();
        // Acknowledgements from before this start do not count for the next kill.
        while progress.try_recv().is_ok() {}
    }
}

/// Pauses for up to so many microseconds, to make the moment of the kill random.
fn moment(random: &mut Random, most: usize) {
    thread::sleep(Duration::from_micros(random.below(most) as u64));
}
