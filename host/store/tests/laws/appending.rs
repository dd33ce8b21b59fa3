//! Laws of the logs: the effects of a commit, and of a refused one.

use dispatch::ports::{AppendError, Feed, Filter, Loaded, RowChange};

use crate::given::{self, Subject, call, call_of, commit, conversation, due, fact, owner, principal, turn, with};

pub(crate) async fn a_log_is_what_was_appended_to_it(store: Subject) {
    assert_eq!(store.load(turn(1)).await.unwrap(), Loaded::Absent);
    store.append(&given::events(1, 0, vec![fact(1), fact(2)])).await.unwrap();
    store.append(&commit(2, 0, 9)).await.unwrap();
    for number in 1..300 {
        store.append(&commit(1, number, u64::from(number) + 2)).await.unwrap();
        let loaded = store.load(turn(1)).await.unwrap().found().unwrap();
        assert_eq!(loaded.version, number + 1, "an append that returned is read");
    }
    let loaded = store.load(turn(1)).await.unwrap().found().unwrap();
    assert_eq!(loaded.events.iter().map(given::number).collect::<Vec<_>>(), (1..=301).collect::<Vec<_>>());
}

pub(crate) async fn a_log_can_be_read_as_it_was(store: Subject) {
    assert_eq!(store.load_until(turn(1), 1).await.unwrap(), Loaded::Absent);
    for number in 0..5 {
        store.append(&commit(1, number, number.into())).await.unwrap();
    }
    for commits in [1, 3, 5, 9, u32::MAX] {
        let loaded = store.load_until(turn(1), commits).await.unwrap().found().unwrap();
        let there = commits.min(5);
        assert_eq!(loaded.version, there);
        assert_eq!(
            loaded.events.iter().map(given::number).collect::<Vec<_>>(),
            (0..u64::from(there)).collect::<Vec<_>>()
        );
    }
    assert_eq!(store.load_until(turn(1), 0).await.unwrap(), Loaded::Absent);
}

pub(crate) async fn only_the_expected_length_is_appended_to(store: Subject) {
    let conflicts = async |expected| matches!(store.append(&commit(1, expected, 0)).await, Err(AppendError::Conflict));
    assert!(conflicts(1).await, "a log that does not exist has no commits");
    store.append(&commit(1, 0, 1)).await.unwrap();
    assert!(conflicts(0).await);
    assert!(conflicts(2).await, "a log has no holes");
    store.append(&commit(1, 1, 2)).await.unwrap();
    for expected in [0, 1, 3, u32::MAX] {
        assert!(conflicts(expected).await, "{expected}");
    }
    assert_eq!(store.load(turn(1)).await.unwrap().found().unwrap().version, 2);
}

pub(crate) async fn a_refused_commit_changes_nothing(store: Subject) {
    let mine = [owner("ann"), call_of(1, "a")];
    let first = store.append(&with(commit(1, 0, 1), mine)).await.unwrap();
    let everything = |expected, claim: RowChange| {
        let index = [
            call_of(2, "new"),
            given::due_of(2, None, Some(due(1, true))),
            RowChange::Suspension(given::row(1, given::OPEN)),
            claim,
        ];
        with(commit(2, expected, 2), index)
    };
    let refused = store.append(&everything(0, owner("bob"))).await;
    assert!(matches!(refused, Err(AppendError::NotOwner)));
    let refused = store.append(&everything(0, call_of(2, "a"))).await;
    assert!(matches!(refused, Err(AppendError::CallExists(of)) if of == turn(1)));
    let refused = store.append(&everything(5, call_of(2, "b"))).await;
    assert!(matches!(refused, Err(AppendError::Conflict)));

    let c = conversation("c");
    assert_eq!(store.load(turn(2)).await.unwrap(), Loaded::Absent);
    assert_eq!(store.find_call(&c, &call("new")).await.unwrap(), None);
    assert_eq!(store.due(None, given::time(9), 9).await.unwrap(), []);
    assert_eq!(store.unfinished(None, 9).await.unwrap(), []);
    assert_eq!(store.suspension(given::suspension(1)).await.unwrap(), None);
    assert_eq!(store.suspensions(&Filter::default(), None, 9).await.unwrap().rows, []);
    assert_eq!(store.audit(first, 9).await.unwrap(), []);
    assert_eq!(store.head().await.unwrap().position, first);
    assert_eq!(store.follow(&Feed::Conversation(c.clone()), first, 9, usize::MAX).await.unwrap(), []);
    assert_eq!(store.owner(&c).await.unwrap(), Some(principal("ann")));
}

