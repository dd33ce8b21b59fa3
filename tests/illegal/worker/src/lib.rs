//! Legal declarations, and tools that work until they are stopped. One releases its resources, and one ignores the
//! request to stop. The plugin's store counts the releases.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use toolgate_sdk::keyvalue::Bucket;
use toolgate_sdk::prelude::*;

/// The key of the number of calls that released their resources.
const RELEASED: &str = "released";

/// Works in short steps until it should stop, and returns the number of steps.
fn work(_: NoArguments, call: &Call) -> Result<u64, Failure> {
    call.progress("working", None);
    let mut steps = 0;
    while !call.stop_requested() {
        thread::sleep(Duration::from_millis(1));
        steps += 1;
    }
    call.progress("too late to be seen", None);
    Bucket::open()?.increment(RELEASED, 1)?;
    Ok(steps)
}

/// Checks for cancellation, and continues in any case.
fn ignore(_: NoArguments, call: &Call) -> Result<u64, Failure> {
    call.progress("working", None);
    let mut heard = 0_u64;
    loop {
        heard = black_box(heard.wrapping_add(u64::from(call.stop_requested())));
        thread::sleep(Duration::from_millis(1));
        if black_box(false) {
            return Ok(heard);
        }
    }
}

/// The number of calls that released their resources.
fn released(_: NoArguments, _call: &Call) -> Result<i64, Failure> {
    Ok(Bucket::open()?.increment(RELEASED, 0)?)
}

toolgate_sdk::plugin! {
    Tool::server("work", "Works until it should stop.", work).streaming(),
    Tool::server("ignore", "Works forever.", ignore).streaming(),
    Tool::server("released", "Tells how many calls stopped in good order.", released),
}
