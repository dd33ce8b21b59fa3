//! Approvals that take certain people: to whom a say can be handed on, and what can stand for later calls.

use expect_test::{Expect, expect};

use super::{World, principal, requested};
use crate::turn::{Input, Rejection};
use crate::{
    Asked, ConversationId, Escalate, Named, Need, NotAllowed, Pin, Principal, PrincipalId, Recovery, Refusal, Role,
    Rule, Span, StandingActive, StandingTerms, Who,
};

fn need(who: &[&str], quorum: u32, later: &[&str]) -> Need {
    let parsed = |who: &[&str]| who.iter().map(|who| who.parse::<Who>().unwrap()).collect();
    let escalate = Escalate { after: Span::from_secs(10), to: parsed(later) };
    Need { who: parsed(who), quorum, escalate: Some(escalate).filter(|_| !later.is_empty()) }
}

fn of(name: &str, group: &str) -> Principal {
    let groups = group.split_whitespace().map(|group| group.parse().unwrap()).collect();
    Principal { groups, ..principal(name, &[Role::Approver]) }
}

/// A gated call of `agent` that needs this, among what else is asked.
fn asked(words: &str, asked: Asked) -> World {
    let mut requested = requested(0, words);
    requested.asked = asked;
    World::submit_all(vec![requested], Rejection::default()).unwrap()
}

/// What becomes of handing a say on, from one to another.
fn handed(world: &mut World, by: Principal, to: Named) -> String {
    let suspension = world.turn.calls[0].suspensions[0].0.id;
    match world.decide(Input::Delegate { suspension, by, to, comment: None }) {
        Ok(()) => "handed on".to_owned(),
        Err(Refusal::NotAllowed(why)) => why.to_string(),
        Err(Refusal::Invalid(violations)) => violations.iter().map(ToString::to_string).collect(),
        Err(other) => other.to_string(),
    }
}

#[test]
fn a_say_is_handed_to_somebody_who_is_known_can_use_it_and_has_none() {
    let needs = || Asked {
        needs: [need(&["group:finance"], 2, &["role:admin"]), need(&["principal:cid"], 1, &["group:board"])].into(),
        ..Asked::default()
    };
    let ann = || of("ann", "finance");
    let known = Named::Somebody;
    let somebody_elses = ConversationId::new("other").unwrap();
    let rows: [(Principal, Named, Expect); 12] = [
        (ann(), known(of("dan", "")), expect!["handed on"]),
        (ann(), Named::Nobody("dna".parse().unwrap()), expect!["at /to: nobody here is called dna"]),
        (
            of("dan", ""),
            Named::Nobody("dna".parse().unwrap()),
            expect!["the operator names others who may answer this"],
        ),
        (ann(), known(of("bob", "finance")), expect!["that principal has a say in this already"]),
        (ann(), known(of("cid", "")), expect!["that principal has a say in this already"]),
        (
            ann(),
            known(principal("agent", &[Role::Approver])),
            expect!["it can be handed on to others, but neither to its caller nor to yourself"],
        ),
        (ann(), known(ann()), expect!["it can be handed on to others, but neither to its caller nor to yourself"]),
        (
            ann(),
            Named::Nobody(PrincipalId::system()),
            expect!["it can be handed on to others, but neither to its caller nor to yourself"],
        ),
        (
            ann(),
            known(principal("eve", &[Role::Caller])),
            expect!["that principal answers no approvals of this conversation: it needs the role approver"],
        ),
        (
            ann(),
            known(Principal { conversation: Some(somebody_elses), ..of("dan", "") }),
            expect!["that principal answers no approvals of this conversation: it needs the role approver"],
        ),
        // Who is asked after a while for the very same may be asked now.
        (ann(), known(principal("root", &[Role::Admin])), expect!["handed on"]),
        (
            ann(),
            known(of("fay", "board")),
            expect!["that principal gets a say of their own in this by escalation, and could not use yours then"],
        ),
    ];
    for (by, to, expected) in rows {
        let mut world = asked("server!", needs());
        expected.assert_eq(&handed(&mut world, by, to));
    }
}

