//! Three hosts on one database under load. Hosts are killed, or paused for longer than their leases; the database server crashes;
//! connections end, also before, in and after a `COMMIT`. Afterwards each acknowledged turn has its outcomes, the same at each host,
//! each suspension has one answer, money was only moved by approved transfers, and the audit is one chain.

mod checks;
mod load;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use serde_json::json;
use tokio::runtime::Runtime;
use toolgate_tests::host::{Host, say};
use toolgate_tests::http::outcomes;
use toolgate_tests::random::Random;

use self::load::{Clients, Record};
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
const KINDS: usize = 8;
const ENOUGH: usize = 60;
const CUTS: [(Cut, &str); 3] = [
    (Cut::BeforeAll, "a connection was cut before a transaction was written"),
    (Cut::BeforeCommit, "a connection was cut before a COMMIT"),
    (Cut::BehindCommit, "the answer to a COMMIT was lost"),
];
const ACCOUNTS: usize = 6;
const OPENED_WITH: i64 = 1_000_000;

/// Sends a signal to a process. Returns whether there is one.
fn sent(process: impl ToString, signal: &str) -> bool {
    Command::new("kill").args([signal, &process.to_string()]).output().unwrap().status.success()
}

struct World {
    hosts: Vec<Host>,
    /// One before the server for each host.
    proxies: Vec<Proxy>,
    /// The folder of the database server.
    server: PathBuf,
    random: Random,
    record: Arc<Record>,
    /// Of the proxies.
    _runtime: Runtime,
}

impl World {
    fn start(seed: u64) -> Self {
        // A server of its own, because a crash of it ends the connections of all hosts on it.
        let (server, runtime) = (server::start(""), Runtime::new().unwrap());
        let proxies = NAMES.map(|_| runtime.block_on(Proxy::start(&server))).into();
        let mut world = Self {
            hosts: Vec::new(),
            proxies,
            server,
            random: Random::new(seed),
            record: Arc::default(),
            _runtime: runtime,
        };
        for (name, proxy) in NAMES.iter().zip(&world.proxies) {
            let url = server::url(proxy.folder(), "postgres");
            let setup = setup(&url, name, LEASE, &["ledger", "conformance", "browser"], world.hosts.first());
            // Equal transfers occur by chance, and each must be asked about.
            let setup = setup
                .tables("[approvals]\ndenied_again_ms = 0")
                .settings("max_attempts = 1000\nclient_grace_ms = 600_000");
            world.hosts.push(setup.start());
        }
        for account in 0..ACCOUNTS {
            let arguments = json!({"account": format!("a{account}"), "opening_balance": OPENED_WITH});
            assert_eq!(outcomes(&world.hosts[0].agent.call("opening", "ledger_open", arguments)), ["ok"]);
        }
        world
    }

    fn query(&self, statement: &str) -> String {
        server::run_at(&self.server, "postgres", statement)
    }

    /// Waits for a few more acknowledgements.
    fn progress(&self, count: usize) {
        let reached = self.record.acknowledged() + count;
        self.record.until("acknowledgement", || self.record.acknowledged() >= reached);
    }

    /// One fault. Returns its name.
    fn disturb(&mut self) -> &'static str {
        let at = self.random.below(self.hosts.len());
        match self.random.below(16) {
            0..5 => {
                self.hosts[at].end();
                self.progress(3);
                "a host was killed"
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
                self.crash();
                "the database server crashed"
            }
            9..11 => {
                let cuts = self.proxies[at].cuts();
                self.proxies[at].cut_and_close(Cut::BehindCommit);
                self.until_cut(at, cuts);
                self.crash();
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
        let process = self.hosts[at].process();
        assert!(sent(process, "-STOP"));
        // Another host removes it.
        let alive = format!("SELECT count(*) FROM toolgate.hosts WHERE name = '{}'", NAMES[at]);
        self.record.until("end of a lease", || self.query(&alive) == "0");
        self.progress(3);
        assert!(sent(process, "-CONT"));
        // It notices and ends.
        self.hosts[at].wait();
    }

    /// Returns when the server works again.
    fn crash(&self) {
        const STARTED: &str = "SELECT backend_start FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
        let before = self.query(STARTED);
        let mut kills = || {
            let process = self.query(&format!("SELECT pid {CONNECTIONS} ORDER BY random() LIMIT 1"));
            // It may have ended meanwhile.
            !process.is_empty() && sent(process, "-KILL")
        };
        self.record.until("connection", &mut kills);
        let has_restarted =
            || server::try_run(&self.server, "postgres", STARTED).is_ok_and(|now| !now.is_empty() && now != before);
        self.record.until("server after its crash", has_restarted);
    }

    /// Returns when the proxy has cut a connection, or its host has ended, as one does that lost data of plugins.
    fn until_cut(&mut self, at: usize, before: usize) {
        let (proxy, host) = (&self.proxies[at], &mut self.hosts[at]);
        self.record.until("commit", || proxy.cuts() > before || !host.runs());
    }

    /// Starts again what has ended: a host may have noticed lost data of plugins.
    fn mend(&mut self) {
        for (host, proxy) in self.hosts.iter_mut().zip(&self.proxies) {
            if !host.runs() {
                // A start must succeed, so the rest of a fault is given up.
                proxy.cut(Cut::BeforeAll, 0);
                host.start();
            }
        }
    }
}

/// Carries out this many faults.
pub(crate) fn run(faults: u32, seed: u64) {
    let mut done = 0;
    while done < faults {
        let next = PER_DATABASE.min(faults - done);
        one_database(done..done + next, seed.wrapping_add(done.into()));
        done += next;
    }
}

fn one_database(faults: Range<u32>, seed: u64) {
    let mut world = World::start(seed);
    let clients: Arc<[Clients]> = world.hosts.iter().map(Clients::of).collect();
    let start = |number: u64, work: fn(&[Clients], &Arc<Record>, u64)| {
        let (clients, record) = (clients.clone(), world.record.clone());
        thread::spawn(move || work(&clients, &record, seed.wrapping_mul(100).wrapping_add(number)))
    };
    let submitters: Vec<_> = (0..3).map(|number| start(number, load::submit)).collect();
    let answerers: Vec<_> = (3..6).map(|number| start(number, load::answer)).collect();
    let (number, mut kinds) = (faults.len(), BTreeSet::new());
    for fault in faults {
        world.progress(8);
        let name = world.disturb();
        kinds.insert(name);
        say(&format!("fault {}: {name}", fault + 1));
        world.mend();
    }
    assert!(number < ENOUGH || kinds.len() == KINDS, "{number} faults were only {kinds:?}");
    world.record.no_more_turns();
    submitters.into_iter().for_each(|thread| thread.join().unwrap());
    checks::until_settled(&mut world);
    world.record.no_more_answers();
    answerers.into_iter().for_each(|thread| thread.join().unwrap());
    checks::check(&world.hosts, &world.record);
}
