//! Cards of suspensions and turns.

use super::*;

#[test]
fn a_receipt_fits_one_line() {
    for (receipt, line) in [
        ((12_345, 1_310_720, 34, 1_024, 2_560), "12 ms, 1.2 MiB, 34 host calls, 1 KiB in, 2.5 KiB out"),
        ((9_900, 128 << 20, 1, 0, 1_023), "9.9 ms, 128 MiB, 1 host call, 0 B in, 1023 B out"),
        ((7, 65_536, 0, 1_048_575, 10 << 20), "7 µs, 64 KiB, 0 host calls, 1023 KiB in, 10 MiB out"),
    ] {
        let (time_us, peak_memory_bytes, host_calls, bytes_in, bytes_out) = receipt;
        let receipt =
            Receipt { time_us, peak_memory_bytes, peak_host_bytes: 0, host_calls, bytes_in, bytes_out, journal: None };
        assert_eq!(usage(&receipt), line);
        let journal = Some(api::JournalSummary { entries: 2, bytes: 2_560, digest: "sha256:0".to_owned() });
        assert_eq!(usage(&Receipt { journal, ..receipt }), format!("{line}, journal of 2 entries and 2.5 KiB"));
    }
}

#[test]
fn card_shows_the_steps_before_it() {
    let step = |step: u32, kind: &str, more: &str| {
        format!(
            r#"{{"step": {step}, "suspension": "s", "kind": "{kind}", "since": "2026-01-01T00:00:00.000Z", {more}}}"#
        )
    };
    let ended = r#""at": "2026-01-01T00:01:00.000Z""#;
    let steps = [
        step(1, "elicitation", &format!(r#""prompt": "Where\\u{{1b}}?", "state": "answer", "by": "ann", {ended}"#)),
        step(2, "approval", &format!(r#""state": "approve", "by": "bob", "approvers": ["ann", "bob"], {ended}"#)),
        step(3, "timer", &format!(r#""state": "expired", "by": "system", {ended}"#)),
        step(4, "external", r#""state": "open""#),
    ];
    let earlier = serde_json::from_str(&format!("[{}]", steps.join(","))).expect("steps");
    let card = suspension(&Suspension { earlier, ..open("approval") }, &Terminal::plain());
    let lines: Vec<_> = card.lines().filter_map(|line| line.strip_prefix("  before      ")).collect();
    assert_eq!(
        lines,
        [
            r#"step 1: question "Where\u{1b}?", answer by ann at 2026-01-01T00:01:00.000Z"#,
            "step 2: approval, approve by ann and bob at 2026-01-01T00:01:00.000Z",
            "step 3: sleep, over at 2026-01-01T00:01:00.000Z",
            "step 4: external wait, open since 2026-01-01T00:00:00.000Z",
        ]
    );
}

/// A suspension with these members. The other required ones have values that no card shows.
fn item(members: &str) -> Suspension {
    let others = r#""prompt_by": "plugin", "arguments_digest": "", "needs": [], "created_at": """#;
    serde_json::from_str(&format!("{{{members}, {others}}}")).expect("a suspension")
}

fn open(kind: &str) -> Suspension {
    item(&format!(
        r#""suspension": "susp_1", "conversation": "c", "turn": "turn_1", "call": "call_1", "tool": "pay", "kind": "{kind}",
            "arguments": {{}}, "caller": "agent", "allowed": [], "editable": "none", "expires_at": "", "on_expiry": "deny",
            "digest": "", "state": "open""#
    ))
}

/// The rows on arguments and votes of an approval with these members.
fn arguments_of(members: &str) -> String {
    arguments_of_kind("approval", members)
}

fn arguments_of_kind(kind: &str, members: &str) -> String {
    let item = item(&format!(
        r#""suspension": "susp_1", "conversation": "c", "turn": "turn_1", "call": "call_1", "tool": "pay",
            "kind": "{kind}", "arguments": {{"to":"bob","amount":5000}}, "caller": "agent", "allowed": [],
            "editable": "none", "expires_at": "2026-01-01T00:00:00.000Z", "on_expiry": "deny",
            "digest": "sha256:true", {}"#,
        members.replace(r#"{"by": "#, r#"{"binding": "", "at": "", "by": "#)
    ));
    let card = suspension(&item, &Terminal::plain());
    let names = ["arguments", "approved", "submitted", "changed", "added", "removed", "vote"];
    let is_shown = |line: &&str| names.iter().any(|name| line.starts_with(&format!("  {name:<11} ")));
    card.lines().filter(is_shown).map(|line| format!("{}\n", line.trim_start())).collect()
}

#[test]
fn an_open_card_shows_the_edits_of_votes() {
    expect_test::expect![[r#"
            arguments   {"to":"bob","amount":5000}
        "#]]
    .assert_eq(&arguments_of(r#""state": "open""#));
    expect_test::expect![[r#"
            submitted   {"to":"bob","amount":5000}
            vote        ann approved {"amount": 50.0,"no\u202ete":1}
            changed     amount: 5000 -> 50.0
            added       no\u{202e}te: 1
            removed     to: "bob"
            vote        cy via link approved the arguments as submitted
        "#]]
    .assert_eq(&arguments_of(
        "\"state\": \"open\", \"votes\": [{\"by\": \"ann\", \"arguments\": {\"amount\": 50.0,\"no\u{202e}te\":1}}, \
             {\"by\": \"cy\", \"via\": \"link\"}]",
    ));
}

#[test]
fn a_closed_card_shows_submitted_and_approved_arguments() {
    let closed = |state: &str, arguments: &str| {
        let closed = format!(r#"{{"state": "{state}", "by": "bob", "at": "2026-01-01T00:00:00.000Z"{arguments}}}"#);
        arguments_of(&format!(r#""state": "{state}", "closed": {closed}"#))
    };
    expect_test::expect![[r#"
            approved    {"to":"bob","amount":12345678901234567890}
            submitted   {"to":"bob","amount":5000}
            changed     amount: 5000 -> 12345678901234567890
        "#]]
    .assert_eq(&closed("approve", r#", "arguments": {"to":"bob","amount":12345678901234567890}"#));
    for same in ["", r#", "arguments": {"to":"bob", "amount":5000}"#] {
        assert!(closed("approve", same).ends_with("submitted   the same\n"));
    }
    for state in ["deny", "expired", "withdrawn"] {
        assert_eq!(closed(state, ""), "submitted   {\"to\":\"bob\",\"amount\":5000}\n");
    }
}

#[test]
fn card_after_an_earlier_edit_shows_what_was_submitted() {
    let submitted = r#""submitted": {"to":"bob","amount":50}"#;
    let beside = expect_test::expect![[r#"
        arguments   {"to":"bob","amount":5000}
        submitted   {"to":"bob","amount":50}
        changed     amount: 50 -> 5000
    "#]];
    for kind in ["approval", "elicitation", "client_exec"] {
        beside.assert_eq(&arguments_of_kind(kind, &format!(r#""state": "open", {submitted}"#)));
    }
    let closed = |state: &str| {
        let closed = format!(r#"{{"state": "{state}", "by": "bob", "at": "2026-01-01T00:00:00.000Z"}}"#);
        arguments_of(&format!(r#""state": "{state}", "closed": {closed}, {submitted}"#))
    };
    beside.assert_eq(&closed("deny"));
    expect_test::expect![[r#"
        approved    {"to":"bob","amount":5000}
        submitted   {"to":"bob","amount":50}
        changed     amount: 50 -> 5000
    "#]]
    .assert_eq(&closed("approve"));
    let voted = arguments_of(&format!(r#""state": "open", "votes": [{{"by": "ann"}}], {submitted}"#));
    assert!(voted.ends_with("vote        ann approved these arguments\n"), "{voted}");
}

#[test]
fn defaults_belong_to_the_submitted_arguments() {
    let shown = |votes: &str| {
        let members = r#""suspension": "s", "conversation": "c", "turn": "t", "call": "c", "tool": "pay", "kind": "approval",
                "arguments": {"a":1}, "defaults": {"/b":2}, "caller": "agent", "allowed": [], "editable": "all",
                "expires_at": "", "on_expiry": "deny", "digest": "", "state": "open""#;
        suspension(&item(&format!("{members}{votes}")), &Terminal::plain())
    };
    assert!(shown("").contains("  defaults    {\"/b\":2}\n"));
    let edited = shown(r#", "votes": [{"by": "ann", "at": "", "binding": "", "arguments": {"a":3}}]"#);
    assert!(edited.contains("  defaults    for the arguments as submitted: {\"/b\":2}\n"), "{edited}");
    let closed = |more: &str| {
        let closed =
            format!(r#", "closed": {{"state": "approve", "by": "ann", "at": "", "arguments": {{"a":3}}{more}}}"#);
        let card = shown(&closed);
        card.lines()
            .filter(|line| line.contains("defaults"))
            .map(|line| line.trim_start().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(closed(""), Vec::<String>::new());
    assert_eq!(closed(r#", "defaults": {"/c":4}"#), ["defaults    for the approved arguments: {\"/c\":4}"]);
    let unknown = "defaults    unknown for the approved arguments: the component of the call is no longer loaded";
    assert_eq!(closed(r#", "defaults_unknown": true"#), [unknown]);
}

#[test]
fn step_says_what_the_host_cannot_know() {
    let members = r#""suspension": "s", "conversation": "c", "turn": "t", "call": "c", "tool": "pay", "kind": "approval",
            "step": 2, "arguments": {"a":1}, "caller": "agent", "allowed": [], "editable": "none", "expires_at": "",
            "on_expiry": "continue", "digest": "", "state": "open""#;
    let shown = suspension(&item(members), &Terminal::plain());
    assert!(shown.contains("  Step 2 of a call that has begun. The plugin wrote the question."), "{shown}");
    assert!(shown.contains("  value       {\"a\":1}\n") && shown.contains(", then continue\n"), "{shown}");
}

#[test]
fn question_answered_approve_is_no_approval() {
    let closed = r#"{"state": "approve", "by": "bob", "at": "2026-01-01T00:00:00.000Z", "arguments": {"to":"eve"}}"#;
    let shown = arguments_of_kind("elicitation", &format!(r#""state": "approve", "closed": {closed}"#));
    assert_eq!(shown, "arguments   {\"to\":\"bob\",\"amount\":5000}\n");
}

#[test]
fn a_card_shows_the_whole_call_and_cannot_be_forged() {
    let item = serde_json::json!({
        "suspension": "susp_1", "conversation": "c", "turn": "turn_1", "call": "call_1", "tool": "pay", "plugin": "p",
        "kind": "approval", "state": "open", "prompt": "Pay 1?\n  digest      sha256:forged\u{1b}[1A",
        "arguments": {"to": "x\u{202e}y"}, "defaults": {"/memo": "none"}, "caller": "agent", "allowed": ["approve", "deny"], "editable": "none",
        "expires_at": "2026-01-01T00:00:00.000Z", "on_expiry": "deny", "digest": "sha256:true",
    });
    let item = self::item(item.to_string().trim_matches(['{', '}']));
    expect_test::expect![[r#"
            susp_1  approval  pay (p)
              | Pay 1?
              |   digest      sha256:forged\u{1b}[1A
              arguments   {"to":"x\u202ey"}
              defaults    {"/memo":"none"}
              asked by    agent, call call_1
              turn        turn_1 of c
              digest      sha256:true
              expires     2026-01-01T00:00:00.000Z, then deny
              answered by a principal with the role approver: toolgate approve susp_1
              answered by a principal with the role approver: toolgate deny susp_1 --comment 'why not'
        "#]]
    .assert_eq(&suspension(&item, &Terminal::plain()));
}

#[test]
fn a_card_invites_only_those_who_may_answer() {
    let answering = |kind: &str, you: &str| {
        let mut item = open(kind);
        item.you = serde_json::from_str(you).unwrap();
        let mut card = String::new();
        super::answering(&mut card, &item, &Terminal::plain());
        card.lines().map(|line| format!("{}\n", line.trim_start())).collect::<String>()
    };
    let may = |may: bool, why_not: &str, role: &str| {
        format!(
            r#"{{"may_answer": {may}, "why_not": "{why_not}", "role": {role}, "voted": false, "counts_again": false}}"#
        )
    };
    let shown = [
        answering("client_exec", &may(true, "", "null")),
        answering("client_exec", "null"),
        answering(
            "client_exec",
            &may(false, "only a principal with the role client carries out client tools", "\"client\""),
        ),
        answering("approval", &may(false, "you are not among the \\u202e approvers", "null")),
    ];
    expect_test::expect![[r#"
              answer with toolgate answer susp_1 'RESULT AS JSON'
              answer with toolgate answer susp_1 --error 'why not'

              answered by a principal with the role client: toolgate answer susp_1 'RESULT AS JSON'
              answered by a principal with the role client: toolgate answer susp_1 --error 'why not'

              not by you  only a principal with the role client carries out client tools
              answered by a token with the role client; the host's operator makes one: `toolgate token create --name NAME --role client`

              not by you  you are not among the \u{202e} approvers
        "#]]
        .assert_eq(&shown.join("\n"));
}

#[test]
fn a_prompt_says_that_it_is_not_about_an_edit() {
    let shown = |state: &str, more: &str| {
        let prompt = r#""prompt": "Pay?", "tool": "pay", "kind": "approval", "arguments": {"a":1}"#;
        let item = item(&format!(
            r#""suspension": "s", "conversation": "c", "turn": "t", "call": "c", "caller": "agent", "allowed": [],
                "editable": "none", "expires_at": "", "on_expiry": "deny", "digest": "", "state": "{state}", {prompt}, {more}"#
        ));
        suspension(&item, &Terminal::plain()).contains("  prompt      about the arguments as submitted:\n  | Pay?\n")
    };
    let closed = |state: &str, arguments: &str| {
        shown(state, &format!(r#""closed": {{"state": "{state}", "by": "bob", "at": "", "arguments": {arguments}}}"#))
    };
    assert!(closed("approve", r#"{"a":2}"#));
    assert!(!closed("approve", r#"{"a": 1}"#), "only the white space differs");
    assert!(!closed("deny", r#"{"a":2}"#));
    assert!(!shown("open", r#""votes": []"#));
    assert!(shown("open", r#""votes": [{"by": "ann", "at": "", "binding": "", "arguments": {"a":2}}]"#));
}

#[test]
fn card_shows_the_channels_that_count() {
    let needs = |needs: &str| {
        let open = open("approval");
        let needs = serde_json::from_str(needs).expect("needs");
        let card = suspension(&Suspension { needs, ..open }, &Terminal::plain());
        card.lines().filter(|line| line.contains("through")).map(str::to_owned).collect::<Vec<_>>()
    };
    let need = |who: &str, via: &str| {
        format!(r#"{{"who": [{who}], "quorum": 1, "votes": 0, "escalated": false, "via": [{via}]}}"#)
    };
    let both = r#""console", "link""#;
    assert_eq!(needs(&format!("[{}]", need("", both))), ["  must be answered through: console, link"]);
    let several = [need("", ""), need("", "\"api\""), need(r#""group:x", "role:admin""#, both)].join(",");
    assert_eq!(
        needs(&format!("[{several}]")),
        [
            "  must be answered through: api (any approver)",
            "  must be answered through: console, link (group:x or role:admin)",
        ]
    );
}
