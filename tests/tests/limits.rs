//! Hostile guests on the real host. Each limit has a guest that reaches it, and each kind of misbehaviour has its
//! outcome. After each, the host still answers a well-behaved call.

use domain::Limits;
use serde_json::{Value, json};
use toolgate_tests::guests::{fixture, illegal};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{outcomes, path};
use toolgate_tests::sse::Event;

const EVENTS: &str = "/v1/conversations/c/events";

/// The expected outcome of a call in the words of [`outcomes`], and a part of its message.
struct Case {
    tool: &'static str,
    arguments: Value,
    expected: &'static str,
    message: &'static str,
}

fn case(tool: &'static str, arguments: Value, expected: &'static str, message: &'static str) -> Case {
    Case { tool, arguments, expected, message }
}

/// A guest that reaches one limit.
struct Hit {
    /// The operator's table of limits.
    limits: &'static str,
    cases: Vec<Case>,
}

/// A row for each limit that ends a call. The macro destructures `Limits` with these rows and those of [`Beyond`], so a
/// limit without a row does not compile.
macro_rules! every_limit {
    (ends: { $($field:ident: $limits:literal => [$($case:expr),+ $(,)?]),+ $(,)? }, goes_on: { $($other:ident),+ $(,)? } $(,)?) => {{
        let Limits { $($field: _,)+ $($other: _,)+ } = Limits::default();
        [$((stringify!($field), Hit { limits: $limits, cases: vec![$($case),+] })),+]
    }};
}

