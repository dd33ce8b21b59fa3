//! A damaged record in the folder of the real host: its turn fails alone, and a salvage leaves it out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{path, suspension_of};

fn transfer(id: &str) -> Value {
    let arguments = json!({"from": "alice", "to": "bob", "amount_cents": 100});
    json!({"id": id, "tool": "ledger_transfer", "arguments": arguments})
}

fn balance(host: &Host) -> Value {
    let turn = host.agent.call("balances", "ledger_balance", json!({"account": "alice"}));
    turn["calls"][0]["content"]["result"]["balance_cents"].clone()
}

/// A transfer that waits, beside a call that makes its record large.
fn large() -> Value {
    json!([transfer("pay"), {"id": "long", "tool": "text_stats", "arguments": {"text": "x".repeat(100_000)}}])
}

#[test]
fn a_damaged_record_fails_its_turn_alone() {
    let mut host = Setup::with(&["ledger", "textkit"]).start();
    for account in ["alice", "bob"] {
        let _ = host.agent.call("opening", "ledger_open", json!({"account": account, "opening_balance": 1000}));
    }
    let damaged = host.agent.submit("c", large());
    let whole = host.agent.submit("c", json!([transfer("other")]));
    let (lost, open) = (suspension_of(&damaged), suspension_of(&whole));
    host.kill();
    for blob in fs::read_dir(host.data().join("store/blobs")).unwrap() {
        fs::write(blob.unwrap().path(), "[").unwrap();
    }
    host.start();

    let _ = host.agent.get(&path(&damaged)).problem(500, "damaged");
    let page = host.approver.get("/v1/pending").ok(200);
    let shown: Vec<&Value> = page["suspensions"].as_array().unwrap().iter().map(|row| &row["suspension"]).collect();
    assert_eq!(shown, [&json!(open)]);
    assert_eq!(page["unreadable"], json!([{"suspension": lost, "turn": damaged["turn"]}]));
    let audit = host.admin.get("/v1/audit?action=record.unreadable").ok(200);
    assert_eq!(audit["entries"][0]["turn"], damaged["turn"], "{audit:#}");
    let mut events = host.agent.events("/v1/conversations/c/events");
    assert_eq!(events.named("record.unreadable").data["turn"], damaged["turn"]);
    assert_eq!(events.named("turn.started").data["turn"], whole["turn"]);
    assert_eq!(host.stranger().get("/healthz").ok(200)["status"], "damaged-records");
    assert_eq!(host.admin.get("/v1/status").ok(200)["store"], "damaged-records");
    assert!(host.admin.get("/metrics").text.contains("toolgate_damaged_records 1"));

    let answer = host.approver.resolve(&lost, json!({"decision": "approve"}));
    let _ = answer.problem(500, "damaged");
    let _ = host.agent.post("/v1/conversations/c/turns", &json!({"calls": large()})).problem(500, "damaged");
    assert_eq!(balance(&host), 1000, "the damaged call does not run");
    let _ = host.approver.resolve(&open, json!({"decision": "approve"})).ok(200);
    let _ = host.agent.settled(&json!({"conversation": "c", "turn": whole["turn"]}));
    assert_eq!(balance(&host), 900);
    let said = host.cli(Some(&host.approver), &["pending"]);
    assert!(said.err.contains("is missing here: a stored record is damaged"), "{}", said.err);

    host.kill();
    let log = fs::read_to_string(host.folder().join("host.log")).unwrap();
    assert!(log.contains("a stored record is damaged"), "{log}");
    fs::create_dir(host.data().join("backup.unfinished")).unwrap();
    let salvaged = host.folder().join("salvaged");
    let (from, to) = (host.data().display().to_string(), salvaged.display().to_string());
    let said = host.cli(None, &["store", "salvage", &from, &to]);
    let left_out = format!("left out {}: a record of it is lost", damaged["turn"].as_str().unwrap());
    assert!(said.code == 0 && said.out.contains(&left_out), "{}{}", said.out, said.err);
    let key = |folder: &Path| fs::read(folder.join("audit-key")).unwrap();
    assert!(key(&salvaged) == key(&host.data()), "the new folder signs with the same key");
    assert!(!salvaged.join("backup.unfinished").exists());
    let again = host.cli(None, &["store", "salvage", &from, &to]);
    assert!(again.code == 1 && again.err.contains("name a folder that does not exist"), "{}", again.err);
    fs::rename(host.data(), host.folder().join("damaged")).unwrap();
    fs::rename(&salvaged, host.data()).unwrap();
    let said = host.cli(None, &["audit", "verify"]);
    assert!(said.code == 0, "{}{}", said.out, said.err);
    host.start();
    assert_eq!(host.stranger().get("/healthz").ok(200)["status"], "ok");
    let _ = host.agent.post("/v1/conversations/c/turns", &json!({"calls": large()})).problem(410, "removed");
    assert_eq!(balance(&host), 900, "what is whole is kept, with the plugin's data and the tokens");
    let said = host.cli(Some(&host.admin), &["audit", "--action", "store.salvaged"]);
    assert!(said.code == 0 && said.out.contains("store.salvaged"), "{}{}", said.out, said.err);
}

