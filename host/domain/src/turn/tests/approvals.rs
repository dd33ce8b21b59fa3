//! Approvals by certain people: to whom authority can be delegated, and what can cover later calls.

use expect_test::{Expect, expect};

use super::{RecordedTurn, principal, requested, submit};
use crate::turn::{EndedHosts, Input};
use crate::{
    Call, ConversationId, Json, Principal, PrincipalId, Refusal, Span,
    approvers::{Escalate, Need, Who},
    event::Rejection,
    gate::RuleEffect,
    principal::{Channels, Named, Role},
    refusal::NotAllowed,
    standing::{Pin, StandingActive, StandingTerms},
    suspension::{About, Asked},
    tool::{Recovery, Risk},
};

fn need(who: &[&str], quorum: u32, later: &[&str]) -> Need {
    let parsed = |who: &[&str]| who.iter().map(|who| who.parse::<Who>().unwrap()).collect();
    let escalate = Escalate { after: Span::from_secs(10), to: parsed(later) };
    Need { who: parsed(who), quorum, escalate: Some(escalate).filter(|_| !later.is_empty()), via: Channels::ANY }
}

fn of(name: &str, group: &str) -> Principal {
    let groups = group.split_whitespace().map(|group| group.parse().unwrap()).collect();
    Principal { groups, ..principal(name, &[Role::Approver]) }
}

/// A call of `agent` that asks this.
fn asked(words: &str, asked: Asked) -> RecordedTurn {
    let mut requested = requested(0, words);
    requested.asked = asked;
    RecordedTurn::submit(vec![requested], Rejection::default()).unwrap()
}

/// Delegates authority from one to another, and returns the answer.
fn delegated(world: &mut RecordedTurn, by: Principal, to: Named) -> String {
    let suspension = world.turn.calls[0].suspensions[0].0.id;
    match world.decide(Input::Delegate { suspension, by, to, comment: None }) {
        Ok(()) => "delegated".to_owned(),
        Err(Refusal::NotAllowed(why)) => why.to_string(),
        Err(Refusal::Invalid(violations)) => violations.iter().map(ToString::to_string).collect(),
        Err(other) => other.to_string(),
    }
}

