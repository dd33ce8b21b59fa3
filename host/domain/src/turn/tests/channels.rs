//! The channels of answers: what is recorded, and which answers are the same.

use super::{RecordedTurn, principal, requested};
use crate::turn::{CheckedAnswer, Input};
use crate::{
    LinkId, Outcome, Principal, Refusal,
    approvers::Need,
    event::Rejection,
    principal::{Channel, Named, Role},
    refusal::NotAllowed,
    suspension::{Asked, Closed, Decision, Resolution},
};

fn by(name: &str, channel: Channel) -> Principal {
    Principal { channel, ..principal(name, &[Role::Approver]) }
}

/// A call that two people must approve through these channels.
fn two(via: &[Channel]) -> RecordedTurn {
    let who = ["principal:ann", "principal:ben"].map(|who| who.parse().unwrap()).into();
    let needs = [Need { who, quorum: 2, escalate: None, via: via.iter().copied().collect() }].into();
    let mut requested = requested(0, "server!");
    requested.asked = Asked { needs, ..Asked::default() };
    RecordedTurn::submit(vec![requested], Rejection::default()).unwrap()
}

fn approve(world: &mut RecordedTurn, by: Principal) -> Result<(), Refusal> {
    let answer = CheckedAnswer { by, ..world.answer(0, "approve") };
    world.decide(Input::Resolve(Box::new(answer)))
}

#[test]
fn votes_and_answers_record_their_channels() {
    let mut world = two(&[]);
    approve(&mut world, by("ann", Channel::Api)).unwrap();
    let (suspension, _) = &world.turn.calls[0].suspensions[0];
    assert_eq!(suspension.votes()[0].via(), Some(Channel::Api));
    approve(&mut world, by("ben", Channel::Console)).unwrap();
    let (_, closed) = &world.turn.calls[0].suspensions[0];
    let resolution = closed.as_ref().and_then(Closed::resolution).unwrap();
    assert_eq!(resolution.via(), Some(Channel::Console));
}

#[test]
fn a_delegation_records_its_channel() {
    let mut world = two(&[Channel::Console]);
    let suspension = world.turn.calls[0].suspensions[0].0.id;
    let delegate = |channel| Input::Delegate {
        suspension,
        by: by("ann", channel),
        to: Named::Somebody(by("cid", Channel::Api)),
        comment: None,
    };
    let counts = [Channel::Console].into_iter().collect();
    let refused = NotAllowed::OtherChannel { used: Channel::Api, counts };
    assert_eq!(world.decide(delegate(Channel::Api)), Err(refused.clone().into()));
    world.decide(delegate(Channel::Console)).unwrap();
    assert_eq!(world.turn.calls[0].suspensions[0].0.delegations()[0].via(), Some(Channel::Console));
    assert_eq!(approve(&mut world, by("cid", Channel::Api)), Err(refused.into()));
    approve(&mut world, by("cid", Channel::Console)).unwrap();
}

#[test]
fn the_same_answer_through_another_channel_is_replayed() {
    let mut world = two(&[]);
    approve(&mut world, by("ann", Channel::Api)).unwrap();
    assert_eq!(approve(&mut world, by("ann", Channel::Console)), Err(Refusal::Replayed), "a vote");
    approve(&mut world, by("ben", Channel::Link)).unwrap();
    assert_eq!(approve(&mut world, by("ben", Channel::Console)), Err(Refusal::Replayed), "an answer");
    let (suspension, closed) = &world.turn.calls[0].suspensions[0];
    assert_eq!(suspension.votes()[0].via(), Some(Channel::Api));
    assert_eq!(closed.as_ref().and_then(Closed::resolution).unwrap().via(), Some(Channel::Link));
}

#[test]
fn a_denial_through_another_channel_is_refused() {
    let mut world = two(&[Channel::Console]);
    let answer = CheckedAnswer { by: by("ann", Channel::Api), ..world.answer(0, "deny") };
    let counts = [Channel::Console].into_iter().collect();
    let refused = NotAllowed::OtherChannel { used: Channel::Api, counts };
    assert_eq!(world.decide(Input::Resolve(Box::new(answer))), Err(refused.into()));
}

/// A call of this tool that asks, and goes on to its end after an answer through this channel.
fn answered(spec: &str, channel: Channel) -> RecordedTurn {
    let mut world = RecordedTurn::submit(vec![requested(0, spec)], Rejection::default()).unwrap();
    if spec.starts_with("server") {
        world.step("ask 0");
    }
    let answer = CheckedAnswer { by: by("ann", channel), ..world.answer(0, "answer") };
    world.decide(Input::Resolve(Box::new(answer))).unwrap();
    if spec.starts_with("server") {
        world.step("finish 0");
    }
    world
}

#[test]
fn answer_in_a_form_of_a_client_makes_a_result_untrusted() {
    for spec in ["human", "server:durable=yes"] {
        for (channel, is_trusted) in [(Channel::Console, true), (Channel::Api, true), (Channel::McpForm, false)] {
            let world = answered(spec, channel);
            let outcome = world.turn.calls[0].outcome().unwrap();
            assert!(matches!(outcome, Outcome::Ok { trusted, .. } if *trusted == is_trusted), "{spec}: {outcome:?}");
        }
    }
}

#[test]
fn a_link_of_an_older_record_is_its_channel() {
    let of = |link, channel| Resolution { link, channel, ..Resolution::of(Decision::Deny) }.via();
    let link = Some(LinkId::from_bits(1));
    assert_eq!(of(None, None), None);
    assert_eq!(of(link, None), Some(Channel::Link));
    assert_eq!(of(None, Some(Channel::Console)), Some(Channel::Console));
}
