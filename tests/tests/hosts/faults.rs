//! Three hosts on one database under load: hosts are killed, or paused for longer than their leases, the database server crashes, and
//! connections end. Afterwards, each acknowledged turn has its outcomes, each suspension one answer, money is only moved by approved
//! transfers, and the audit is one chain.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use toolgate_tests::host::{Host, say};
use toolgate_tests::http::{Client, outcomes};
use toolgate_tests::random::Random;

use crate::named::host;
use crate::server;

const NAMES: [&str; 3] = ["a", "b", "c"];
/// The connections of the hosts.
const CONNECTIONS: &str = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
const ACCOUNTS: usize = 6;
const OPENED_WITH: i64 = 1_000_000;

/// The principals at each host.
#[derive(Clone)]
struct Clients {
    agent: Client,
    approver: Client,
}

/// The acknowledgements of the hosts.
#[derive(Default)]
struct Record {
    is_over: AtomicBool,
    acknowledged: AtomicU64,
    /// The path of each turn, with its transfer.
    turns: Mutex<HashMap<String, Value>>,
    /// The decision about each suspension.
    answers: Mutex<HashMap<String, String>>,
}

impl Record {
    fn acknowledge(&self) {
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
    }
}

/// Submits transfers, each at any host, again and again until one acknowledges it.
fn submit(hosts: &[Clients], record: &Record, number: u64) {
    let mut random = Random::new(number);
    for count in 0.. {
        let amount = 1 + random.below(9);
        let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS - 1));
        let to = (from + 1 + to) % ACCOUNTS;
        let transfer = json!({"from": format!("a{from}"), "to": format!("a{to}"), "amount_cents": amount});
        let call = json!({"id": format!("{number}-{count}"), "tool": "ledger_transfer", "arguments": transfer});
        let body = json!({"calls": [call]}).to_string();
        loop {
            if record.is_over.load(Ordering::Relaxed) {
                return;
            }
            let agent = &random.pick(hosts).agent;
            let headers = [("content-type", "application/json")];
            let sent = agent.send("POST", "/v1/conversations/faults/turns", &headers, body.as_bytes());
            let Some(answer) = sent.ok().filter(|answer| matches!(answer.status, 200 | 201)) else { continue };
            let path = toolgate_tests::http::path(&answer.json());
            record.turns.lock().unwrap().insert(path, transfer);
            record.acknowledge();
            break;
        }
    }
}

