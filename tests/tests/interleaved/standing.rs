//! Standing approvals: given concurrently, limited and listed by their stored bytes.

use dispatch::ports::StandingApprovals as _;

use super::*;

#[tokio::test]
async fn oldest_denials_are_forgotten_beyond_their_bytes() {
    // Room for one: each counts as `talk` and 64 bytes.
    let (denied_again, denied_bytes) = (Span::from_secs(24 * 3600), 68);
    let settings = TurnSettings { denied_again, denied_bytes, ..TurnSettings::default() };
    let world = BlockableHost::new(&["server!"], settings, |_| needs(&["ann"], 1));
    settle().await;
    let [first, second] = [r#"{"v":0}"#, r#"{"v":1}"#];
    for (call, arguments) in [("a", first), ("b", second)] {
        let (_, suspension) = world.asks_with(call, "tool_0", arguments).await;
        world.handle.resolve(&approver("ann"), answer(suspension, "deny")).await.unwrap();
        world.clock.advance(Span::from_secs(1));
    }
    assert_eq!(world.store.denials(None, 9).await.unwrap().len(), 2);
    world.clock.advance(Span::from_secs(3600));
    settle().await;
    assert_eq!(world.store.denials(None, 9).await.unwrap().len(), 1);
    assert!(world.submit(&[("c", "tool_0")], second).await.is_ended(), "it was just denied");
    assert!(!world.submit(&[("d", "tool_0")], first).await.is_ended(), "it is asked about again");
}

#[tokio::test]
async fn standing_approvals_are_listed_in_pages_of_limited_size() {
    let settings = TurnSettings { standing_active: 1_000, standing_bytes: 64 << 20, ..TurnSettings::default() };
    let world = BlockableHost::new(&["server!"], settings, |_| needs(&["ann"], 1));
    let padding = "x".repeat(100_000);
    let given = 130;
    for n in 0..given {
        let arguments = format!(r#"{{"v":{n},"w":"{padding}"}}"#);
        let (_, suspension) = world.asks_with(&format!("c{n}"), "tool_0", &arguments).await;
        world.handle.resolve(&approver("ann"), standing(suspension)).await.unwrap();
    }
    let (mut after, mut found, mut pages) = (None, Vec::new(), 0);
    loop {
        let (rows, next) = world.handle.standing_approvals(&approver("ann"), after).await.unwrap();
        // A page may exceed its limit by one read.
        assert!(rows.len() < given, "not all at once");
        found.extend(rows.iter().map(|row| row.standing.id));
        pages += 1;
        let Some(next) = next else { break };
        after = Some(next);
    }
    found.dedup();
    assert_eq!((found.len(), pages), (given, 3));
}

#[tokio::test]
async fn concurrent_standing_approvals_stay_within_the_byte_limit() {
    let given = r#"{"v":0}"#.len();
    for (standing_active, standing_bytes, most) in [(100, 2 * given, 2), (100, 2 * given - 1, 1), (3, 1 << 20, 3)] {
        let settings = TurnSettings { standing_active, standing_bytes, ..TurnSettings::default() };
        let world = BlockableHost::new(&["server!"], settings, |_| needs(&["ann"], 1));
        let mut asked = Vec::new();
        for n in 0..6 {
            asked.push(world.asks(&format!("c{n}"), "tool_0").await.1);
        }
        // All of them were checked before the first commit.
        let gates: Vec<_> = asked.iter().map(|_| world.store.hold()).collect();
        let mut answers = Vec::new();
        for suspension in asked {
            answers.push(world.begin("ann", standing(suspension)).await);
        }
        gates.iter().for_each(|gate| gate.add_permits(1));
        let mut stood = 0;
        for answer in answers {
            match answer.await.unwrap() {
                Ok(_) => stood += 1,
                Err(refused) => assert!(refused.to_string().contains("approve without one"), "{refused}"),
            }
        }
        assert_eq!(stood, most, "{standing_active} {standing_bytes}");
    }
}

#[tokio::test]
async fn reformatting_edit_keeps_the_standing_approval_valid() {
    let padded = format!(r#"{{"v":0{}}}"#, " ".repeat(500));
    let settings = TurnSettings { standing_bytes: 600, ..TurnSettings::default() };
    let world = BlockableHost::new(&["server!"], settings, |_| needs(&["ann"], 1));
    let (_, first) = world.asks_with("a", "tool_0", &padded).await;
    let (_, second) = world.asks_with("b", "tool_0", &padded).await;
    // Both were checked before the first commit.
    let gates = [world.store.hold(), world.store.hold()];
    let mut answers = Vec::new();
    for suspension in [first, second] {
        let short = Answer { arguments: Some(Json::unchecked(r#"{"v":0}"#)), ..standing(suspension) };
        answers.push(world.begin("ann", short).await);
    }
    gates.iter().for_each(|gate| gate.add_permits(1));
    let mut stood = 0;
    for answer in answers {
        stood += usize::from(answer.await.unwrap().is_ok());
    }
    assert_eq!(stood, 1);
}
