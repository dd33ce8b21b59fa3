//! The time to continue a call after an answer, with 10, 100 and 1,000 entries of its journal, in each language: from the answer on
//! disk to the end of the call on disk. The host reads the journal, and a new instance repeats the code before the question.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::runtime::Runtime;

use super::Sizes;
use super::guests::{self, Language, RUST};
use super::host::{Kept, answer, call, start};
use crate::authors::LANGUAGES;
use crate::measure::{Samples, progress};
use crate::table::Table;

const ENTRIES: [usize; 3] = [10, 100, 1_000];

/// The aim in milliseconds, for a journal of 100 entries.
fn aim((_, language, _): Language) -> f64 {
    if matches!(language, "rust" | "c" | "go") { 5.0 } else { 10.0 }
}

pub(super) fn resuming(runtime: &Runtime, rust: &[u8], server: SocketAddr, sizes: Sizes) -> Result<()> {
    let columns = ["language", "10 entries", "100 entries", "1,000 entries", "aim for 100 entries"];
    let mut table = Table::new("durable-resuming", &columns, 1);
    for language in LANGUAGES {
        progress(&format!("{}: continuing calls", language.0));
        let component = if language == RUST { rust.to_vec() } else { guests::build(language, server)? };
        let medians = runtime.block_on(medians(&component, server, sizes))?;
        let at_aim = if medians[1] < aim(language) { "met" } else { "missed" };
        let [few, some, many] = medians.map(|median| format!("{median:.1} ms"));
        let aim = format!("under {:.0} ms, {at_aim}", aim(language));
        table.row(&[language.0.to_owned(), few, some, many, aim]);
    }
    table.finish()
}

/// The median times in milliseconds, by the number of entries.
async fn medians(component: &[u8], server: SocketAddr, sizes: Sizes) -> Result<[f64; ENTRIES.len()]> {
    let host = start(component, Kept::OnDisk, server).await?;
    let mut medians = [0.0; ENTRIES.len()];
    for (median, entries) in medians.iter_mut().zip(ENTRIES) {
        let mut times = Samples::default();
        for n in 0..sizes.rounds * sizes.calls {
            let arguments = format!(r#"{{"reads":{entries},"asks":true}}"#);
            let turn = call(&host, &format!("r{entries}_{n}"), guests::TOOL, &arguments).await?;
            times.add(answer(&host, &turn).await?.continued, 1);
        }
        *median = times.quantile(0.5) / 1e3;
    }
    Ok(medians)
}
