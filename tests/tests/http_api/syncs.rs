//! How often the host waits for the disk during a durable call. The kernel is not asked: the store counts its syncs.

use serde_json::{Value, json};
use toolgate_tests::effects::Server;
use toolgate_tests::host::Host;
use toolgate_tests::http::outcomes;

use crate::durable::programs;

fn syncs(host: &Host) -> u64 {
    let metrics = host.admin.get("/metrics").text;
    let count = metrics.lines().find_map(|line| line.strip_prefix("toolgate_store_syncs_total "));
    count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("the syncs are not counted:\n{metrics}"))
}

/// The syncs of a turn with one call that does this so often.
fn syncs_of(host: &Host, operation: &Value, times: usize) -> u64 {
    let before = syncs(host);
    let turn = host.agent.call("c", "run", json!({"program": vec![operation; times]}));
    let settled = host.agent.settled(&turn);
    assert_eq!(outcomes(&settled), ["ok"], "{settled:#}");
    syncs(host) - before
}

#[test]
fn effect_of_a_durable_call_costs_at_most_two_syncs() {
    const TIMES: usize = 10;
    let server = Server::start();
    let host = programs(&server);
    let send = |method: &str, path: &str, body: Value| json!({"do": "send", "method": method, "url": server.url(path), "body": body});
    let write = json!({"do": "increment", "key": "n", "by": 1});
    // The commits that follow a start are over.
    syncs_of(&host, &write, 1);
    for (operation, each) in [
        (json!({"do": "get", "key": "n"}), 0),
        (send("GET", "/count", Value::Null), 0),
        (write, 1),
        (json!({"do": "set", "key": "k", "value": "v"}), 1),
        (send("POST", "/add", json!("x")), 2),
    ] {
        let (short, long) = (syncs_of(&host, &operation, TIMES), syncs_of(&host, &operation, 2 * TIMES));
        assert_eq!(
            long - short,
            TIMES as u64 * each,
            "{operation}: {short} syncs for {TIMES} of them, {long} for twice as many"
        );
    }
}
