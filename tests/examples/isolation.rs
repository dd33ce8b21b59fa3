//! Runs the hostile suite against the built host, long enough for figures to publish, and prints the table. `cargo
//! xtask isolation` starts it. It fails if an attack has another outcome, or if the neighbour's p99 exceeds its bound. Its
//! arguments are classes, or parts of the names of cases. `--write` puts the table into
//! `docs/isolation.md`, and `--export FOLDER` writes the guests as components for other hosts.

#![expect(clippy::disallowed_macros, reason = "this program prints a report")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use toolgate_tests::arguments::exit_code;
use toolgate_tests::hostile::{self, Attack, CLASSES, Case, Effort, Field, Latency, Measured};

/// The document with the table.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/isolation.md");

/// The lines around the table.
const MARKS: [&str; 2] = ["<!-- the table begins: cargo xtask isolation --write -->", "<!-- the table ends -->"];

fn main() -> ExitCode {
    exit_code(run())
}

fn run() -> Result<()> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = words.iter().position(|word| word == "--export") {
        return hostile::export(Path::new(words.get(at + 1).context("--export needs a folder")?));
    }
    let write = words.iter().position(|word| word == "--write").map(|at| words.remove(at)).is_some();
    ensure!(!write || words.is_empty(), "a table of some cases is not written down: use --write alone");
    let mut groups = BTreeMap::<String, Vec<Case>>::new();
    let mut alone = Vec::new();
    for class in &CLASSES {
        for case in hostile::cases(class)? {
            let wanted = words.is_empty() || words.iter().any(|word| word == class.name || case.name.contains(word));
            match case.attack {
                _ if !wanted => {}
                Attack::Alone(_) => alone.push(case),
                _ => groups.entry(case.settings.clone()).or_default().push(case),
            }
        }
    }
    let (measured, quiet, failed) = attacks(groups)?;
    let table = hostile::markdown(&measured, &alone, &quiet);
    println!("{table}");
    let ms = |percent| quiet.percentile(percent).as_secs_f64() * 1e3;
    let build = if cfg!(debug_assertions) { "without optimization" } else { "with optimization" };
    let summary = format!(
        "{} attacks, each as expected. Attacks that leave no host for a neighbour, and that other tests prove: {}. The host was \
         built {build}. The neighbour without an attack, over {} calls: p50 {:.1} ms, p99 {:.1} ms.",
        measured.len(),
        alone.len(),
        quiet.calls(),
        ms(50),
        ms(99)
    );
    println!("{summary}");
    if failed > 0 {
        bail!("{failed} attacks did not have the expected outcome");
    }
    let slow = measured.iter().filter(|row| row.p99_ratio(&quiet) > f64::from(row.case.p99_ratio));
    let slow: Vec<_> = slow.map(|row| format!("{}/{}", row.case.class.name, row.case.name)).collect();
    ensure!(slow.is_empty(), "the neighbour's p99 exceeds its bound beside {}", slow.join(", "));
    if write {
        written(&format!("{summary}\n{table}"))?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the progress shows the time of each case")]
fn attacks(groups: BTreeMap<String, Vec<Case>>) -> Result<(Vec<Measured>, Latency, usize)> {
    let total: usize = groups.values().map(Vec::len).sum();
    ensure!(total > 0, "no case has such a name");
    let (mut measured, mut quiet, mut failed, mut n) = (Vec::new(), Latency::default(), 0, 0);
    for cases in groups.into_values() {
        let mut field = Field::new(&cases)?;
        for case in cases {
            n += 1;
            let (name, begun) = (format!("{}/{}", case.class.name, case.name), Instant::now());
            let ended = field.run(case, Effort::PUBLISH);
            let took = begun.elapsed().as_secs_f64();
            match ended {
                Ok(row) => {
                    let p99 = row.during.percentile(99).as_secs_f64() * 1e3;
                    let calls = row.during.calls();
                    println!(
                        "{n:>3}/{total} ok      {name}: {took:.1} s, {calls} calls of the neighbour, p99 {p99:.1} ms, host grew {} MiB",
                        row.grew_mib()
                    );
                    measured.push(row);
                }
                Err(error) => {
                    failed += 1;
                    println!("{n:>3}/{total} FAILED  {name}: {took:.1} s: {error:#}");
                }
            }
        }
        quiet.extend(field.quiet());
    }
    Ok((measured, quiet, failed))
}

/// Puts the table between its marks.
fn written(table: &str) -> Result<()> {
    let text = fs::read_to_string(DOCUMENT)?;
    let (before, rest) = text.split_once(MARKS[0]).context("docs/isolation.md has no mark where the table begins")?;
    let (_, after) = rest.split_once(MARKS[1]).context("docs/isolation.md has no mark where the table ends")?;
    fs::write(DOCUMENT, format!("{before}{}\n\n{table}\n{}{after}", MARKS[0], MARKS[1]))?;
    Ok(())
}
