//! Every transition of a call's life, as rows of a table: the calls, what happens, and the facts that follow.

use std::sync::Arc;

use expect_test::{Expect, expect};

use super::{Checked, Context, Input, Refusal, Rejection, Requested, Resolve, Rules, Submission, Turn};
use crate::{
    Approval, CallId, CallIndex, ConversationId, Digest, Editable, Event, Executor, Failure, FailureCode, Json,
    OnExpiry, Outcome, OwnerId, Pinned, Plan, PluginName, Principal, PrincipalId, Recovery, Role, Rule, Span,
    SuspensionId, Timestamp, TurnId, Violation, Wait,
};

/// A turn that things happen to, and the facts so far in short words.
struct World {
    turn: Turn,
    now: u64,
    owner: u128,
    minted: u128,
    trace: String,
    rules: Rules,
}

fn principal(name: &str, roles: &[Role]) -> Principal {
    Principal::new(PrincipalId::new(name).unwrap(), roles.iter().copied())
}

/// A call in short words: an executor, `!` if it is gated, and `:key=value` options.
fn requested(index: usize, words: &str) -> Requested {
    let (head, options) = words.split_once(':').unwrap_or((words, ""));
    let gated = head.ends_with('!');
    let executor = Executor::ALL.into_iter().find(|e| e.as_str() == head.trim_end_matches('!')).unwrap();
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
        wait: Some(Wait {
            expires: Span::from_secs(100),
            on_expiry: match option("expiry") {
                Some("deny") => OnExpiry::Deny,
                Some("approve") => OnExpiry::Approve,
                Some("answer") => OnExpiry::Answer(Json::new("\"default\"")),
                _ => OnExpiry::Error,
            },
            responses: option("responses").map(|r| r.split('|').map(str::to_owned).collect()),
            response: None,
            result: None,
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
        arguments: Json::new(r#"{"a":1}"#),
        plan: match option("plan") {
            Some("denied") => Plan::Settle(Outcome::Denied(None)),
            Some("unknown") => {
                Plan::Settle(Outcome::Failed(Failure::new(FailureCode::UnknownTool, "there is no such tool")))
            }
            _ => Plan::Go(Arc::new(pinned)),
        },
        prompt: Some("really?".into()),
        result: (option("result") == Some("given")).then(|| Outcome::Ok { value: Json::new("[]"), trusted: false }),
    }
}

impl World {
    fn submit(calls: &str, rejection: Rejection) -> Result<Self, Refusal> {
        let submission = Submission {
            turn: TurnId::from_bits(1),
            conversation: ConversationId::new("talk").unwrap(),
            caller: PrincipalId::new("agent").unwrap(),
            rejection,
            context: None,
            calls: calls.split_whitespace().enumerate().map(|(index, words)| requested(index, words)).collect(),
        };
        let rules = Rules::default();
        let mut minted = 0;
        let mut mint = || {
            minted += 1;
            SuspensionId::from_bits(minted)
        };
        let now = Timestamp::from_millis(0);
        let mut cx = Context { now, owner: OwnerId::from_bits(1), rules: &rules, mint: &mut mint };
        let (events, turn) = Turn::submit(submission, &mut cx)?;
        assert_eq!(Turn::replay(&events).as_ref(), Some(&turn), "the facts make the turn");
        let mut world = Self { turn, now: 0, owner: 1, minted, trace: String::new(), rules };
        world.note(&events);
        Ok(world)
    }

    fn decide(&mut self, input: Input) -> Result<(), Refusal> {
        let minted = &mut self.minted;
        let mut mint = || {
            *minted += 1;
            SuspensionId::from_bits(*minted)
        };
        let mut cx = Context {
            now: Timestamp::from_millis(self.now),
            owner: OwnerId::from_bits(self.owner),
            rules: &self.rules,
            mint: &mut mint,
        };
        let (events, next) = self.turn.decide(input, &mut cx)?;
        let mut replayed = self.turn.clone();
        events.iter().for_each(|event| replayed.apply(event));
        assert_eq!(replayed, next, "the facts make the turn");
        self.turn = next;
        self.note(&events);
        Ok(())
    }

    fn note(&mut self, events: &[Event]) {
        for event in events {
            let line = match event {
                Event::CallSuspended { call, suspension } => {
                    let doubt = suspension.in_doubt.map_or(String::new(), |n| format!(" in doubt #{n}"));
                    format!("{} suspended {}{doubt}", call.0, suspension.kind.as_str())
                }
                Event::ClientAwaited { call, grace_until } => {
                    format!("{} client awaited until {:?}", call.0, grace_until.map(|until| until.millis() / 1000))
                }
                Event::CallResolved { call, resolution, by, .. } => {
                    format!("{} resolved {} by {by}", call.0, resolution.decision.as_str())
                }
                Event::SuspensionExpired { call, .. } => format!("{} suspension expired", call.0),
                Event::CallStarted { call, running, .. } => format!("{} started #{}", call.0, running.attempt),
                Event::LeaseExtended { call, .. } => format!("{} lease extended", call.0),
                Event::CallSettled { call, outcome, .. } => format!("{} settled {}", call.0, outcome.as_str()),
                Event::TurnCancelled { .. } => "cancelled".into(),
                Event::TurnSettled { end, .. } => format!("turn {}", end.as_str()),
                Event::TurnStarted { .. } | Event::CallRequested { .. } => continue,
            };
            self.trace.push_str(&line);
            self.trace.push('\n');
        }
    }

    fn answer(&self, call: usize, decision: &str) -> Resolve {
        let suspension = self.turn.calls[call].suspensions.last().map(|(suspension, _)| suspension.id);
        let last = self.turn.calls[call].suspensions.last();
        let is_client = last.is_some_and(|(suspension, _)| suspension.kind == crate::Kind::ClientExec);
        Resolve {
            suspension: suspension.unwrap_or(SuspensionId::from_bits(99)),
            by: if is_client { principal("page", &[Role::Client]) } else { principal("ann", &[Role::Approver]) },
            decision: decision.into(),
            data: None,
            arguments: None,
            comment: None,
            expect_digest: None,
            checked: Checked::default(),
        }
    }

    /// One thing that happens: a verb, a call and an argument.
    fn step(&mut self, words: &str) {
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
                Input::Tick {
                    alive: if rest.contains(&"alive") { all() } else { Vec::new() },
                    attended: if rest.contains(&"attended") { all() } else { Vec::new() },
                    open_since: Timestamp::from_millis(if rest.contains(&"opened") { self.now } else { 0 }),
                }
            }
            "restart" => {
                self.owner += 1;
                Input::Restarted
            }
            "left" => Input::ClientsLeft { calls: vec![call] },
            "cancel" => Input::Cancel { by: principal("agent", &[Role::Caller]) },
            "finish" => {
                Input::Finished { call, attempt, outcome: Outcome::Ok { value: Json::new("1"), trusted: true } }
            }
            "late" => Input::Finished { call, attempt: attempt.saturating_sub(1), outcome: Outcome::Expired },
            "fail" => {
                let failure = Failure::new(FailureCode::Trapped, "trap");
                Input::Finished { call, attempt, outcome: Outcome::Failed(failure) }
            }
            decision => Input::Resolve(Box::new(self.answer(call.get(), decision))),
        };
        if let Err(refusal) = self.decide(input) {
            self.trace.push_str(&format!("refused: {refusal}\n"));
        }
    }
}

