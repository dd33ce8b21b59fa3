//! Rows of the indexes against their golden files.

use dispatch::ports::{Attempt, DeliveryState, EndedTurn, LogLine, Occasion, Report, RunLog};
use domain::{
    ToolName,
    call::Level,
    event::{HostStarted, PluginChange, PluginEvent},
    journal::{self, Entry},
    retention::{Removal, RemovalRule, RemovedTurn},
    standing::StandingRevoked,
    suspension::{Audience, SuspensionEnd, SuspensionState},
};

use super::names::check_row;
use super::*;

#[test]
fn every_row_is_written_as_its_golden_file_and_read_from_it() {
    let row = SuspensionRow {
        id: SUSPENSION,
        turn: TURN,
        call: CallIndex(1),
        conversation: ConversationId::new("support:42").unwrap(),
        caller: principal("ann"),
        tool: "transfer".into(),
        kind: SuspensionKind::Approval,
        state: SuspensionState::Open,
        ended_by: Vec::new(),
        signal: None,
    };
    check_row("row_suspension", &row);
    let golden = include_bytes!("../../../tests/golden/v1/row_suspension.json").trim_ascii_end();
    assert_eq!(SuspensionRow::read(&[b"\x01", golden].concat()).unwrap(), row);
    let state = SuspensionState::Ended(SuspensionEnd::Decided(Decision::Approve));
    let ended = SuspensionRow { state, ended_by: vec![principal("bea"), principal("cid")], ..row.clone() };
    check_row("row_suspension_ended", &ended);
    let signal = Some(SignalName::new("job-7").unwrap());
    let awaited = SuspensionRow { kind: SuspensionKind::External, signal, ..row };
    check_row("row_suspension_signal", &awaited);
    for (name, row) in deliveries() {
        check_row(name, &row);
    }
    let changes = [
        ("plugin_loaded", PluginChange::Loaded { tools: vec![ToolName::new("transfer").unwrap()] }),
        ("plugin_rejected", PluginChange::Rejected { findings: vec!["transfer: no callback".into()] }),
        ("plugin_unloaded", PluginChange::Unloaded),
    ];
    for (name, change) in changes {
        let plugin = PluginName::new("ledger").unwrap();
        let component = Digest::of("component");
        let little = PluginEvent { plugin, component, change, at: at(1), by: None, grants: Vec::new() };
        check_row(name, &little);
        let grants = vec!["keyvalue: 1 bytes, 2 keys".into()];
        let full = PluginEvent { by: Some(principal("root")), grants, ..little };
        check_row(&format!("{name}_full"), &full);
    }
    let row = StandingRow {
        standing: standing(Pin::All),
        by: principal("ann"),
        created_at: at(1),
        suspension: SUSPENSION,
        conversation: ConversationId::new("support:42").unwrap(),
        caller: principal("agent"),
        tool: "transfer".into(),
        plugin: PluginName::new("ledger").unwrap(),
        component: Digest::of("component"),
        declaration: Digest::of("declaration"),
        fingerprint: Digest::of("ground"),
        arguments: json(" {} "),
        used: 0,
        revoked: None,
    };
    check_row("row_standing", &row);
    let revoked = StandingRevoked { id: STANDING, by: principal("ann"), at: at(2) };
    check_row("standing_revoked", &revoked);
    let (version, grants, at) = ("0.1.0".to_owned(), Vec::new(), at(1));
    let little =
        HostStarted { owner: OWNER, version, grants: grants.clone(), added: grants.clone(), removed: grants, at };
    check_row("host_started", &little);
    let texts = |text: &str| vec![text.to_owned(), "ledger: keyvalue".to_owned()];
    let full = HostStarted { grants: texts("a"), added: texts("b"), removed: texts("c"), ..little };
    check_row("host_started_full", &full);
}

#[test]
fn ended_and_removed_turns_equal_their_golden_files() {
    let conversation = ConversationId::new("support:42").unwrap();
    let tools = vec!["balance".into(), "transfer".into()];
    let ended = EndedTurn { turn: TURN, conversation, caller: principal("ann"), tools, at: at(8) };
    check_row("row_ended", &ended);
    let kept = Span::from_secs(3600);
    for (name, rule) in [
        ("turns_removed_age", RemovalRule::Age { kept }),
        ("turns_removed_tool", RemovalRule::Tool { tool: "transfer".into(), kept }),
        ("turns_removed_bytes", RemovalRule::Bytes { kept: 1 << 40 }),
    ] {
        let turns = vec![RemovedTurn { turn: TURN, commits: 5 }];
        check_row(name, &Removal { at: at(9), rule, bytes: 12_345, turns, lost: Vec::new() });
    }
    let turns = vec![RemovedTurn { turn: TURN, commits: 5 }];
    let salvage = Removal { at: at(9), rule: RemovalRule::Salvage, bytes: 0, turns, lost: vec![3, 7] };
    check_row("turns_lost_salvage", &salvage);
}

