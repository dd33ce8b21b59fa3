//! `toolgate store prune` on the folder of a stopped host.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use dispatch::ports::{Commit, EndedTurn, Log as _, RowChange};
use dispatch::{Mode, RetentionRules};
use domain::{
    ConversationId, Event, Json, PrincipalId, Span, Timestamp, TurnId,
    event::{Rejection, TurnEnd},
};
use expect_test::{Expect, expect};
use store::{SledStore, StoreSettings, open};

fn prune(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    run(folder, &["store", "prune"], arguments)
}

fn run(folder: &Path, command_names: &[&str], arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    for name in ["URL", "TOKEN", "DATA", "CONFIG", "CONVERSATION", "LOG", "CACHE"] {
        command.env_remove(format!("TOOLGATE_{name}"));
    }
    command.args(command_names).args(arguments).current_dir(folder).env("NO_COLOR", "1");
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

fn check(folder: &Path, arguments: &[&str], code: i32, expect: &Expect) {
    let (found, text) = prune(folder, arguments);
    expect.assert_eq(&text);
    assert_eq!(found, Some(code));
}

/// Turns that ended in 1970, one in each conversation. The one in `large` has a record in a file of its own.
fn ended_turns(folder: &Path, conversations: &[&str]) -> SledStore {
    let store = open(folder.join("toolgate-data/store"), &StoreSettings::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (number, name) in (1_u128..).zip(conversations) {
        let (turn, at) = (TurnId::from_bits(number), Timestamp::from_millis(1));
        let (conversation, caller) = (ConversationId::new(name).unwrap(), PrincipalId::new("ann").unwrap());
        let large = (*name == "large").then(|| Json::unchecked(format!("{:?}", "x".repeat(100_000))));
        let (rejection, context) = (Rejection::default(), large);
        let row = EndedTurn { turn, conversation: conversation.clone(), caller: caller.clone(), tools: vec![], at };
        let started = Event::TurnStarted {
            turn,
            conversation: conversation.clone(),
            caller,
            rejection,
            context,
            parent: None,
            at,
        };
        let all = vec![started, Event::TurnSettled { end: TurnEnd::Settled, at }];
        let commit = Commit::turn(turn, conversation, 0, all).with([RowChange::Ended(row, TurnEnd::Settled)]);
        runtime.block_on(store.append(&commit)).unwrap();
    }
    store
}

#[test]
fn prune_says_what_it_removes_and_removes_it() {
    let folder = tempfile::tempdir().unwrap();
    check(
        folder.path(),
        &["--dry-run"],
        1,
        &expect![[r#"
            error: there is no store in toolgate-data/store
            hint: name the host's data folder with --data
        "#]],
    );
    drop(ended_turns(folder.path(), &["a", "b", "held"]));
    check(folder.path(), &[], 0, &expect![["removed nothing\n"]]);
    let rules = "[retention]\nturns_days = 90\nhold.conversations = [\"held\"]\n";
    std::fs::write(folder.path().join("toolgate.toml"), rules).unwrap();
    check(
        folder.path(),
        &["--dry-run"],
        0,
        &expect![[r#"
            would remove 2 turns with 366 bytes: ended turns are kept for 90 days
            kept 1 turn with 186 bytes: a hold keeps them
        "#]],
    );
    // The time of the removal is in the hash.
    let hash = |text: &str| text.rsplit_once("sha256:").map(|(before, _)| format!("{before}HASH\n")).unwrap();
    let (code, text) = prune(folder.path(), &[]);
    expect![[r#"
        removed 2 turns with 366 bytes: ended turns are kept for 90 days
        kept 1 turn with 186 bytes: a hold keeps them
        the head of the audit is 4:HASH
    "#]]
    .assert_eq(&hash(&text));
    assert_eq!(code, Some(0));
    let (_, text) = prune(folder.path(), &["--json"]);
    expect![[r#"
        {"dry_run":false,"removed":[],"logs":{"turns":0,"bytes":0},"journals":{"turns":0,"bytes":0},"held":{"turns":1,"bytes":186},"undelivered":{"turns":0,"bytes":0},"above":0,"ignores_declarations":false,"head":"4:HASH
    "#]]
    .assert_eq(&hash(&text));
    std::fs::write(folder.path().join("toolgate.toml"), format!("{rules}declared_days_min = 7\n")).unwrap();
    check(
        folder.path(),
        &["--dry-run"],
        0,
        &expect![[r#"
            would remove nothing
            kept 1 turn with 186 bytes: a hold keeps them
            no tool's own `retention` counted: the tools of a stopped host are not known, and a running host may remove more (`retention.declared_days_min`)
        "#]],
    );
    let (_, text) = prune(folder.path(), &["--dry-run", "--json"]);
    assert!(text.contains("\"ignores_declarations\":true"), "{text}");

    let used = open(folder.path().join("toolgate-data/store"), &StoreSettings::default()).unwrap();
    check(
        folder.path(),
        &[],
        1,
        &expect![[r#"
        error: toolgate-data/store is in use by another process; stop that one, or choose another folder
    "#]],
    );
    drop(used);
}

#[test]
fn damaged_turn_keeps_no_other_turn() {
    let folder = tempfile::tempdir().unwrap();
    let store = ended_turns(folder.path(), &["large", "a"]);
    for blob in std::fs::read_dir(folder.path().join("toolgate-data/store/blobs")).unwrap() {
        std::fs::write(blob.unwrap().path(), "other bytes").unwrap();
    }
    let rules = RetentionRules { turns: Some(Span::from_secs(1)), ..RetentionRules::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let now = Timestamp::from_millis(1_000_000);
    let store = Arc::new(store);
    let pruned = dispatch::prune(store.clone(), store.clone(), store, rules, now, Mode::Remove);
    let pruned = runtime.block_on(pruned).unwrap();
    assert_eq!(pruned.removed.values().map(|amount| amount.turns).sum::<u64>(), 1);
}

#[test]
fn checkpoint_proves_removals_and_finds_a_rebuilt_chain() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("toolgate.toml"), "[retention]\nturns_days = 90\n").unwrap();
    drop(ended_turns(folder.path(), &["a", "b"]));
    assert_eq!(prune(folder.path(), &[]).0, Some(0));
    let kept = folder.path().join("kept.json");
    std::fs::copy(folder.path().join("toolgate-data/checkpoints/3.json"), &kept).unwrap();
    let verify = |more: &[&str]| {
        let arguments = [&["--data", "toolgate-data", "--checkpoint", "kept.json"], more].concat();
        run(folder.path(), &["audit", "verify"], &arguments)
    };
    let (code, text) = verify(&[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("2 turns removed, positions 3 to 3: ended turns are kept for 90 days"), "{text}");
    assert!(text.contains("the key was not compared with a known one"), "{text}");
    let (_, key) = toolgate::checkpoint::verify(&std::fs::read_to_string(&kept).unwrap(), None).unwrap();
    let (code, text) = verify(&["--key", &key]);
    assert!(code == Some(0) && !text.contains("not compared"), "{text}");
    let (code, text) = verify(&["--key", "ed25519:other"]);
    assert!(code == Some(1) && text.contains("signed it, and not ed25519:other"), "{text}");

    // Another history with as many commits, which is valid in itself.
    std::fs::remove_dir_all(folder.path().join("toolgate-data/store")).unwrap();
    drop(ended_turns(folder.path(), &["a", "c"]));
    assert_eq!(prune(folder.path(), &[]).0, Some(0));
    assert_eq!(run(folder.path(), &["audit", "verify"], &["--data", "toolgate-data"]).0, Some(0));
    let (code, text) = verify(&[]);
    assert!(code == Some(1) && text.contains("the chain was rebuilt"), "{text}");
}
