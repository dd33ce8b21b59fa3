//! Backups of the real host while it works, restored to another folder. The remains of a killed backup are never treated as a whole one.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use toolgate_tests::host::{Host, Said, Setup};
use toolgate_tests::http::suspension_of;
use toolgate_tests::random::Random;

fn balance(host: &Host) -> Value {
    let turn = host.agent.call("balances", "ledger_balance", json!({"account": "alice"}));
    turn["calls"][0]["content"]["result"]["balance_cents"].clone()
}

fn opened() -> Host {
    let host = Setup::with(&["ledger", "textkit"]).start();
    for account in ["alice", "bob"] {
        let _ = host.agent.call("opening", "ledger_open", json!({"account": account, "opening_balance": 1000}));
    }
    host
}

fn restore(host: &Host, file: &Path, folder: &Path) -> Said {
    host.cli(None, &["restore", file.to_str().unwrap(), folder.to_str().unwrap()])
}

/// Stops the host and lets it use another data folder.
fn moved(host: &mut Host, folder: &Path) {
    host.kill();
    fs::rename(host.data(), host.folder().join("before")).unwrap();
    fs::rename(folder, host.data()).unwrap();
    host.start();
}

#[test]
fn a_backup_of_a_working_host_is_restored() {
    let mut host = opened();
    let pay = json!([{"id": "pay", "tool": "ledger_transfer", "arguments": {"from": "alice", "to": "bob", "amount_cents": 100}},
        {"id": "long", "tool": "text_stats", "arguments": {"text": "x".repeat(100_000)}}]);
    let waits = host.agent.submit("c", pay.clone());
    let (file, folder) = (host.folder().join("host.backup"), host.folder().join("restored"));
    let (done, path) = (AtomicBool::new(false), file.to_str().unwrap().to_owned());
    let (said, during) = std::thread::scope(|scope| {
        let agent = host.agent.clone();
        let busy = scope.spawn(|| {
            let agent = agent;
            let mut turns = 0;
            while !done.load(Ordering::Relaxed) {
                let _ = agent.call("busy", "text_stats", json!({"text": "y".repeat(70_000)}));
                turns += 1;
            }
            turns
        });
        let said = host.cli(Some(&host.admin), &["backup", &path, "--json"]);
        done.store(true, Ordering::Relaxed);
        (said, busy.join().unwrap())
    });
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(during > 0, "turns were submitted meanwhile");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!host.data().join("backup.unfinished").exists());
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["file"], json!(path));
    let head = report["head"].as_str().unwrap().to_owned();
    let again = host.cli(Some(&host.admin), &["backup", &path]);
    assert!(again.code == 1 && again.err.contains("name a file that does not exist"), "{}", again.err);
    let said = host.cli(Some(&host.agent), &["backup", &format!("{path}-2")]);
    assert!(said.code == 1 && !host.folder().join("host.backup-2").exists(), "only admins: {}", said.err);

    // After the backup.
    let lost = host.agent.submit("c", json!([{"id": "later", "tool": "text_stats", "arguments": {"text": "z"}}]));
    let said = restore(&host, &file, &folder);
    assert!(said.code == 0 && said.out.contains(&head), "{}{}", said.out, said.err);
    assert!(!folder.join("session-key").exists() && !folder.join("admin-token").exists());
    let verified = host.cli(None, &["audit", "verify", "--data", folder.to_str().unwrap(), "--head", &head]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    moved(&mut host, &folder);
    assert_eq!(balance(&host), 1000);
    let again = host.agent.post("/v1/conversations/c/turns", &json!({"calls": pay})).ok(200);
    assert_eq!(again["turn"], waits["turn"], "the call id is known, and the tokens are valid");
    let _ = host.approver.resolve(&suspension_of(&waits), json!({"decision": "approve"})).ok(200);
    let _ = host.agent.settled(&json!({"conversation": "c", "turn": waits["turn"]}));
    assert_eq!(balance(&host), 900);
    let read = host.agent.get(&toolgate_tests::http::path(&lost));
    assert_eq!(read.status, 404, "what came after the backup is not in it");
}

