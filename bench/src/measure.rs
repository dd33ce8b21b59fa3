//! Measures and prints times: medians with their spread, and ratios of interleaved measurements.

use std::future::Future;
use std::time::{Duration, Instant};

/// Prints a line of the report.
#[expect(clippy::print_stdout, clippy::disallowed_macros, reason = "the report of a benchmark is its output")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// Prints what a long measurement does, apart from the report.
#[expect(clippy::print_stderr, clippy::disallowed_macros, reason = "a benchmark of minutes says what it does")]
pub(crate) fn progress(line: &str) {
    eprintln!("  {line}");
}

/// The time.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock, and only here")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits before the next poll of a host in another process.
#[expect(clippy::disallowed_methods, reason = "another process has no event to wait for")]
pub(crate) async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// Times in microseconds.
#[derive(Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// Adds a time that `calls` of something took together.
    pub(crate) fn add(&mut self, time: Duration, calls: usize) {
        self.0.push(time.as_secs_f64() * 1e6 / calls as f64);
    }

    /// Adds a time in microseconds, or a ratio of two times.
    pub(crate) fn add_value(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The value below which this part of the samples lies.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1) as f64;
        sorted.get((last * part).round() as usize).copied().unwrap_or(f64::NAN)
    }

    /// Median and the middle half.
    pub(crate) fn say(&self, what: &str) {
        let (median, low, high) = (self.quantile(0.5), self.quantile(0.25), self.quantile(0.75));
        say(&format!("  {what:<58} {median:>10.2} µs   (middle half {low:.2} to {high:.2})"));
    }

    /// Median and tail, for latencies of single events.
    pub(crate) fn say_tail(&self, what: &str) {
        let (median, tail, worst) = (self.quantile(0.5), self.quantile(0.99), self.quantile(1.0));
        say(&format!("  {what:<58} {median:>10.1} µs   (p99 {tail:.1}, worst {worst:.1})"));
    }

    /// The ratio of each sample to the sample of the floor that was taken with it.
    pub(crate) fn say_ratio(&self, floor: &Self, aim: &str) {
        let ratios = Self(self.0.iter().zip(&floor.0).map(|(ours, floor)| ours / floor).collect());
        let (median, low, high) = (ratios.quantile(0.5), ratios.quantile(0.25), ratios.quantile(0.75));
        say(&format!("  {:<58} {median:>10.2} ×    (middle half {low:.2} to {high:.2}; aim: {aim})", "ratio"));
    }
}

/// The time that a number of runs take, one after the other.
pub(crate) async fn time<F: Future>(runs: usize, mut run: impl FnMut(usize) -> F) -> Duration {
    let start = now();
    for n in 0..runs {
        run(n).await;
    }
    start.elapsed()
}