#[test]
fn audiences_equal_their_golden_files() {
    let who = |who: &str| who.parse().unwrap();
    let needs = vec![vec![], vec![who("principal:ann"), who("group:finance")]];
    let (without, delegates) = (Vec::new(), Vec::new());
    let little = Audience { kind: SuspensionKind::Elicitation, needs, without, delegates };
    check_row("row_audience", &little);
    let (without, delegates) = (vec![principal("ann")], vec![principal("ben")]);
    let full = Audience { kind: SuspensionKind::Approval, without, delegates, ..little };
    check_row("row_audience_full", &full);
}

#[test]
fn the_log_of_a_run_is_written_as_its_golden_file() {
    let levels = [Level::Debug, Level::Info, Level::Warn, Level::Error];
    let line = |level| LogLine { at: at(9), level, text: "it said \"\u{1b}[2J\"".into() };
    let log = RunLog { turn: TURN, call: CallIndex(1), run: 2, written: 7, lines: levels.map(line).into() };
    check_row("row_run_log", &log);
}

#[test]
fn entries_of_journals_equal_their_golden_files() {
    let entry = |record| Entry {
        number: 7,
        step: 2,
        run: Some(3),
        function: Some("key-value increment".into()),
        digest: Digest::of("a call"),
        at: at(9),
        salt: None,
        transferred: None,
        record,
    };
    let result = entry(journal::Record::Result("{\"sum\":5}".into()));
    check_row("row_journal_result", &result);
    let begun = entry(journal::Record::Begun("POST https://api.example.com/".into()));
    check_row("row_journal_begun", &begun);
    for (name, in_doubt) in [("row_journal_refused", false), ("row_journal_refused_in_doubt", true)] {
        let refused = journal::RefusedForNow { until: at(1_009), wait: Span::from_secs(1), in_doubt };
        check_row(name, &entry(journal::Record::Refused(refused)));
    }
    let first = Entry { number: 0, salt: Some(Digest::of("salt")), ..result.clone() };
    check_row("row_journal_first", &first);
    let transferred = Some(journal::Transferred { sent: 1_048_701, received: 93 });
    check_row("row_journal_request", &Entry { transferred, ..result });
}

#[test]
fn receipt_of_a_durable_call_equals_its_golden_file() {
    let journal = Some(journal::JournalSummary { entries: 3, bytes: 1_234, digest: Digest::of("entries") });
    let (outcome, receipt) = (Outcome::InDoubt, Some(Receipt { journal, ..receipt() }));
    let events = vec![Event::Call { call: CallIndex(1), event: CallEvent::Settled { outcome, receipt, at: at(6) } }];
    check("call_settled_with_journal", &events, |events, out| write_events(events, out), read_events);
}

#[test]
fn entry_of_an_older_host_has_no_run_and_no_function() {
    let golden = include_bytes!("../../../tests/golden/v1/row_journal_result.json");
    let entry = Entry::read(&[b"\x01", golden.trim_ascii_end()].concat()).unwrap();
    let record = journal::Record::Result("{\"sum\":5}".into());
    let digest = Digest::of("a call");
    assert_eq!(
        entry,
        Entry {
            number: 7,
            step: 2,
            run: None,
            function: None,
            digest,
            at: at(9),
            salt: None,
            transferred: None,
            record
        }
    );
}

#[test]
fn entry_of_the_version_before_has_no_bytes_of_a_request() {
    let golden = include_bytes!("../../../tests/golden/v2/row_journal_first.json");
    let entry = Entry::read(&[b"\x02", golden.trim_ascii_end()].concat()).unwrap();
    assert_eq!((entry.run, entry.salt, entry.transferred), (Some(3), Some(Digest::of("salt")), None));
}

#[test]
fn the_first_suspensions_are_still_read() {
    let golden = include_bytes!("../../../tests/golden/v1/call_suspended.json").trim_ascii_end();
    assert_eq!(read_events(&[b"\x01", golden].concat()).unwrap(), first_suspensions());
}