#[test]
fn what_a_kill_leaves_is_not_restored() {
    let mut host = opened();
    let (file, folder) = (host.folder().join("host.backup"), host.folder().join("restored"));
    // The beginning of a backup, and then the host is killed.
    let address = host.admin.url();
    let mut stream = TcpStream::connect(address.trim_start_matches("http://")).unwrap();
    let request = format!(
        "GET /v1/backup HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
        address.trim_start_matches("http://"),
        host.admin.token()
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_exact(&mut [0; 4_096]).unwrap();
    host.kill();
    drop(stream);
    fs::create_dir_all(host.data().join("backup.unfinished/store")).unwrap();
    host.start();
    let _ = host.stranger().get("/healthz").ok(200);
    assert!(!host.data().join("backup.unfinished").exists(), "the next start removes the copy");

    // A killed command left this, and the next one goes on.
    fs::write(host.folder().join("host.backup.unfinished"), "toolgate backup 1\n").unwrap();
    let said = host.cli(Some(&host.admin), &["backup", file.to_str().unwrap()]);
    assert!(said.code == 0 && !host.folder().join("host.backup.unfinished").exists(), "{}", said.err);
    let whole = fs::read(&file).unwrap();
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    let cuts = [0, 5, 18, 19, 4_096, whole.len() / 2, whole.len() - 33, whole.len() - 32, whole.len() - 1];
    let cuts = cuts.iter().map(|length| whole[..*length].to_vec());
    let refused = host.folder().join("refused.backup");
    for bytes in cuts.chain([changed, [whole.as_slice(), b"x"].concat()]) {
        fs::write(&refused, &bytes).unwrap();
        let said = restore(&host, &refused, &folder);
        assert!(said.code == 1 && said.err.contains("backup"), "{} bytes: {}{}", bytes.len(), said.out, said.err);
        assert!(!folder.exists() && !host.folder().join("restored.unfinished").exists());
    }

    // A killed restore left this.
    let left = host.folder().join("restored.unfinished");
    fs::create_dir_all(left.join("store/sled")).unwrap();
    let said = restore(&host, &file, &folder);
    assert!(said.code == 1 && said.err.contains("may have left it") && left.exists(), "{}", said.err);
    fs::remove_dir_all(left).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("mine"), "").unwrap();
    let said = restore(&host, &file, &folder);
    assert!(said.code == 1 && said.err.contains("is not empty"), "{}", said.err);
    fs::remove_file(folder.join("mine")).unwrap();
    let said = restore(&host, &file, &folder);
    assert_eq!(said.code, 0, "an empty folder is used: {}", said.err);
    moved(&mut host, &folder);
    assert_eq!(balance(&host), 1000);
}

/// A backup, as soon as the host has noticed that the last one was killed.
fn backed_up(host: &Host, file: &Path) {
    loop {
        let said = host.cli(Some(&host.admin), &["backup", file.to_str().unwrap()]);
        if said.code == 0 {
            return;
        }
        assert!(said.err.contains("another backup is being made"), "{}", said.err);
        std::thread::yield_now();
    }
}

/// Passes on a request to a host, and this many bytes of the answer. Returns the address, and the connection when they are
/// passed on.
fn proxy(host: &Host, bytes: u64) -> (String, JoinHandle<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (url, address) = (format!("http://{}", listener.local_addr().unwrap()), host.admin.url());
    let passing = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let host = TcpStream::connect(address.trim_start_matches("http://")).unwrap();
        let (mut asking, mut asked) = (client.try_clone().unwrap(), host.try_clone().unwrap());
        std::thread::spawn(move || io::copy(&mut asking, &mut asked));
        // A host that is killed sends less.
        let _ = io::copy(&mut host.take(bytes), &mut client);
        client
    });
    (url, passing)
}

