//! Approvals that take certain people: no order of votes, edits, delegations, escalations and expiries makes a call run that
//! was denied, or that not everybody has approved who must. What must have happened is worked out here from the facts and a
//! table of who is who, without asking the code that decides.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::{
    Approval, Asked, CallId, CallIndex, Checked, Context, ConversationId, Decision, Digest, Editable, Escalate, Event,
    Executor, Input, Json, Need, OnExpiry, OwnerId, Pinned, Plan, PluginName, Principal, PrincipalId, Recovery,
    Refusal, Rejection, Requested, Resolve, Role, Rule, Rules, Span, Submission, Timestamp, Turn, TurnId, Wait, Who,
};
use proptest::prelude::*;
use toolgate_domain as domain;

/// Who there is, with their groups and roles. The first is the caller.
const PEOPLE: [(&str, &[&str], &[Role]); 7] = [
    ("agent", &["finance", "security"], &[Role::Caller, Role::Approver]),
    ("ann", &["finance"], &[Role::Approver]),
    ("bob", &["finance"], &[Role::Approver]),
    ("cid", &["security"], &[Role::Approver]),
    ("dan", &[], &[Role::Approver]),
    ("eve", &["finance"], &[Role::Caller]),
    ("root", &[], &[Role::Admin]),
];

/// What may be needed.
const WHO: [&[&str]; 5] =
    [&[], &["group:finance"], &["group:security"], &["principal:ann", "principal:dan"], &["role:admin"]];

