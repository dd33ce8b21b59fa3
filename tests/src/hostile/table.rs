//! The published table: one row for each attack, with its outcome and the neighbour's latency.

use std::fmt::Write as _;

use super::run::Measured;
use super::{CLASSES, Latency};

/// The rows of every class, in Markdown.
#[must_use]
pub fn markdown(measured: &[Measured], quiet: &Latency) -> String {
    let mut text = String::new();
    for class in &CLASSES {
        let rows: Vec<_> = measured.iter().filter(|row| row.case.class.name == class.name).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n### {}\n\n{}.\n", class.name, class.about);
        text.push_str("| case | attack | outcome | neighbour p50 | p99 | p99 ratio (bound) | host grew (bound) |\n");
        text.push_str("|---|---|---|---:|---:|---:|---:|\n");
        for row in rows {
            text.push_str(&line(row, quiet));
        }
    }
    text
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
