//! A test can stop a call and observe the tool's reaction.

use std::cell::Cell;

use serde_json::json;
use toolgate_sdk::prelude::*;
use toolgate_sdk::testing::Attempt;

thread_local! {
    static RELEASED: Cell<u32> = const { Cell::new(0) };
}

fn tools() -> toolgate_sdk::Tools {
    toolgate_sdk::Tools::new().with(Tool::server("count", "Counts up to ten, or as far as it comes.", count))
}

fn count(_: NoArguments, call: &Call) -> Result<u32, Failure> {
    for n in 0..10 {
        if call.stop_requested() {
            RELEASED.set(RELEASED.get() + 1);
            return Ok(n);
        }
    }
    Ok(10)
}

#[test]
fn a_call_stops_where_the_test_says() {
    let counted = |attempt: Attempt| attempt.run(&tools()).result;
    assert_eq!(counted(Attempt::at("count", json!({}))), Ok(json!(10)));
    assert_eq!(counted(Attempt::at("count", json!({})).stop_after(3)), Ok(json!(3)));
    assert_eq!(counted(Attempt::at("count", json!({})).stop_after(0)), Ok(json!(0)));
    assert_eq!(RELEASED.get(), 2);
}