/// Answers what waits, often at two hosts at once.
fn answer(hosts: &[Clients], record: &Arc<Record>, number: u64) {
    let mut random = Random::new(number);
    while !record.is_over.load(Ordering::Relaxed) {
        let listed = random.pick(hosts).approver.send("GET", "/v1/pending", &[], b"");
        let Some(listed) = listed.ok().filter(|answer| answer.status == 200) else { continue };
        let listed = listed.json();
        let Some(waiting) = listed["suspensions"].as_array().filter(|waiting| !waiting.is_empty()) else { continue };
        let suspension = random.pick(waiting)["suspension"].as_str().unwrap().to_owned();
        let decisions = ["approve", if random.once_in(3) { "deny" } else { "approve" }];
        let racing = decisions.map(|decision| {
            let (approver, record) = (random.pick(hosts).approver.clone(), record.clone());
            let suspension = suspension.clone();
            thread::spawn(move || resolve(&approver, &record, &suspension, decision))
        });
        racing.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

fn resolve(approver: &Client, record: &Record, suspension: &str, decision: &str) {
    let (path, body) = (format!("/v1/suspensions/{suspension}/resolve"), json!({"decision": decision}).to_string());
    let sent = approver.send("POST", &path, &[("content-type", "application/json")], body.as_bytes());
    let Some(_) = sent.ok().filter(|answer| answer.status == 200) else { return };
    record.acknowledge();
    let before = record.answers.lock().unwrap().insert(suspension.to_owned(), decision.to_owned());
    assert!(before.is_none_or(|before| before == decision), "{suspension} has two answers");
}

/// Sends a signal to a process.
fn signal(process: impl ToString, signal: &str) {
    let sent = Command::new("kill").args([signal, &process.to_string()]).status().unwrap();
    assert!(sent.success());
}

struct World {
    hosts: Vec<Host>,
    /// The folder of the database server.
    server: PathBuf,
    random: Random,
}

impl World {
    /// Waits until the load has got further.
    fn progress(record: &Record, count: u64) {
        let reached = record.acknowledged.load(Ordering::Relaxed) + count;
        while record.acknowledged.load(Ordering::Relaxed) < reached {
            thread::yield_now();
        }
    }

    fn query(&self, statement: &str) -> String {
        server::run_at(&self.server, "postgres", statement)
    }

    /// One fault. Returns its name.
    fn disturb(&mut self, record: &Record) -> &'static str {
        self.mend();
        let at = self.random.below(self.hosts.len());
        match self.random.below(6) {
            0..3 => {
                self.hosts[at].end();
                Self::progress(record, 3);
                self.hosts[at].start();
                "a host was killed"
            }
            3 => {
                let process = self.hosts[at].process();
                signal(process, "-STOP");
                // Another host removes it.
                let alive = format!("SELECT count(*) FROM toolgate.hosts WHERE name = '{}'", NAMES[at]);
                while self.query(&alive) != "0" {
                    thread::yield_now();
                }
                Self::progress(record, 3);
                signal(process, "-CONT");
                // It notices and ends.
                self.hosts[at].wait();
                self.hosts[at].start();
                "a host was paused beyond its lease"
            }
            4 => {
                self.query(&format!("SELECT count(pg_terminate_backend(pid)) {CONNECTIONS}"));
                "all connections to the database ended"
            }
            _ => {
                let process = self.query(&format!("SELECT pid {CONNECTIONS} LIMIT 1"));
                signal(process, "-KILL");
                "the database server crashed"
            }
        }
    }

    /// Starts again what has ended: a host may have noticed lost data of plugins.
    fn mend(&mut self) {
        for host in &mut self.hosts {
            if !host.runs() {
                host.start();
            }
        }
    }
}

/// Carries out this many faults.
pub(crate) fn run(rounds: u32, seed: u64) {
    // A server of its own, because a crash of it ends the connections of all hosts on it.
    let server = server::start("");
    let url = server::url(&server, "postgres");
    let mut hosts: Vec<Host> = Vec::new();
    for name in NAMES {
        let next = host(&url, name, &["ledger"], hosts.first());
        hosts.push(next);
    }
    for account in 0..ACCOUNTS {
        let arguments = json!({"account": format!("a{account}"), "opening_balance": OPENED_WITH});
        assert_eq!(outcomes(&hosts[0].agent.call("faults", "ledger_open", arguments)), ["ok"]);
    }
    let clients = |host: &Host| Clients { agent: host.agent.clone(), approver: host.approver.clone() };
    let (clients, record): (Vec<_>, _) = (hosts.iter().map(clients).collect(), Arc::<Record>::default());
    let load: Vec<_> = (0..5)
        .map(|number| {
            let (clients, record) = (clients.clone(), record.clone());
            thread::spawn(move || match number {
                0..3 => submit(&clients, &record, seed + number),
                _ => answer(&clients, &record, seed + number),
            })
        })
        .collect();
    let mut world = World { hosts, server, random: Random::new(seed) };
    for round in 1..=rounds {
        World::progress(&record, 10);
        let fault = world.disturb(&record);
        say(&format!("fault {round} of seed {seed}: {fault}"));
        world.mend();
    }
    record.is_over.store(true, Ordering::Relaxed);
    load.into_iter().for_each(|thread| thread.join().unwrap());
    world.mend();
    check(&world.hosts, &record);
}

fn check(hosts: &[Host], record: &Record) {
    // Nobody answers any more: the rest is denied.
    loop {
        let listed = hosts[0].approver.get("/v1/pending");
        if listed.status != 200 {
            // The last fault is not over.
            continue;
        }
        let listed = listed.json();
        let waiting = listed["suspensions"].as_array().unwrap().clone();
        for suspension in &waiting {
            resolve(&hosts[1].approver, record, suspension["suspension"].as_str().unwrap(), "deny");
        }
        if waiting.is_empty() {
            break;
        }
    }
    let mut balances = [OPENED_WITH; ACCOUNTS];
    let account = |name: &Value| name.as_str().unwrap()[1..].parse::<usize>().unwrap();
    let (turns, answers) = (record.turns.lock().unwrap(), record.answers.lock().unwrap());
    let (mut moved, mut unknown) = (0, 0);
    for (path, transfer) in turns.iter() {
        let turn = hosts[2].agent.get(&format!("{path}?wait_ms=60000")).ok(200);
        let outcome = turn["calls"][0]["outcome"].clone();
        let suspension = turn["calls"][0]["suspension"].as_str().unwrap_or_default();
        match answers.get(suspension).map(String::as_str) {
            // The data of the plugin could not be reached, so the transfer may be halfway.
            _ if outcome == "failed" || outcome == "in_doubt" => unknown += transfer["amount_cents"].as_i64().unwrap(),
            Some("approve") => assert_eq!(outcome, "ok", "{turn:#}"),
            Some(_) => assert_eq!(outcome, "denied", "{turn:#}"),
            // Its answer was not acknowledged.
            None => assert!(outcome == "ok" || outcome == "denied", "{turn:#}"),
        }
        if outcome == "ok" {
            let cents = transfer["amount_cents"].as_i64().unwrap();
            balances[account(&transfer["from"])] -= cents;
            balances[account(&transfer["to"])] += cents;
            moved += 1;
        }
    }
    for (number, expected) in balances.iter().enumerate() {
        let turn = hosts[0].agent.call("balances", "ledger_balance", json!({"account": format!("a{number}")}));
        let found = turn["calls"][0]["content"]["result"]["balance_cents"].as_i64().unwrap();
        assert!((found - expected).abs() <= unknown, "a{number} has {found}, not {expected}: {turn:#}");
    }
    let verified = hosts[1].cli(Some(&hosts[1].admin), &["audit", "verify", "--url", &hosts[1].admin.url()]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    say(&format!(
        "{} turns, {} answers, {moved} transfers, {unknown} cents in transfers that failed",
        turns.len(),
        answers.len()
    ));
}