#[test]
fn damaged_database_is_reported_without_its_own_lines() {
    let mut host = Setup::with(&["ledger"]).start();
    let _ = host.agent.call("opening", "ledger_open", json!({"account": "alice", "opening_balance": 1000}));
    host.restart();
    host.kill();
    let files = || fs::read_dir(host.data().join("store/sled")).unwrap().map(|file| file.unwrap().path());
    let is_snapshot = |path: &Path| path.extension().is_some_and(|_| path.file_stem().unwrap() == "snap");
    let snapshot = files().find(|path| is_snapshot(path)).unwrap();
    fs::write(snapshot, "no snapshot at all").unwrap();
    let said = host.cli(None, &["audit", "verify"]);
    assert!(said.code != 0 && said.err.contains("is damaged"), "{}", said.err);
    assert!(!said.err.contains("log.file") && !said.err.contains(".rs"), "{}", said.err);
}

/// The files of a folder and of those in it, with their content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

/// Kills it with SIGKILL.
fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn killed_salvage_leaves_the_damaged_folder_as_it_was() {
    // The command makes these paths one after the other, below its unfinished folder. It is killed when one exists.
    const MOMENTS: [&str; 4] = ["", "store.unfinished/copy/sled/db", "store.unfinished/store/sled/db", "store/sled/db"];
    let mut host = Setup::with(&["ledger", "textkit"]).start();
    let [lost, kept] = ["lost", "kept"].map(|conversation| host.agent.submit(conversation, large()));
    host.kill();
    let mut blobs: Vec<_> =
        fs::read_dir(host.data().join("store/blobs")).unwrap().map(|it| it.unwrap().path()).collect();
    let of = |turn: &Value| {
        let id = turn["conversation"].as_str().unwrap();
        blobs.iter().position(|blob| fs::read_to_string(blob).unwrap().contains(&format!("\"{id}\""))).unwrap()
    };
    let (damaged, whole) = (of(&lost), of(&kept));
    fs::write(&blobs[damaged], "[").unwrap();
    let (whole, aside) = (blobs.swap_remove(whole), host.folder().join("aside"));
    let before = files(&host.data());

    let target = host.folder().join("salvaged");
    let work = host.folder().join("salvaged.unfinished");
    let (from, to) = (host.data().display().to_string(), target.display().to_string());
    let salvage = ["store", "salvage", &from, &to];
    let started = || {
        let mut command = host.command(None, &salvage);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let goes_on = |moment: &str| {
        assert!(files(&host.data()) == before, "killed at {moment:?}");
        if !target.exists() {
            if work.exists() {
                let refused = host.cli(None, &salvage);
                let advice = "a salvage that was killed may have left it: look into it, and remove it";
                assert!(refused.code != 0 && refused.err.contains(advice), "{moment:?}: {}", refused.err);
                fs::remove_dir_all(&work).unwrap();
            }
            let said = host.cli(None, &salvage);
            let left_out = format!("left out {}: a record of it is lost", lost["turn"].as_str().unwrap());
            assert!(said.code == 0 && said.out.contains(&left_out), "{moment:?}: {}{}", said.out, said.err);
        }
        let verified = host.cli(None, &["audit", "verify", "--data", &to]);
        assert_eq!(verified.code, 0, "{moment:?}: {}{}", verified.out, verified.err);
        assert!(!work.exists() && files(&host.data()) == before, "killed at {moment:?}");
        fs::remove_dir_all(&target).unwrap();
    };
    for moment in MOMENTS {
        let mut child = started();
        while child.try_wait().unwrap().is_none() && !work.join(moment).exists() {
            std::thread::yield_now();
        }
        kill(child);
        goes_on(moment);
    }

    // This salvage waits in the middle of its work: it reads a pipe instead of a large record.
    fs::rename(&whole, &aside).unwrap();
    assert!(Command::new("mkfifo").arg(&whole).status().unwrap().success());
    let child = started();
    let held = fs::OpenOptions::new().write(true).open(&whole).unwrap();
    assert!(work.exists() && !target.exists());
    kill(child);
    drop(held);
    fs::rename(&aside, &whole).unwrap();
    assert!(work.exists() && !target.exists());
    goes_on("a large record");
}
