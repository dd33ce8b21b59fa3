//! Links: made and used while their suspension is open, each used once, and recorded with the answer.

use expect_test::expect;

use super::{RecordedTurn, principal, submit, trace};
use crate::turn::Input;
use crate::{
    LinkId, PrincipalId, Refusal, SuspensionId, Timestamp,
    event::Rejection,
    link::{LinkRecord, MAX_LINKS},
    principal::Role,
    refusal::NotAllowed,
    suspension::{Decision, SuspensionEnd},
};

fn link(id: u128, to: &str, expires: u64) -> LinkRecord {
    let name = |text: &str| PrincipalId::new(text).unwrap();
    let expires_at = Timestamp::from_millis(expires);
    LinkRecord { id: LinkId::from_bits(id), to: name(to), by: name("root"), webhook: None, expires_at }
}

impl RecordedTurn {
    fn suspension(&self) -> SuspensionId {
        self.turn.calls[0].suspensions[0].0.id
    }

    fn make(&mut self, link: LinkRecord) -> Result<(), Refusal> {
        let suspension = self.suspension();
        self.decide(Input::MakeLink { suspension, link: Box::new(link) })
    }

    fn use_link(&mut self, id: u128, by: &str) -> Result<(), Refusal> {
        let (suspension, by) = (self.suspension(), PrincipalId::new(by).unwrap());
        self.decide(Input::UseLink { suspension, link: LinkId::from_bits(id), by })
    }
}

fn unknown() -> Result<(), Refusal> {
    Err(Refusal::Unknown)
}

