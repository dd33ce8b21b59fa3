//! The real host with its turns in a PostgreSQL database.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "../../host/store/tests/laws/server.rs"]
mod server;

#[path = "postgres/backups.rs"]
mod backups;
#[expect(dead_code, reason = "these tests make hosts from its setup")]
#[path = "hosts/named.rs"]
mod named;
#[path = "postgres/older.rs"]
mod older;

use std::fs;

use serde_json::{Value, json};
use toolgate_tests::host::{Host, Setup, say};
use toolgate_tests::http::{outcomes, path, suspension_of};
use toolgate_tests::kills::{self, Plan};
use toolgate_tests::parts::Part;

fn balance(host: &Host, account: &str) -> Value {
    let turn = host.agent.call("balances", "ledger_balance", json!({"account": account}));
    turn["calls"][0]["content"]["result"]["balance_cents"].clone()
}

/// A host on a database, with two accounts.
fn opened(url: &str) -> Host {
    let host = Setup::with(&["ledger"]).settings(&format!("store = \"{url}\"")).start();
    for account in ["alice", "bob"] {
        let opened = host.agent.call("opening", "ledger_open", json!({"account": account, "opening_balance": 1000}));
        assert_eq!(outcomes(&opened), ["ok"], "{opened}");
    }
    host
}

#[test]
fn killed_host_goes_on_from_its_database() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let (_, url) = server::database();
    let mut host = opened(&url);
    let arguments = json!({"from": "alice", "to": "bob", "amount_cents": 100});
    let calls = json!([{"id": "pay", "tool": "ledger_transfer", "arguments": arguments}]);
    let waits = host.agent.submit("c", calls.clone());
    let suspension = suspension_of(&waits);
    host.kill();
    assert!(!host.data().join("store").exists(), "no turn is in the data folder");
    host.start();
    assert_eq!(host.approver.get("/v1/pending").ok(200)["suspensions"].as_array().unwrap().len(), 1);
    let _ = host.approver.resolve(&suspension, json!({"decision": "approve"})).ok(200);
    let settled = host.agent.settled(&waits);
    assert_eq!(outcomes(&settled), ["ok"], "{settled}");
    assert_eq!((balance(&host, "alice"), balance(&host, "bob")), (json!(900), json!(1100)));
    let again = host.agent.post("/v1/conversations/c/turns", &json!({"calls": calls})).ok(200);
    assert_eq!(path(&again), path(&waits), "the call id is known");
    host.restart();
    assert_eq!(balance(&host, "alice"), json!(900));
    let verified = host.cli(Some(&host.admin), &["audit", "verify", "--url", &host.admin.url()]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
}

#[test]
fn sixty_kills_lose_nothing_and_repeat_nothing() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let plan = Plan { rounds: 60, seed: 0x7067, checked_every: 60, disturbed: false, say };
    let tally = kills::run(plan, &|| format!("store = \"{}\"", server::database().1));
    assert_eq!(tally.kills, 60);
    say(&format!("{tally:?}"));
}

#[test]
fn second_host_on_the_database_does_not_start() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let (_, url) = server::database();
    let first = opened(&url);
    let second = Setup::with(&[]).settings(&format!("store = \"{url}\"")).beside(&first).prepare();
    let refused = second.cli(None, &["serve", "--listen", "127.0.0.1:0"]);
    assert_ne!(refused.code, 0);
    assert!(
        refused
            .err
            .contains("another host with the name `toolgate` uses this database (toolgate from the same machine"),
        "{}",
        refused.err
    );
}

#[test]
fn commands_for_the_data_folder_say_where_the_turns_are() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let (_, url) = server::database();
    let host = opened(&url);
    // A folder that an older configuration used changes nothing.
    fs::create_dir(host.data().join("store")).unwrap();
    for words in [["store", "prune"], ["audit", "verify"]] {
        let refused = host.cli(None, &words);
        assert_ne!(refused.code, 0, "{words:?}");
        assert!(refused.err.contains("the turns of this host are in a database"), "{words:?}: {}", refused.err);
    }
    let file = host.folder().join("host.backup");
    let refused = host.cli(Some(&host.admin), &["backup", file.to_str().unwrap()]);
    assert!(refused.code != 0 && refused.err.contains("pg_dump"), "{}", refused.err);
    assert!(!file.exists());
}

#[test]
fn password_comes_from_a_file_and_is_in_no_message() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let (name, url) = server::database();
    server::run(&name, "CREATE ROLE locked LOGIN PASSWORD 'correct horse'");
    server::run(&name, &format!("GRANT CREATE ON DATABASE {name} TO locked"));
    let url = url.replace("user=toolgate", "user=locked");
    let table = format!("[store]\nurl = \"{url}\"\npassword_file = \"password\"");
    let mut host = Setup::with(&[]).tables(&table).file("password", "correct horse\n").prepare();
    fs::write(host.folder().join("password"), "wrong horse\n").unwrap();
    let refused = host.cli(None, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(refused.code != 0 && refused.err.contains("password authentication failed"), "{}", refused.err);
    assert!(!format!("{}{}", refused.err, refused.out).contains("wrong horse"));
    fs::write(host.folder().join("password"), "correct horse\n").unwrap();
    host.start();
    assert!(host.agent.get("/v1/status").ok(200)["store"] == "ok");
}