fn limited() -> [(&'static str, Hit); 9] {
    const EXCEEDED: &str = "failed(limit_exceeded)";
    const LATE: &str = "failed(out_of_time)";
    every_limit! {
        ends: {
            time: "time_ms = 300" => [
                case("spin", json!({}), LATE, "300 ms"),
                case("sleep", json!({"ms": 3_600_000}), LATE, "`limits.time_ms`"),
            ],
            memory: "memory_bytes = 8388608" => [
                case("flood", json!({"bytes": 16 << 20}), "failed(out_of_memory)", "`limits.memory_bytes`"),
                case("grow", json!({"mib": 64}), "failed(tool_failed)", "no memory left after"),
            ],
            table_elements: "table_elements = 1" => [case("echo", json!({"value": 1}), EXCEEDED, "`limits.table_elements`")],
            instances: "instances = 1" => [case("echo", json!({"value": 1}), EXCEEDED, "`limits.instances`")],
            hostcall_bytes: "hostcall_bytes = 65536" => [
                case("flood", json!({"bytes": 100_000}), EXCEEDED, "`limits.hostcall_bytes`"),
                case("chatter", json!({"updates": 1, "bytes": 100_000}), EXCEEDED, "`limits.hostcall_bytes`"),
            ],
            handles: "handles = 20" => [case("handles", json!({"count": 1000}), EXCEEDED, "`limits.handles`")],
            arguments: "arguments_bytes = 100" => [case("echo", json!({"value": "x".repeat(200)}), EXCEEDED, "`limits.arguments_bytes`")],
            host_calls: "host_calls = 20" => [case("chatter", json!({"updates": 30, "bytes": 1}), EXCEEDED, "`limits.host_calls`")],
            result: "result_bytes = 1000" => [case("flood", json!({"bytes": 1001}), EXCEEDED, "`limits.result_bytes`")],
        },
        // Limits that no guest of the lab can reach to end a call. Beyond most of them something is dropped and
        // counted, or waits. Tests below cover them, and `host/capabilities/src/http/tests` those of requests.
        // `host_bytes` and `files_written` end calls of guests with a folder: `host/sandbox/tests/all/files.rs` reaches
        // both (`open_files_are_limited_and_charged`, `bytes_written_to_files_are_limited`). Beyond the limits of
        // key-value data a write fails: `host/sandbox/tests/all/keyvalue.rs`. `replay` and `linger` are only of durable calls:
        // `host/sandbox/tests/all/durable.rs` and `host/sandbox/tests/all/durable/lingering.rs`.
        goes_on: {
            replay, linger, stop_grace, progress_updates, progress_bytes, log_bytes, concurrency, queue, host_bytes, host_call_time, files_written,
            keyvalue_written, keyvalue_rate, http_requests, http_concurrent, http_time, http_sent, http_received,
        },
    }
}

fn lab(limits: &str) -> Host {
    Setup::with(&["lab"]).tables(&format!("[plugin.lab.limits]\n{limits}")).component("calm", calm()).start()
}

/// A well-behaved plugin beside the hostile one.
fn calm() -> Vec<u8> {
    fixture(&json!([{"name": "calm"}]))
}

fn check(host: &Host, what: &str, case: &Case) {
    let turn = host.agent.settled(&host.agent.call("c", case.tool, case.arguments.clone()));
    assert_eq!(outcomes(&turn), [case.expected], "{what}: {turn:#}");
    let message = turn["calls"][0]["content"]["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains(case.message), "{what}: {} is not in: {message}", case.message);
    assert_eq!(outcomes(&host.agent.call("c", "calm", json!({"a": 1}))), ["ok"], "after {what}");
}

#[test]
fn every_limit_that_ends_a_call_has_a_guest_that_hits_it() {
    for (limit, Hit { limits, cases }) in limited() {
        let host = lab(limits);
        for case in &cases {
            check(&host, limit, case);
        }
    }
}

#[test]
fn every_guest_behaviour_has_its_outcome() {
    let setup = Setup::with(&["lab"]).component("calm", calm()).component("networker", illegal("networker"));
    let host = setup.start();
    let said = || json!({"message": "so it is"});
    for case in [
        case("panic", said(), "failed(trapped)", "so it is"),
        case("fail", said(), "failed(tool_failed)", "so it is"),
        case("unavailable", said(), "failed(tool_unavailable)", "so it is"),
        case("invalid", said(), "failed(invalid_arguments)", "so it is"),
        case("not_json", json!({}), "failed(invalid_result)", "JSON"),
        case("bad_result", json!({}), "failed(invalid_result)", "schema"),
        case("recurse", json!({"depth": 100_000_000}), "failed(limit_exceeded)", "nested too deeply"),
        case("spin", json!({}), "failed(out_of_time)", "500 ms"),
        case("call_home", json!({}), "failed(tool_failed)", ""),
    ] {
        check(&host, case.tool, &case);
    }
}

#[test]
fn host_below_its_disk_reserve_takes_no_new_turns() {
    let host = Setup::default().component("calm", calm()).settings("disk_reserve_bytes = 9223372036854775807").start();
    let body = json!({"calls": [{"id": "1", "tool": "calm", "arguments": {}}]});
    let refused = host.agent.post("/v1/conversations/c/turns", &body).ok(507);
    assert_eq!(refused["code"], "no-space", "{refused:#}");
    assert_eq!(host.agent.get("/healthz").ok(200)["status"], "disk-low");
    assert_eq!(host.agent.get("/v1/conversations").ok(200)["conversations"], json!([]));
}

#[test]
fn eight_spinning_guests_do_not_block_others() {
    let host = lab("");
    let spins: Vec<_> = (0..8).map(|n| json!({"id": format!("spin-{n}"), "tool": "spin", "arguments": {}})).collect();
    let spinning = host.agent.post("/v1/conversations/c/turns", &json!({"calls": spins})).ok(201);
    for n in 0..8 {
        assert_eq!(outcomes(&host.agent.call("c", "echo", json!({"value": n}))), ["ok"]);
        assert_eq!(outcomes(&host.agent.call("c", "calm", json!({}))), ["ok"]);
    }
    assert_eq!(outcomes(&host.agent.settled(&spinning)), ["failed(out_of_time)"; 8]);
}

#[test]
fn calls_beyond_a_plugins_permits_wait_for_a_limited_time() {
    let settings = Setup::with(&["lab"]).tables("[plugin.lab.limits]\nconcurrency = 1").settings("queue_ms = 50");
    let host = settings.component("calm", calm()).start();
    let mut stream = host.agent.events(EVENTS);
    let sleep = |id: &str| json!({"id": id, "tool": "sleep", "arguments": {"ms": 3_600_000}});
    let body = json!({"calls": [sleep("a"), sleep("b")]});
    let turn = host.agent.post("/v1/conversations/c/turns", &body).ok(201);
    let busy = stream.named("call.settled").data;
    assert_eq!(busy["content"]["error"]["code"], "busy", "{busy:#}");
    // Each plugin has its own permits.
    assert_eq!(outcomes(&host.agent.call("c", "calm", json!({}))), ["ok"]);
    let turn = host.agent.post_nothing(&format!("{}/cancel", path(&turn))).ok(200);
    let mut ends = outcomes(&turn);
    ends.sort_unstable();
    assert_eq!(ends, ["cancelled", "failed(busy)"]);
    assert_eq!(outcomes(&host.agent.call("c", "echo", json!({"value": 1}))), ["ok"], "the permit is free again");
}

/// The live events of one call while it runs.
fn live(host: &Host, tool: &str, arguments: Value) -> Vec<Event> {
    let mut stream = host.agent.events(EVENTS);
    let turn = host.agent.call("c", tool, arguments);
    assert_eq!(outcomes(&turn), ["ok"], "{turn:#}");
    // Live events of a call can arrive after its end, but not after those of a later call.
    let later = host.agent.call("c", "stdout", json!({"bytes": 1}));
    let events = stream.until(|event| event.name == "call.log" && event.data["call"] == later["calls"][0]["id"]);
    events.into_iter().filter(|event| event.data["call"] == turn["calls"][0]["id"]).collect()
}

fn of<'a>(events: &'a [Event], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event.name == name).map(|event| &event.data).collect()
}

