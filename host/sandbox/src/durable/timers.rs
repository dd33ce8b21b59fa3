//! `wasi:io/poll` and `wasi:clocks/monotonic-clock` of a call. A durable call has virtual timers. So a sleep of the guest's
//! language is a step, as `durable.sleep` is, and concurrent timers end in the same order in each run.

use capabilities::States;
use wasmtime::Result;
use wasmtime::component::{HasData, Resource};
use wasmtime_wasi::clocks::WasiClocksCtxView;
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi::p2::bindings::io::poll::{self, HostPollable};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use domain::Digest;

use super::{Replay, RunParts};
use crate::run::Run;

/// The part of a call that waits: the library's clocks and resource table, and its own timers if the call is durable.
pub(crate) struct Timers<'a> {
    pub(crate) clocks: WasiClocksCtxView<'a>,
    pub(crate) states: &'a mut States,
    pub(crate) run: &'a mut Run,
    pub(crate) replay: Option<&'a mut Replay>,
}

impl HasData for Timers<'static> {
    type Data<'a> = Timers<'a>;
}

/// The resource behind the pollable of a virtual timer. Its time is in [`Replay::timers`], so nobody waits for this.
struct Timer;

#[wasmtime_wasi::async_trait]
impl Pollable for Timer {
    async fn ready(&mut self) {
        std::future::pending().await
    }
}

impl Timers<'_> {
    /// Whether a pollable is ready now. In a durable call, nothing but a timer becomes ready by itself: the host has carried
    /// out all that the guest asked for.
    async fn is_ready(&mut self, pollable: u32) -> Result<bool> {
        if let Some(replay) = self.replay.as_deref()
            && let Some(deadline) = replay.timers.get(&pollable)
        {
            return Ok(*deadline <= replay.clock.now());
        }
        HostPollable::ready(self.clocks.table, Resource::new_borrow(pollable)).await
    }

    /// Carries out what the guest of a durable call asked for. The call waits as long as servers ask for.
    async fn settle(&mut self) -> Result<()> {
        while let Some(replay) = self.replay.as_deref_mut() {
            match self.states.settle(self.clocks.table, !replay.is_stopping).await? {
                Some(until) => {
                    let parts = RunParts { run: &mut *self.run, states: &mut *self.states };
                    replay.wait_for_servers(parts, until).await?;
                }
                None => break,
            }
        }
        Ok(())
    }

    /// Polls in a durable call. Returns the ready ones in the order of the list.
    async fn poll_virtual(&mut self, pollables: &[u32]) -> Result<Vec<u32>> {
        loop {
            self.settle().await?;
            let mut ready = Vec::new();
            for (index, pollable) in (0..).zip(pollables) {
                if self.is_ready(*pollable).await? {
                    ready.push(index);
                }
            }
            if !ready.is_empty() {
                return Ok(ready);
            }
            let Some(replay) = self.replay.as_deref_mut() else { return Ok(ready) };
            let earliest = pollables.iter().filter_map(|pollable| replay.timers.get(pollable)).min();
            // Without a timer, the guest waits until its time is over.
            let Some(&earliest) = earliest else { std::future::pending().await };
            let digest = Digest::of_parts(&[b"wasi:io/poll.poll", &earliest.to_be_bytes()]);
            let parts = RunParts { run: &mut *self.run, states: &mut *self.states };
            replay.until(parts, digest, earliest).await?;
        }
    }
}

impl poll::Host for Timers<'_> {
    async fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> Result<Vec<u32>> {
        if self.replay.is_none() || pollables.is_empty() {
            return poll::Host::poll(self.clocks.table, pollables).await;
        }
        let pollables: Vec<_> = pollables.iter().map(Resource::rep).collect();
        self.poll_virtual(&pollables).await
    }
}

impl HostPollable for Timers<'_> {
    async fn ready(&mut self, pollable: Resource<DynPollable>) -> Result<bool> {
        if let Some(replay) = &self.replay {
            // A guest that checks in a loop comes to an end.
            replay.clock.read();
            self.settle().await?;
        }
        self.is_ready(pollable.rep()).await
    }

    async fn block(&mut self, pollable: Resource<DynPollable>) -> Result<()> {
        if self.replay.is_none() {
            return HostPollable::block(self.clocks.table, pollable).await;
        }
        self.poll_virtual(&[pollable.rep()]).await.map(drop)
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> Result<()> {
        if let Some(replay) = &mut self.replay {
            replay.timers.remove(&pollable.rep());
        }
        HostPollable::drop(self.clocks.table, pollable)
    }
}

impl monotonic_clock::Host for Timers<'_> {
    fn now(&mut self) -> Result<u64> {
        monotonic_clock::Host::now(&mut self.clocks)
    }

    fn resolution(&mut self) -> Result<u64> {
        monotonic_clock::Host::resolution(&mut self.clocks)
    }

    fn subscribe_instant(&mut self, when: u64) -> Result<Resource<DynPollable>> {
        let Some(replay) = &mut self.replay else {
            return monotonic_clock::Host::subscribe_instant(&mut self.clocks, when);
        };
        let timer = self.clocks.table.push(Timer)?;
        let pollable = subscribe(self.clocks.table, timer)?;
        replay.timers.insert(pollable.rep(), when);
        Ok(pollable)
    }

    fn subscribe_duration(&mut self, duration: u64) -> Result<Resource<DynPollable>> {
        match &self.replay {
            None => monotonic_clock::Host::subscribe_duration(&mut self.clocks, duration),
            Some(replay) => {
                let when = replay.clock.now().saturating_add(duration);
                self.subscribe_instant(when)
            }
        }
    }
}
