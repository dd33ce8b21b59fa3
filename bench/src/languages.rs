//! A plugin of each language: its size, its compile time, the time and memory of its calls, and what its author waits for.
//! Rust is the floor.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use capabilities::{Capabilities, Grants};
use domain::{Digest, Json, Limits, Outcome, PluginName};
use sandbox::{Job, Plugin, Sandbox, SandboxSettings, guest_runtime};
use serde_json::Value;

use crate::measure::{Samples, now, progress};
use crate::setting;
use crate::table::Table;

/// The number of calls for the median.
const CALLS: usize = 200;

/// The languages with an example plugin of each. Rust is the floor.
const PLUGINS: [(&str, &str); 6] = [
    ("Rust", "textkit"),
    ("C", "hasher"),
    ("Go", "differ"),
    ("JavaScript (QuickJS)", "dates"),
    ("TypeScript (StarlingMonkey)", "reshape"),
    ("Python", "stats"),
];

/// One call of it: the first of its examples that has a result.
struct Example {
    bytes: Vec<u8>,
    tool: String,
    arguments: Json,
}

pub(crate) fn languages() -> Result<()> {
    let columns = [
        "language",
        "plugin",
        "component",
        "compiled once",
        "loaded again",
        "first call after that",
        "a call in a fresh instance",
        "of Rust's",
        "memory of a call",
    ];
    let mut table = Table::new("languages", &columns, 2);
    let mut floor = None;
    for (language, name) in PLUGINS {
        progress(&format!("{language}: compiling, loading and calling plugins/{name}"));
        let example = example(name)?;
        let cache = tempfile::tempdir()?;
        let begun = now();
        drop(load(cache.path(), &example)?);
        let compiled = begun.elapsed();
        // Another sandbox with the same cache, as after a restart.
        let (engine, begun) = (sandbox(cache.path())?, now());
        let plugin = plugin(&engine, &example)?;
        let loaded = begun.elapsed();
        let runtime = guest_runtime(1)?;
        let begun = now();
        runtime.block_on(call(&plugin, &example))?;
        let first = begun.elapsed();
        let (mut calls, mut memory) = (Samples::default(), 0);
        for _ in 0..CALLS {
            let begun = now();
            memory = runtime.block_on(call(&plugin, &example))?;
            calls.add(begun.elapsed(), 1);
        }
        let median = calls.quantile(0.5);
        let ratio = median / *floor.get_or_insert(median);
        table.row(&[
            language.to_owned(),
            format!("`{name}`"),
            format!("{:.1} MB", example.bytes.len() as f64 / 1e6),
            format!("{:.0} ms", compiled.as_secs_f64() * 1e3),
            format!("{:.1} ms", loaded.as_secs_f64() * 1e3),
            format!("{:.1} ms", first.as_secs_f64() * 1e3),
            format!("{:.2} ms", median / 1e3),
            format!("{ratio:.0}"),
            format!("{:.1} MiB", memory as f64 / f64::from(1 << 20)),
        ]);
    }
    table.finish()?;
    crate::authors::authors()
}

fn example(name: &str) -> Result<Example> {
    let folder = setting::repository().join("plugins").join(name);
    let built = folder.join("build").join(format!("{name}.wasm"));
    let bytes = if folder.join("Cargo.toml").is_file() {
        setting::plugin(name)?
    } else {
        std::fs::read(&built)
            .with_context(|| format!("{} is missing: toolgate build plugins/{name}", built.display()))?
    };
    let examples: Vec<Value> = serde_json::from_slice(&std::fs::read(folder.join("examples.json"))?)?;
    let with_result = examples.into_iter().find(|example| example.get("result").is_some());
    let example = with_result.with_context(|| format!("plugins/{name} has no example with a result"))?;
    let tool = example["tool"].as_str().unwrap_or_default().to_owned();
    Ok(Example { bytes, tool, arguments: Json::unchecked(example["arguments"].to_string()) })
}

fn sandbox(cache: &Path) -> Result<Sandbox> {
    Sandbox::new(SandboxSettings { pool: 16, cache: Some(cache.to_owned()), ..SandboxSettings::default() })
}

fn plugin(engine: &Sandbox, example: &Example) -> Result<Plugin> {
    Ok(engine.load(Digest::of(&example.bytes), &example.bytes, Capabilities::EVERY)?)
}

fn load(cache: &Path, example: &Example) -> Result<Plugin> {
    plugin(&sandbox(cache)?, example)
}

/// Makes the call, and returns its peak memory.
async fn call(plugin: &Plugin, example: &Example) -> Result<usize> {
    let job = Job {
        plugin: PluginName::new("bench")?,
        grants: Arc::new(Grants::default()),
        call_id: "call_1".into(),
        tool: example.tool.as_str().into(),
        arguments: example.arguments.clone(),
        idempotency_key: "key_1".into(),
        attempt: 1,
        scope: Json::unchecked("{}"),
        streaming: false,
        durable: None,
        recording: None,
    };
    let end = plugin.run(&job, &Limits::default(), Arc::new(())).await;
    match end.ended.last() {
        Outcome::Ok { .. } => Ok(end.spent.map_or(0, |spent| spent.peak_memory)),
        other => bail!("{}: {:?}", example.tool, other.error(true)),
    }
}