fn started(host: &Host, words: &[&str]) -> Child {
    let mut command = host.command(Some(&host.admin), words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills it with SIGKILL.
fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn killed_host_leaves_no_file_and_no_copy() {
    // The host makes these paths one after the other, below the folder of the copy. It is killed when one exists.
    const MOMENTS: [&str; 5] = ["", "store", "store/sled/db", "components/large", "tokens.json"];
    let mut host = opened();
    let mut random = Random::new(0x6057);
    for (round, moment) in MOMENTS.iter().enumerate() {
        let name = |ending: &str| host.folder().join(format!("{round}{ending}"));
        let (file, folder) = (name(".backup"), name(".restored"));
        let copy = host.data().join("backup.unfinished");
        // The host cannot send all of it while nobody reads. So the copy exists until the kill.
        let large = host.data().join("components/large");
        fs::File::create(&large).unwrap().set_len(64 << 20).unwrap();
        let (url, passing) = proxy(&host, random.below(1 << 20) as u64);
        let mut child = started(&host, &["backup", file.to_str().unwrap(), "--url", &url]);
        while !copy.join(moment).exists() {
            assert!(child.try_wait().unwrap().is_none(), "round {round}: the command ended");
            std::thread::yield_now();
        }
        host.kill();
        passing.join().unwrap().shutdown(Shutdown::Both).unwrap();
        assert!(!child.wait().unwrap().success() && !file.exists(), "round {round}");
        assert!(copy.exists(), "round {round}");
        fs::remove_file(large).unwrap();

        host.start();
        assert!(!copy.exists(), "round {round}: the start removes the copy");
        backed_up(&host, &file);
        let said = restore(&host, &file, &folder);
        assert_eq!(said.code, 0, "round {round}: {}", said.err);
        let verified = host.cli(None, &["audit", "verify", "--data", folder.to_str().unwrap()]);
        assert_eq!(verified.code, 0, "round {round}: {}{}", verified.out, verified.err);
    }
    assert_eq!(balance(&host), 1000);
}

#[test]
fn killed_commands_leave_a_whole_result_or_none() {
    let host = opened();
    let mut random = Random::new(0xbac4);
    let mut moment = |most: usize| random.below(most);
    let whole = host.folder().join("whole.backup");
    backed_up(&host, &whole);
    let bytes = fs::read(&whole).unwrap();
    for round in 0..10 {
        let name = |ending: &str| host.folder().join(format!("{round}{ending}"));
        let (file, folder, pipe) = (name(".backup"), name(".restored"), name(".pipe"));
        let [to_file, to_folder, from_pipe] = [&file, &folder, &pipe].map(|path| path.to_str().unwrap());
        // Half of the kills are before the last byte for certain. The others may be at the end, or after it.
        let is_cut = round % 2 == 0;
        if is_cut {
            let (url, passing) = proxy(&host, moment(bytes.len()) as u64);
            let child = started(&host, &["backup", to_file, "--url", &url]);
            let _held = passing.join().unwrap();
            kill(child);
            assert!(!file.exists(), "round {round}");
        } else {
            let mut child = started(&host, &["backup", to_file]);
            let (unfinished, length) = (name(".backup.unfinished"), moment(bytes.len()) as u64);
            let is_written = || fs::metadata(&unfinished).is_ok_and(|file| file.len() >= length);
            while child.try_wait().unwrap().is_none() && !is_written() {
                std::thread::yield_now();
            }
            kill(child);
        }
        if !file.exists() {
            backed_up(&host, &file);
        }

        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let child = started(&host, &["restore", from_pipe, to_folder]);
        let mut pipe = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        let passed = if is_cut { moment(bytes.len()) } else { bytes.len() };
        pipe.write_all(&bytes[..passed]).unwrap();
        if !is_cut {
            drop(pipe);
        }
        kill(child);
        assert!(!is_cut || !folder.exists(), "round {round}");
        if !folder.exists() {
            let _ = fs::remove_dir_all(name(".restored.unfinished"));
            let said = restore(&host, &file, &folder);
            assert_eq!(said.code, 0, "round {round}: {}", said.err);
        }
        let verified = host.cli(None, &["audit", "verify", "--data", to_folder]);
        assert_eq!(verified.code, 0, "round {round}: {}{}", verified.out, verified.err);
    }
}