#[test]
fn one_who_has_a_say_since_an_escalation_gets_no_second() {
    let needs = [need(&["principal:ann"], 1, &["role:admin"])].into();
    let mut world = asked("server!", Asked { needs, ..Asked::default() });
    world.step("tick +10");
    let said = handed(&mut world, of("ann", ""), Named::Somebody(principal("root", &[Role::Admin])));
    assert_eq!(said, "that principal has a say in this already");
    assert_eq!(handed(&mut world, of("ann", ""), Named::Somebody(of("dan", ""))), "handed on");
}

#[test]
fn one_who_has_voted_counts_for_more_once_they_are_asked_for_more() {
    let needs = [need(&["principal:ann"], 1, &[]), need(&["principal:cid"], 2, &["group:finance"])].into();
    let mut world = asked("server!", Asked { needs, ..Asked::default() });
    let suspension = |world: &World| world.turn.calls[0].suspensions[0].0.clone();
    let approve = |world: &mut World, by: Principal| {
        let answer = crate::Resolve { by, ..world.answer(0, "approve") };
        world.decide(Input::Resolve(Box::new(answer)))
    };
    let ann = || of("ann", "finance");
    assert_eq!(approve(&mut world, ann()), Ok(()));
    assert!(!suspension(&world).counts_again(&ann()));
    assert_eq!(approve(&mut world, ann()), Err(Refusal::Replayed));
    world.step("tick +10");
    assert!(suspension(&world).counts_again(&ann()));
    assert_eq!(approve(&mut world, ann()), Ok(()));
    assert_eq!((suspension(&world).votes().len(), suspension(&world).votes_missing()), (1, 1));
    assert!(!suspension(&world).counts_again(&ann()));
    assert_eq!(approve(&mut world, ann()), Err(Refusal::Replayed));
    assert_eq!(approve(&mut world, of("cid", "")), Ok(()));
    assert!(world.turn.calls[0].suspensions[0].1.is_some(), "two of the second, and ann for the first");
}

#[test]
fn who_has_a_say_already_is_told_apart_where_anybody_has_one() {
    let mut world = asked("server!", Asked::default());
    let said = handed(&mut world, of("ann", ""), Named::Somebody(of("bob", "")));
    assert_eq!(said, "every approver may answer this already");
}

#[test]
fn an_approval_stands_only_where_one_person_decides_and_everybody_was_asked() {
    let one = || [need(&["principal:ann"], 1, &[])].into();
    let rows: [(&str, Asked, Expect); 7] = [
        ("server!", Asked::default(), expect!["given"]),
        ("server!", Asked { needs: one(), ..Asked::default() }, expect!["given"]),
        ("server!:recovery=ask", Asked::default(), expect!["given"]),
        (
            "server!:recovery=ask",
            Asked { needs: one(), ..Asked::default() },
            expect![
                "the tool asks again after a kill, and a rule names who must answer then: they are asked about every call"
            ],
        ),
        (
            "server!",
            Asked { needs: [need(&[], 2, &[])].into(), ..Asked::default() },
            expect!["an approval that takes several people cannot be allowed beforehand by one of them"],
        ),
        (
            "server!",
            Asked { needs: [need(&[], 1, &[]), need(&["principal:ann"], 1, &[])].into(), ..Asked::default() },
            expect!["an approval that takes several people cannot be allowed beforehand by one of them"],
        ),
        (
            "server!",
            Asked { policy_failed: true, ..Asked::default() },
            expect![
                "a policy could not be asked about this call, so nobody knows what it would say of others: this approval \
                 covers this call alone"
            ],
        ),
    ];
    for (words, with, expected) in rows {
        let mut world = asked(words, with);
        expected.assert_eq(&stood(&mut world, 0, 0));
    }
}

