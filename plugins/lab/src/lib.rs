//! Tools that misbehave on purpose, one for each limit that a host enforces, and a few that behave, for tests and
//! demos.
//!
//! They are not useful for agents. `spend` has the tools that exceed a limit.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use toolgate_sdk::prelude::*;

mod spend;

/// Any JSON.
#[derive(Deserialize, JsonSchema)]
struct Anything {
    value: Value,
}

/// A text for the reader of the outcome.
#[derive(Deserialize, JsonSchema)]
struct Message {
    message: String,
}

/// How far to count.
#[derive(Deserialize, JsonSchema)]
struct CountTo {
    #[schemars(range(max = 1000))]
    to: u32,
}

/// The properties of a call.
#[derive(Serialize, JsonSchema)]
struct Identity {
    id: String,
    idempotency_key: String,
    attempt: u32,
    /// The calls that this instance has had, with this one.
    calls: u32,
    conversation: String,
    turn: String,
    caller: String,
    approver: Option<String>,
    context: Value,
}

/// The times of the clocks.
#[derive(Serialize, JsonSchema)]
struct Clocks {
    /// Milliseconds since 1970.
    unix_ms: u64,
    /// How far the monotonic clock went between two reads.
    monotonic_ns: u64,
}

/// A result that is declared as a number but is a text.
#[derive(Serialize, JsonSchema)]
struct Liar {
    #[schemars(with = "u32")]
    number: String,
}

/// The calls of this instance. The host makes an instance for each call.
static CALLS: AtomicU32 = AtomicU32::new(0);

fn identity(_: NoArguments, call: &Call) -> Result<Identity, Failure> {
    let scope = call.scope();
    Ok(Identity {
        id: call.id().to_owned(),
        idempotency_key: call.idempotency_key().to_owned(),
        attempt: call.attempt(),
        calls: CALLS.fetch_add(1, Ordering::Relaxed) + 1,
        conversation: scope.conversation,
        turn: scope.turn,
        caller: scope.caller,
        approver: scope.approver,
        context: scope.context,
    })
}

fn clock(_: NoArguments, _call: &Call) -> Result<Clocks, Failure> {
    let start = Instant::now();
    let unix_ms = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    Ok(Clocks { unix_ms, monotonic_ns: u64::try_from(start.elapsed().as_nanos())? })
}

fn random(_: NoArguments, _call: &Call) -> Result<Vec<String>, Failure> {
    (0..8).map(|_| Ok(format!("{:016x}", getrandom::u64().map_err(|e| Failure::unavailable(e.to_string()))?))).collect()
}

fn count(args: CountTo, call: &Call) -> Result<u32, Failure> {
    for n in 1..=args.to {
        call.progress_with(&format!("counted to {n}"), f64::from(n) / f64::from(args.to), &json!({"n": n}));
    }
    Ok(args.to)
}

fn panics(args: Message, _call: &Call) -> Result<(), Failure> {
    panic!("{}", args.message)
}

toolgate_sdk::plugin! {
    Tool::server("echo", "Gives back the value.", |args: Anything, _: &Call| Ok(args.value)).read_only().idempotent(),
    Tool::server("gated_echo", "Gives back the value, once a person approves.", |args: Anything, _: &Call| Ok(args.value))
        .requires_approval()
        .prompt("Echo {value}?")
        .editable_all(),
    Tool::server("count", "Counts, and reports each number.", count).streaming(),
    Tool::server("gated_count", "Counts once a person approves, and reports each number.", count)
        .requires_approval()
        .streaming()
        .editable(&["to"])
        .on_expiry(OnExpiry::Deny),
    Tool::server("identity", "Tells what the call knows of itself.", identity),
    Tool::server("clock", "Reads both clocks.", clock),
    Tool::server("random", "Gives eight random numbers in hexadecimal.", random),
    Tool::server("fail", "Fails.", |args: Message, _: &Call| Err::<(), _>(Failure::failed(args.message))),
    Tool::server("unavailable", "Is unavailable.", |args: Message, _: &Call| {
        Err::<(), _>(Failure::unavailable(args.message))
    }),
    Tool::server("invalid", "Finds its arguments invalid.", |args: Message, _: &Call| {
        Err::<(), _>(Failure::invalid_arguments(args.message))
    }),
    Tool::server("panic", "Panics, which is a trap.", panics),
    Tool::server("bad_result", "Gives a result that breaks its own schema.", |_: NoArguments, _: &Call| {
        Ok(Liar { number: "seven".to_owned() })
    }),
    Tool::server_json("not_json", "Gives a result that is not JSON.", |_: NoArguments, _: &Call| Ok("{".to_owned())),
    Tool::server("spin", "Loops forever.", spend::spin).timeout(Duration::from_millis(500)).recovery(Recovery::Fail),
    Tool::server("sleep", "Sleeps.", spend::sleep),
    Tool::server("key", "Logs its idempotency key, then sleeps.", spend::key),
    Tool::server("gated_key", "Logs its idempotency key once a person approves, then sleeps.", spend::key)
        .requires_approval()
        .editable_all()
        .recovery(Recovery::Ask),
    Tool::server("flood", "Gives a result of that many bytes.", spend::flood),
    Tool::server("grow", "Takes and touches that much memory.", spend::grow),
    Tool::server("recurse", "Calls itself that often.", spend::recurse),
    Tool::server("chatter", "Reports progress and logs, that often and that long.", spend::chatter).streaming(),
    Tool::server("stdout", "Prints that many bytes.", spend::stdout),
    Tool::server("handles", "Holds that many resources of the host.", spend::handles),
    Tool::server("entropy", "Takes that many random bytes at once.", spend::entropy),
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_sdk::testing::{Attempt, check, run};

    #[test]
    fn the_declarations_are_legal() {
        check(&tools()).unwrap();
    }

    #[test]
    fn well_behaved_tools_succeed() {
        assert_eq!(run(tools(), "echo", json!({"value": [1, null]})).result, Ok(json!([1, null])));
        assert_eq!(run(tools(), "flood", json!({"bytes": 5})).result, Ok(json!("xxx")));
        assert_eq!(run(tools(), "recurse", json!({"depth": 1000})).result, Ok(json!(1000)));
        assert_eq!(run(tools(), "unavailable", json!({"message": "m"})).result, Err(Failure::unavailable("m")));
        let run = run(tools(), "random", json!({}));
        assert_eq!(run.result.unwrap().as_array().unwrap().len(), 8);
    }

    #[test]
    fn a_streaming_tool_reports_before_its_result() {
        let run = run(tools(), "count", json!({"to": 4}));
        assert_eq!(run.result, Ok(json!(4)));
        let fractions: Vec<_> = run.updates.iter().filter_map(|update| update.fraction).collect();
        assert_eq!(fractions, [0.25, 0.5, 0.75, 1.0]);
    }

    #[test]
    fn call_can_read_its_own_metadata() {
        let scope =
            json!({"conversation": "c1", "turn": "t1", "caller": "ann", "approver": "bob", "context": {"a": 1}});
        let run = Attempt::at("identity", json!({})).key("k").number(3).scope(&scope).run(&tools());
        let identity = run.result.unwrap();
        assert_eq!((&identity["attempt"], &identity["approver"]), (&json!(3), &json!("bob")));
        assert_eq!(identity["context"], json!({"a": 1}));
    }
}
