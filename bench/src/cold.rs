//! The start of a host with 200 cached plugins, from the process to the response to its first call.

use anyhow::{Context, Result, ensure};

use crate::http::{Serving, first_call};
use crate::measure::{Samples, now, pause};
use crate::setting;

const PLUGINS: usize = 200;
const MARKER: &[u8] = b"toolgate-fixture-slot-1\n";
const SLOT: usize = 256 << 10;

pub(crate) fn cold() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let plugins = folder.path().join("plugins");
    std::fs::create_dir(&plugins)?;
    std::fs::write(plugins.join("lab.wasm"), setting::plugin("lab")?)?;
    let file = setting::repository().join("tests/illegal/target/wasm32-wasip2/release/fixture.wasm");
    let fixture = std::fs::read(&file)
        .with_context(|| "build it: cd tests/illegal && cargo build --release --target wasm32-wasip2")?;
    for n in 1..PLUGINS {
        std::fs::write(plugins.join(format!("plugin{n}.wasm")), patched(&fixture, n)?)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let start_and_call = || -> Result<std::time::Duration> {
        let start = now();
        let serving = Serving::start(folder.path())?;
        runtime.block_on(async { first_call(&mut serving.connect().await?).await })?;
        Ok(start.elapsed())
    };
    // The first start compiles. Wait until every plugin is live, because a kill could interrupt that.
    let mut first = Samples::default();
    let start = now();
    let serving = Serving::start(folder.path())?;
    runtime.block_on(all_live(&serving))?;
    first.add(start.elapsed(), 1);
    drop(serving);
    first.say("first start, 200 plugins compiled and live");
    let mut again = Samples::default();
    for _ in 0..9 {
        again.add(start_and_call()?, 1);
    }
    again.say_tail("start again, to the answer of the first call");
    Ok(())
}

/// The fixture with a tool of its own name.
fn patched(fixture: &[u8], n: usize) -> Result<Vec<u8>> {
    let at = fixture.windows(MARKER.len()).position(|window| window == MARKER).context("the fixture has a slot")?;
    let tools = format!(r#"[{{"name":"tool_{n}"}}]"#);
    let mut bytes = fixture.to_vec();
    let slot = bytes.get_mut(at + MARKER.len()..at + MARKER.len() + SLOT).context("the slot is whole")?;
    slot.fill(b' ');
    slot[..tools.len()].copy_from_slice(tools.as_bytes());
    Ok(bytes)
}

async fn all_live(serving: &Serving) -> Result<()> {
    let mut connection = serving.connect().await?;
    let body = |n: usize| format!(r#"{{"calls":[{{"id":"c","tool":"tool_{n}","arguments":{{}}}}],"ephemeral":true}}"#);
    let start = now();
    for n in 1..PLUGINS {
        loop {
            let (_, answer) = connection.post("/v1/conversations/warm/turns", &body(n)).await?;
            if !answer.contains("unknown_tool") && !answer.contains("/problems/loading") {
                break;
            }
            ensure!(start.elapsed().as_secs() < 300, "plugin{n} does not become live");
            pause(20).await;
        }
    }
    Ok(())
}
