//! `pending` and `events`: which suspensions and which events they print.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::mpsc;

use serde_json::{Value, json};
use toolgate_tests::host::Setup;
use toolgate_tests::http::suspension_of;

#[test]
fn pending_is_filtered_and_ordered_for_a_default_conversation() {
    let host = Setup::with(&["lab"]).start();
    let gated = |conversation: &str, n: u8| host.agent.call(conversation, "gated_echo", json!({ "value": n }));
    let turns = [gated("c", 1), gated("d", 2), gated("c", 3)];
    let ids: Vec<String> = turns.iter().map(suspension_of).collect();
    let listed = |words: &[&str], conversation: Option<&str>| -> Vec<String> {
        let words = [&["pending", "--json", "--config", "toolgate.toml"], words].concat();
        let mut command = host.command(Some(&host.approver), &words);
        command.envs(conversation.map(|id| ("TOOLGATE_CONVERSATION", id)));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        let item = |line: &str| serde_json::from_str::<Value>(line).unwrap()["suspension"].as_str().unwrap().to_owned();
        lines.lines().map(item).collect()
    };
    let of = |numbers: &[usize]| numbers.iter().map(|n| ids[*n].clone()).collect::<Vec<_>>();
    assert_eq!(listed(&[], None), of(&[0, 1, 2]));
    assert_eq!(listed(&["--order", "newest"], None), of(&[2, 1, 0]));
    let turn = turns[1]["turn"].as_str().unwrap();
    assert_eq!(listed(&["--turn", turn], None), of(&[1]));
    assert_eq!(listed(&[], Some("c")), of(&[0, 2]));
    assert_eq!(listed(&["--conversation", "d"], Some("c")), of(&[1]));
    let call = turns[1]["calls"][0]["id"].as_str().unwrap();
    assert_eq!(listed(&["--call", call], Some("d")), of(&[1]), "--call needs a conversation: the variable names it");
    let empty = host.cli(Some(&host.approver), &["pending", "--conversation", "e"]);
    assert_eq!((empty.code, empty.out.as_str()), (0, "nothing waits in e\n"));
    let ended = host.cli(Some(&host.approver), &["pending", "--decision", "bogus", "--conversation", "e"]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "no suspension matches in e\n"));
    let misspelt = host.cli(Some(&host.approver), &["pending", "--decision", "approved"]);
    assert_eq!((misspelt.code, misspelt.err.contains("try `approve`")), (1, true), "{misspelt:?}");
}

#[test]
fn events_after_now_leave_out_the_past() {
    let host = Setup::with(&["lab"]).start();
    let past = host.agent.settled(&host.agent.call("c", "echo", json!({"value": 0})));
    let words = ["events", "c", "--after", "now", "--json", "--config", "toolgate.toml"];
    let mut command = host.command(Some(&host.agent), &words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let (sender, printed) = mpsc::channel();
    let reader = std::thread::spawn(move || lines.for_each(|line| sender.send(line).unwrap_or_default()));
    // The command connects at a moment that the test does not know, so there are new turns until it prints one.
    let first = (1..10_000).find_map(|n| {
        let _ = host.agent.call("c", "echo", json!({ "value": n }));
        printed.try_recv().ok()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
    let first: Value = serde_json::from_str(&first.unwrap()).unwrap();
    assert!(first["turn"].is_string() && first["turn"] != past["turn"], "{first}");
    let said = host.cli(Some(&host.agent), &["events", "c", "--after", "yesterday"]);
    assert_eq!((said.code, said.err.contains("`now`")), (1, true), "{said:?}");
}
