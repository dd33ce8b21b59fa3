//! Random turns under random inputs, duplicates, kills and clock jumps: the promises of the state machine hold for all.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "support/invariants.rs"]
mod invariants;
#[path = "support/recorded.rs"]
mod recorded;

use std::sync::Arc;

use domain::{
    CallId, CallIndex, Digest, Event, Json, Outcome, PluginName, Principal, PrincipalId, Span, SuspensionId, Timestamp,
    Turn,
    call::{Pinned, Plan, Wait},
    event::{CallEvent, Rejection},
    gate::{RuleEffect, Verdict},
    outcome::{Failure, FailureCode},
    principal::Role,
    tool::{Approval, Editable, Executor, OnExpiry, Recovery},
    turn::{AnswerChecks, CheckedAnswer, EndedHosts, Finished, Input, Requested, Tick},
};
use invariants::check;
use proptest::prelude::*;
use recorded::RecordedTurn;
use toolgate_domain as domain;

/// An input, chosen without knowledge of the turn. Many inputs do not fit it.
#[derive(Debug, Clone)]
enum Happening {
    Answer {
        call: usize,
        phase: usize,
        decision: &'static str,
        edit: bool,
        by: u8,
    },
    Finish {
        call: u16,
        attempt: u32,
        ok: bool,
    },
    Tick {
        seconds: u64,
        alive: bool,
        attended: bool,
        /// The verdict of a recheck. `None`: the policy was not asked.
        rule: Option<RuleEffect>,
    },
    Cancel,
    ClientsLeft,
    /// The process is killed after the last commit and started again: only the facts survive.
    Kill,
    /// The same thing happens again.
    Again,
}

fn happening() -> impl Strategy<Value = Happening> {
    let decision = prop::sample::select(vec!["approve", "deny", "answer", "result", "error", "nonsense"]);
    let rule = prop::sample::select(vec![None, Some(RuleEffect::Allow), Some(RuleEffect::Ask), Some(RuleEffect::Deny)]);
    prop_oneof![
        6 => (0..5usize, 0..3usize, decision, any::<bool>(), 0..4u8)
            .prop_map(|(call, phase, decision, edit, by)| Happening::Answer { call, phase, decision, edit, by }),
        5 => (0..5u16, 1..4u32, any::<bool>()).prop_map(|(call, attempt, ok)| Happening::Finish { call, attempt, ok }),
        3 => (0..200u64, any::<bool>(), any::<bool>(), rule)
            .prop_map(|(seconds, alive, attended, rule)| Happening::Tick { seconds, alive, attended, rule }),
        1 => Just(Happening::Cancel),
        1 => Just(Happening::ClientsLeft),
        2 => Just(Happening::Kill),
        3 => Just(Happening::Again),
    ]
}

fn requested() -> impl Strategy<Value = Requested> {
    let executor = prop::sample::select(Executor::ALL.to_vec());
    let expiry = prop::sample::select(vec![
        OnExpiry::Error,
        OnExpiry::Deny,
        OnExpiry::Approve,
        OnExpiry::Answer(Json::unchecked("0")),
    ]);
    let recovery = prop::sample::select(vec![Recovery::Retry, Recovery::Ask, Recovery::Fail]);
    (executor, any::<bool>(), expiry, recovery, 0..10u8).prop_map(|(executor, gated, on_expiry, recovery, unlucky)| {
        let gateable = matches!(executor, Executor::Server | Executor::Client);
        let pinned = Pinned {
            plugin: PluginName::new("p").unwrap(),
            component: Digest::of("component"),
            declaration: Digest::of("declaration"),
            executor,
            approval: if gated && gateable { Approval::RequiresApproval } else { Approval::Auto },
            streaming: false,
            timeout: Span::from_secs(30),
            recovery,
            durable: false,
            frozen: None,
            wait: Some(Wait {
                expires: Span::from_secs(100),
                on_expiry,
                choices: None,
                data_schema: None,
                result_schema: None,
                editable: Editable::All,
            }),
        };
        Requested {
            id: CallId::new("c").unwrap(),
            tool: "tool".into(),
            arguments: Json::unchecked("{}"),
            plan: match unlucky {
                0 => Plan::Settle(Outcome::Denied(None)),
                _ => Plan::Go(Arc::new(pinned)),
            },
            asked: toolgate_domain::suspension::Asked::default(),
            ruled_by: None,
            origin: None,
            standing: None,
            result: (executor == Executor::Provider && unlucky != 0)
                .then(|| Outcome::Ok { value: Json::unchecked("1"), trusted: false }),
        }
    })
}

