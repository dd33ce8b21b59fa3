//! One ungated ephemeral call from a program that embeds the host and runs on the guests' threads.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use domain::Outcome;

use crate::floor::Bare;
use crate::measure::{Samples, time};
use crate::setting;

const ROUNDS: usize = 31;
const CALLS: usize = 2_000;

pub(crate) fn ephemeral() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(1).build()?;
    let host = Arc::new(runtime.block_on(setting::host())?);
    let guests = host.guests().context("the host has threads for guests")?.clone();
    let bare = Arc::new(Bare::new(&setting::plugin("lab")?)?);
    let caller = setting::caller()?;
    let measured = guests.spawn({
        let host = host.clone();
        async move {
            let (mut ours, mut floor) = (Samples::default(), Samples::default());
            let request = setting::turn("bench", "call_1", "echo", true)?;
            let submitted = host.handle().submit_here(&caller, request.clone()).await?;
            ensure!(submitted.ephemeral && matches!(submitted.turn.calls[0].outcome(), Some(Outcome::Ok { .. })));
            for _ in 0..ROUNDS {
                let call = || async { drop(bare.call("echo", setting::ARGUMENTS).await) };
                floor.add(time(CALLS, |_| call()).await, CALLS);
                let call = || async { drop(host.handle().submit_here(&caller, request.clone()).await) };
                ours.add(time(CALLS, |_| call()).await, CALLS);
            }
            anyhow::Ok((ours, floor))
        }
    });
    let (ours, floor) = runtime.block_on(measured)??;
    floor.say("bare wasmtime, fresh store and instance, 100 B");
    ours.say("toolgate: gate, schema, turn, sandbox");
    ours.say_ratio(&floor, "at most 1.5");
    Ok(())
}
