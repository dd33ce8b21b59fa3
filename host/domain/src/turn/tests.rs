//! The world of the turn's tests: calls in short words, things that happen in short words, and the facts that follow.

mod answers;
mod approvals;
mod attempts;
mod channels;
mod life;
mod links;
mod nested;
#[path = "../../tests/support/recorded.rs"]
mod recorded;
mod recovery;
mod steps;

use std::sync::Arc;

use expect_test::Expect;
use recorded::RecordedTurn;

use super::{AnswerChecks, CheckedAnswer, EndedHosts, Finished, Input, LastRuns, Requested, Tick};
use crate as domain;
use crate::{
    CallId, CallIndex, Digest, Event, Json, Outcome, PluginName, Principal, PrincipalId, Receipt, Refusal, Span,
    SuspensionId, Timestamp,
    call::{Pinned, Plan, Wait},
    doubt::Doubt,
    event::{CallEvent, Rejection},
    gate::Verdict,
    outcome::{Failure, FailureCode},
    principal::Role,
    suspension::{About, SuspensionKind},
    tool::{Approval, Editable, Executor, OnExpiry, Recovery},
};

fn principal(name: &str, roles: &[Role]) -> Principal {
    Principal::new(PrincipalId::new(name).unwrap(), roles.iter().copied())
}

