//! The neighbour: another principal with another plugin on the same host. It calls its tool during an attack, or lists its
//! turns, and all its requests must succeed. Its latency is reported but not asserted, because it also depends on the machine.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde::Deserialize;
use serde_json::json;

use crate::http::{Client, outcomes};

/// The tool that the neighbour calls.
pub(super) const TOOL: &str = "calm";

/// The conversation of its calls.
const CONVERSATION: &str = "neighbour";

/// The requests of the neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Turns with one call.
    #[default]
    Submits,
    /// Lists of its turns.
    Reads,
}

/// The durations of some calls.
#[derive(Debug, Clone, Default)]
pub struct Latency(Vec<Duration>);

impl Latency {
    /// Adds other measurements.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(&other.0);
    }

    /// The number of calls.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.0.len()
    }

    /// The time within which this percentage of calls returned.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        sorted.get((sorted.len() * percent / 100).min(last)).copied().unwrap_or_default()
    }

    /// The ratio to other calls at this percentile.
    #[must_use]
    pub fn ratio(&self, others: &Self, percent: usize) -> f64 {
        let base = others.percentile(percent).as_secs_f64();
        if base > 0.0 { self.percentile(percent).as_secs_f64() / base } else { 0.0 }
    }
}

/// The neighbour.
pub(super) struct Neighbour {
    client: Client,
    /// The number of its calls that ended.
    calls: AtomicUsize,
}

impl Neighbour {
    pub(super) fn new(client: Client) -> Self {
        Self { client, calls: AtomicUsize::new(0) }
    }

    /// Checks that the host has each of its calls once, and each has ended.
    pub(super) fn each_call_is_recorded_once(&self) -> Result<()> {
        let (mut ids, mut after) = (BTreeSet::new(), String::new());
        loop {
            let page = self.client.get(&format!("/v1/conversations/{CONVERSATION}/turns?limit=100{after}")).ok(200);
            for turn in page["turns"].as_array().into_iter().flatten() {
                let calls = turn["calls"].as_array().map(Vec::as_slice);
                let [call] = calls.unwrap_or_default() else { bail!("the neighbour's turns have one call: {turn:#}") };
                ensure!(ids.insert(call["id"].to_string()), "the host has two turns with this call: {turn:#}");
                ensure!(turn["state"] != "open", "the neighbour's call has not ended: {turn:#}");
            }
            match page["next"].as_u64() {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
        }
        let made = self.calls.load(Ordering::Relaxed);
        ensure!(ids.len() == made, "the neighbour made {made} calls, and the host has {}", ids.len());
        Ok(())
    }

    /// Sends this many requests.
    pub(super) fn call(&self, times: usize, work: Work) -> Result<Latency> {
        (0..times).map(|_| self.once(work)).collect::<Result<Vec<_>>>().map(Latency)
    }

    /// Calls without a pause during the attack. Repeats the attack until there were this many calls.
    pub(super) fn during<T>(
        &self,
        calls: usize,
        work: Work,
        mut attack: impl FnMut() -> Result<T>,
    ) -> Result<(T, Latency)> {
        let (over, done) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let neighbour = scope.spawn(|| -> Result<Latency> {
                let mut samples = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    samples.push(self.once(work)?);
                    done.store(samples.len(), Ordering::Relaxed);
                }
                Ok(Latency(samples))
            });
            let stop = Stop(&over);
            let end = loop {
                let end = attack();
                // The neighbour has stopped, so its result is an error.
                if end.is_err() || neighbour.is_finished() || done.load(Ordering::Relaxed) >= calls {
                    break end;
                }
            };
            drop(stop);
            match neighbour.join() {
                Ok(samples) => Ok((end?, samples?)),
                Err(_) => bail!("the neighbour got no response"),
            }
        })
    }

    #[expect(clippy::disallowed_methods, reason = "this file measures the neighbour's calls")]
    fn once(&self, work: Work) -> Result<Duration> {
        let begun = Instant::now();
        match work {
            Work::Submits => {
                let turn = self.client.call(CONVERSATION, TOOL, json!({"a": 1}));
                let took = begun.elapsed();
                self.calls.fetch_add(1, Ordering::Relaxed);
                let ends = outcomes(&turn);
                ensure!(ends == ["ok"], "a neighbour's call ended {ends:?}: {turn:#}");
                Ok(took)
            }
            Work::Reads => {
                let turns = self.client.get(&format!("/v1/conversations/{CONVERSATION}/turns?limit=5"));
                let took = begun.elapsed();
                let has_turns = turns.status == 200 && turns.text.contains(TOOL);
                ensure!(has_turns, "the neighbour's turns are not listed: {} {}", turns.status, turns.text);
                Ok(took)
            }
        }
    }
}

/// Stops the neighbour, even when the attack panics. Otherwise the test would wait for it forever.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_come_from_the_measurements() {
        let latency = Latency((1..=100).rev().map(Duration::from_millis).collect());
        assert_eq!(latency.percentile(50), Duration::from_millis(51));
        assert_eq!(latency.percentile(99), Duration::from_millis(100));
        let slower = Latency((1..=100).map(|n| Duration::from_millis(2 * n)).collect());
        assert!((slower.ratio(&latency, 99) - 2.0).abs() < 1e-9);
        assert_eq!(Latency::default().percentile(99), Duration::ZERO);
        assert!(slower.ratio(&Latency::default(), 99).abs() < 1e-9);
    }
}
