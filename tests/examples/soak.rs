//! Soaks the built host and prints how flat it stayed. `cargo xtask soak` starts it.

#![expect(clippy::disallowed_macros, reason = "this program prints a report")]

use std::process::ExitCode;

use anyhow::{Result, ensure};
use toolgate_tests::arguments::{Arguments, exit_code};
use toolgate_tests::host::say;
use toolgate_tests::soak::{self, Flatness, Plan};

/// The turns of a soak without `--turns`: the nightly form.
const TURNS: u64 = 100_000;

fn main() -> ExitCode {
    exit_code(run())
}

fn run() -> Result<()> {
    let mut arguments = Arguments::read();
    let turns = arguments.number("--turns", TURNS)?;
    let seed = arguments.seed()?;
    arguments.end()?;
    println!("soak: {turns} turns, seed {seed}");
    let report = soak::run(Plan { turns, seed, say })?;
    println!("\n{:<12} {:>12} {:>12} {:>12} {:>12}", "", "second tenth", "last tenth", "highest", "bound");
    report.rows.iter().for_each(|row| println!("{row}"));
    let kinds: Vec<_> = report.kinds.iter().map(|(name, turns)| format!("{turns} {name}")).collect();
    println!("\nturns: {}\naudit: {}", kinds.join(", "), report.verified);
    let grew: Vec<_> = report.rows.iter().filter(|row| !row.is_flat()).map(|row| row.name).collect();
    let took = report.took.as_secs_f64();
    ensure!(grew.is_empty(), "soak: {turns} turns, seed {seed}, {took:.0} s: these grew: {}", grew.join(", "));
    let flat: Vec<&str> = report.rows.iter().map(|row: &Flatness| row.name).collect();
    println!("soak: {turns} turns, seed {seed}, {took:.0} s: {} were flat", flat.join(", "));
    Ok(())
}
