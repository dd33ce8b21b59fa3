//! Kills hosts again and again. Without a kind, the built host with retention, reloads and full disks. With `--programs`,
//! a simulated host that runs random programs. With `--guests`, the built host with plugins of each language in durable
//! calls. With `--hosts`, three built hosts on one PostgreSQL database, with other faults too. `cargo xtask kills` starts it.

#![expect(clippy::disallowed_macros, reason = "this program prints a report")]
#![expect(clippy::unwrap_used, reason = "a check fails by panicking")]

#[path = "../tests/journal/buckets.rs"]
mod buckets;
#[path = "../tests/hosts/faults.rs"]
mod faults;
#[path = "../tests/programs/model.rs"]
mod model;
#[path = "../tests/hosts/named.rs"]
mod named;
#[path = "../../host/store/tests/laws/proxy.rs"]
#[expect(dead_code, reason = "other tests use all of it")]
mod proxy;
#[path = "../tests/hosts/races.rs"]
mod races;
#[path = "../../host/store/tests/laws/server.rs"]
mod server;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use toolgate_tests::arguments::{Arguments, exit_code};
use toolgate_tests::effects::Server;
use toolgate_tests::host::say;
use toolgate_tests::kills::languages::{self, Language, Worker};
use toolgate_tests::kills::{self, Plan};

const ROUNDS: u64 = 2_000;
/// The number of suspensions that two hosts answer at once.
const RACES: usize = 10_000;

fn main() -> ExitCode {
    exit_code(run())
}

fn run() -> Result<()> {
    let mut arguments = Arguments::read();
    let programs = u32::try_from(arguments.number("--programs", 0)?)?;
    let guests = u32::try_from(arguments.number("--guests", 0)?)?;
    let hosts = u32::try_from(arguments.number("--hosts", 0)?)?;
    let rounds = u32::try_from(arguments.number("--rounds", ROUNDS)?)?;
    let seed = arguments.seed()?;
    arguments.end()?;
    if programs > 0 {
        of_programs(programs, seed);
    } else if guests > 0 {
        of_guests(guests, seed);
    } else if hosts > 0 {
        faults::run(hosts, seed);
        println!("kills: {hosts} faults of three hosts on one database, seed {seed}: nothing acknowledged was lost");
        races::run(RACES);
    } else {
        of_the_host(rounds, seed);
    }
    Ok(())
}

fn of_the_host(rounds: u32, seed: u64) {
    println!("kills: {rounds} rounds, seed {seed}");
    let tally = kills::run(Plan { rounds, seed, checked_every: 1, disturbed: true, say }, &String::new);
    println!("{tally:#?}");
    println!(
        "kills: {rounds} rounds, seed {seed}: nothing acknowledged was lost, nothing ran twice, the audit verifies"
    );
}

#[expect(clippy::disallowed_methods, reason = "the report says how fast it was")]
fn of_programs(programs: u32, seed: u64) {
    println!("kills: {programs} random programs, first seed {seed}");
    let begin = Instant::now();
    let tally = model::run(model::Plan { programs, seed });
    println!("{tally:#?}");
    let per_second = |count: usize| count as f64 / begin.elapsed().as_secs_f64();
    println!("{:.1} runs and {:.1} kills per second", per_second(tally.runs), per_second(tally.kills));
    println!(
        "kills: {} in {programs} random programs, first seed {seed}: results, steps, journals, data and effects are those \
         of the runs without a kill",
        tally.kills
    );
}

fn of_guests(kills: u32, seed: u64) {
    println!("kills: {kills} in durable calls of each language, seed {seed}");
    let server = Server::start();
    let workers = Language::ALL.map(|language| Worker::build(language, &server));
    let tally = languages::run(languages::Plan { kills, seed, say }, &workers, &server);
    println!("{tally:#?}");
    println!(
        "kills: {kills} in durable calls of each language, seed {seed}: each result is right, each effect happened once"
    );
}
