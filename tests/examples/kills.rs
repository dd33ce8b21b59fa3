//! Kills the built host again and again, with retention, reloads and full disks. `cargo xtask kills` starts it.

#![expect(clippy::disallowed_macros, reason = "this program prints a report")]

use std::process::ExitCode;

use anyhow::Result;
use toolgate_tests::arguments::{Arguments, exit_code};
use toolgate_tests::host::say;
use toolgate_tests::kills::{self, Plan};

const ROUNDS: u64 = 2_000;

fn main() -> ExitCode {
    exit_code(run())
}

fn run() -> Result<()> {
    let mut arguments = Arguments::read();
    let rounds = u32::try_from(arguments.number("--rounds", ROUNDS)?)?;
    let seed = arguments.seed()?;
    arguments.end()?;
    println!("kills: {rounds} rounds, seed {seed}");
    let tally = kills::run(Plan { rounds, seed, checked_every: 1, disturbed: true, say });
    println!("{tally:#?}");
    println!(
        "kills: {rounds} rounds, seed {seed}: nothing acknowledged was lost, nothing ran twice, the audit verifies"
    );
    Ok(())
}