#[test]
fn authority_goes_to_a_known_principal_who_has_none() {
    let needs = || Asked {
        needs: [need(&["group:finance"], 2, &["role:admin"]), need(&["principal:cid"], 1, &["group:board"])].into(),
        ..Asked::default()
    };
    let ann = || of("ann", "finance");
    let known = Named::Somebody;
    let somebody_elses = ConversationId::new("other").unwrap();
    let rows: [(Principal, Named, Expect); 12] = [
        (ann(), known(of("dan", "")), expect!["delegated"]),
        (ann(), Named::Nobody("dna".parse().unwrap()), expect!["at /to: nobody here is called dna"]),
        (
            of("dan", ""),
            Named::Nobody("dna".parse().unwrap()),
            expect!["you are not among the approvers that the operator's rule names"],
        ),
        (ann(), known(of("bob", "finance")), expect!["that principal has authority over this already"]),
        (ann(), known(of("cid", "")), expect!["that principal has authority over this already"]),
        (
            ann(),
            known(principal("agent", &[Role::Approver])),
            expect!["you can delegate to others, but neither to the caller nor to yourself"],
        ),
        (ann(), known(ann()), expect!["you can delegate to others, but neither to the caller nor to yourself"]),
        (
            ann(),
            Named::Nobody(PrincipalId::system()),
            expect!["you can delegate to others, but neither to the caller nor to yourself"],
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
        // A principal who is asked for the same need later may be asked now.
        (ann(), known(principal("root", &[Role::Admin])), expect!["delegated"]),
        (
            ann(),
            known(of("fay", "board")),
            expect!["that principal will get its own authority by escalation, and could then not use yours"],
        ),
    ];
    for (by, to, expected) in rows {
        let mut world = asked("server!", needs());
        let may_delegate = world.turn.calls[0].suspensions[0].0.may_delegate(&by);
        assert_eq!(may_delegate, by.groups.len() == 1, "those with authority may delegate it");
        expected.assert_eq(&delegated(&mut world, by, to));
    }
}

#[test]
fn escalated_authority_gets_no_delegation() {
    let needs = [need(&["principal:ann"], 1, &["role:admin"])].into();
    let mut world = asked("server!", Asked { needs, ..Asked::default() });
    world.step("tick +10");
    let said = delegated(&mut world, of("ann", ""), Named::Somebody(principal("root", &[Role::Admin])));
    assert_eq!(said, "that principal has authority over this already");
    assert_eq!(delegated(&mut world, of("ann", ""), Named::Somebody(of("dan", ""))), "delegated");
}

#[test]
fn a_voter_counts_again_after_an_escalation() {
    let needs = [need(&["principal:ann"], 1, &[]), need(&["principal:cid"], 2, &["group:finance"])].into();
    let mut world = asked("server!", Asked { needs, ..Asked::default() });
    let suspension = |world: &RecordedTurn| world.turn.calls[0].suspensions[0].0.clone();
    let approve = |world: &mut RecordedTurn, by: Principal| {
        let answer = crate::turn::CheckedAnswer { by, ..world.answer(0, "approve") };
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
fn nothing_is_delegated_where_every_approver_may_answer() {
    let mut world = asked("server!", Asked::default());
    assert!(!world.turn.calls[0].suspensions[0].0.may_delegate(&of("ann", "")), "it is not offered");
    let said = delegated(&mut world, of("ann", ""), Named::Somebody(of("bob", "")));
    assert_eq!(said, "a delegation is not needed: every approver may answer this");
}

#[test]
fn only_one_deciding_person_gives_a_standing_approval() {
    let one = || [need(&["principal:ann"], 1, &[])].into();
    let rows: [(&str, Asked, Expect); 7] = [
        ("server!", Asked::default(), expect!["given"]),
        ("server!", Asked { needs: one(), ..Asked::default() }, expect!["given"]),
        ("server!:recovery=ask", Asked::default(), expect!["given"]),
        (
            "server!:recovery=ask",
            Asked { needs: one(), ..Asked::default() },
            expect![
                "a standing approval cannot cover this tool: an interrupted run needs a new approval, and a rule names the approvers"
            ],
        ),
        (
            "server!",
            Asked { needs: [need(&[], 2, &[])].into(), ..Asked::default() },
            expect!["several people must approve this call, so one of them cannot approve later calls"],
        ),
        (
            "server!",
            Asked { needs: [need(&[], 1, &[]), need(&["principal:ann"], 1, &[])].into(), ..Asked::default() },
            expect!["several people must approve this call, so one of them cannot approve later calls"],
        ),
        (
            "server!",
            Asked { policy_failed: true, ..Asked::default() },
            expect![
                "a policy could not be asked about this call, so its verdict on later calls is unknown: this approval \
                 covers this call only"
            ],
        ),
    ];
    for (words, with, expected) in rows {
        let mut world = asked(words, with);
        expected.assert_eq(&stood(&mut world, 0, 0));
    }
}

/// Gives a standing approval to a caller who has this many, and returns the answer.
fn stood(world: &mut RecordedTurn, count: u32, bytes: usize) -> String {
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
fn standing_approvals_of_a_caller_are_limited_in_number() {
    let mut world = asked("server!", Asked::default());
    world.settings.standing_active = 3;
    assert_eq!(
        stood(&mut world, 3, 0),
        "the caller has 3 active standing approvals, and may have 3 (approvals.standing_max_active): approve without one, \
         or revoke others"
    );
    assert_eq!(stood(&mut world, 2, 0), "given");
}

#[test]
fn unnamed_principals_cannot_answer() {
    for (words, decision) in [("server!", "approve"), ("server!", "deny"), ("client!", "deny"), ("human", "answer")] {
        let mut world = asked(words, Asked { needs: [need(&["principal:ann"], 1, &[])].into(), ..Asked::default() });
        let answer = |world: &RecordedTurn, name: &str| {
            let by = principal(name, &[Role::Approver]);
            Input::Resolve(Box::new(crate::turn::CheckedAnswer { by, ..world.answer(0, decision) }))
        };
        let others = Err(NotAllowed::OthersAnswer.into());
        assert_eq!(world.decide(answer(&world, "bob")), others, "{words} {decision}");
        assert_eq!(world.turn.pending().count(), 1);
        assert_eq!(world.decide(answer(&world, "ann")), Ok(()), "{words} {decision}");
    }
}

#[test]
fn an_answer_with_another_standing_approval_is_another_answer() {
    let mut world = asked("server!", Asked::default());
    let mut give = |uses: Option<u32>| {
        let standing = uses.map(|uses| StandingTerms { time: Span::from_secs(1), uses, pin: Pin::All });
        world.decide(Input::Resolve(Box::new(crate::turn::CheckedAnswer { standing, ..world.answer(0, "approve") })))
    };
    assert_eq!((give(Some(2)), give(Some(2))), (Ok(()), Err(Refusal::Replayed)));
    for other in [Some(3), None] {
        assert!(matches!(give(other), Err(Refusal::Stale { .. })), "{other:?}");
    }
}

#[test]
fn standing_approvals_of_a_caller_are_limited_in_bytes() {
    let mut world = asked("server!", Asked::default());
    world.settings.standing_bytes = 100;
    let own = world.turn.calls[0].arguments.size();
    assert_eq!(
        stood(&mut world, 2, 101 - own),
        "the arguments of the caller's active standing approvals would have 101 bytes, and may have 100 \
         (approvals.standing_max_bytes): approve without one, or revoke others"
    );
    assert!(stood(&mut world, 0, usize::MAX).contains("standing_max_bytes"), "the limit is zero");
    assert_eq!(stood(&mut world, 2, 100 - own), "given");
}

#[test]
fn a_call_that_the_policy_denies_by_now_can_only_be_denied() {
    for (decision, refused) in [("approve", true), ("deny", false)] {
        let mut world = asked("client!", Asked::default());
        let mut answer = world.answer(0, decision);
        answer.checked.rule = RuleEffect::Deny;
        assert_eq!(world.decide(Input::Resolve(Box::new(answer))).is_err(), refused, "{decision}");
    }
}

#[test]
fn a_call_in_doubt_gives_no_standing_approval() {
    let mut world = submit("server:recovery=ask", Rejection::default()).unwrap();
    assert_eq!(world.turn.calls[0].pinned.as_ref().unwrap().recovery, Recovery::Ask);
    world.owner = 2;
    let ended = EndedHosts { owners: vec![crate::OwnerId::from_bits(1)], ..EndedHosts::default() };
    world.decide(Input::HostsEnded(ended)).unwrap();
    assert_eq!(stood(&mut world, 0, 0), "an approval to repeat an interrupted run cannot also approve later calls");
}

#[test]
fn approvers_are_those_who_approved_the_same_arguments() {
    let needs = [need(&[], 3, &[])].into();
    let mut world = asked("server!:editable=all", Asked { needs, ..Asked::default() });
    let arguments = world.turn.calls[0].arguments.clone();
    let approve = |world: &mut RecordedTurn, name: &str, edited: bool| {
        let edit = edited.then(|| crate::Json::unchecked(format!(" {}", arguments.as_str())));
        let answer = crate::turn::CheckedAnswer { by: of(name, ""), arguments: edit, ..world.answer(0, "approve") };
        assert_eq!(world.decide(Input::Resolve(Box::new(answer))), Ok(()));
        world.turn.calls[0].approvers().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (name, edited) in [("ann", false), ("eve", true), ("bob", false)] {
        assert!(approve(&mut world, name, edited).is_empty(), "{name} is not the third");
    }
    assert_eq!(approve(&mut world, "cid", false), ["ann", "bob", "cid"]);
}

#[test]
fn question_after_a_kill_has_the_defaults_of_unedited_arguments() {
    for (edit, expected) in [(None, Some(r#"{"/b":2}"#)), (Some(r#"{"a":2}"#), None)] {
        let mut call = requested(0, "server!:recovery=ask,editable=all");
        call.asked.defaults = Some(Json::unchecked(r#"{"/b":2}"#));
        let mut world = RecordedTurn::submit(vec![call], Rejection::default()).unwrap();
        let mut answer = world.answer(0, "approve");
        answer.arguments = edit.map(Json::unchecked);
        world.decide(Input::Resolve(Box::new(answer))).unwrap();
        assert_eq!(world.step("restart"), "0 suspended approval in doubt #1\n");
        let (_, _, open) = world.turn.pending().next().unwrap();
        assert_eq!(open.asked().unwrap().defaults.as_ref().map(Json::as_str), expected);
    }
}

#[test]
fn question_after_a_kill_says_what_the_tool_declares() {
    let about = |call: &Call| {
        let defaults = Some(Json::unchecked(format!("{{\"/b\":{}}}", call.arguments)));
        let about = About { title: Some("Pay".into()), risk: Some(Risk::High), ..About::default() };
        Some(Asked { defaults, ..about.into() })
    };
    for (words, rule, risk) in [
        ("server:recovery=ask", None, Risk::High),
        ("server!:recovery=ask,editable=all", Some(Risk::Critical), Risk::Critical),
    ] {
        let mut call = requested(0, words);
        call.asked.about.risk = rule;
        let mut world = RecordedTurn::submit(vec![call], Rejection::default()).unwrap();
        world.about = about;
        if rule.is_some() {
            let mut answer = world.answer(0, "approve");
            answer.arguments = Some(Json::unchecked(r#"{"a":2}"#));
            world.decide(Input::Resolve(Box::new(answer))).unwrap();
        }
        world.step("restart");
        let (_, call, open) = world.turn.pending().next().unwrap();
        let asked = open.asked().unwrap();
        let defaults = format!("{{\"/b\":{}}}", call.arguments);
        assert_eq!((asked.about.title.as_deref(), asked.about.risk), (Some("Pay"), Some(risk)));
        assert_eq!(
            asked.defaults.as_ref().map(Json::as_str),
            Some(defaults.as_str()),
            "of the arguments that would run"
        );
    }
}
