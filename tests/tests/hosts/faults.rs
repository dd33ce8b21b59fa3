//! Three hosts on one database under load. Hosts are killed, or paused for longer than their leases; the database server crashes;
//! connections end, also before, in and after a `COMMIT`. Afterwards each acknowledged turn has its outcomes, the same at each host,
//! each suspension has one answer, money was only moved by approved transfers, followers got each event once, and the audit is one
//! chain.

mod checks;
mod followers;
mod load;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{JoinHandle, panicking};
use std::time::Instant;

use serde_json::json;
use tokio::runtime::Runtime;
use toolgate_tests::host::{Host, say, sent};
use toolgate_tests::http::outcomes;
use toolgate_tests::random::Random;

use self::load::{Load, Work};
use crate::named::setup;
use crate::proxy::{Cut, Proxy};
use crate::server;

const NAMES: [&str; 3] = ["a", "b", "c"];
/// The connections of the hosts.
const CONNECTIONS: &str = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
/// The seconds of a lease.
const LEASE: u32 = 4;
/// Faults of one database. After them, the next begins empty.
const PER_DATABASE: u32 = 200;
/// The kinds of faults, and the number of faults after which each has happened.
const KINDS: usize = 9;
const ENOUGH: usize = 60;
const CUTS: [(Cut, &str); 3] = [
    (Cut::BeforeAll, "a connection was cut before a transaction was written"),
    (Cut::BeforeCommit, "a connection was cut before a COMMIT"),
    (Cut::BehindCommit, "the answer to a COMMIT was lost"),
];
const ACCOUNTS: usize = 6;
const OPENED_WITH: i64 = 1_000_000;

struct World {
    hosts: Vec<Host>,
    /// One before the server for each host.
    proxies: Vec<Proxy>,
    server: Server,
    random: Random,
    load: Arc<Load>,
    /// Of the proxies.
    _runtime: Runtime,
}

/// The folder of a database server that is stopped when this is dropped. Long runs have many.
struct Server(PathBuf);

impl Drop for Server {
    fn drop(&mut self) {
        server::stop(&self.0);
    }
}

impl World {
    fn start(seed: u64) -> Self {
        // A server of its own, because a crash of it ends the connections of all hosts on it.
        let (server, runtime) = (Server(server::start("")), Runtime::new().unwrap());
        let proxies = Vec::from(NAMES.map(|_| runtime.block_on(Proxy::start(&server.0))));
        let mut hosts = Vec::new();
        for (name, proxy) in NAMES.iter().zip(&proxies) {
            let url = server::url(proxy.folder(), "postgres");
            let setup = setup(&url, name, LEASE, &["ledger", "conformance", "browser"], hosts.first());
            hosts.push(setup.settings("max_attempts = 1000\nclient_grace_ms = 600_000").start());
        }
        let load = Arc::new(Load::of(&hosts));
        let world = Self { hosts, proxies, server, random: Random::new(seed), load, _runtime: runtime };
        for account in 0..ACCOUNTS {
            let arguments = json!({"account": format!("a{account}"), "opening_balance": OPENED_WITH});
            assert_eq!(outcomes(&world.hosts[0].agent.call("opening", "ledger_open", arguments)), ["ok"]);
        }
        world
    }

    fn query(&self, statement: &str) -> String {
        server::run_at(&self.server.0, "postgres", statement)
    }

    /// Returns when this is so. Hosts that end meanwhile are started again, except the one that is disturbed.
    fn until(&mut self, what: &str, disturbed: Option<usize>, mut is_so: impl FnMut(&mut Self) -> bool) {
        let load = self.load.clone();
        load.record.until(what, || {
            self.mend(disturbed);
            is_so(self)
        });
    }

    /// The results of threads. Returns when they have ended.
    fn ended<T>(&mut self, what: &str, threads: Vec<JoinHandle<T>>) -> Vec<T> {
        self.until(what, None, |_| threads.iter().all(JoinHandle::is_finished));
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }

    /// Waits for a few more acknowledgements.
    fn progress(&mut self, count: usize, disturbed: Option<usize>) {
        let reached = self.load.record.acknowledged() + count;
        self.until("acknowledgement", disturbed, |world| world.load.record.acknowledged() >= reached);
    }

