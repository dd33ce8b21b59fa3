//! A base backup of the server of a host that works.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::json;
use toolgate_tests::http::{outcomes, path, suspension_of};
use toolgate_tests::parts::Part;

use super::{balance, opened, server};

#[test]
fn base_backup_of_a_host_under_load_goes_on() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let primary = server::start("");
    let url = server::url(&primary, "postgres");
    let mut host = opened(&url);
    let arguments = json!({"from": "alice", "to": "bob", "amount_cents": 100});
    let waits = host.agent.submit("c", json!([{"id": "pay", "tool": "ledger_transfer", "arguments": arguments}]));
    let head = host.admin.get("/v1/audit").ok(200)["head"].clone();
    let is_taken = AtomicBool::new(false);
    let (copy, turns) = thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut turns = Vec::new();
            while !is_taken.load(Ordering::Relaxed) {
                turns.push(host.agent.call("load", "ledger_balance", json!({"account": "alice"})));
            }
            turns
        });
        let copy = server::copied(&primary);
        is_taken.store(true, Ordering::Relaxed);
        (copy.unwrap(), load.join().unwrap())
    });
    host.kill();
    let config = host.folder().join("toolgate.toml");
    let moved = fs::read_to_string(&config).unwrap().replace(&url, &server::url(&copy, "postgres"));
    fs::write(&config, moved).unwrap();
    host.start();
    // Turns after the end of the backup are missing, and no turn is between them.
    let is_there: Vec<bool> = turns.iter().map(|turn| host.agent.get(&path(turn)).status == 200).collect();
    assert!(is_there.is_sorted_by(|earlier, later| earlier >= later), "{is_there:?}");
    let head = format!("{}:{}", head["position"], head["hash"].as_str().unwrap());
    let verified = host.cli(Some(&host.admin), &["audit", "verify", "--url", &host.admin.url(), "--head", &head]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    let _ = host.approver.resolve(&suspension_of(&waits), json!({"decision": "approve"})).ok(200);
    let settled = host.agent.settled(&waits);
    assert_eq!(outcomes(&settled), ["ok"], "{settled}");
    assert_eq!((balance(&host, "alice"), balance(&host, "bob")), (json!(900), json!(1100)));
}
