//! Legal declarations, and tools that work until somebody stops them: one that lets go of what it holds, and one that does
//! not listen. What was let go of is in the plugin's store.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use toolgate_sdk::keyvalue::Bucket;
use toolgate_sdk::prelude::*;

/// Where the calls are counted that let go of what they held.
const RELEASED: &str = "released";

/// Works in short steps until it should stop, and gives the number of steps.
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

/// Asks, and goes on after any answer.
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

/// How many calls let go of what they held.
fn released(_: NoArguments, _call: &Call) -> Result<i64, Failure> {
    Ok(Bucket::open()?.increment(RELEASED, 0)?)
}

toolgate_sdk::plugin! {
    Tool::server("work", "Works until it should stop.", work).streaming(),
    Tool::server("ignore", "Works forever.", ignore).streaming(),
    Tool::server("released", "Tells how many calls stopped in good order.", released),
}
