//! Principals that are revoked while an answer or a submission is checked.

use std::collections::HashMap;

use dispatch::ports::Principals;

use super::*;

/// The revoked principals.
#[derive(Default)]
pub(super) struct Revoked(Mutex<HashMap<PrincipalId, u32>>);

impl Revoked {
    pub(super) fn now(&self, name: &str) {
        self.after(name, 0);
    }

    /// Revokes a principal once it was looked up so often.
    fn after(&self, name: &str, looks: u32) {
        self.0.lock().unwrap().insert(approver(name).id, looks);
    }
}

impl Principals for Revoked {
    fn is_current(&self, id: &PrincipalId, _: Timestamp) -> bool {
        match self.0.lock().unwrap().get_mut(id) {
            None => true,
            Some(0) => false,
            Some(looks) => {
                *looks -= 1;
                true
            }
        }
    }
}

#[tokio::test]
async fn vote_revoked_during_a_policy_check_does_not_count() {
    let world = BlockableHost::new(&["client!"], TurnSettings::default(), |_| needs(&["ann", "bob"], 2));
    let (_, suspension) = world.asks("a", "tool_0").await;
    world.begin("ann", approve(suspension)).await.await.unwrap().unwrap();
    let gate = world.policy.hold();
    let answering = world.begin("bob", approve(suspension)).await;
    world.revoked.now("ann");
    gate.add_permits(1);
    let answered = answering.await.unwrap().unwrap();
    assert_eq!((answered.state, answered.votes_missing), (SuspensionState::Open, 1));
}

#[tokio::test]
async fn approver_revoked_during_a_policy_check_decides_nothing() {
    let world = BlockableHost::new(&["client!"], TurnSettings::default(), |_| needs(&["ann"], 1));
    let (turn, suspension) = world.asks("a", "tool_0").await;
    let gate = world.policy.hold();
    let answering = world.begin("ann", approve(suspension)).await;
    world.revoked.now("ann");
    gate.add_permits(1);
    assert_eq!(
        answering.await.unwrap().unwrap_err().to_string(),
        "your token was revoked while the host processed this request"
    );
    let turn = world.turn(turn).await;
    assert_eq!(turn.pending().next().map(|(.., open)| open.kind()), Some(SuspensionKind::Approval));
}

#[tokio::test]
async fn authority_of_revoked_principals_is_not_shown() {
    let world = BlockableHost::new(&["server!"], TurnSettings::default(), |_| needs(&["ann", "bob"], 2));
    let (_, suspension) = world.asks("a", "tool_0").await;
    world.hand(suspension, "ann", "dan").await.unwrap();
    world.begin("bob", approve(suspension)).await.await.unwrap().unwrap();
    let (ann, dan) = (approver("ann"), approver("dan"));
    let shown = async || world.handle.suspension(&ann, suspension).await.unwrap();
    let before = shown().await;
    assert_eq!((before.suspension.delegations().len(), before.suspension.votes().len()), (1, 1));
    assert!(world.handle.may_answer(&dan, &before) && !world.handle.may_answer(&ann, &before));

    world.revoked.now("bob");
    world.revoked.now("dan");
    let after = shown().await;
    assert_eq!((after.suspension.delegations().len(), after.suspension.votes().len()), (0, 0));
    assert!(world.handle.may_answer(&ann, &after), "her authority is hers again");
    assert_eq!(world.begin("ann", approve(suspension)).await.await.unwrap().unwrap().votes_missing, 1);
}

#[tokio::test]
async fn delegation_to_a_principal_revoked_meanwhile_is_refused() {
    let world = BlockableHost::new(&["server!"], TurnSettings::default(), |_| needs(&["ann"], 1));
    let (_, suspension) = world.asks("a", "tool_0").await;
    world.revoked.now("dan");
    let refused = format!("{:?}", world.hand(suspension, "ann", "dan").await.unwrap_err());
    assert!(refused.contains("nobody here is called dan"), "{refused}");
}

#[tokio::test]
async fn standing_approval_revoked_during_a_submission_is_unused() {
    let world = BlockableHost::new(&["server!"], TurnSettings::default(), |_| needs(&["ann"], 1));
    let (_, suspension) = world.asks("a", "tool_0").await;
    let twice = StandingTerms { time: Span::from_secs(60), uses: 2, pin: Pin::All };
    let answer = Answer { standing: Some(twice), ..approve(suspension) };
    world.handle.resolve(&approver("ann"), answer).await.unwrap();
    assert!(world.submit(&[("b", "tool_0")], r#"{"v":0}"#).await.pending().next().is_none(), "it is covered");
    // It is looked up when the calls are planned, and when the turn begins.
    world.revoked.after("ann", 1);
    assert!(world.submit(&[("c", "tool_0")], r#"{"v":0}"#).await.pending().next().is_some(), "it asks again");
}
