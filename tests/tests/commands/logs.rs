//! The log of a call as people read it.

use toolgate_tests::wat::Wat;

use super::*;

/// A plugin with the tool `noisy`, which logs a text, written as in WAT, this many times.
fn noisy(text: &str, bytes: usize, times: u32) -> Vec<u8> {
    Wat {
        body: &format!(
            "(local $n i32)
          (loop $again
            (call $log (i32.const 1) (i32.const 4096) (i32.const {bytes}))
            (local.set $n (i32.add (local.get $n) (i32.const 1)))
            (br_if $again (i32.lt_u (local.get $n) (i32.const {times}))))
          (call $ok_number (i64.const 1))"
        ),
        items: &format!(r#"(data (i32.const 4096) "{text}")
          (data (i32.const 128) "\00\01\00\00\05\00\00\00\05\01\00\00\08\00\00\00\0d\01\00\00\11\00\00\00\00\00\00\00\1e\01\00\00\02\00\00\00")
          (data (i32.const 168) "\80\00\00\00\01\00\00\00")
          (data (i32.const 256) "noisyIt logs.{{\22type\22:\22object\22}}{{}}")"#),
        tools: "(i32.const 168)",
        ..Wat::default()
    }
    .build()
}

#[test]
fn the_last_lines_of_a_call_are_shown_escaped() {
    let host = Setup::with(&[]).component("noisy", noisy(r"a\1b[2J", 5, 300)).start();
    let turn = host.agent.call("c", "noisy", json!({}));
    let call = turn["calls"][0]["id"].as_str().unwrap();
    for follow in [&[][..], &["--follow"]] {
        let said = host.cli(Some(&host.agent), &[&["logs", call, "--conversation", "c"], follow].concat());
        assert_eq!((said.code, said.out.contains('\u{1b}')), (0, false), "{said:?}");
        let lines: Vec<&str> = said.out.lines().collect();
        assert_eq!((lines[0], lines.len()), ("(100 earlier lines are not kept)", 201));
        assert!(lines[1..].iter().all(|line| line.ends_with("  info   a\\u{1b}[2J")), "{}", lines[1]);
    }
    let json = host.cli(Some(&host.agent), &["logs", call, "--conversation", "c", "--follow", "--json"]);
    let last: Value = serde_json::from_str(json.out.lines().last().unwrap()).unwrap();
    assert_eq!((&last["run"], &last["line"], &last["message"]), (&json!(1), &json!(300), &json!("a\u{1b}[2J")));
    let shown = host.cli(Some(&host.agent), &["show", turn["turn"].as_str().unwrap(), "--conversation", "c"]);
    assert!(shown.out.contains("log of run 1, without 280 earlier lines"), "{}", shown.out);
    let missing = host.cli(Some(&host.agent), &["logs", "nothing", "--conversation", "c"]);
    assert!(missing.code != 0 && missing.err.contains("there is no such call"), "{missing:?}");
    assert!(missing.err.contains("hint: pass its conversation with --conversation"), "{missing:?}");
}

#[test]
fn each_line_of_a_message_is_a_line_of_the_log() {
    let host = Setup::with(&[]).component("noisy", noisy(r"Traceback\0a  File\0aError\1b[2J", 26, 2)).start();
    let turn = host.agent.call("c", "noisy", json!({}));
    let call = turn["calls"][0]["id"].as_str().unwrap();
    let said = host.cli(Some(&host.agent), &["logs", call, "--conversation", "c"]);
    let ends = ["Traceback", "File", r"Error\u{1b}[2J"].repeat(2);
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines.len(), ends.len(), "{said:?}");
    assert!(lines.iter().zip(ends).all(|(line, end)| line.ends_with(end)), "{said:?}");
    let log = host.agent.get(&format!("/v1/conversations/c/calls/{call}/log")).ok(200);
    let numbers: Vec<_> = log["runs"][0]["lines"].as_array().unwrap().iter().map(|line| &line["line"]).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6], "{log:#}");
}
