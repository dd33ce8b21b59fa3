//! Benchmarks. Each compares with a floor that is measured in the same run, because absolute times shift by up to two
//! times between runs of one machine; ratios do not.
//!
//! `cargo xtask bench` runs all of them, `cargo xtask bench NAME…` some. With `--write`, tables also go into docs/performance.md. With
//! `--short`, `durable-calls` and `scale` measure little, to see that they work.
//! Nothing here is asserted.

mod authors;
mod calls;
mod cold;
mod commits;
mod durable_calls;
mod floor;
mod http;
mod languages;
mod measure;
mod neighbours;
mod scale;
mod setting;
mod table;
mod waiting;

use anyhow::{Result, bail};

type Bench = fn() -> Result<()>;

/// The option that writes tables into docs/performance.md.
const WRITE: &str = "--write";

/// Whether tables go into docs/performance.md.
fn is_written() -> bool {
    std::env::args().any(|word| word == WRITE)
}

/// The option that measures little.
const SHORT: &str = "--short";

/// Whether little is measured.
fn is_short() -> bool {
    std::env::args().any(|word| word == SHORT)
}

const BENCHES: [(&str, &str, Bench); 10] = [
    ("ephemeral", "an ungated ephemeral call through the library, against bare wasmtime", calls::ephemeral),
    ("durable", "a durable call, against the cost of its commits", commits::durable),
    ("throughput", "durable turns per second, against sled with one committing thread", commits::throughput),
    ("http", "durable and ephemeral turns over HTTP on loopback", http::http),
    ("waiting", "resolving with 1,000 and 100,000 waiting calls; memory of a waiting call", waiting::waiting),
    (
        "durable-calls",
        "the cost of a journal, continuing a call in each language, and 100,000 calls that wait in the middle of their code",
        durable_calls::durable_calls,
    ),
    ("scale", "1, 2 and 4 hosts on one PostgreSQL database, against the rate of its transactions", scale::scale),
    ("neighbours", "a well-behaved call and a TCP echo while 8 guests spin", neighbours::neighbours),
    ("cold", "start of a host that knows 200 plugins, to its first call", cold::cold),
    (
        "languages",
        "a plugin of each language: size, compiling, loading, calls, and what its author waits for",
        languages::languages,
    ),
];

fn main() -> Result<()> {
    let asked: Vec<String> = std::env::args().skip(1).filter(|word| word != WRITE && word != SHORT).collect();
    if let Some(unknown) = asked.iter().find(|name| !BENCHES.iter().any(|(known, ..)| known == name)) {
        let known: Vec<&str> = BENCHES.iter().map(|(name, ..)| *name).collect();
        bail!("there is no benchmark {unknown}; there are: {}", known.join(", "));
    }
    for (name, what, bench) in BENCHES {
        if asked.is_empty() || asked.iter().any(|asked| asked == name) {
            measure::say(&format!("\n{name}: {what}"));
            bench()?;
        }
    }
    Ok(())
}