pub(crate) async fn exactly_one_of_conflicting_commits_wins(store: Subject) {
    for round in 0..20 {
        let tasks: Vec<_> = (0..32)
            .map(|number| {
                let store = store.clone();
                tokio::spawn(async move { store.append(&commit(1, round, number)).await })
            })
            .collect();
        let mut wins = 0;
        for task in tasks {
            match task.await.unwrap() {
                Ok(_) => wins += 1,
                Err(AppendError::Conflict) => {}
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(wins, 1, "round {round}");
    }
    assert_eq!(store.load(turn(1)).await.unwrap().found().unwrap().version, 20);
}

pub(crate) async fn a_claim_fails_alone(store: Subject) {
    store.append(&with(commit(1, 0, 1), [call_of(1, "a")])).await.unwrap();
    // Submitted at once, so that a store that writes several commits together has them in one batch.
    let tasks: Vec<_> = (2..66)
        .map(|number| {
            let store = store.clone();
            let id = if number % 2 == 0 { "a".to_owned() } else { format!("b{number}") };
            let claims = [owner("ann"), call_of(number, &id)];
            tokio::spawn(async move { (number, store.append(&with(commit(number, 0, 1), claims)).await) })
        })
        .collect();
    for task in tasks {
        let (number, answer) = task.await.unwrap();
        match answer {
            Err(AppendError::CallExists(of)) => assert_eq!((number % 2, of), (0, turn(1))),
            other => assert!(number % 2 == 1 && other.is_ok(), "{number}: {other:?}"),
        }
        assert_eq!(store.load(turn(number)).await.unwrap().found().is_some(), number % 2 == 1);
    }
}

pub(crate) async fn a_claim_that_already_holds_is_no_conflict(store: Subject) {
    let claims = || [owner("ann"), call_of(1, "a")];
    store.append(&with(commit(1, 0, 1), claims())).await.unwrap();
    store.append(&with(commit(1, 1, 2), claims())).await.unwrap();
    assert_eq!(store.find_call(&conversation("c"), &call("a")).await.unwrap(), Some(turn(1)));
    let d = || conversation("d");
    let elsewhere = [
        RowChange::Owner { conversation: d(), owner: principal("bob") },
        RowChange::Call { conversation: d(), id: call("a"), turn: turn(2) },
    ];
    store.append(&with(given::within("d", commit(2, 0, 3)), elsewhere)).await.unwrap();
    assert_eq!(store.find_call(&conversation("d"), &call("a")).await.unwrap(), Some(turn(2)));
    assert_eq!(store.owner(&conversation("e")).await.unwrap(), None);
}

pub(crate) async fn the_length_of_another_log_can_be_expected(store: Subject) {
    store.append(&commit(1, 0, 1)).await.unwrap();
    let expects = |commits| RowChange::Length { turn: turn(1), commits };
    for other in [0, 2] {
        let refused = store.append(&with(commit(2, 0, 2), [call_of(2, "a"), expects(other)])).await;
        assert!(matches!(refused, Err(AppendError::Conflict)), "{other}");
    }
    assert_eq!(store.load(turn(2)).await.unwrap(), Loaded::Absent);
    store.append(&with(commit(2, 0, 2), [call_of(2, "a"), expects(1)])).await.unwrap();
    let never_begun = RowChange::Length { turn: turn(3), commits: 0 };
    store.append(&with(commit(2, 1, 3), [never_begun])).await.unwrap();
}