/// A call in short words: an executor, `!` if it is gated, and `:key=value` options.
fn requested(index: usize, words: &str) -> Requested {
    let (head, options) = words.split_once(':').unwrap_or((words, ""));
    let gated = head.ends_with('!');
    let executor = Executor::named(head.trim_end_matches('!')).unwrap();
    let option = |key: &str| options.split(',').find_map(|o| o.strip_prefix(key)?.strip_prefix('='));
    let pinned = Pinned {
        plugin: PluginName::new("p").unwrap(),
        component: Digest::of("component"),
        declaration: Digest::of("declaration"),
        executor,
        approval: if gated { Approval::RequiresApproval } else { Approval::Auto },
        streaming: false,
        timeout: Span::from_secs(30),
        recovery: match option("recovery") {
            Some("ask") => Recovery::Ask,
            Some("fail") => Recovery::Fail,
            _ => Recovery::Retry,
        },
        durable: option("durable").is_some(),
        frozen: None,
        wait: Some(Wait {
            expires: Span::from_secs(100),
            on_expiry: match option("expiry") {
                Some("deny") => OnExpiry::Deny,
                Some("approve") => OnExpiry::Approve,
                Some("answer") => OnExpiry::Answer(Json::unchecked("\"default\"")),
                _ => OnExpiry::Error,
            },
            choices: option("responses").map(|r| r.split('|').map(str::to_owned).collect()),
            data_schema: None,
            result_schema: None,
            editable: match option("editable") {
                Some("all") => Editable::All,
                Some(field) => Editable::Fields(Arc::new([field.to_owned()])),
                None => Editable::Nothing,
            },
        }),
    };
    Requested {
        id: CallId::new(&format!("c{index}")).unwrap(),
        tool: executor.as_str().into(),
        arguments: Json::unchecked(r#"{"a":1}"#),
        plan: match option("plan") {
            Some("denied") => Plan::Settle(Outcome::Denied(None)),
            Some("unknown") => {
                Plan::Settle(Outcome::Failed(Failure::new(FailureCode::UnknownTool, "there is no such tool")))
            }
            _ => Plan::Go(Arc::new(pinned)),
        },
        asked: About { prompt: Some("really?".into()), ..About::default() }.into(),
        ruled_by: None,
        origin: None,
        standing: None,
        result: (option("result") == Some("given"))
            .then(|| Outcome::Ok { value: Json::unchecked("[]"), trusted: false }),
    }
}

/// A turn with these calls.
fn submit(calls: &str, rejection: Rejection) -> Result<RecordedTurn, Refusal> {
    let calls = calls.split_whitespace().enumerate().map(|(index, words)| requested(index, words));
    RecordedTurn::submit(calls.collect(), rejection)
}

/// Facts in short words, one line for each.
fn trace(events: &[Event]) -> String {
    let mut lines = String::new();
    for event in events {
        let line = match event {
            Event::Call { call, event: CallEvent::Suspended { suspension } } => {
                let doubt = match suspension.doubt() {
                    Some(Doubt::Run(attempt)) => format!(" in doubt #{attempt}"),
                    Some(Doubt::Requests(requests)) => format!(" in doubt {}", requests.subject()),
                    None => String::new(),
                };
                format!("{} suspended {}{doubt}", call.0, suspension.kind().as_str())
            }
            Event::Call { call, event: CallEvent::ClientAwaited { grace_until } } => {
                format!("{} client awaited until {:?}", call.0, grace_until.map(|until| until.millis() / 1000))
            }
            Event::Call { call, event: CallEvent::Resolved { resolution, by, .. } } => {
                format!("{} resolved {} by {by}", call.0, resolution.decision.as_str())
            }
            Event::Call { call, event: CallEvent::Covered { standing, .. } } => {
                format!("{} approved beforehand by {}", call.0, standing.by)
            }
            Event::Call { call, event: CallEvent::Voted { vote, .. } } => format!("{} vote of {}", call.0, vote.by),
            Event::Call { call, event: CallEvent::Delegated { delegation, .. } } => {
                format!("{} delegated from {} to {}", call.0, delegation.from, delegation.to)
            }
            Event::Call { call, event: CallEvent::AuthorityRevoked { principal, .. } } => {
                format!("{} authority of {principal} revoked", call.0)
            }
            Event::Call { call, event: CallEvent::LinkMade { link, .. } } => {
                format!("{} link to {}", call.0, link.to)
            }
            Event::Call { call, event: CallEvent::LinkUsed { by, .. } } => format!("{} link of {by} used", call.0),
            Event::Call { call, event: CallEvent::Escalated { .. } } => format!("{} escalated", call.0),
            Event::Call { call, event: CallEvent::Expired { .. } } => format!("{} suspension expired", call.0),
            Event::Call { call, event: CallEvent::Started { running, .. } } => {
                format!("{} started #{}", call.0, running.attempt)
            }
            Event::Call { call, event: CallEvent::Resumed { running, .. } } => {
                format!("{} resumed #{}", call.0, running.attempt)
            }
            Event::Call { call, event: CallEvent::LeaseExtended { .. } } => format!("{} lease extended", call.0),
            Event::Call { call, event: CallEvent::Settled { outcome, .. } } => {
                format!("{} settled {}", call.0, outcome.as_str())
            }
            Event::TurnCancelled { .. } => "cancelled".into(),
            Event::TurnSettled { end, .. } => format!("turn {end:?}").to_lowercase(),
            Event::TurnStarted { .. } | Event::Call { event: CallEvent::Requested { .. }, .. } => continue,
        };
        lines.push_str(&line);
        lines.push('\n');
    }
    lines
}

impl RecordedTurn {
    fn answer(&self, call: usize, decision: &str) -> CheckedAnswer {
        let suspension = self.turn.calls[call].suspensions.last().map(|(suspension, _)| suspension.id);
        let last = self.turn.calls[call].suspensions.last();
        let kind = last.map(|(suspension, _)| suspension.kind());
        CheckedAnswer {
            suspension: suspension.unwrap_or(SuspensionId::from_bits(99)),
            by: match kind {
                Some(SuspensionKind::ClientExec) => principal("page", &[Role::Client]),
                Some(SuspensionKind::External) => principal("agent", &[Role::Caller]),
                _ => principal("ann", &[Role::Approver]),
            },
            decision: decision.into(),
            data: None,
            arguments: None,
            comment: None,
            standing: None,
            expect_digest: None,
            checked: AnswerChecks::default(),
        }
    }

    /// The policy's verdict on everything that waits.
    fn rechecked(&self, words: &[&str]) -> Vec<(SuspensionId, Verdict)> {
        let rule = match words {
            words if words.contains(&"forbidden") => crate::gate::RuleEffect::Deny,
            words if words.contains(&"asked") => crate::gate::RuleEffect::Ask,
            _ => crate::gate::RuleEffect::Allow,
        };
        let verdict = || Verdict { rule, ..Verdict::default() };
        self.turn.pending().map(|(.., open)| (open.id, verdict())).collect()
    }

    /// All other hosts have ended, unless one runs `elsewhere`.
    fn ended(&self, words: &[&str]) -> EndedHosts {
        let others = if words.contains(&"elsewhere") { 0 } else { self.owner };
        EndedHosts { owners: (0..others).map(crate::OwnerId::from_bits).collect(), recorded: recorded(words) }
    }

    /// One thing that happens: a verb, a call and an argument. Returns the facts that follow.
    fn step(&mut self, words: &str) -> String {
        let mut words = words.split_whitespace();
        let verb = words.next().unwrap();
        let argument = words.next().unwrap_or("0");
        let index = argument.parse::<u16>().unwrap_or(0);
        let call = CallIndex(index);
        let attempt = self.turn.calls.get(call.get()).map_or(0, |call| call.attempts);
        let input = match verb {
            "tick" => {
                self.now += argument.trim_start_matches('+').parse::<u64>().unwrap() * 1000;
                let all = || (0..).map(CallIndex).take(self.turn.calls.len()).collect();
                let rest: Vec<_> = words.collect();
                Input::Tick(Tick {
                    alive: if rest.contains(&"alive") { all() } else { Vec::new() },
                    attended: if rest.contains(&"attended") { all() } else { Vec::new() },
                    open_since: Timestamp::from_millis(if rest.contains(&"opened") { self.now } else { 0 }),
                    rechecked: if rest.contains(&"unchecked") { Vec::new() } else { self.rechecked(&rest) },
                    ended: self.ended(&rest),
                })
            }
            "restart" => {
                self.owner += 1;
                Input::HostsEnded(self.ended(&[argument]))
            }
            "left" => Input::ClientsLeft { calls: vec![call] },
            "return" => self.returned(argument),
            "cancel" => Input::Cancel { by: principal("agent", &[Role::Caller]) },
            "finish" => {
                let outcome = Outcome::Ok { value: Json::unchecked("1"), trusted: true };
                let receipt = Some(Receipt { host_calls: 3, ..Receipt::default() });
                Input::Finished(Finished { receipt, ..Finished::new(call, attempt, outcome) })
            }
            "late" => Input::Finished(Finished::new(call, attempt.saturating_sub(1), Outcome::Expired)),
            "fail" => {
                let failure = Failure::new(FailureCode::Trapped, "trap");
                Input::Finished(Finished::new(call, attempt, Outcome::Failed(failure)))
            }
            "ask" | "propose" | "await" | "call" | "sleep" | "limit" | "repeat" | "doubt" | "doubts" => {
                let receipt = Some(Receipt { host_calls: 5, peak_memory: 7, ..Receipt::default() });
                let ended = steps::end(verb, self.now);
                let rest: Vec<_> = words.collect();
                let verdict = steps::verdict(rest.first().copied());
                let recorded = recorded(&rest).first().map(|(_, run)| *run);
                Input::Finished(Finished { call, attempt, ended, verdict, receipt, recorded })
            }
            "decide" => {
                let arguments = words.next().map(Json::unchecked);
                let edited = Some(Vec::new());
                let checked = AnswerChecks { edited, ..AnswerChecks::default() };
                let answer = self.answer(call.get(), "approve");
                Input::Resolve(Box::new(CheckedAnswer { arguments, checked, ..answer }))
            }
            decision => Input::Resolve(Box::new(self.answer(call.get(), decision))),
        };
        let before = self.facts.len();
        match self.decide(input) {
            Ok(()) => trace(&self.facts[before..]),
            Err(refusal) => format!("refused: {refusal}\n"),
        }
    }
}

#[track_caller]
fn check(calls: &str, steps: &str, expected: &Expect) {
    check_with(Rejection::ContinueSiblings, calls, steps, expected);
}

#[track_caller]
fn check_with(rejection: Rejection, calls: &str, steps: &str, expected: &Expect) {
    let found = match submit(calls, rejection) {
        Err(refusal) => format!("refused: {refusal}\n"),
        Ok(mut world) => {
            let mut all = trace(&world.facts);
            let steps = steps.split(';').map(str::trim).filter(|step| !step.is_empty());
            steps.for_each(|step| all.push_str(&world.step(step)));
            assert_eq!(world.turn.is_ended(), world.turn.calls.iter().all(|call| call.outcome().is_some()));
            assert_eq!(world.turn.next_due().is_none(), world.turn.is_ended(), "an open turn is always due some time");
            all
        }
    };
    expected.assert_eq(&found);
}

/// The last runs that recorded a result, as the word `recorded=RUN` says for the first call.
fn recorded(words: &[&str]) -> LastRuns {
    let run = words.iter().find_map(|word| word.strip_prefix("recorded="));
    run.map(|run| (CallIndex(0), run.parse().unwrap())).into_iter().collect()
}
