//! Journaling against not journaling: the same work in a durable call and in one that is not, without a disk. With a disk, the
//! time of an effect and its syncs: what a call of twice the length costs more.

use std::net::SocketAddr;

use anyhow::Result;
use dispatch::ports::{Commit, Log as _, RowChange};
use domain::{CallIndex, TurnId};
use toolgate::Host;

use super::Sizes;
use super::host::{Kept, call_to_its_end, start};
use crate::measure::{Samples, now, progress};
use crate::table::Table;

/// The work of a call: its kind, and how often.
struct Kind {
    name: &'static str,
    argument: &'static str,
    times: usize,
    /// Whether each changes something, so that it must be on disk.
    is_effect: bool,
}

const KINDS: [Kind; 3] = [
    Kind { name: "reads of a key", argument: "reads", times: 200, is_effect: false },
    Kind { name: "writes of a key", argument: "writes", times: 50, is_effect: true },
    Kind { name: "HTTP requests (POST)", argument: "requests", times: 20, is_effect: true },
];

/// The cost of a call.
struct Cost {
    micros: f64,
    syncs: f64,
}

pub(super) async fn journaling(component: &[u8], server: SocketAddr, sizes: Sizes) -> Result<()> {
    let memory = start(component, Kept::InMemory, server).await?;
    let disk = start(component, Kept::OnDisk, server).await?;
    let folder = tempfile::tempdir()?;
    let floor = store::open(folder.path().join("store"), &store::StoreSettings::default())?;
    let columns = [
        "a call with",
        "without a journal, no disk",
        "with a journal, no disk",
        "ratio (aim: at most 1.25)",
        "each, on disk",
        "one commit",
        "syncs of each (aim: at most 2)",
    ];
    let mut table = Table::new("durable-journaling", &columns, 1);
    let mut number = 0_u32;
    for kind in &KINDS {
        progress(&format!("{} {}: with and without a journal", kind.times, kind.name));
        let [mut plain, mut journaled, mut each, mut one, mut ratios, mut syncs] =
            std::array::from_fn(|_| Samples::default());
        for _ in 0..sizes.rounds {
            let mut cost = async |host: &Host, tool: &str, times: usize| -> Result<Cost> {
                let arguments = format!(r#"{{"{}":{times},"url":"http://{server}/"}}"#, kind.argument);
                let (before, start) = (host.handle().store_health().syncs, now());
                for _ in 0..sizes.calls {
                    number += 1;
                    call_to_its_end(host, &format!("j{number}"), tool, &arguments).await?;
                }
                let (calls, took) = (sizes.calls as f64, start.elapsed());
                let synced = host.handle().store_health().syncs - before;
                Ok(Cost { micros: took.as_secs_f64() * 1e6 / calls, syncs: synced as f64 / calls })
            };
            let without = cost(&memory, "work_plainly", kind.times).await?;
            let with = cost(&memory, "work", kind.times).await?;
            plain.add_value(without.micros);
            journaled.add_value(with.micros);
            ratios.add_value(with.micros / without.micros);
            if !kind.is_effect {
                continue;
            }
            let short = cost(&disk, "work", kind.times).await?;
            let long = cost(&disk, "work", 2 * kind.times).await?;
            each.add_value((long.micros - short.micros) / kind.times as f64);
            syncs.add_value((long.syncs - short.syncs) / kind.times as f64);
            one.add_value(commit(&floor, kind.times).await?);
        }
        let micros = |samples: &Samples| format!("{:.0} µs", samples.quantile(0.5));
        let spread = |samples: &Samples| {
            let [median, low, high] = [0.5, 0.25, 0.75].map(|part| samples.quantile(part));
            format!("{median:.2} ({low:.2} to {high:.2})")
        };
        let effect = |cell: String| if kind.is_effect { cell } else { "no effect".to_owned() };
        table.row(&[
            format!("{} {}", kind.times, kind.name),
            micros(&plain),
            micros(&journaled),
            spread(&ratios),
            effect(micros(&each)),
            effect(micros(&one)),
            effect(spread(&syncs)),
        ]);
    }
    table.finish()
}

/// The time of a commit of one row in microseconds, the mean of this many.
async fn commit(store: &store::SledStore, times: usize) -> Result<f64> {
    let begun = now();
    for run in 0..u32::try_from(times)? {
        let row = RowChange::JournalRun { turn: TurnId::from_bits(7), call: CallIndex(0), run: Some(run) };
        store.append(&Commit::rows(vec![row])).await?;
    }
    Ok(begun.elapsed().as_secs_f64() * 1e6 / times as f64)
}
