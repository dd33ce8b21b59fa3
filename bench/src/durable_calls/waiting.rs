//! Calls that wait in the middle of their code: the memory of the host, and the time of an answer, with few and with many.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use domain::Turn;
use toolgate::Host;

use super::Sizes;
use super::guests::TOOL;
use super::host::{Answered, Kept, answer, call, start};
use crate::measure::{Samples, progress};
use crate::table::Table;
use crate::waiting::resident;

/// How many calls begin at once.
const TASKS: usize = 64;

const ARGUMENTS: &str = r#"{"reads":1,"asks":true}"#;

pub(super) async fn waiting(component: &[u8], server: SocketAddr, sizes: Sizes) -> Result<()> {
    let host = Arc::new(start(component, Kept::OnDisk, server).await?);
    let columns = [
        "calls that wait in the middle of their code",
        "memory of the host",
        "bytes for each more",
        "an answer on disk",
        "p99",
        "from there to the end of the call",
        "p99",
        "of that with few",
    ];
    let mut table = Table::new("durable-waiting", &columns, 1);
    let (mut begun, mut before) = (0, None::<(usize, usize, f64)>);
    for count in sizes.waiting {
        progress(&format!("{count} calls wait in the middle of their code"));
        let turns = begin(&host, begun, count).await?;
        begun = count;
        let memory = resident()?;
        let (committed, continued) = answers(&host, turns, sizes.answers).await?;
        let (each, ratio) = match before {
            None => (String::new(), "1.0".to_owned()),
            Some((few, less, floor)) => {
                let each = memory.saturating_sub(less) / (count - few);
                (each.to_string(), format!("{:.1}", continued.quantile(0.5) / floor))
            }
        };
        before = before.or(Some((count, memory, continued.quantile(0.5))));
        let ms = |samples: &Samples, part| format!("{:.2} ms", samples.quantile(part) / 1e3);
        table.row(&[
            thousands(count),
            format!("{} MiB", memory >> 20),
            each,
            ms(&committed, 0.5),
            ms(&committed, 0.99),
            ms(&continued, 0.5),
            ms(&continued, 0.99),
            ratio,
        ]);
    }
    table.finish()
}

/// Begins calls until there are `count`, and returns the last ones.
async fn begin(host: &Arc<Host>, from: usize, count: usize) -> Result<Vec<Turn>> {
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let host = Arc::clone(host);
            tokio::spawn(async move {
                let mut last = None;
                for n in (from + task..count).step_by(TASKS) {
                    last = Some(call(&host, &format!("w{n}"), TOOL, ARGUMENTS).await?);
                }
                anyhow::Ok(last)
            })
        })
        .collect();
    let mut turns = Vec::new();
    for task in tasks {
        turns.extend(task.await??);
    }
    Ok(turns)
}

/// Answers calls while the others wait. Each is replaced by a new one, so that as many wait.
async fn answers(host: &Host, turns: Vec<Turn>, answers: usize) -> Result<(Samples, Samples)> {
    let (mut committed, mut continued) = (Samples::default(), Samples::default());
    let mut turns = turns.into_iter().collect::<std::collections::VecDeque<_>>();
    for n in 0..answers {
        let turn = turns.pop_front().context("calls wait")?;
        let next = format!("{}_{n}", turn.conversation);
        let Answered { committed: first, continued: second } = answer(host, &turn).await?;
        committed.add(first, 1);
        continued.add(second, 1);
        turns.push_back(call(host, &next, TOOL, ARGUMENTS).await?);
    }
    Ok((committed, continued))
}

/// A number with commas.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        assert_eq!([20, 1_000, 100_000].map(thousands), ["20", "1,000", "100,000"]);
    }
}
