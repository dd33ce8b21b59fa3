//! Tools that exceed limits: time, memory, stack, host calls, sizes.

use std::hint::black_box;
use std::io::Write;
use std::thread;
use std::time::Duration;

use toolgate_sdk::prelude::*;

/// A number of bytes.
#[derive(Deserialize, JsonSchema)]
pub struct Bytes {
    bytes: usize,
}

/// An amount of memory.
#[derive(Deserialize, JsonSchema)]
pub struct Mebibytes {
    mib: usize,
}

/// A number of nested calls.
#[derive(Deserialize, JsonSchema)]
pub struct Depth {
    depth: u64,
}

/// A length of time.
#[derive(Deserialize, JsonSchema)]
pub struct Milliseconds {
    ms: u64,
}

/// A number of things.
#[derive(Deserialize, JsonSchema)]
pub struct Count {
    count: u32,
}

/// How much to say.
#[derive(Deserialize, JsonSchema)]
pub struct Chatter {
    /// How often.
    updates: u32,
    /// How long each time.
    bytes: usize,
}

/// Loops forever, without a host call.
pub fn spin(_: NoArguments, _call: &Call) -> Result<u64, Failure> {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
        if black_box(false) {
            return Ok(turns);
        }
    }
}

/// Blocks in the host, where the engine cannot interrupt it.
pub fn sleep(args: Milliseconds, _call: &Call) -> Result<u64, Failure> {
    thread::sleep(Duration::from_millis(args.ms));
    Ok(args.ms)
}

/// Logs the key, so that a test can read it although the call never ends.
pub fn key(args: Milliseconds, call: &Call) -> Result<u64, Failure> {
    call.log(Level::Info, call.idempotency_key());
    sleep(args, call)
}

/// A JSON text with exactly this many bytes, including its quotes.
pub fn flood(args: Bytes, _call: &Call) -> Result<String, Failure> {
    Ok("x".repeat(args.bytes.saturating_sub(2)))
}

/// Takes one page at a time and writes to it, so that the memory is really used.
pub fn grow(args: Mebibytes, _call: &Call) -> Result<usize, Failure> {
    const MIB: usize = 1024 * 1024;
    let mut taken: Vec<Vec<u8>> = Vec::new();
    for _ in 0..args.mib {
        let mut block = Vec::new();
        if block.try_reserve_exact(MIB).is_err() {
            return Err(Failure::failed(format!("no memory left after {} MiB", taken.len())));
        }
        block.resize(MIB, 1);
        taken.push(black_box(block));
    }
    Ok(taken.iter().map(|block| usize::from(block[0])).sum())
}

/// Uses the engine's stack instead of the guest's own: [`down`] keeps nothing in memory.
pub fn recurse(args: Depth, _call: &Call) -> Result<u64, Failure> {
    black_box(down(args.depth));
    Ok(args.depth)
}

/// Rotation and addition are not associative, so no optimizer turns this into a loop.
#[inline(never)]
fn down(depth: u64) -> u64 {
    if depth == 0 { 0 } else { down(depth - 1).rotate_left(7) ^ depth }
}

/// Alternates progress and log lines of this size.
pub fn chatter(args: Chatter, call: &Call) -> Result<u32, Failure> {
    let text = "x".repeat(args.bytes);
    for n in 0..args.updates {
        call.progress(&text, f64::from(n) / f64::from(args.updates));
        call.log(Level::Info, &text);
    }
    Ok(args.updates)
}

/// Lines of a hundred bytes.
pub fn stdout(args: Bytes, _call: &Call) -> Result<usize, Failure> {
    let line = [b"x".repeat(99).as_slice(), b"\n"].concat();
    let mut out = std::io::stdout().lock();
    let mut left = args.bytes;
    while left > 0 {
        let part = left.min(line.len());
        out.write_all(&line[..part])?;
        left -= part;
    }
    out.flush()?;
    Ok(args.bytes)
}

/// Creates timers that are neither awaited nor dropped during the call.
pub fn handles(args: Count, _call: &Call) -> Result<u32, Failure> {
    #[cfg(target_os = "wasi")]
    {
        let held: Vec<_> =
            (0..args.count).map(|_| wasi::clocks::monotonic_clock::subscribe_duration(1_000_000_000)).collect();
        black_box(&held);
    }
    Ok(args.count)
}

/// In one request to the host.
pub fn entropy(args: Bytes, _call: &Call) -> Result<usize, Failure> {
    let mut bytes = vec![0; args.bytes];
    getrandom::fill(&mut bytes).map_err(|error| Failure::unavailable(error.to_string()))?;
    Ok(black_box(bytes).len())
}
