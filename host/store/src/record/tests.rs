//! The golden files: one value of every kind in the form of every version. An old version must always stay readable;
//! the newest must be written exactly so, and a change of that needs a new version and a new folder.

mod governing;
pub(crate) mod names;
mod refused;
mod rows;
mod steps;
mod versions;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use domain::{
    CallId, CallIndex, ConversationId, Digest, Json, LinkId, Outcome, OwnerId, PluginName, PrincipalId, Receipt,
    SignalName, Span, Standing, StandingId, Suspension, SuspensionId, Timestamp, TurnId,
    approvers::{Delegation, Escalate, Need, Vote},
    call::{Frozen, Pinned, Running, Wait},
    doubt::Doubt,
    event::{CallEvent, Rejection, TurnEnd},
    link::LinkRecord,
    outcome::{Failure, FailureCode},
    principal::{Channel, Channels},
    standing::{Pin, StandingBounds, StandingUse},
    suspension::{
        About, ApprovalExpiry, ApprovalRequest, Asked, ClientExec, Decision, Elicitation, ExternalWait, PromptBy,
        Resolution, SuspendedStep, SuspensionBody, SuspensionKind,
    },
    tool::{Approval, Editable, Executor, OnExpiry, Recovery, Risk},
};

use self::names::file_of;
use super::*;

