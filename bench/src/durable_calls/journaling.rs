//! Journaling against not journaling: the same work in a durable call and in one that is not, without a disk. With a disk, the time of
//! an effect in syncs.

use std::net::SocketAddr;

use anyhow::Result;
use dispatch::ports::{Commit, Log as _, RowChange};
use domain::{CallIndex, TurnId};

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
        "with a journal, on disk",
        "one sync",
        "syncs for each (aim: at most 2)",
    ];
    let mut table = Table::new("durable-journaling", &columns, 1);
    let mut number = 0_u32;
    for kind in &KINDS {
        progress(&format!("{} {}: with and without a journal", kind.times, kind.name));
        let arguments = format!(r#"{{"{}":{},"url":"http://{server}/"}}"#, kind.argument, kind.times);
        let [mut plain, mut journaled, mut synced, mut one, mut ratios, mut syncs] =
            std::array::from_fn(|_| Samples::default());
        for _ in 0..sizes.rounds {
            let mut time = async |host: &toolgate::Host, tool: &str| -> Result<f64> {
                let start = now();
                for _ in 0..sizes.calls {
                    number += 1;
                    call_to_its_end(host, &format!("j{number}"), tool, &arguments).await?;
                }
                Ok(start.elapsed().as_secs_f64() * 1e6 / sizes.calls as f64)
            };
            let without = time(&memory, "work_plainly").await?;
            let with = time(&memory, "work").await?;
            let on_disk = time(&disk, "work").await?;
            let begun = now();
            for run in 0..u32::try_from(kind.times)? {
                let row = RowChange::JournalRun { turn: TurnId::from_bits(7), call: CallIndex(0), run: Some(run) };
                floor.append(&Commit::rows(vec![row])).await?;
            }
            let sync = begun.elapsed().as_secs_f64() * 1e6 / kind.times as f64;
            plain.add_value(without);
            journaled.add_value(with);
            synced.add_value(on_disk);
            one.add_value(sync);
            ratios.add_value(with / without);
            // The rest of the call is the same without a disk.
            syncs.add_value((on_disk - with) / sync / kind.times as f64);
        }
        let micros = |samples: &Samples| format!("{:.0} µs", samples.quantile(0.5));
        let spread = |samples: &Samples| {
            let [median, low, high] = [0.5, 0.25, 0.75].map(|part| samples.quantile(part));
            format!("{median:.2} ({low:.2} to {high:.2})")
        };
        table.row(&[
            format!("{} {}", kind.times, kind.name),
            micros(&plain),
            micros(&journaled),
            spread(&ratios),
            micros(&synced),
            micros(&one),
            if kind.is_effect { spread(&syncs) } else { "no effect".to_owned() },
        ]);
    }
    table.finish()
}