#[test]
fn a_link_is_used_once_and_only_by_its_principal() {
    let mut world = submit("server!", Rejection::default()).unwrap();
    world.make(link(1, "ann", 1_000)).unwrap();
    for (id, by) in [(2, "ann"), (1, "eve"), (1, "root")] {
        assert_eq!(world.use_link(id, by), unknown(), "{id} {by}");
    }
    world.use_link(1, "ann").unwrap();
    assert_eq!(world.use_link(1, "ann"), Err(Refusal::LinkUsed));
    assert_eq!(world.make(link(1, "ann", 9_000)), Err(Refusal::LinkUsed), "no time brings it back");
    world.make(link(3, "ann", 1_000)).unwrap();
    world.now = 1_000;
    assert_eq!(world.use_link(3, "ann"), unknown(), "its time is over");
    expect![[r#"
        0 suspended approval
        0 link to ann
        0 link of ann used
        0 link to ann
    "#]]
    .assert_eq(&trace(&world.facts));
}

#[test]
fn a_link_made_again_keeps_its_expiry_for_half_of_its_time() {
    let mut world = submit("server!", Rejection::default()).unwrap();
    for (now, wanted, until) in [(0, 1_000, 1_000), (400, 1_400, 1_000), (500, 1_500, 1_000), (501, 1_501, 1_501)] {
        world.now = now;
        world.make(link(1, "ann", wanted)).unwrap();
        let [made] = &world.turn.calls[0].links[..] else { panic!("one link") };
        assert_eq!(made.link.expires_at.millis(), until, "at {now}");
    }
}

#[test]
fn a_closed_suspension_has_no_new_links_and_no_uses() {
    let mut world = submit("server!", Rejection::default()).unwrap();
    world.make(link(1, "ann", 1_000)).unwrap();
    world.decide(Input::Resolve(Box::new(world.answer(0, "approve")))).unwrap();
    for refused in [world.use_link(1, "ann"), world.make(link(1, "ann", 2_000)), world.make(link(2, "ann", 2_000))] {
        assert!(matches!(refused, Err(Refusal::Stale { ended: SuspensionEnd::Decided(Decision::Approve), .. })));
    }
    let mut world = submit("server!", Rejection::default()).unwrap();
    world.make(link(1, "ann", 1_000_000)).unwrap();
    world.now = 100_000;
    // The expiry is not recorded yet.
    assert!(matches!(world.use_link(1, "ann"), Err(Refusal::Stale { ended: SuspensionEnd::Expired, .. })));
}

#[test]
fn links_to_one_suspension_are_limited() {
    let mut world = submit("server!", Rejection::default()).unwrap();
    for id in 0..MAX_LINKS as u128 {
        world.make(link(id, "ann", 1_000)).unwrap();
    }
    assert!(matches!(world.make(link(1_000, "ann", 1_000)), Err(Refusal::NotAllowed(NotAllowed::TooManyLinks))));
    world.make(link(0, "ann", 9_000)).unwrap();
    world.use_link(0, "ann").unwrap();
}

#[test]
fn an_answer_by_link_records_the_link() {
    let mut world = submit("server!", Rejection::default()).unwrap();
    world.make(link(1, "ann", 1_000)).unwrap();
    world.use_link(1, "ann").unwrap();
    let mut answer = world.answer(0, "deny");
    let by = principal("ann", &[Role::Approver]);
    answer.by = crate::Principal { link: Some(LinkId::from_bits(1)), ..by };
    world.decide(Input::Resolve(Box::new(answer))).unwrap();
    let (_, closed) = &world.turn.calls[0].suspensions[0];
    let resolution = closed.as_ref().and_then(crate::suspension::Closed::resolution).unwrap();
    assert_eq!(resolution.link, Some(LinkId::from_bits(1)));
}

#[test]
fn answer_with_a_link_uses_it_exactly_if_it_is_accepted() {
    let mut world = submit("server:durable=yes", Rejection::default()).unwrap();
    world.step("await 0");
    world.make(link(1, "agent", 1_000)).unwrap();
    world.make(link(2, "agent", 1_000)).unwrap();
    world.use_link(2, "agent").unwrap();
    let answer = |world: &RecordedTurn, by: &str, id: u128| {
        let link = LinkId::from_bits(id);
        let mut answer = world.answer(0, "result");
        answer.by = crate::Principal { link: Some(link), ..principal(by, &[Role::Approver]) };
        (answer, link)
    };
    let resolve = |world: &mut RecordedTurn, by: &str, id: u128, is_valid: bool| {
        let (mut answer, link) = answer(world, by, id);
        if !is_valid {
            let (pointer, message) = (String::new(), "a string is expected".to_owned());
            answer.checked.data.push(crate::Violation { pointer, message });
        }
        world.decide(Input::ResolveByLink { answer: Box::new(answer), link })
    };
    assert_eq!(resolve(&mut world, "eve", 1, true), unknown());
    assert_eq!(resolve(&mut world, "agent", 3, true), unknown());
    assert_eq!(resolve(&mut world, "agent", 2, true), Err(Refusal::LinkUsed));
    assert!(matches!(resolve(&mut world, "agent", 1, false), Err(Refusal::Invalid(_))));
    assert_eq!(world.turn.calls[0].links[0].used_at, None);
    resolve(&mut world, "agent", 1, true).unwrap();
    assert!(world.turn.calls[0].links[0].used_at.is_some());
    assert_eq!(resolve(&mut world, "agent", 1, true), Err(Refusal::Replayed), "the same answer again");
    world.step("finish 0");
    let (plain, _) = answer(&world, "agent", 1);
    assert_eq!(world.decide(Input::Resolve(Box::new(plain))), Err(Refusal::Replayed));
}

#[test]
fn link_without_a_session_answers_only_an_external_wait() {
    for (words, role) in [("human:responses=result", Role::Approver), ("client", Role::Admin)] {
        let mut world = submit(words, Rejection::default()).unwrap();
        world.make(link(1, "ann", 1_000)).unwrap();
        let mut answer = world.answer(0, "result");
        let link = LinkId::from_bits(1);
        answer.by = crate::Principal { link: Some(link), ..principal("ann", &[role]) };
        let refused = world.decide(Input::ResolveByLink { answer: Box::new(answer.clone()), link });
        let Err(Refusal::Invalid(violations)) = refused else { panic!("{words}") };
        assert_eq!(violations[0].pointer, "/decision", "{words}");
        assert_eq!(world.turn.calls[0].links[0].used_at, None, "{words}");
        // The session of its page may answer.
        world.use_link(1, "ann").unwrap();
        world.decide(Input::Resolve(Box::new(answer))).unwrap();
    }
}
