//! Approvals by certain people. A call that was denied, or that lacks an approval, never runs, in any order of votes,
//! edits, delegations, escalations, expiries and kills. The test works out the approvals from the facts and a table of
//! people, without the code that decides. The effect of rules on calls is tested in `tests/tests/rules_property.rs`.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "support/approved.rs"]
mod approved;
#[path = "support/recorded.rs"]
mod recorded;

use std::sync::Arc;

use approved::{Call, PEOPLE, check, parsed, pinned};
use domain::{
    CallId, CallIndex, Digest, Event, Json, Outcome, Principal, Span, StandingId, Timestamp, Turn,
    approvers::{Escalate, Need},
    call::Plan,
    event::{CallEvent, Rejection},
    gate::{RuleEffect, Verdict},
    principal::{Channel, Channels, Named},
    standing::{Pin, StandingTerms, StandingUse},
    suspension::{About, Asked},
    tool::{OnExpiry, Recovery},
    turn::{AnswerChecks, CheckedAnswer, EndedHosts, Finished, Input, Requested, Tick},
};
use proptest::prelude::*;
use recorded::RecordedTurn;
use toolgate_domain as domain;

/// The arguments that an edit can put in place: unchanged, harmless, denied by the policy, and
/// with other approvers or another channel.
const EDITS: [&str; 5] = [r#"{"v":0}"#, r#"{"v":1}"#, r#"{"v":2}"#, r#"{"v":3}"#, r#"{"v":4}"#];

/// The needs that the policy states for them. `None`: it denies the call.
fn edit_needs(edit: usize) -> Option<Vec<Need>> {
    match edit {
        2 => None,
        3 => Some(vec![Need { who: parsed(&["principal:nobody"]), quorum: 1, escalate: None, via: Channels::ANY }]),
        4 => {
            let via = [Channel::Console].into_iter().collect();
            Some(vec![Need { who: parsed(&[]), quorum: 1, escalate: None, via }])
        }
        _ => Some(Vec::new()),
    }
}

/// The channels that a need may count: mostly all of them.
fn via() -> impl Strategy<Value = Channels> {
    let some = prop::collection::vec(prop::sample::select(Channel::ALL.to_vec()), 0..3);
    prop_oneof![2 => Just(Channels::ANY), 1 => some.prop_map(Channels::from_iter)]
}

/// The channel of a request: mostly one of two, so that several people use the same.
fn channel() -> impl Strategy<Value = Channel> {
    prop_oneof![
        3 => Just(Channel::Console),
        3 => Just(Channel::Api),
        1 => prop::sample::select(Channel::ALL.to_vec()),
    ]
}

/// The possible needs.
const WHO: [&[&str]; 5] =
    [&[], &["group:finance"], &["group:security"], &["principal:ann", "principal:dan"], &["role:admin"]];

#[derive(Debug, Clone)]
enum Happening {
    Answer {
        call: usize,
        by: usize,
        channel: Channel,
        approve: bool,
        edit: usize,
        stand: bool,
    },
    /// To a name that nobody has, if no person has this number.
    Delegate {
        call: usize,
        by: usize,
        channel: Channel,
        to: usize,
    },
    /// The person's token is revoked, and they get another one.
    Revoke {
        who: usize,
    },
    Finish {
        call: u16,
    },
    Pass {
        seconds: u64,
    },
    /// The process is killed after the last commit, and another one continues.
    Kill,
}

fn happening() -> impl Strategy<Value = Happening> {
    let (people, calls) = (|| (0..PEOPLE.len(), channel()), 0..3_usize);
    // Most people edit nothing, and many choose the same edit.
    let edit = || prop_oneof![4 => Just(0), 1 => 1..EDITS.len()];
    prop_oneof![
        12 => (calls.clone(), people(), prop::bool::weighted(0.9), edit(), prop::bool::weighted(0.2))
            .prop_map(|(call, (by, channel), approve, edit, stand)| {
                Happening::Answer { call, by, channel, approve, edit, stand }
            }),
        3 => (calls, people(), 0..=PEOPLE.len())
            .prop_map(|(call, (by, channel), to)| Happening::Delegate { call, by, channel, to }),
        1 => (0..PEOPLE.len()).prop_map(|who| Happening::Revoke { who }),
        1 => (0..3_u16).prop_map(|call| Happening::Finish { call }),
        2 => (0..40_u64).prop_map(|seconds| Happening::Pass { seconds }),
        2 => Just(Happening::Kill),
    ]
}

fn need() -> impl Strategy<Value = Need> {
    let who = prop::sample::select(WHO.to_vec());
    (who.clone(), 1..4_u32, prop::option::of((10..60_u64, who)), via()).prop_map(|(who, quorum, wider, via)| Need {
        who: parsed(who),
        quorum,
        escalate: wider.map(|(after, to)| Escalate { after: Span::from_secs(after), to: parsed(to) }),
        via,
    })
}

fn call() -> impl Strategy<Value = Call> {
    let rare = || prop::bool::weighted(0.1);
    let on_expiry = prop::sample::select(vec![OnExpiry::Error, OnExpiry::Deny, OnExpiry::Approve]);
    let recovery = prop::sample::select(vec![Recovery::Retry, Recovery::Ask, Recovery::Fail]);
    let asked = (prop::collection::vec(need(), 0..3), any::<bool>(), rare());
    (asked, (prop::bool::weighted(0.9), rare()), on_expiry, recovery).prop_map(
        |((needs, by_rule, policy_failed), (gated, beforehand), on_expiry, recovery)| Call {
            beforehand,
            on_expiry,
            recovery,
            needs: if gated { needs } else { Vec::new() },
            by_rule: by_rule && gated,
            policy_failed: policy_failed && gated,
            gated,
            ..plain()
        },
    )
}

fn person(n: usize) -> Principal {
    let (name, groups, roles) = PEOPLE[n];
    let mut principal = Principal::new(name.parse().unwrap(), roles.iter().copied());
    principal.groups = groups.iter().map(|group| group.parse().unwrap()).collect();
    principal
}

impl RecordedTurn {
    /// An input that may be refused.
    fn offer(&mut self, input: Input) {
        if self.decide(input).is_ok() {
            assert_eq!(Turn::replay(&self.facts).as_ref(), Some(&self.turn), "the facts alone make the turn");
        }
    }

    fn happen(&mut self, happening: &Happening) {
        let last = |call: usize| Some(self.turn.calls.get(call)?.suspensions.last()?.0.id);
        match *happening {
            Happening::Answer { call, by, channel, approve, edit, stand } => {
                let Some(suspension) = last(call) else { return };
                let decided = edit_needs(edit);
                let rule = if decided.is_none() { RuleEffect::Deny } else { RuleEffect::Ask };
                let needs = decided.unwrap_or_default();
                let edited = Some(vec!["v".to_owned()]);
                let terms = StandingTerms { time: Span::from_secs(60), uses: 2, pin: Pin::All };
                self.offer(Input::Resolve(Box::new(CheckedAnswer {
                    suspension,
                    by: Principal { channel, ..person(by) },
                    decision: if approve { "approve" } else { "deny" }.into(),
                    data: None,
                    arguments: (edit > 0 && approve).then(|| Json::unchecked(EDITS[edit])),
                    comment: None,
                    standing: (stand && approve).then_some(terms),
                    expect_digest: None,
                    checked: AnswerChecks {
                        edited,
                        rule: if edit > 0 { rule } else { RuleEffect::Allow },
                        needs: needs.into(),
                        ..AnswerChecks::default()
                    },
                })));
            }
            Happening::Delegate { call, by, channel, to } => {
                let Some(suspension) = last(call) else { return };
                let somebody = (to < PEOPLE.len()).then(|| person(to));
                let to = somebody.map_or_else(|| Named::Nobody("nobody".parse().unwrap()), Named::Somebody);
                let by = Principal { channel, ..person(by) };
                self.offer(Input::Delegate { suspension, by, to, comment: None });
            }
            Happening::Revoke { who } => {
                let principal = person(who).id;
                self.offer(Input::Revoked { principals: vec![principal.clone()] });
                assert!(self.turn.authorities().all(|(id, _)| *id != principal), "{principal} still counts");
            }
            Happening::Finish { call } => {
                let attempt = self.turn.calls.get(usize::from(call)).map_or(0, |call| call.attempts);
                let outcome = Outcome::Ok { value: Json::unchecked("1"), trusted: true };
                self.offer(Input::Finished(Finished::new(CallIndex(call), attempt, outcome)));
            }
            Happening::Pass { seconds } => {
                self.now += seconds * 1000;
                let open_since = Timestamp::from_millis(0);
                // One tick records one change of a call.
                for _ in 0..8 {
                    let (alive, attended) = ((0..3).map(CallIndex).collect(), Vec::new());
                    let rechecked = self.turn.pending().map(|(.., open)| (open.id, Verdict::default())).collect();
                    self.offer(Input::Tick(Tick {
                        alive,
                        attended,
                        open_since,
                        rechecked,
                        ended: EndedHosts::default(),
                    }));
                }
            }
            Happening::Kill => {
                self.turn = Turn::replay(&self.facts).unwrap();
                let owners = vec![domain::OwnerId::from_bits(self.owner)];
                self.owner += 1;
                self.offer(Input::HostsEnded(EndedHosts { owners, recorded: Vec::new() }));
            }
        }
    }

    fn starts(&self) -> usize {
        self.facts.iter().filter(|fact| matches!(fact, Event::Call { event: CallEvent::Started { .. }, .. })).count()
    }
}

fn submitted(calls: &[Call]) -> RecordedTurn {
    let requested = |(n, call): (usize, &Call)| Requested {
        id: CallId::new(&format!("c{n}")).unwrap(),
        tool: "tool".into(),
        arguments: Json::unchecked(EDITS[0]),
        plan: Plan::Go(Arc::new(pinned(call))),
        asked: Asked {
            needs: call.needs.as_slice().into(),
            policy_failed: call.policy_failed,
            ..About { by: call.by_rule.then(|| "a-rule".into()), ..About::default() }.into()
        },
        ruled_by: None,
        origin: None,
        standing: call.beforehand.then(|| StandingUse { id: StandingId::from_bits(7), by: "ann".parse().unwrap() }),
        result: None,
    };
    RecordedTurn::submit(calls.iter().enumerate().map(requested).collect(), Rejection::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_runs_that_was_denied_or_is_undecided(
        calls in prop::collection::vec(call(), 1..4),
        twins in any::<bool>(),
        happenings in prop::collection::vec(happening(), 0..40),
    ) {
        // Calls of one turn are often identical.
        let calls = if twins { vec![calls[0].clone(); calls.len()] } else { calls };
        let mut world = submitted(&calls);
        check(&world.facts, &calls);
        for happening in &happenings {
            world.happen(happening);
            check(&world.facts, &calls);
        }
    }
}

/// A call that one person must approve.
fn plain() -> Call {
    Call {
        arguments: Json::unchecked(EDITS[0]),
        declaration: Digest::of("declaration"),
        verdicts: (0..).zip(EDITS).map(|(n, edit)| (edit.to_owned(), edit_needs(n))).collect(),
        needs: Vec::new(),
        by_rule: true,
        policy_failed: false,
        gated: true,
        beforehand: false,
        on_expiry: OnExpiry::Error,
        recovery: Recovery::Ask,
    }
}

fn finance() -> Need {
    Need { who: parsed(&["group:finance"]), quorum: 2, escalate: None, via: Channels::ANY }
}

#[test]
fn the_happenings_lead_to_every_kind_of_end() {
    let channel = Channel::Api;
    let answer = |by, approve, edit| Happening::Answer { call: 0, by, channel, approve, edit, stand: false };
    let delegate = |by, to| Happening::Delegate { call: 0, by, channel, to };
    let both = || vec![answer(1, true, 0), answer(2, true, 0)];
    for (happenings, starts) in [
        (both(), 1),
        (vec![answer(1, true, 1), answer(2, true, 1)], 1),
        (vec![answer(1, true, 0), answer(2, true, 1)], 0),
        (vec![answer(1, true, 0), answer(1, true, 0)], 0),
        (vec![answer(1, true, 0), answer(2, true, 1), answer(1, true, 1)], 1),
        (vec![answer(1, true, 0), answer(3, true, 0)], 0),
        (vec![answer(1, true, 0), delegate(2, 3), answer(3, true, 0)], 1),
        (vec![delegate(2, 3), answer(2, true, 0), answer(1, true, 0)], 0),
        // To a principal with authority, and to nobody.
        (vec![delegate(2, 1), answer(1, true, 0), answer(2, true, 0)], 1),
        (vec![delegate(2, PEOPLE.len()), answer(1, true, 0), answer(2, true, 0)], 1),
        (vec![answer(1, true, 0), answer(1, false, 0), answer(2, true, 0)], 0),
        (vec![answer(1, true, 0), delegate(1, 3), answer(2, true, 0)], 0),
        // Votes before a revocation do not count, and neither do those with the authority of the revoked.
        (vec![answer(1, true, 0), Happening::Revoke { who: 1 }, answer(2, true, 0)], 0),
        (vec![answer(1, true, 0), Happening::Revoke { who: 1 }, answer(2, true, 0), answer(1, true, 0)], 1),
        (vec![delegate(1, 3), answer(3, true, 0), Happening::Revoke { who: 1 }, answer(2, true, 0)], 0),
        (vec![delegate(1, 3), Happening::Revoke { who: 3 }, answer(1, true, 0), answer(2, true, 0)], 1),
        (vec![answer(1, true, 2), answer(2, true, 2)], 0),
        (vec![answer(1, true, 3), answer(2, true, 3)], 0),
        // A run that a kill left in doubt takes the same people again.
        ([both(), vec![Happening::Kill, answer(1, true, 0)]].concat(), 1),
        ([both(), vec![Happening::Kill], both()].concat(), 2),
        ([both(), vec![Happening::Finish { call: 0 }, Happening::Kill], both()].concat(), 1),
    ] {
        let calls = [Call { needs: vec![finance()], ..plain() }];
        let mut world = submitted(&calls);
        happenings.iter().for_each(|happening| world.happen(happening));
        check(&world.facts, &calls);
        assert_eq!(world.starts(), starts, "{happenings:?}: {:#?}", world.facts.last());
    }
}

#[test]
fn the_calls_lead_to_every_kind_of_beginning() {
    let channel = Channel::Api;
    let answer = |call, by, approve, stand| Happening::Answer { call, by, channel, approve, edit: 0, stand };
    let silent = || Call { on_expiry: OnExpiry::Approve, by_rule: false, ..plain() };
    let late = vec![Happening::Pass { seconds: 39 }; 3];
    for (calls, happenings, starts) in [
        (vec![Call { gated: false, ..plain() }], Vec::new(), 1),
        (vec![Call { beforehand: true, ..plain() }, plain()], Vec::new(), 1),
        (vec![Call { beforehand: true, policy_failed: true, ..plain() }], Vec::new(), 0),
        (vec![Call { beforehand: true, needs: vec![finance()], ..plain() }], Vec::new(), 0),
        (vec![Call { beforehand: true, needs: vec![finance()], recovery: Recovery::Fail, ..plain() }], Vec::new(), 1),
        (vec![silent()], late.clone(), 1),
        (vec![Call { by_rule: true, ..silent() }], late, 0),
        // A denial of one of two identical calls denies both. An approval approves one.
        (vec![plain(), plain()], vec![answer(0, 4, false, false), answer(1, 4, true, false)], 0),
        (vec![plain(), plain()], vec![answer(0, 4, true, false)], 1),
        (vec![plain()], vec![answer(0, 4, true, true)], 1),
        (vec![Call { policy_failed: true, ..plain() }], vec![answer(0, 4, true, true)], 0),
        (vec![Call { policy_failed: true, ..plain() }], vec![answer(0, 4, true, false)], 1),
        (vec![Call { recovery: Recovery::Retry, ..plain() }], vec![answer(0, 4, true, false), Happening::Kill], 2),
        (vec![Call { recovery: Recovery::Fail, ..plain() }], vec![answer(0, 4, true, false), Happening::Kill], 1),
    ] {
        let mut world = submitted(&calls);
        happenings.iter().for_each(|happening| world.happen(happening));
        check(&world.facts, &calls);
        assert_eq!(world.starts(), starts, "{calls:?} {happenings:?}: {:#?}", world.facts.last());
    }
}

#[test]
fn answers_count_only_through_the_channels_of_the_need() {
    use Channel::{Api, Console, Link, McpForm};
    let answer = |by, channel, edit| Happening::Answer { call: 0, by, channel, approve: true, edit, stand: false };
    let delegate = |by, channel, to| Happening::Delegate { call: 0, by, channel, to };
    let both = |edit| vec![answer(1, Console, edit), answer(2, Link, edit)];
    for (happenings, starts) in [
        (both(0), 1),
        (vec![answer(1, Api, 0), answer(2, Link, 0)], 0),
        (vec![answer(1, Api, 0), answer(2, Link, 0), answer(1, Console, 0)], 1),
        (vec![answer(1, McpForm, 0), answer(2, McpForm, 0)], 0),
        // Authority is delegated and used through the channels of the need.
        (vec![delegate(1, Console, 3), answer(3, Console, 0), answer(2, Link, 0)], 1),
        (vec![delegate(1, Console, 3), answer(3, Api, 0), answer(2, Link, 0)], 0),
        (vec![delegate(1, Api, 3), answer(3, Console, 0), answer(2, Link, 0)], 0),
        (vec![delegate(1, Api, 3), answer(1, Console, 0), answer(2, Link, 0)], 1),
        // The need counts links too, and the edited arguments need the console.
        (both(4), 0),
    ] {
        let via = [Console, Link].into_iter().collect();
        let calls = [Call { needs: vec![Need { via, ..finance() }], ..plain() }];
        let mut world = submitted(&calls);
        happenings.iter().for_each(|happening| world.happen(happening));
        check(&world.facts, &calls);
        assert_eq!(world.starts(), starts, "{happenings:?}: {:#?}", world.facts.last());
    }
}