impl RecordedTurn {
    /// An input that may be refused. The promises hold after it.
    fn offer(&mut self, input: Input) {
        if self.decide(input).is_ok() {
            assert_eq!(Turn::replay(&self.facts).as_ref(), Some(&self.turn), "the facts alone make the turn");
            check(&self.facts, &self.turn);
        }
    }

    fn all(&self) -> Vec<CallIndex> {
        self.turn.indexed().map(|(index, _)| index).collect()
    }

    fn happen(&mut self, happening: &Happening) {
        let all = self.all();
        let some = |yes: bool| if yes { all.clone() } else { Vec::new() };
        match *happening {
            Happening::Answer { call, phase, decision, edit, by } => {
                let known = self.turn.calls.get(call).and_then(|call| call.suspensions.get(phase));
                let suspension = known.map_or(SuspensionId::from_bits(0), |(suspension, _)| suspension.id);
                let roles = [Role::Caller, Role::Approver, Role::Client, Role::Admin];
                let id = PrincipalId::new(if by == 0 { "agent" } else { "ann" }).unwrap();
                self.offer(Input::Resolve(Box::new(CheckedAnswer {
                    suspension,
                    by: Principal::new(id, [roles[usize::from(by)]]),
                    decision: decision.into(),
                    data: None,
                    arguments: edit.then(|| Json::unchecked("{\"edited\":true}")),
                    comment: None,
                    standing: None,
                    expect_digest: None,
                    checked: AnswerChecks::default(),
                })));
            }
            Happening::Finish { call, attempt, ok } => {
                let failure = || Outcome::Failed(Failure::new(FailureCode::Trapped, "trap"));
                let outcome = if ok { Outcome::Ok { value: Json::unchecked("1"), trusted: true } } else { failure() };
                self.offer(Input::Finished(Finished::new(CallIndex(call), attempt, outcome)));
            }
            Happening::Tick { seconds, alive, attended, rule } => {
                self.now += seconds * 1000;
                let before = self.facts.len();
                let waiting = self.turn.pending().filter(|_| rule.is_some());
                let verdict = || Verdict { rule: rule.unwrap_or_default(), ..Verdict::default() };
                let rechecked = waiting.map(|(.., open)| (open.id, verdict())).collect();
                let (alive, attended) = (some(alive), some(attended));
                let open_since = Timestamp::from_millis(0);
                self.offer(Input::Tick(Tick { alive, attended, open_since, rechecked, ended: EndedHosts::default() }));
                let approves = |fact: &Event| {
                    matches!(fact, Event::Call { event: CallEvent::Expired { approved: Some(_), .. }, .. })
                };
                let approved = self.facts[before..].iter().any(approves);
                assert!(
                    !approved || rule == Some(RuleEffect::Allow),
                    "a timeout approves only calls that the policy lets proceed: {rule:?}"
                );
            }
            Happening::Cancel => {
                let by = Principal::new(PrincipalId::new("agent").unwrap(), [Role::Caller]);
                self.offer(Input::Cancel { by });
            }
            Happening::ClientsLeft => self.offer(Input::ClientsLeft { calls: self.all() }),
            Happening::Kill => {
                self.turn = Turn::replay(&self.facts).unwrap();
                let owners = vec![domain::OwnerId::from_bits(self.owner)];
                self.owner += 1;
                self.offer(Input::HostsEnded(EndedHosts { owners, recorded: Vec::new() }));
            }
            Happening::Again => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn the_promises_hold(
        calls in prop::collection::vec(requested(), 1..5),
        rejection in prop::sample::select(Rejection::ALL.to_vec()),
        happenings in prop::collection::vec(happening(), 0..40),
    ) {
        let calls = calls.into_iter().enumerate().map(|(index, call)| Requested {
            id: CallId::new(&format!("c{index}")).unwrap(),
            ..call
        });
        let mut world = RecordedTurn::submit(calls.collect(), rejection).unwrap();
        check(&world.facts, &world.turn);
        let mut last = Happening::Kill;
        for happening in happenings {
            if !matches!(happening, Happening::Again) {
                last = happening;
            }
            world.happen(&last);
        }
        // Every turn ends without answers: each wait expires, and the number of attempts is limited.
        for _ in 0..40 {
            world.happen(&Happening::Tick { seconds: 1000, alive: false, attended: false, rule: Some(RuleEffect::Allow) });
        }
        prop_assert!(world.turn.is_ended());
    }
}