#[track_caller]
fn check(calls: &str, steps: &str, expected: &Expect) {
    check_with(Rejection::ContinueSiblings, calls, steps, expected);
}

#[track_caller]
fn check_with(rejection: Rejection, calls: &str, steps: &str, expected: &Expect) {
    let trace = match World::submit(calls, rejection) {
        Err(refusal) => format!("refused: {refusal}\n"),
        Ok(mut world) => {
            steps.split(';').map(str::trim).filter(|step| !step.is_empty()).for_each(|step| world.step(step));
            assert_eq!(world.turn.is_ended(), world.turn.calls.iter().all(|call| call.outcome().is_some()));
            assert_eq!(world.turn.next_due().is_none(), world.turn.is_ended(), "an open turn is always due some time");
            world.trace
        }
    };
    expected.assert_eq(&trace);
}

#[test]
fn every_legal_cell_from_start_to_end() {
    check(
        "server",
        "finish 0",
        &expect![[r#"
        0 started #1
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "server!",
        "approve 0; finish 0",
        &expect![[r#"
        0 suspended approval
        0 resolved approve by ann
        0 started #1
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "human",
        "answer 0",
        &expect![[r#"
        0 suspended elicitation
        0 resolved answer by ann
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "client",
        "result 0",
        &expect![[r#"
        0 suspended client_exec
        0 resolved result by page
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "client!",
        "approve 0; result 0",
        &expect![[r#"
        0 suspended approval
        0 resolved approve by ann
        0 suspended client_exec
        0 resolved result by page
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "provider:result=given",
        "",
        &expect![[r#"
        0 settled ok
        turn settled
    "#]],
    );
}

#[test]
fn what_is_wrong_with_a_submission_refuses_it_and_what_is_wrong_with_a_call_settles_the_call() {
    check(
        "",
        "",
        &expect![[r#"
        refused: a turn has 1 to 128 calls, not 0
    "#]],
    );
    check(
        "provider",
        "",
        &expect![[r#"
        refused: call c0 is of a provider tool and has no result: submit it with the result from the provider's stream
    "#]],
    );
    check(
        "server:result=given",
        "",
        &expect![[r#"
        refused: call c0 is not of a provider tool, so its result cannot be submitted
    "#]],
    );
    check(
        "server:plan=unknown server server:plan=denied",
        "finish 1",
        &expect![[r#"
        0 settled failed
        1 started #1
        2 settled denied
        1 settled ok
        turn settled
    "#]],
    );
    // An illegal cell never gets past loading. Should a record hold one, nothing of it runs.
    check(
        "human! provider!",
        "",
        &expect![[r#"
        0 settled invalidated
        1 settled invalidated
        turn settled
    "#]],
    );
}

#[test]
fn endings_that_are_not_ok() {
    check(
        "server",
        "fail 0; finish 0",
        &expect![[r#"
        0 started #1
        0 settled failed
        turn settled
    "#]],
    );
    check(
        "client",
        "error 0",
        &expect![[r#"
        0 suspended client_exec
        0 resolved error by page
        0 settled failed
        turn settled
    "#]],
    );
    check(
        "server!",
        "deny 0; approve 0; deny 0",
        &expect![[r#"
        0 suspended approval
        0 resolved deny by ann
        0 settled denied
        turn settled
        refused: this question is no longer open: deny
        refused: this answer was already given
    "#]],
    );
    check(
        "server server! human client",
        "cancel; cancel; finish 0; answer 2",
        &expect![[r#"
        0 started #1
        1 suspended approval
        2 suspended elicitation
        3 suspended client_exec
        cancelled
        0 settled cancelled
        1 settled cancelled
        2 settled cancelled
        3 settled cancelled
        turn cancelled
        refused: this question is no longer open: withdrawn
    "#]],
    );
}

#[test]
fn expiry_is_a_resolution_of_its_own_and_comes_once() {
    check(
        "server!",
        "tick +99; tick +1; tick +1; approve 0",
        &expect![[r#"
        0 suspended approval
        0 suspension expired
        0 settled expired
        turn settled
        refused: this question is no longer open: expired
    "#]],
    );
    check(
        "server!:expiry=deny server",
        "tick +100 alive; finish 1",
        &expect![[r#"
        0 suspended approval
        1 started #1
        0 suspension expired
        0 settled denied
        1 lease extended
        1 settled ok
        turn settled
    "#]],
    );
    check(
        "server!:expiry=approve",
        "tick +100; finish 0",
        &expect![[r#"
        0 suspended approval
        0 suspension expired
        0 started #1
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "human:expiry=answer",
        "tick +100",
        &expect![[r#"
        0 suspended elicitation
        0 suspension expired
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "client!",
        "approve 0; tick +1 attended; tick +10 attended; tick +100",
        &expect![[r#"
        0 suspended approval
        0 resolved approve by ann
        0 suspended client_exec
        0 client awaited until None
        0 suspension expired
        0 settled expired
        turn settled
    "#]],
    );
}

#[test]
fn an_answer_after_the_time_is_late_even_if_nobody_wrote_the_expiry_down() {
    let mut world = World::submit("server!", Rejection::default()).unwrap();
    world.now = 100_000;
    let refused = world.decide(Input::Resolve(Box::new(world.answer(0, "approve")))).unwrap_err();
    assert!(matches!(refused, Refusal::Stale { state, .. } if state == "expired"));
}

#[test]
fn a_client_call_without_a_client_ends_unavailable_after_its_grace() {
    check(
        "client",
        "tick +4; tick +1; result 0",
        &expect![[r#"
        0 suspended client_exec
        0 settled unavailable
        turn settled
        refused: this question is no longer open: withdrawn
    "#]],
    );
    check(
        "client",
        "tick +5 attended; tick +20 attended; left 0; tick +5; result 0",
        &expect![[r#"
        0 suspended client_exec
        0 client awaited until None
        0 client awaited until Some(30)
        0 settled unavailable
        turn settled
        refused: this question is no longer open: withdrawn
    "#]],
    );
    // A host that was just started gives its clients the time to come back.
    check(
        "client",
        "tick +20 opened; tick +5",
        &expect![[r#"
        0 suspended client_exec
        0 client awaited until Some(25)
        0 settled unavailable
        turn settled
    "#]],
    );
}

#[test]
fn what_a_denial_does_to_siblings() {
    let calls = "server! server human server:plan=denied";
    check_with(
        Rejection::ContinueSiblings,
        calls,
        "deny 0; finish 1; answer 2",
        &expect![[r#"
        0 suspended approval
        1 started #1
        2 suspended elicitation
        3 settled denied
        0 resolved deny by ann
        0 settled denied
        1 settled ok
        2 resolved answer by ann
        2 settled ok
        turn settled
    "#]],
    );
    check_with(
        Rejection::CancelSiblings,
        calls,
        "deny 0; finish 1; answer 2",
        &expect![[r#"
        0 suspended approval
        1 started #1
        2 suspended elicitation
        3 settled denied
        0 resolved deny by ann
        0 settled denied
        1 settled cancelled_by_sibling
        2 settled cancelled_by_sibling
        turn settled
        refused: this question is no longer open: withdrawn
    "#]],
    );
    check_with(
        Rejection::AbortTurn,
        calls,
        "finish 1; deny 0",
        &expect![[r#"
        0 suspended approval
        1 started #1
        2 suspended elicitation
        3 settled denied
        1 settled ok
        0 resolved deny by ann
        0 settled denied
        2 settled cancelled_by_sibling
        turn aborted
    "#]],
    );
}

#[test]
fn a_killed_run_is_recovered_as_its_tool_says() {
    check(
        "server",
        "restart; finish 0",
        &expect![[r#"
        0 started #1
        0 started #2
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "server",
        "restart; restart; restart; restart; restart",
        &expect![[r#"
        0 started #1
        0 started #2
        0 started #3
        0 started #4
        0 started #5
        0 settled in_doubt
        turn settled
    "#]],
    );
    check(
        "server:recovery=fail",
        "restart",
        &expect![[r#"
        0 started #1
        0 settled in_doubt
        turn settled
    "#]],
    );
    check(
        "server:recovery=ask",
        "restart; approve 0; finish 0",
        &expect![[r#"
        0 started #1
        0 suspended approval in doubt #1
        0 resolved approve by ann
        0 started #2
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "server!:recovery=ask",
        "approve 0; restart; deny 0",
        &expect![[r#"
        0 suspended approval
        0 resolved approve by ann
        0 started #1
        0 suspended approval in doubt #1
        0 resolved deny by ann
        0 settled in_doubt
        turn settled
    "#]],
    );
    check(
        "server:recovery=ask",
        "restart; tick +100",
        &expect![[r#"
        0 started #1
        0 suspended approval in doubt #1
        0 suspension expired
        0 settled in_doubt
        turn settled
    "#]],
    );
}

#[test]
fn the_end_of_a_run_that_was_given_up_is_no_outcome() {
    check(
        "server server",
        "restart; late 0; finish 0; cancel; finish 1",
        &expect![[r#"
            0 started #1
            1 started #1
            0 started #2
            1 started #2
            0 settled ok
            cancelled
            1 settled cancelled
            turn cancelled
        "#]],
    );
}

#[test]
fn a_lease_that_ended_is_extended_while_the_guest_lives_and_recovered_when_it_does_not() {
    check(
        "server",
        "tick +89; tick +1 alive; tick +30 alive; tick +30; finish 0",
        &expect![[r#"
        0 started #1
        0 lease extended
        0 lease extended
        0 started #2
        0 settled ok
        turn settled
    "#]],
    );
}

#[test]
fn the_checks_of_an_answer_come_in_their_order_and_a_failed_one_changes_nothing() {
    type Change = fn(&mut Resolve);
    let rows: [(&str, Change, Expect); 12] = [
        (
            "server!",
            |r| r.suspension = SuspensionId::from_bits(42),
            expect!["this question is no longer open: unknown"],
        ),
        ("server!", |r| r.by = principal("eve", &[Role::Caller]), expect!["this question is no longer open: unknown"]),
        (
            "server!",
            |r| r.by = principal("agent", &[Role::Caller]),
            expect!["only a principal with the role approver answers approvals and questions"],
        ),
        (
            "server!",
            |r| r.by = principal("agent", &[Role::Admin, Role::Approver]),
            expect!["a caller cannot answer for its own call unless the operator allows it (approve_own_calls)"],
        ),
        (
            "client",
            |r| r.by = principal("ann", &[Role::Approver]),
            expect!["only a principal with the role client carries out client tools"],
        ),
        (
            "server!",
            |r| {
                r.by.conversation = Some(ConversationId::new("other").unwrap());
            },
            expect!["this question is no longer open: unknown"],
        ),
        (
            "server!",
            |r| {
                r.expect_digest = Some(Digest::of("x"));
                r.decision = "maybe".into();
            },
            expect![
                "the call is not the one that was shown: its digest is sha256:0dcb8618b4c875e1ae2ed96fcc20edd15880e61dea9be971cf8a62155fb23089"
            ],
        ),
        (
            "server!",
            |r| r.decision = "answer".into(),
            expect![[r#"
            the answer is not valid; at /decision: "answer" is not allowed here; choose one of: approve, deny"#]],
        ),
        (
            "human:responses=yes|no",
            |r| r.decision = "answer".into(),
            expect![[r#"
            the answer is not valid; at /decision: "answer" is not allowed here; choose one of: yes, no"#]],
        ),
        (
            "human",
            |r| {
                r.checked.data = vec![Violation { pointer: "/x".into(), message: "is missing".into() }];
                r.decision = "answer".into();
            },
            expect!["the answer is not valid; at /data/x: is missing"],
        ),
        (
            "server!",
            |r| r.arguments = Some(Json::new("{}")),
            expect!["the answer is not valid; at /arguments: the arguments of this call cannot be edited"],
        ),
        (
            "server!:editable=all",
            |r| {
                r.arguments = Some(Json::new("{}"));
                r.checked.rule = Rule::Deny;
            },
            expect!["the policy denies the call with these arguments"],
        ),
    ];
    for (calls, change, expected) in rows {
        let mut world = World::submit(calls, Rejection::default()).unwrap();
        let mut answer = world.answer(0, "approve");
        change(&mut answer);
        let before = world.turn.clone();
        let refusal = world.decide(Input::Resolve(Box::new(answer))).unwrap_err();
        assert_eq!(world.turn, before, "{calls}");
        let details = match &refusal {
            Refusal::Invalid(violations) => violations.iter().map(|v| format!("; {v}")).collect(),
            _ => String::new(),
        };
        expected.assert_eq(&format!("{refusal}{details}"));
    }
}

#[test]
fn the_operator_may_let_callers_answer_for_their_own_calls() {
    let mut world = World::submit("server!", Rejection::default()).unwrap();
    world.rules.own_calls = true;
    let mut answer = world.answer(0, "approve");
    answer.by = principal("agent", &[Role::Caller, Role::Approver]);
    assert_eq!(world.decide(Input::Resolve(Box::new(answer))), Ok(()));
}

#[test]
fn an_edit_runs_what_was_approved_and_nothing_else() {
    for (editable, edited, allowed) in [
        ("server!:editable=all", Some(vec!["b"]), true),
        ("server!:editable=a", Some(vec!["a"]), true),
        ("server!:editable=a", Some(vec!["a", "b"]), false),
        ("server!:editable=a", None, false),
        ("server!", Some(vec!["a"]), false),
    ] {
        let mut world = World::submit(editable, Rejection::default()).unwrap();
        let mut answer = world.answer(0, "approve");
        answer.arguments = Some(Json::new(r#"{"a":2}"#));
        answer.checked.edited = edited.map(|fields| fields.into_iter().map(str::to_owned).collect());
        let decided = world.decide(Input::Resolve(Box::new(answer.clone())));
        assert_eq!(decided.is_ok(), allowed, "{editable} {:?}", answer.checked.edited);
        let call = &world.turn.calls[0];
        assert_eq!(call.arguments.as_str(), if allowed { r#"{"a":2}"# } else { r#"{"a":1}"# });
        assert_eq!(call.submitted.as_str(), r#"{"a":1}"#);
        assert_eq!(world.turn.due(OwnerId::from_bits(1)).count(), usize::from(allowed));
        if allowed {
            assert_eq!(call.approved, call.pinned.as_ref().map(|pinned| pinned.binding(&call.arguments)));
            assert_eq!(world.decide(Input::Resolve(Box::new(answer))), Err(Refusal::Replayed));
        }
    }
}

#[test]
fn nothing_is_owed_for_a_run_whose_approval_does_not_fit_what_would_run() {
    let mut world = World::submit("server!", Rejection::default()).unwrap();
    world.step("approve 0");
    assert_eq!(world.turn.due(OwnerId::from_bits(1)).count(), 1);
    let mut tampered = world.turn.clone();
    tampered.calls[0].arguments = Json::new(r#"{"a":1000000}"#);
    assert_eq!(tampered.due(OwnerId::from_bits(1)).count(), 0);
    // A restart does not start it either: it ends, and says why.
    world.turn = tampered;
    world.step("restart");
    assert_eq!(world.turn.calls[0].outcome(), Some(&Outcome::Invalidated));
}

#[test]
fn an_answer_to_a_question_with_choices_is_the_choice_with_its_data() {
    for (calls, data, expected) in [
        ("human", Some(r#"{"x":1}"#), r#"{"x":1}"#),
        ("human", None, "null"),
        ("human:responses=answer|it's_\"complicated\"", None, r#"{"decision":"it's_\"complicated\""}"#),
        ("human:responses=yes", Some("5"), r#"{"decision":"yes","data":5}"#),
    ] {
        let mut world = World::submit(calls, Rejection::default()).unwrap();
        let decision = world.turn.calls[0].open().unwrap().allowed().pop().unwrap().to_owned();
        let mut answer = world.answer(0, &decision);
        answer.data = data.map(Json::new);
        world.decide(Input::Resolve(Box::new(answer))).unwrap();
        let expected = Outcome::Ok { value: Json::new(expected), trusted: true };
        assert_eq!(world.turn.calls[0].outcome(), Some(&expected));
    }
}

#[test]
fn a_clients_result_is_never_trusted() {
    let mut world = World::submit("client", Rejection::default()).unwrap();
    world.step("result 0");
    assert!(matches!(world.turn.calls[0].outcome(), Some(Outcome::Ok { trusted: false, .. })));
}