/// Encodes a value and compares it with its golden file; decodes the file and compares it with the value. A file that
/// is not there is written, and the test fails once so that somebody looks at it.
fn check<T: PartialEq + Debug>(
    name: &str,
    value: &T,
    write: impl FnOnce(&T, &mut Vec<u8>) -> Result<(), serde_json::Error>,
    read: impl Fn(&[u8]) -> Result<T, Unreadable>,
) {
    let mut bytes = Vec::new();
    write(value, &mut bytes).unwrap();
    let path = |version: u8| {
        let file = format!("tests/golden/v{version}/{name}.json");
        Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
    };
    let with = |version: u8, golden: &[u8]| read(&[&[version], golden.trim_ascii_end()].concat()).unwrap();
    for older in 1..bytes[0] {
        if let Ok(golden) = fs::read(path(older)) {
            with(older, &golden);
        }
    }
    let path = path(bytes[0]);
    let Ok(golden) = fs::read(&path) else {
        fs::write(&path, [&bytes[1..], b"\n"].concat()).unwrap();
        panic!("{} was missing and has been written: look at it and commit it", path.display());
    };
    let golden = golden.trim_ascii_end();
    assert_eq!(String::from_utf8_lossy(&bytes[1..]), String::from_utf8_lossy(golden), "{name}: the format has changed");
    assert_eq!(&with(bytes[0], golden), value, "{name}");
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn json(text: &str) -> Json {
    Json::unchecked(text)
}

fn texts(texts: &[&str]) -> Arc<[String]> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn principal(name: &str) -> PrincipalId {
    PrincipalId::new(name).unwrap()
}

const TURN: TurnId = TurnId::from_bits(0x0193_5a7c_0000_7000_8000_0000_0000_0001);
const SUSPENSION: SuspensionId = SuspensionId::from_bits(0x0193_5a7c_0000_7000_8000_0000_0000_0002);
const STANDING: StandingId = StandingId::from_bits(0x0193_5a7c_0000_7000_8000_0000_0000_0004);
const LINK: LinkId = LinkId::from_bits(0x0193_5a7c_0000_7000_8000_0000_0000_0005);
const OWNER: OwnerId = OwnerId::from_bits(0x0193_5a7c_0000_7000_8000_0000_0000_0003);

fn pinned(executor: Executor, approval: Approval, recovery: Recovery, wait: Option<Wait>) -> Option<Arc<Pinned>> {
    Some(Arc::new(Pinned {
        plugin: PluginName::new("ledger").unwrap(),
        component: Digest::of("component"),
        declaration: Digest::of("declaration"),
        executor,
        approval,
        streaming: executor == Executor::Server,
        timeout: Span::from_secs(30),
        recovery,
        durable: false,
        frozen: None,
        wait,
    }))
}

fn durable() -> Arc<Pinned> {
    let pinned =
        pinned(Executor::Server, Approval::Auto, Recovery::Fail, Some(wait(OnExpiry::Error, Editable::Nothing)));
    let frozen = Some(Frozen::now(&domain::Limits::default()));
    Arc::new(Pinned { durable: true, frozen, ..pinned.unwrap().as_ref().clone() })
}

fn wait(on_expiry: OnExpiry, editable: Editable) -> Wait {
    Wait { expires: Span::from_secs(3600), on_expiry, choices: None, data_schema: None, result_schema: None, editable }
}

fn requested(call: u16, arguments: &str, pinned: Option<Arc<Pinned>>) -> Event {
    let id = CallId::new(&format!("toolu_{call}")).unwrap();
    let (tool, arguments) = ("transfer".into(), json(arguments));
    Event::Call {
        call: CallIndex(call),
        event: CallEvent::Requested { id, tool, arguments, pinned, ruled_by: None, origin: None },
    }
}

fn requests() -> Vec<Event> {
    let question = Wait {
        choices: Some(texts(&["yes", "no"])),
        data_schema: Some(json(r#"{"type":"object"}"#)),
        ..wait(OnExpiry::Answer(json("\"no\"")), Editable::Nothing)
    };
    let client = Wait { result_schema: Some(json("true")), ..wait(OnExpiry::Error, Editable::Nothing) };
    let gated = wait(OnExpiry::Deny, Editable::Fields(texts(&["amount"])));
    let free = wait(OnExpiry::Approve, Editable::All);
    vec![
        // White space and the order of members belong to what an approval is bound to.
        requested(0, " {\"b\": 1,\n \"a\": \"\\u00fc\" } ", None),
        requested(1, "{}", pinned(Executor::Server, Approval::Auto, Recovery::Retry, None)),
        requested(2, "{}", pinned(Executor::Server, Approval::RequiresApproval, Recovery::Ask, Some(gated))),
        requested(3, "{}", pinned(Executor::Client, Approval::RequiresApproval, Recovery::Fail, Some(free))),
        requested(4, "{}", pinned(Executor::Client, Approval::Auto, Recovery::Retry, Some(client))),
        requested(5, "{}", pinned(Executor::Human, Approval::Auto, Recovery::Retry, Some(question))),
        requested(6, "{}", pinned(Executor::Provider, Approval::Auto, Recovery::Retry, None)),
        requested(7, "{}", Some(durable())),
    ]
}

fn suspended(body: SuspensionBody) -> Event {
    let (id, digest) = (SUSPENSION, Digest::of("binding"));
    let (created_at, expires_at) = (at(1_000), at(2_000));
    let suspension = Box::new(Suspension { id, created_at, expires_at, digest, step: None, body });
    Event::Call { call: CallIndex(1), event: CallEvent::Suspended { suspension } }
}

/// Waits for external systems, with nothing and with everything that a guest can say about them.
fn externals() -> Vec<Event> {
    let full = ExternalWait {
        about: asked(Some("The job ends")).about,
        result_schema: Some(json(r#"{"type":"object"}"#)),
        signal: Some(SignalName::new("job-7").unwrap()),
        metadata: Some(json(r#"{"job": 7}"#)),
    };
    let bodies = [ExternalWait::default(), full].map(SuspensionBody::External);
    bodies.map(|body| suspended_step(None, body)).into()
}

/// A suspension of a step of a durable call.
fn suspended_step(subject: Option<&str>, body: SuspensionBody) -> Event {
    let mut event = suspended(body);
    if let Event::Call { event: CallEvent::Suspended { suspension }, .. } = &mut event {
        suspension.step = Some(SuspendedStep {
            digest: Digest::of("request"),
            subject: subject.map(json),
            receipt: subject.map(|_| receipt()),
        });
    }
    event
}

fn asked(prompt: Option<&str>) -> Asked {
    About { prompt: prompt.map(Into::into), ..About::default() }.into()
}

/// The golden file of the first suspensions. Its question also has an attempt and a grace period, which only other
/// kinds have now.
fn first_suspensions() -> Vec<Event> {
    let question = Elicitation {
        asked: asked(Some("Transfer \"5 €\"?")),
        choices: Some(texts(&["yes", "no"])),
        data_schema: Some(json("{}")),
        ..Elicitation::default()
    };
    vec![
        suspended(SuspensionBody::Approval(ApprovalRequest::new(Asked::default()))),
        suspended(SuspensionBody::Elicitation(question)),
        suspended(SuspensionBody::ClientExec(ClientExec::default())),
    ]
}

/// Each kind of suspension with all of its own fields.
fn suspensions() -> Vec<(&'static str, Vec<Event>)> {
    let approval = |on_expiry, editable, attempt: Option<u32>| {
        let (asked, doubt) = (asked(Some("Transfer \"5 €\"?")), attempt.map(Doubt::Run));
        SuspensionBody::Approval(ApprovalRequest { on_expiry, editable, doubt, ..ApprovalRequest::new(asked) })
    };
    let question = |choices, data_schema, default| {
        let (asked, escalated_at) = (asked(Some("Which account?")), Some(at(1_700)));
        SuspensionBody::Elicitation(Elicitation { asked, choices, data_schema, default, escalated_at })
    };
    let work = |result_schema, grace_until| SuspensionBody::ClientExec(ClientExec { result_schema, grace_until });
    let approvals = [
        approval(ApprovalExpiry::Expire, Editable::Nothing, Some(1)),
        approval(ApprovalExpiry::Deny, Editable::Fields(texts(&["amount"])), None),
        approval(ApprovalExpiry::Approve, Editable::All, None),
    ];
    let questions = [
        question(None, Some(json(r#"{"type":"string"}"#)), Some(json("\"none\""))),
        question(Some(texts(&["yes", "no"])), None, None),
    ];
    let works = [work(Some(json("true")), Some(at(1_500))), work(None, None)];
    vec![
        ("call_suspended_approval", approvals.map(suspended).into()),
        ("call_suspended_elicitation", questions.map(suspended).into()),
        ("call_suspended_client_exec", works.map(suspended).into()),
    ]
}

fn resolved(decision: Decision, full: bool) -> Event {
    let resolution = Box::new(Resolution {
        decision,
        data: full.then(|| json("[1]")),
        arguments: full.then(|| json(r#"{"amount":4}"#)),
        comment: full.then(|| "less\nplease".into()),
        standing: None,
        link: None,
        channel: None,
    });
    let approved = full.then(|| Digest::of("binding"));
    Event::Call {
        call: CallIndex(1),
        event: CallEvent::Resolved { suspension: SUSPENSION, resolution, approved, by: principal("bob@x"), at: at(7) },
    }
}

fn vote(by: &str, full: bool) -> Vote {
    Vote {
        by: principal(by),
        binding: Digest::of("binding"),
        arguments: full.then(|| json(r#"{"amount":4}"#)),
        needs: vec![0, 1],
        comment: full.then(|| "fine".into()),
        link: None,
        channel: None,
        at: at(11),
    }
}

fn delegation(comment: Option<String>) -> Delegation {
    let (from, to) = (principal("ann"), principal("bob@x"));
    Delegation { from, to, needs: vec![1], comment, link: None, channel: None, at: at(12) }
}

fn by_link(vote: Vote) -> Vote {
    Vote { link: Some(LINK), ..vote }
}

fn resolved_by_link() -> Event {
    let Event::Call { call, event: CallEvent::Resolved { suspension, mut resolution, approved, by, at } } =
        resolved(Decision::Approve, true)
    else {
        unreachable!()
    };
    resolution.link = Some(LINK);
    Event::Call { call, event: CallEvent::Resolved { suspension, resolution, approved, by, at } }
}

fn made(webhook: Option<&str>) -> Event {
    let by = if webhook.is_some() { PrincipalId::system() } else { principal("root") };
    let link = LinkRecord { id: LINK, to: principal("ann"), by, webhook: webhook.map(Into::into), expires_at: at(99) };
    Event::Call {
        call: CallIndex(1),
        event: CallEvent::LinkMade { suspension: SUSPENSION, link: Box::new(link), at: at(15) },
    }
}

fn standing(pin: Pin) -> Standing {
    Standing { id: STANDING, expires_at: at(99), uses: 5, pin }
}

/// A suspension with everything that rules, policies and approvers can add to it.
fn governed(prompt_by: PromptBy, risk: Risk) -> Event {
    let who = ["principal:ann", "group:finance", "role:admin"].map(|who| who.parse().unwrap());
    let escalate = Escalate { after: Span::from_secs(60), to: Arc::new(["role:admin".parse().unwrap()]) };
    let about = About {
        prompt: None,
        prompt_by,
        title: Some("Transfer".into()),
        by: Some("large-payments".into()),
        reason: Some("over the limit".into()),
        risk: Some(risk),
        context_keys: Some(texts(&["page"])),
    };
    let asked = Asked {
        about,
        defaults: None,
        needs: Arc::new([
            Need { who: Arc::new(who), quorum: 2, escalate: Some(escalate), via: Channels::ANY },
            Need { who: Arc::new([]), quorum: 1, escalate: None, via: Channels::ANY },
        ]),
        policy_failed: false,
    };
    suspended(SuspensionBody::Approval(ApprovalRequest {
        standing: Some(StandingBounds { time: Span::from_secs(60), uses: 5 }),
        escalated_at: Some(at(1_700)),
        votes: vec![vote("ann", true), vote("bob@x", false)],
        delegations: vec![delegation(Some("on leave".into())), delegation(None)],
        ..ApprovalRequest::new(asked)
    }))
}

/// A suspension that asks because a policy could not be asked.
fn policy_failed() -> Event {
    let (by, reason) = (Some("limits".into()), Some("the policy limits could not be asked: it crashed".into()));
    let about = About { by, reason, ..About::default() };
    suspended(SuspensionBody::Approval(ApprovalRequest::new(Asked { policy_failed: true, ..about.into() })))
}

/// A suspension with defaults of the tool's schema.
fn with_defaults() -> Event {
    let defaults = Some(json(r#"{"/memo":"none","/options/depth":3.0}"#));
    suspended(SuspensionBody::Approval(ApprovalRequest::new(Asked { defaults, ..Asked::default() })))
}

/// A call whose result repeats members of the provider's call.
fn with_origin() -> Event {
    let (id, tool, arguments) = (CallId::new("toolu_1").unwrap(), "transfer".into(), json("{}"));
    let origin = Some(json(r#"{"namespace": "crm", "caller": {"type":"program","caller_id":"c1"}}"#));
    let event = CallEvent::Requested { id, tool, arguments, pinned: None, ruled_by: None, origin };
    Event::Call { call: CallIndex(1), event }
}

fn outcomes() -> Vec<Outcome> {
    let failures = FailureCode::ALL.map(|code| Outcome::Failed(Failure::new(code, "why")));
    let others = [
        Outcome::Ok { value: json(r#"{"balance":5}"#), trusted: true },
        Outcome::Ok { value: json("null"), trusted: false },
        Outcome::Denied(None),
        Outcome::Denied(Some("no".into())),
        Outcome::Expired,
        Outcome::Cancelled,
        Outcome::CancelledBySibling,
        Outcome::Unavailable,
        Outcome::Invalidated,
        Outcome::InDoubt,
    ];
    others.into_iter().chain(failures).collect()
}

/// A call whose guest ran. Apart from those without a receipt, whose file is older.
fn receipted(call: CallIndex) -> Event {
    let outcome = Outcome::Ok { value: json("1"), trusted: true };
    Event::Call { call, event: CallEvent::Settled { outcome, receipt: Some(receipt()), at: at(6) } }
}

fn receipt() -> Receipt {
    Receipt {
        micros: 12_345,
        peak_memory: 1 << 20,
        peak_host_bytes: 4096,
        host_calls: 34,
        bytes_in: 2,
        bytes_out: u64::MAX,
        journal: None,
    }
}

/// Every event in every shape that it has, by the name of its file.
fn events() -> Vec<(&'static str, Vec<Event>)> {
    let call = CallIndex(1);
    let started = |rejection: Rejection| Event::TurnStarted {
        turn: TURN,
        conversation: ConversationId::new("support:42").unwrap(),
        caller: principal("ann"),
        rejection,
        context: (rejection == Rejection::AbortTurn).then(|| json(r#"{"page":"/"}"#)),
        parent: None,
        at: at(1_732_230_000_000),
    };
    let expired =
        |approved| Event::Call { call, event: CallEvent::Expired { suspension: SUSPENSION, approved, at: at(8) } };
    let answer = Decision::Answer("yes".into());
    let decisions = [Decision::Approve, Decision::Deny, answer, Decision::Result, Decision::Error];
    let running = Running { attempt: 2, owner: OWNER, lease_end: at(9) };
    vec![
        ("turn_started", Rejection::ALL.map(started).into()),
        ("call_requested", requests()),
        (
            "client_awaited",
            [None, Some(at(3))]
                .map(|grace_until| Event::Call { call, event: CallEvent::ClientAwaited { grace_until } })
                .into(),
        ),
        ("call_resolved", decisions.map(|decision| resolved(decision.clone(), decision == Decision::Approve)).into()),
        ("suspension_expired", vec![expired(None), expired(Some(Digest::of("binding")))]),
        ("call_started", vec![Event::Call { call, event: CallEvent::Started { running, at: at(4) } }]),
        ("call_resumed", vec![Event::Call { call, event: CallEvent::Resumed { running, at: at(4) } }]),
        ("call_suspended_external", externals()),
        ("call_suspended_rate_limit", vec![suspended_step(None, SuspensionBody::RateLimit)]),
        ("lease_extended", vec![Event::Call { call, event: CallEvent::LeaseExtended { lease_end: at(5) } }]),
        (
            "call_settled",
            outcomes()
                .into_iter()
                .map(|outcome| Event::Call { call, event: CallEvent::Settled { outcome, receipt: None, at: at(6) } })
                .collect(),
        ),
        ("call_settled_with_receipt", vec![receipted(call)]),
        ("turn_cancelled", vec![Event::TurnCancelled { by: principal("ann"), at: at(7) }]),
        (
            "turn_settled",
            [TurnEnd::Settled, TurnEnd::Aborted, TurnEnd::Cancelled]
                .map(|end| Event::TurnSettled { end, at: at(8) })
                .into(),
        ),
    ]
    .into_iter()
    .chain(governing::events())
    .chain(steps::events())
    .chain(suspensions())
    .collect()
}

#[test]
fn every_event_is_written_as_its_golden_file_and_read_from_it() {
    for (name, events) in events() {
        assert_eq!(events.iter().map(file_of).collect::<BTreeSet<_>>(), BTreeSet::from([name]));
        check(name, &events, |events, out| write_events(events, out), read_events);
    }
}
