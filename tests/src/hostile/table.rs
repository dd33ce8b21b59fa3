//! The published table: one row for each attack, with its outcome and the neighbour's latency.

use std::fmt::Write as _;

use super::run::Measured;
use super::{Attack, CLASSES, Case, Latency};

/// The rows of every class, in Markdown: the measured cases, then those that have no neighbour.
#[must_use]
pub fn markdown(measured: &[Measured], alone: &[Case], quiet: &Latency) -> String {
    let mut text = String::new();
    for class in &CLASSES {
        let rows: Vec<_> = measured.iter().filter(|row| row.case.class.name == class.name).collect();
        let alone: Vec<_> = alone.iter().filter(|case| case.class.name == class.name).collect();
        if rows.is_empty() && alone.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n### {}\n\n{}.\n", class.name, class.about);
        text.push_str("| case | attack | outcome | neighbour p50 | p99 | p99 ratio (bound) | host grew (bound) |\n");
        text.push_str("|---|---|---|---:|---:|---:|---:|\n");
        for row in rows {
            text.push_str(&line(row, quiet));
        }
        for case in alone {
            text.push_str(&without_neighbour(case));
        }
    }
    text
}

/// A row of words: the tests that prove the outcome, and why there is nothing to measure.
fn without_neighbour(case: &Case) -> String {
    let why = if let Attack::Alone(why) = &case.attack { why } else { "" };
    let tests: Vec<_> = case.proven_by.iter().map(|(file, function)| format!("`{file}::{function}`")).collect();
    let (outcome, tests) = (case.expected.words(), tests.join(", "));
    format!("| `{}` | {} {why} Proven by {tests}. | {outcome} | – | – | – | – |\n", case.name, case.says)
}

fn line(row: &Measured, quiet: &Latency) -> String {
    let ms = |percent| row.during.percentile(percent).as_secs_f64() * 1e3;
    let case = &row.case;
    format!(
        "| `{}` | {} | {} | {:.1} ms | {:.1} ms | {:.1} ({}) | {} ({}) MiB |\n",
        case.name,
        case.says.replace('|', "\\|"),
        case.expected.words().replace('|', "\\|"),
        ms(50),
        ms(99),
        row.p99_ratio(quiet),
        case.p99_ratio,
        row.grew_mib(),
        case.memory_mib,
    )
}
