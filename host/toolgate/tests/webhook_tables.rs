//! `[[webhook]]` in the configuration, and the messages about errors. No message contains a secret.

#![expect(clippy::expect_used, reason = "what a test is made of fails by panicking")]

use std::fs;
use std::path::Path;

use dispatch::ports::SuspensionRow;
use domain::{
    CallId, CallIndex, ConversationId, Event, Json, PrincipalId, Span, SuspensionId, Timestamp, Turn, TurnId,
    event::{CallEvent, Rejection},
    suspension::{SuspensionKind, SuspensionState},
};
use expect_test::{Expect, expect};
use toolgate::config::Config;
use webhook::WebhookEvent;

/// The first line, and the hint.
fn check(table: &str, expect: &Expect) {
    let text = format!("[[webhook]]\n{table}\n");
    let error = Config::parse(&text, Path::new("toolgate.toml")).expect_err("something is wrong");
    expect.assert_eq(&format!("{error}\n{}", error.hint().unwrap_or_default()));
}

#[test]
fn wrong_webhook_is_reported_with_its_place() {
    let secret = "\nsecret_env = \"S\"";
    check(
        "name = \"pager\"\nurl = \"https://hooks.test/\"",
        &expect![[r#"
            toolgate.toml:2:1: the secret of the webhook pager has no source
            write `secret_env = "VARIABLE"` or `secret_file = "PATH"`; this file cannot contain the value"#]],
    );
    check(
        &format!("name = \"pager\"\nurl = \"http://hooks.test/\"{secret}"),
        &expect![[r#"
            toolgate.toml:3:1: http does not encrypt the messages
            use https, or write `private = true` for a receiver in your own network"#]],
    );
    check(
        &format!("name = \"pager\"\nurl = \"ftp://hooks.test/\"{secret}\nprivate = true"),
        &expect![[r#"
            toolgate.toml:3:1: a webhook needs https, not ftp
            correct the URL"#]],
    );
    check(
        &format!("name = \"pager\"\nurl = \"https://me:pass@hooks.test/\"{secret}"),
        &expect![[r#"
            toolgate.toml:3:1: the URL contains a name or a password
            remove the name and the password; the signature authenticates the host"#]],
    );
    check(
        &format!("name = \"a b\"\nurl = \"https://hooks.test/\"{secret}"),
        &expect![[r#"
            toolgate.toml:2:1: "a b" is not a name for a webhook
            use 1 to 64 of the characters a-z A-Z 0-9 _ -"#]],
    );
    check(
        &format!("name = \"pager\"\nurl = \"https://hooks.test/\"{secret}\nsecret_file = \"s\""),
        &expect![[r#"
            toolgate.toml:4:1: the secret has two sources
            remove one of the two"#]],
    );
    check(
        &format!(
            "name = \"a\"\nurl = \"https://a.test/\"{secret}\n[[webhook]]\nname = \"a\"\nurl = \"https://b.test/\"{secret}"
        ),
        &expect![[r#"
            toolgate.toml:6:1: two webhooks are named a
            rename one of them"#]],
    );
    check(
        &format!("name = \"pager\"\nurl = \"https://hooks.test/\"{secret}\nevents = [\"open\"]"),
        &expect![[r#"
            toolgate.toml:5:11: `events` is "open", and it must be one of `opened`, `escalated`, `closed`, `turn.settled`
            did you mean `opened`?"#]],
    );
    check(
        "name = \"pager\"\nurl = \"hooks.test\"",
        &expect![[r#"
            toolgate.toml:3:7: relative URL without a base
        "#]],
    );
}

#[test]
fn webhook_secret_is_read_at_start_and_never_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("toolgate.toml");
    fs::write(&file, "[[webhook]]\nname = \"pager\"\nurl = \"https://hooks.test/\"\nsecret_file = \"pager.secret\"\n")
        .expect("written");
    let looked_up = || Config::read(Some(&file)).expect("the file is fine").webhooks();
    let said = || looked_up().err().expect("something is wrong").to_string();
    assert!(said().contains("toolgate.toml:4:1: the secret of the webhook pager: cannot read the file"), "{}", said());
    fs::write(folder.path().join("pager.secret"), "sesame\n").expect("written");
    assert!(
        said().contains("the secret has 6 bytes; it must have 24 to 256") && !said().contains("sesame"),
        "{}",
        said()
    );
    fs::write(folder.path().join("pager.secret"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").expect("written");
    assert_eq!(looked_up().expect("a secret").len(), 1);
}

#[test]
fn webhook_events_come_from_its_table() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("s"), "a raw secret of 27 bytes...").expect("written");
    let made = |more: &str| {
        let text = format!("[[webhook]]\nname = \"a\"\nurl = \"https://a.test\"\nsecret_file = \"s\"\n{more}");
        let config = Config::parse(&text, &folder.path().join("toolgate.toml")).expect("fine");
        config.webhooks().expect("a secret").remove(0)
    };
    let row = |tool: &str, kind, conversation: &str| SuspensionRow {
        id: SuspensionId::from_bits(1),
        turn: TurnId::from_bits(1),
        call: CallIndex(0),
        conversation: ConversationId::new(conversation).expect("legal"),
        caller: PrincipalId::new("ann").expect("legal"),
        tool: tool.into(),
        kind,
        state: SuspensionState::Open,
        ended_by: Vec::new(),
        signal: None,
    };
    let rows = [
        row("pay", SuspensionKind::Approval, "c"),
        row("ask", SuspensionKind::Elicitation, "c"),
        row("pay", SuspensionKind::ClientExec, "d"),
        row("pay", SuspensionKind::External, "e"),
    ];
    for (more, wanted) in [
        ("", [true, true, false, false]),
        ("tools = \"p*\"", [true, false, false, false]),
        ("kinds = [\"client_exec\", \"approval\"]", [true, false, true, false]),
        ("conversation = \"d\"", [false, false, false, false]),
        ("kinds = [\"external\"]", [false, false, false, true]),
        ("conversation = \"d\"\nkinds = [\"client_exec\"]", [false, false, true, false]),
    ] {
        let webhook = made(more);
        assert_eq!(rows.each_ref().map(|row| (webhook.reports)(row)), wanted, "{more}");
    }
    assert_eq!(made("events = [\"turn.settled\"]").events, [WebhookEvent::TurnSettled].into());
    let plain = made("");
    assert_eq!(
        (plain.events, plain.arguments, plain.private, plain.link),
        (WebhookEvent::OF_SUSPENSIONS.into(), false, false, None)
    );
    let full = made(
        "events = [\"closed\"]\narguments = true\nprivate = true\nlink = { principal = \"oncall\", ttl_ms = 5, base = \"https://gate.test\" }",
    );
    assert_eq!((full.events, full.arguments, full.private), ([WebhookEvent::Closed].into(), true, true));
    assert_eq!(
        full.link.map(|link| (link.principal.to_string(), link.ttl)),
        Some(("oncall".into(), Span::from_millis(5)))
    );
}

#[test]
fn filters_of_a_webhook_select_turns() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("s"), "a raw secret of 27 bytes...").expect("written");
    let made = |more: &str| {
        let text = format!("[[webhook]]\nname = \"a\"\nurl = \"https://a.test\"\nsecret_file = \"s\"\n{more}");
        let config = Config::parse(&text, &folder.path().join("toolgate.toml")).expect("fine");
        config.webhooks().expect("a secret").remove(0)
    };
    let at = Timestamp::from_millis(0);
    let (conversation, caller) = (ConversationId::new("d").expect("legal"), PrincipalId::new("ann").expect("legal"));
    let (turn, rejection, context) = (TurnId::from_bits(1), Rejection::default(), None);
    let started = Event::TurnStarted { turn, conversation, caller, rejection, context, parent: None, at };
    let requested = |(call, tool): (u16, &str)| {
        let (id, tool, arguments) = (CallId::new(tool).expect("legal"), tool.into(), Json::unchecked("{}"));
        let event = CallEvent::Requested { id, tool, arguments, pinned: None, ruled_by: None, origin: None };
        Event::Call { call: CallIndex(call), event }
    };
    let events: Vec<_> = [started].into_iter().chain([(0, "ask"), (1, "pay")].map(requested)).collect();
    let turn = Turn::replay(&events).expect("a turn");
    for (more, wanted) in [
        ("", true),
        ("tools = \"p*\"", true),
        ("tools = \"x*\"", false),
        ("conversation = \"c\"", false),
        ("conversation = \"d\"\nkinds = [\"client_exec\"]", true),
    ] {
        assert_eq!((made(more).reports_turn)(&turn), wanted, "{more}");
    }
}
