//! Backups of older versions. They are restored, their hosts open, and open suspensions can still be answered.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{outcomes, suspension_of};

use super::folders::{audit_continues, client, is_kept, unpacked};
use super::{old, root};

const ARCHIVE: &str = "backup-1-format-8.tar.gz";

/// With this variable, the test that makes a backup keeps its archive in `tests/fixtures`.
const KEEP: &str = "TOOLGATE_KEEP_BACKUP_ARCHIVE";

fn setup() -> Setup {
    Setup::default().settings("expires_ms = 3000000000000").component("old", old())
}

fn big() -> Value {
    json!([{"id": "big", "tool": "old_count", "arguments": {"value": "x".repeat(100_000)}}])
}

/// The archive of a backup with a large record and a call that waits. Beside the backup are the tokens of its principals and the
/// head of the audit.
fn packed() -> (Host, PathBuf) {
    let host = setup().start();
    let _ = host.agent.settled(&host.agent.submit("c", big()));
    let waits = json!([{"id": "waits", "tool": "old_gated", "arguments": {"value": "still here"}}]);
    let _ = suspension_of(&host.agent.submit("c", waits));
    let file = host.folder().join("host.backup");
    let said = host.cli(Some(&host.admin), &["backup", file.to_str().unwrap(), "--json"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    fs::write(host.folder().join("head"), report["head"].as_str().unwrap()).unwrap();
    let tokens =
        json!({"root": host.admin.token(), "agent": host.agent.token(), "alice": host.approver.token()}).to_string();
    fs::write(host.folder().join("tokens-of-test.json"), tokens).unwrap();
    let folder = if is_kept(KEEP) { root().join("tests/fixtures") } else { host.folder().into() };
    let archive = folder.join(ARCHIVE);
    let mut pack = Command::new("tar");
    pack.arg("-czf").arg(&archive).arg("-C").arg(host.folder()).args(["host.backup", "head", "tokens-of-test.json"]);
    assert!(pack.status().unwrap().success(), "tar packs the backup");
    (host, archive)
}

/// Restores a backup to the data folder of a stopped host.
fn restore(host: &Host, file: &Path) {
    let _ = fs::remove_dir_all(host.data());
    let said = host.cli(None, &["restore", file.to_str().unwrap(), host.data().to_str().unwrap()]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
}

fn goes_on(archive: &Path) {
    let mut host = setup().prepare();
    let mut unpack = Command::new("tar");
    assert!(unpack.arg("-xzf").arg(archive).arg("-C").arg(host.folder()).status().unwrap().success());
    restore(&host, &host.folder().join("host.backup"));
    let tokens: Value = serde_json::from_slice(&fs::read(host.folder().join("tokens-of-test.json")).unwrap()).unwrap();
    host.admin = client(&host, &tokens, "root");
    host.start();
    let [agent, alice] = ["agent", "alice"].map(|name| client(&host, &tokens, name));
    let turn = agent.post("/v1/conversations/c/turns", &json!({ "calls": big() })).ok(200);
    assert_eq!((&turn["replayed"], outcomes(&turn).len()), (&json!(true), 1), "{turn:#}");
    let waits = alice.get("/v1/pending?mine=true").ok(200)["suspensions"][0].clone();
    let _ = alice.resolve(waits["suspension"].as_str().unwrap(), json!({"decision": "approve"})).ok(200);
    let turn = agent.settled(&waits);
    assert_eq!(turn["calls"][0]["content"]["result"], "still here", "{turn:#}");
    audit_continues(&mut host);
}

#[test]
fn backup_is_packed_and_restored() {
    let (_host, archive) = packed();
    goes_on(&archive);
}

#[test]
fn backup_of_an_older_host_is_restored() {
    goes_on(&root().join("tests/fixtures").join(ARCHIVE));
}

/// Writes a data folder as the host writes a backup, with the head that is beside the folder.
fn write_backup(host: &Host, to: &Path) -> io::Result<()> {
    let mut backup = b"toolgate backup 1\n".to_vec();
    let mut folders = vec![PathBuf::from("store"), PathBuf::from("components")];
    let mut files = vec![PathBuf::from("tokens.json")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(host.data().join(&folder))? {
            let entry = entry?;
            let list = if entry.file_type()?.is_dir() { &mut folders } else { &mut files };
            list.push(folder.join(entry.file_name()));
        }
    }
    for path in files {
        let (name, bytes) = (path.to_str().unwrap(), fs::read(host.data().join(&path))?);
        backup.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
        backup.extend(name.as_bytes());
        backup.extend((bytes.len() as u64).to_be_bytes());
        backup.extend(bytes);
    }
    let head = fs::read_to_string(host.folder().join("head"))?;
    let (position, hash) = head.split_once(":sha256:").unwrap();
    backup.extend([0, 0]);
    backup.extend(position.parse::<u64>().unwrap().to_be_bytes());
    for byte in hash.trim().as_bytes().chunks(2) {
        backup.push(u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 16).unwrap());
    }
    let digest = Sha256::digest(&backup);
    backup.extend(digest);
    File::create(to)?.write_all(&backup)
}

/// Its store is migrated at the next start.
#[test]
fn backup_of_a_store_of_format_7_is_restored() {
    let mut host = unpacked("data-format-7-channels.tar.gz", setup());
    let tokens: Value = serde_json::from_slice(&fs::read(host.data().join("tokens-of-test.json")).unwrap()).unwrap();
    let file = host.folder().join("host.backup");
    write_backup(&host, &file).unwrap();
    restore(&host, &file);
    host.admin = client(&host, &tokens, "root");
    host.start();
    let agent = client(&host, &tokens, "agent");
    let turn = host.admin.get("/v1/pending?conversation=c&call=free&state=closed").ok(200)["suspensions"][0].clone();
    assert_eq!(outcomes(&agent.settled(&turn)), ["ok"], "{turn:#}");
    audit_continues(&mut host);
}