/// The arguments that an edit can put in place: as they are, harmless, denied by the policy, and such that others must approve.
const EDITS: [&str; 4] = [r#"{"v":0}"#, r#"{"v":1}"#, r#"{"v":2}"#, r#"{"v":3}"#];

#[derive(Debug, Clone)]
enum Happening {
    Answer { by: usize, approve: bool, edit: usize },
    Delegate { by: usize, to: usize },
    Pass { seconds: u64 },
    Kill,
}

fn happening() -> impl Strategy<Value = Happening> {
    let people = 0..PEOPLE.len();
    prop_oneof![
        8 => (people.clone(), prop::bool::weighted(0.9), 0..EDITS.len())
            .prop_map(|(by, approve, edit)| Happening::Answer { by, approve, edit }),
        2 => (people.clone(), people).prop_map(|(by, to)| Happening::Delegate { by, to }),
        2 => (0..40u64).prop_map(|seconds| Happening::Pass { seconds }),
        1 => Just(Happening::Kill),
    ]
}

fn need() -> impl Strategy<Value = Need> {
    let who = prop::sample::select(WHO.to_vec());
    (who.clone(), 1..4u32, prop::option::of((10..60u64, who))).prop_map(|(who, quorum, wider)| Need {
        who: parsed(who),
        quorum,
        escalate: wider.map(|(after, to)| Escalate { after: Span::from_secs(after), to: parsed(to) }),
    })
}

fn parsed(who: &[&str]) -> Arc<[Who]> {
    who.iter().map(|who| who.parse().unwrap()).collect()
}

fn person(n: usize) -> Principal {
    let (name, groups, roles) = PEOPLE[n];
    let mut principal = Principal::new(name.parse().unwrap(), roles.iter().copied());
    principal.groups = groups.iter().map(|group| group.parse().unwrap()).collect();
    principal
}

fn pinned(on_expiry: OnExpiry) -> Pinned {
    Pinned {
        plugin: PluginName::new("p").unwrap(),
        component: Digest::of("component"),
        declaration: Digest::of("declaration"),
        executor: Executor::Server,
        approval: Approval::RequiresApproval,
        streaming: false,
        timeout: Span::from_secs(30),
        recovery: Recovery::Retry,
        wait: Some(Wait {
            expires: Span::from_secs(100),
            on_expiry,
            responses: None,
            response: None,
            result: None,
            editable: Editable::All,
        }),
    }
}

struct World {
    facts: Vec<Event>,
    turn: Turn,
    now: u64,
    minted: u128,
    rules: Rules,
}

impl World {
    fn decide(&mut self, input: Input) -> Result<(), Refusal> {
        let mut mint = || {
            self.minted += 1;
            self.minted
        };
        let now = Timestamp::from_millis(self.now);
        let mut cx = Context { now, owner: OwnerId::from_bits(1), rules: &self.rules, mint: &mut mint };
        let (events, next) = self.turn.decide(input, &mut cx)?;
        self.facts.extend(events);
        assert_eq!(Turn::replay(&self.facts).as_ref(), Some(&next), "the facts alone make the turn");
        self.turn = next;
        Ok(())
    }

    fn happen(&mut self, happening: &Happening) {
        let suspension = self.turn.calls[0].suspensions[0].0.id;
        match *happening {
            Happening::Answer { by, approve, edit } => {
                // What the policy says of the arguments, as whoever asks it would find out.
                let (rule, needs): (Rule, Vec<Need>) = match edit {
                    2 => (Rule::Deny, Vec::new()),
                    3 => (Rule::Ask, vec![Need { who: parsed(&["principal:nobody"]), quorum: 1, escalate: None }]),
                    _ => (Rule::Allow, Vec::new()),
                };
                let edited = Some(vec!["v".to_owned()]);
                let _ = self.decide(Input::Resolve(Box::new(Resolve {
                    suspension,
                    by: person(by),
                    decision: if approve { "approve" } else { "deny" }.into(),
                    data: None,
                    arguments: (edit > 0 && approve).then(|| Json::new(EDITS[edit])),
                    comment: None,
                    standing: None,
                    expect_digest: None,
                    checked: Checked { edited, rule, needs: needs.into(), ..Checked::default() },
                })));
            }
            Happening::Delegate { by, to } => {
                let (by, to) = (person(by), person(to).id);
                let _ = self.decide(Input::Delegate { suspension, by, to, comment: None });
            }
            Happening::Pass { seconds } => {
                self.now += seconds * 1000;
                let open_since = Timestamp::from_millis(0);
                // A tick notes one thing of a call at a time.
                for _ in 0..8 {
                    let (alive, attended) = (vec![CallIndex(0)], Vec::new());
                    let _ = self.decide(Input::Tick { alive, attended, open_since });
                }
            }
            Happening::Kill => self.turn = Turn::replay(&self.facts).unwrap(),
        }
    }
}

/// Which needs a person's word counts for, from the table, the delegations and the escalations so far.
fn counts(
    name: &PrincipalId,
    needs: &[Need],
    handed: &BTreeMap<PrincipalId, PrincipalId>,
    late: Option<u64>,
) -> BTreeSet<usize> {
    let (_, groups, roles) = PEOPLE.iter().find(|(known, ..)| *known == name.as_str()).unwrap();
    let is = |who: &Who| match who.to_string().split_once(':').unwrap() {
        ("principal", other) => other == name.as_str(),
        ("group", group) => groups.contains(&group),
        (_, role) => roles.iter().any(|has| has.as_str() == role),
    };
    let fits = |need: &Need| {
        let wider = need.escalate.as_ref().filter(|wider| late.is_some_and(|late| late >= wider.after.millis()));
        need.who.is_empty() || need.who.iter().any(is) || wider.is_some_and(|wider| wider.to.iter().any(is))
    };
    let mut own: BTreeSet<usize> = (0..needs.len()).filter(|n| fits(&needs[*n])).collect();
    if !own.is_empty() {
        return own;
    }
    for (from, _) in handed.iter().filter(|(_, to)| *to == name) {
        own.extend(counts(from, needs, &BTreeMap::new(), late));
    }
    own
}

/// Panics if the call was started without everybody who must having approved exactly what was started.
fn check(facts: &[Event], needs: &[Need]) {
    let everybody = [Need { who: Arc::new([]), quorum: 1, escalate: None }];
    let required = if needs.is_empty() { &everybody } else { needs };
    let template = pinned(OnExpiry::Error);
    let mut votes: BTreeMap<PrincipalId, (Digest, BTreeSet<usize>)> = BTreeMap::new();
    let mut handed = BTreeMap::new();
    let (mut late, mut approved, mut denied) = (None, None, false);
    for fact in facts {
        match fact {
            Event::SuspensionEscalated { at, .. } => late = Some(at.millis()),
            Event::SuspensionDelegated { delegation, .. } => {
                assert_ne!(delegation.to.as_str(), PEOPLE[0].0, "nothing is handed to the caller");
                votes.remove(&delegation.from);
                handed.insert(delegation.from.clone(), delegation.to.clone());
            }
            Event::CallVoted { vote, .. } => {
                assert!(!handed.contains_key(&vote.by), "who handed their say on has none");
                votes.insert(vote.by.clone(), (vote.binding, counts(&vote.by, required, &handed, late)));
            }
            Event::CallResolved { resolution, by, .. } => match resolution.decision {
                Decision::Approve => {
                    assert!(!handed.contains_key(by), "who handed their say on has none");
                    let default = Json::new(EDITS[0]);
                    let arguments = resolution.arguments.as_ref().unwrap_or(&default);
                    let binding = template.binding(arguments);
                    votes.insert(by.clone(), (binding, counts(by, required, &handed, late)));
                    approved = Some((binding, arguments.clone()));
                }
                _ => denied = true,
            },
            Event::SuspensionExpired { approved: by_silence, .. } => {
                assert!(
                    by_silence.is_none() || needs.is_empty(),
                    "silence is nobody's approval where somebody must approve"
                );
                if by_silence.is_some() {
                    return;
                }
            }
            Event::CallStarted { .. } => {
                assert!(!denied, "a denied call does not run");
                assert!(approved.is_some(), "only an approved call runs");
                let (binding, arguments) = approved.clone().unwrap();
                assert!(!arguments.as_str().contains("2") && !arguments.as_str().contains("3"), "{arguments}");
                assert!(!votes.contains_key(&PEOPLE[0].0.parse().unwrap()), "the caller has no vote");
                assert!(!votes.contains_key(&"eve".parse().unwrap()), "nor has one who is no approver");
                for (n, need) in required.iter().enumerate() {
                    let for_it =
                        |(other, counts): &&(Digest, BTreeSet<usize>)| *other == binding && counts.contains(&n);
                    let enough = votes.values().filter(for_it).count() >= need.quorum as usize;
                    assert!(enough, "{need:?} is not met by {votes:?}");
                }
            }
            _ => {}
        }
    }
}

fn submitted(needs: &[Need], on_expiry: OnExpiry) -> World {
    let rules = Rules::default();
    let submission = Submission {
        turn: TurnId::from_bits(1),
        conversation: ConversationId::new("talk").unwrap(),
        caller: person(0).id,
        rejection: Rejection::default(),
        context: None,
        calls: vec![Requested {
            id: CallId::new("c").unwrap(),
            tool: "tool".into(),
            arguments: Json::new(EDITS[0]),
            plan: Plan::Go(Arc::new(pinned(on_expiry))),
            prompt: None,
            asked: Asked { needs: needs.into(), ..Asked::default() },
            ruled_by: None,
            standing: None,
            result: None,
        }],
    };
    let mut minted = 0;
    let mut mint = || {
        minted += 1;
        minted
    };
    let now = Timestamp::from_millis(0);
    let mut cx = Context { now, owner: OwnerId::from_bits(1), rules: &rules, mint: &mut mint };
    let (facts, turn) = Turn::submit(submission, &mut cx).unwrap();
    World { facts, turn, now: 0, minted, rules }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_runs_that_was_denied_or_is_undecided(
        needs in prop::collection::vec(need(), 0..3),
        on_expiry in prop::sample::select(vec![OnExpiry::Error, OnExpiry::Deny, OnExpiry::Approve]),
        happenings in prop::collection::vec(happening(), 0..30),
    ) {
        let mut world = submitted(&needs, on_expiry);
        for happening in &happenings {
            world.happen(happening);
            check(&world.facts, &needs);
        }
    }
}

#[test]
fn the_happenings_lead_to_every_kind_of_end() {
    let finance = Need { who: parsed(&["group:finance"]), quorum: 2, escalate: None };
    let answer = |by, approve, edit| Happening::Answer { by, approve, edit };
    for (happenings, runs) in [
        (vec![answer(1, true, 0), answer(2, true, 0)], true),
        (vec![answer(1, true, 1), answer(2, true, 1)], true),
        (vec![answer(1, true, 0), answer(2, true, 1)], false),
        (vec![answer(1, true, 0), answer(1, true, 0)], false),
        (vec![answer(1, true, 0), answer(2, true, 1), answer(1, true, 1)], true),
        (vec![answer(1, true, 0), answer(3, true, 0)], false),
        (vec![answer(1, true, 0), Happening::Delegate { by: 2, to: 3 }, answer(3, true, 0)], true),
        (vec![Happening::Delegate { by: 2, to: 3 }, answer(2, true, 0), answer(1, true, 0)], false),
        (vec![answer(1, true, 0), answer(1, false, 0), answer(2, true, 0)], false),
        (vec![answer(1, true, 0), Happening::Delegate { by: 1, to: 3 }, answer(2, true, 0)], false),
        (vec![answer(1, true, 2), answer(2, true, 2)], false),
        (vec![answer(1, true, 3), answer(2, true, 3)], false),
    ] {
        let mut world = submitted(std::slice::from_ref(&finance), OnExpiry::Error);
        happenings.iter().for_each(|happening| world.happen(happening));
        let started = world.facts.iter().any(|fact| matches!(fact, Event::CallStarted { .. }));
        assert_eq!(started, runs, "{happenings:?}: {:#?}", world.facts.last());
    }
}