/// What becomes of an approval that shall stand, where the caller has so many already.
fn stood(world: &mut World, count: u32, bytes: usize) -> String {
    let mut answer = world.answer(0, "approve");
    answer.by = principal("ann", &[Role::Approver]);
    answer.standing = Some(StandingTerms { time: Span::from_secs(1), uses: 1, pin: Pin::All });
    answer.checked.standing = StandingActive { count, bytes };
    match world.decide(Input::Resolve(Box::new(answer))) {
        Ok(()) => "given".to_owned(),
        Err(refusal) => refusal.to_string(),
    }
}

#[test]
fn a_caller_has_only_so_many_that_stand() {
    let mut world = asked("server!", Asked::default());
    world.rules.standing_active = 3;
    assert_eq!(
        stood(&mut world, 3, 0),
        "the caller has 3 standing approvals in use, and may have 3 (approvals.standing_max_active): approve without one, \
         or take others back"
    );
    assert_eq!(stood(&mut world, 2, 0), "given");
}

#[test]
fn who_is_not_named_neither_approves_nor_denies_nor_answers() {
    for (words, decision) in [("server!", "approve"), ("server!", "deny"), ("client!", "deny"), ("human", "answer")] {
        let mut world = asked(words, Asked { needs: [need(&["principal:ann"], 1, &[])].into(), ..Asked::default() });
        let answer = |world: &World, name: &str| {
            let by = principal(name, &[Role::Approver]);
            Input::Resolve(Box::new(crate::Resolve { by, ..world.answer(0, decision) }))
        };
        let others = Err(NotAllowed::OthersAnswer.into());
        assert_eq!(world.decide(answer(&world, "bob")), others, "{words} {decision}");
        assert_eq!(world.turn.pending().count(), 1);
        assert_eq!(world.decide(answer(&world, "ann")), Ok(()), "{words} {decision}");
    }
}

#[test]
fn an_answer_that_allows_something_else_beforehand_is_not_the_same_answer() {
    let mut world = asked("server!", Asked::default());
    let mut give = |uses: Option<u32>| {
        let standing = uses.map(|uses| StandingTerms { time: Span::from_secs(1), uses, pin: Pin::All });
        world.decide(Input::Resolve(Box::new(crate::Resolve { standing, ..world.answer(0, "approve") })))
    };
    assert_eq!((give(Some(2)), give(Some(2))), (Ok(()), Err(Refusal::Replayed)));
    for other in [Some(3), None] {
        assert!(matches!(give(other), Err(Refusal::Stale { .. })), "{other:?}");
    }
}

#[test]
fn what_stands_for_a_caller_has_only_so_many_bytes() {
    let mut world = asked("server!", Asked::default());
    world.rules.standing_bytes = 100;
    let own = world.turn.calls[0].arguments.size();
    assert_eq!(
        stood(&mut world, 2, 101 - own),
        "the caller has standing approvals in use whose arguments would have 101 bytes, and may have 100 \
         (approvals.standing_max_bytes): approve without one, or take others back"
    );
    assert!(stood(&mut world, 0, usize::MAX).contains("standing_max_bytes"), "whatever there is");
    assert_eq!(stood(&mut world, 2, 100 - own), "given");
}

#[test]
fn an_approval_of_what_is_denied_by_now_is_refused_and_a_no_is_taken() {
    for (decision, refused) in [("approve", true), ("deny", false)] {
        let mut world = asked("client!", Asked::default());
        let mut answer = world.answer(0, decision);
        answer.checked.rule = Rule::Deny;
        assert_eq!(world.decide(Input::Resolve(Box::new(answer))).is_err(), refused, "{decision}");
    }
}

#[test]
fn what_a_kill_left_in_doubt_stands_for_nothing() {
    let mut world = World::submit("server:recovery=ask", Rejection::default()).unwrap();
    assert_eq!(world.turn.calls[0].pinned.as_ref().unwrap().recovery, Recovery::Ask);
    world.owner = 2;
    world.decide(Input::Restarted).unwrap();
    assert_eq!(stood(&mut world, 0, 0), "whether this run is repeated says nothing of later calls");
}