    /// One fault. Returns its name.
    fn disturb(&mut self) -> &'static str {
        let at = self.random.below(self.hosts.len());
        match self.random.below(16) {
            0..4 => {
                self.hosts[at].end();
                self.progress(3, Some(at));
                "a host was killed"
            }
            4 => {
                self.hosts[at].end();
                self.until_removed(at);
                "a host was killed, and another took its calls over"
            }
            5 => {
                self.pause(at);
                "a host was paused beyond its lease"
            }
            6..8 => {
                self.query(&format!("SELECT count(pg_terminate_backend(pid)) {CONNECTIONS}"));
                "all connections to the database ended"
            }
            8 => {
                self.crash(None);
                "the database server crashed"
            }
            9..11 => {
                let cuts = self.proxies[at].cuts();
                self.proxies[at].cut_and_close(Cut::BehindCommit);
                self.until_cut(at, cuts);
                self.crash(Some(at));
                self.proxies[at].close(false);
                "the database server crashed after a COMMIT and before its answer"
            }
            _ => {
                let (cut, name) = *self.random.pick(&CUTS);
                let (cuts, times) = (self.proxies[at].cuts(), 1 + self.random.below(3));
                self.proxies[at].cut(cut, times);
                self.until_cut(at, cuts);
                name
            }
        }
    }

    fn pause(&mut self, at: usize) {
        self.hosts[at].pause();
        self.until_removed(at);
        self.until("request of each kind at the paused host", Some(at), |world| {
            !world.hosts[at].runs() || world.load.patient[at].are_waiting()
        });
        // It may have ended before the signal.
        if self.hosts[at].runs() {
            self.hosts[at].resume();
            // It notices and ends. Its responses until then are compared with the database at the end.
            self.hosts[at].wait();
        }
    }

    /// Returns when another host has noticed that the lease of this one ended, and calls go on.
    fn until_removed(&mut self, at: usize) {
        let alive = format!("SELECT count(*) FROM toolgate.hosts WHERE name = '{}'", NAMES[at]);
        self.until("end of a lease", Some(at), |world| world.query(&alive) == "0");
        self.progress(3, Some(at));
    }

    /// Returns when the server works again.
    fn crash(&mut self, disturbed: Option<usize>) {
        const STARTED: &str = "SELECT backend_start FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
        let before = self.query(STARTED);
        self.until("connection", disturbed, |world| {
            let process = world.query(&format!("SELECT pid {CONNECTIONS} ORDER BY random() LIMIT 1"));
            // It may have ended meanwhile.
            !process.is_empty() && sent(process, "-KILL")
        });
        let has_restarted =
            || server::try_run(&self.server.0, "postgres", STARTED).is_ok_and(|now| !now.is_empty() && now != before);
        self.load.record.until("server after its crash", has_restarted);
    }

    /// Returns when the proxy has cut a connection, or its host has ended, as one does that lost data of plugins.
    fn until_cut(&mut self, at: usize, before: usize) {
        self.until("commit", Some(at), |world| world.proxies[at].cuts() > before || !world.hosts[at].runs());
    }

    /// Starts again what has ended, except the host that is disturbed: a host may have noticed lost data of plugins.
    fn mend(&mut self, disturbed: Option<usize>) {
        for (number, (host, proxy)) in self.hosts.iter_mut().zip(&self.proxies).enumerate() {
            if Some(number) != disturbed && !host.runs() {
                // A start must succeed, so the rest of a fault is given up.
                proxy.cut(Cut::BeforeAll, 0);
                host.start();
            }
        }
    }
}

/// All faults, and the time before the first one.
struct Plan {
    all: u32,
    begin: Instant,
}

/// Carries out this many faults.
#[expect(clippy::disallowed_methods, reason = "the progress says how long it has taken")]
pub(crate) fn run(faults: u32, seed: u64) {
    say(&format!("{faults} faults of three hosts on one database, seed {seed}"));
    let plan = Plan { all: faults, begin: Instant::now() };
    let mut done = 0;
    while done < faults {
        let next = PER_DATABASE.min(faults - done);
        let seed = seed.wrapping_add(done.into());
        let _repeat = Repeat { faults: next, seed };
        one_database(&plan, done..done + next, seed);
        done += next;
    }
}

/// The faults of one database. If they fail, this says how to repeat them.
struct Repeat {
    faults: u32,
    seed: u64,
}

impl Drop for Repeat {
    fn drop(&mut self) {
        if panicking() {
            let Self { faults, seed } = self;
            say(&format!("the faults of this database again: cargo xtask kills --hosts {faults} --seed {seed}"));
        }
    }
}

fn one_database(plan: &Plan, faults: Range<u32>, seed: u64) {
    let mut world = World::start(seed);
    let mut seeds = (0..).map(|number| seed.wrapping_mul(100).wrapping_add(number));
    let mut start = |work: Work| load::start(&world.load, work, &mut seeds);
    let (submitters, others) = (start(load::submit), [start(load::answer), start(load::wait)].into_iter().flatten());
    let followers = followers::start(&world.load, &mut seeds);
    let (number, mut kinds) = (faults.len(), BTreeSet::new());
    for fault in faults {
        world.progress(8, None);
        let name = world.disturb();
        kinds.insert(name);
        say(&format!("fault {} of {}, {} s: {name}", fault + 1, plan.all, plan.begin.elapsed().as_secs()));
        world.mend(None);
    }
    assert!(number < ENOUGH || kinds.len() == KINDS, "{number} faults were only {kinds:?}");
    world.load.record.no_more_turns();
    world.ended("submission of the last turns", submitters);
    checks::until_settled(&mut world);
    world.load.record.no_more_answers();
    others.for_each(|thread| thread.join().unwrap());
    followers::end(&world.hosts, &world.load);
    let followed = world.ended("end of the streams", followers);
    checks::check(&world);
    followers::check(&followed, &world.hosts, &world.load);
}