#[test]
fn excess_progress_is_dropped_and_the_call_continues() {
    let events = live(&lab("progress_updates = 5"), "count", json!({"to": 20}));
    let counted: Vec<_> =
        of(&events, "call.progress").iter().map(|event| event["data"]["n"].as_u64().unwrap()).collect();
    assert_eq!(counted, [1, 2, 3, 4, 5]);
    let events = live(&lab("progress_bytes = 2500"), "chatter", json!({"updates": 4, "bytes": 1000}));
    assert_eq!(of(&events, "call.progress").len(), 2);
}

#[test]
fn a_tool_that_does_not_stream_reports_no_progress() {
    let talk = |streaming: bool| json!([{"name": "talk", "streaming": streaming}]);
    for (streaming, expected) in [(true, 1), (false, 0)] {
        let events =
            live(&Setup::with(&["lab"]).component("talk", fixture(&talk(streaming))).start(), "talk", json!({}));
        assert_eq!(of(&events, "call.progress").len(), expected);
        let logged =
            of(&events, "call.log").iter().any(|line| line["message"].as_str().unwrap().contains("`streaming`"));
        assert_eq!(logged, !streaming, "the log has the reason for the author");
    }
}

#[test]
fn log_is_limited_counted_and_includes_printed_output() {
    let events = live(&lab(""), "stdout", json!({"bytes": 250}));
    let lines = of(&events, "call.log");
    let lines = lines.iter().map(|line| (line["level"].as_str().unwrap(), line["message"].as_str().unwrap().len()));
    assert_eq!(lines.collect::<Vec<_>>(), [("info", 99), ("info", 99), ("info", 50)]);

    // Five logged lines cost as much as printed ones, including the end of each line.
    for (tool, arguments, wanted) in
        [("stdout", json!({"bytes": 5000}), 5000), ("chatter", json!({"updates": 5, "bytes": 1000}), 5005)]
    {
        let events = live(&lab("log_bytes = 1000"), tool, arguments);
        let lines = of(&events, "call.log");
        let texts = lines.iter().map(|line| line["message"].as_str().unwrap());
        let (note, kept): (Vec<&str>, Vec<&str>) = texts.partition(|text| text.starts_with("dropped "));
        let bytes: usize = kept.iter().map(|text| text.len()).sum();
        assert!(bytes <= 1000, "{tool}: {bytes} bytes");
        let dropped: usize = note[0].split(' ').nth(1).unwrap().parse().unwrap();
        assert!((wanted - 1000..=wanted - bytes).contains(&dropped), "{tool}: {note:?}");
        assert!(lines.last().unwrap()["message"].as_str().unwrap().starts_with('x'), "the last lines follow the note");
    }
}

#[test]
fn every_ended_call_records_its_usage() {
    let host = lab("time_ms = 300");
    let mut stream = host.agent.events(EVENTS);
    let turn = host.agent.call("c", "count", json!({"to": 3}));
    let receipt = &turn["calls"][0]["receipt"];
    assert_eq!(stream.named("call.settled").data["receipt"], *receipt);
    assert_eq!(host.agent.get(&path(&turn)).ok(200)["calls"][0]["receipt"], *receipt, "it is stored");
    let spent = |name: &str| receipt[name].as_u64().unwrap_or_else(|| panic!("{name} in {receipt}"));
    assert_eq!(spent("bytes_in"), r#"{"to":3}"#.len() as u64);
    assert!(spent("time_us") > 0 && spent("peak_memory_bytes") > 0, "{receipt}");
    assert!(spent("host_calls") >= 3 && spent("bytes_out") > 3, "{receipt}");

    let stopped = host.agent.settled(&host.agent.call("c", "spin", json!({})));
    assert!(stopped["calls"][0]["receipt"]["time_us"].as_u64().unwrap() >= 300_000, "{stopped:#}");
    let never_ran = host.agent.call("c", "count", json!({"to": "three"}));
    assert_eq!(outcomes(&never_ran), ["failed(invalid_arguments)"]);
    assert!(never_ran["calls"][0].get("receipt").is_none(), "a call that never ran has no receipt");
}