#[test]
fn waits_of_the_version_before_rate_limits_are_still_read() {
    let golden = include_bytes!("../../../tests/golden/v3/call_suspended_external.json").trim_ascii_end();
    assert_eq!(read_events(&[b"\x03", golden].concat()).unwrap(), externals());
}

#[test]
fn steps_of_the_version_before_external_waits_are_still_read() {
    let golden = include_bytes!("../../../tests/golden/v2/call_suspended_step.json").trim_ascii_end();
    let (_, steps) = events().into_iter().find(|(name, _)| *name == "call_suspended_step").unwrap();
    assert_eq!(read_events(&[b"\x02", golden].concat()).unwrap(), steps);
}

/// A delivery in every shape.
fn deliveries() -> Vec<(&'static str, DeliveryRow)> {
    let attempt = |status, error: Option<&str>| Some(Attempt { at: at(9), status, error: error.map(str::to_owned) });
    let about = |report, state, attempts, last| DeliveryRow {
        report,
        webhook: "pager".into(),
        at: at(1),
        state,
        attempts,
        last,
    };
    let row = |occasion, state, attempts, last| about(Report::Suspension(SUSPENSION, occasion), state, attempts, last);
    let pending = DeliveryState::Pending { next: at(10) };
    let unheard = attempt(None, Some("timeout"));
    vec![
        ("row_delivery", row(Occasion::Opened, pending, 0, None)),
        ("row_delivery_again", row(Occasion::Escalated { need: 1 }, pending, 1, unheard)),
        ("row_delivery_failed", row(Occasion::Closed, DeliveryState::Failed, 2, attempt(Some(410), Some("gone")))),
        ("row_delivery_made", row(Occasion::Closed, DeliveryState::Delivered, 3, attempt(Some(204), None))),
        ("row_delivery_settled", about(Report::TurnSettled(TURN), pending, 0, None)),
    ]
}

#[test]
fn an_answered_question_is_not_read_as_open() {
    for (kind, choice, read) in [
        (SuspensionKind::Elicitation, "open", "answer"),
        (SuspensionKind::Elicitation, "expired", "answer"),
        (SuspensionKind::Elicitation, "withdrawn", "answer"),
        (SuspensionKind::Elicitation, "approve", "approve"),
        (SuspensionKind::Elicitation, "later", "later"),
    ] {
        let ended = |choice: &str| SuspensionState::Ended(SuspensionEnd::Decided(Decision::Answer(choice.into())));
        let row = SuspensionRow {
            id: SUSPENSION,
            turn: TURN,
            call: CallIndex(1),
            conversation: ConversationId::new("support:42").unwrap(),
            caller: principal("ann"),
            tool: "transfer".into(),
            kind,
            state: ended(choice),
            ended_by: Vec::new(),
            signal: None,
        };
        let mut bytes = Vec::new();
        row.write(&mut bytes).unwrap();
        assert_eq!(SuspensionRow::read(&bytes).unwrap(), SuspensionRow { state: ended(read), ..row }, "{choice}");
    }
}

#[test]
fn older_durable_calls_send_no_request_in_doubt_again() {
    let requested = |recovery: &str, durable: &str| {
        format!(
            "[{{\"call_requested\":{{\"call\":1,\"id\":\"c\",\"tool\":\"t\",\"arguments\":\"{{}}\",\"pinned\":{{\"plugin\":\"p\",\
             \"component\":\"{0}\",\"declaration\":\"{0}\",\"executor\":\"server\",\"approval\":\"auto\",\"timeout\":1,\
             \"recovery\":\"{recovery}\"{durable}}}}}}}]",
            Digest::of("d")
        )
    };
    let recovery = |version: u8, text: String| match read_events(&[&[version], text.as_bytes()].concat()).unwrap().pop()
    {
        Some(Event::Call { event: CallEvent::Requested { pinned, .. }, .. }) => pinned.unwrap().recovery,
        other => panic!("{other:?}"),
    };
    let durable = ",\"durable\":true";
    assert_eq!(recovery(2, requested("retry", durable)), Recovery::Fail);
    assert_eq!(recovery(5, requested("retry", durable)), Recovery::Fail);
    assert_eq!(recovery(5, requested("ask", durable)), Recovery::Ask);
    assert_eq!(recovery(5, requested("retry", "")), Recovery::Retry);
    assert_eq!(recovery(6, requested("retry", durable)), Recovery::Retry);
}
