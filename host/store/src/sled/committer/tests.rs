//! The order of the steps to the disk, and the errors that callers get when one of them fails. The steps are watched at
//! the trait that the committing thread uses; `tests/laws/system_calls.rs` watches what the kernel is asked for.

use std::sync::{Arc, Mutex};

use dispatch::ports::{Commit, Denial, EndedTurn, JournalRow, RowChange};
use domain::journal::{Entry, Record};
use domain::{CallIndex, ConversationId, Digest, Event, PrincipalId, Timestamp, event::TurnEnd};

use super::super::journals;
use super::super::keys::{read_count, stamped};
use super::super::plan::Earlier;
use super::super::tree::Tree;
use super::*;
use crate::fault::fault;

/// The steps, in order.
type Steps = Arc<Mutex<Vec<&'static str>>>;

struct Watched {
    tree: Tree,
    steps: Steps,
    /// The step that fails.
    fails: Option<&'static str>,
    /// The reason is that the disk is full.
    is_full: bool,
    /// The head after the disk was full, if it is not the last durable one.
    survived: Option<Head>,
}

impl Watched {
    fn step(&self, name: &'static str) -> Result<(), StoreFault> {
        self.steps.lock().unwrap().push(name);
        match self.fails {
            Some(failing) if failing == name && self.is_full => {
                Err(fault(name)(std::io::Error::from(std::io::ErrorKind::StorageFull)))
            }
            Some(failing) if failing == name => Err(fault(name)("the disk is on fire")),
            _ => Ok(()),
        }
    }
}

impl Disk for Watched {
    fn get(&self, key: &[u8]) -> Result<Option<sled::IVec>, StoreFault> {
        self.tree.get(key).map_err(fault("read"))
    }

    fn keys(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>, StoreFault> {
        let keys = self.tree.scan_prefix(prefix).keys();
        keys.map(|key| Ok(key.map_err(fault("read"))?.to_vec())).collect()
    }

    fn write(&mut self, batch: Batch, _bytes: usize) -> Result<(), StoreFault> {
        self.step("write")?;
        assert!(batch.values.is_empty(), "no test here writes values");
        self.tree.apply_batch(batch.commits).map_err(fault("write"))
    }

    fn flush(&mut self) -> Result<(), StoreFault> {
        self.step("flush")
    }

    fn sync(&mut self) -> Result<(), StoreFault> {
        self.step("sync")
    }

    fn clean(&mut self, _written: usize) -> Result<Option<bool>, StoreFault> {
        self.step("clean").map(|()| Some(true))
    }

    fn reopen(&mut self, durable: Head) -> Result<Option<Head>, StoreFault> {
        self.steps.lock().unwrap().push("reopen");
        self.fails = None;
        Ok(Some(self.survived.unwrap_or(durable)))
    }
}

struct Rig {
    committer: Committer<Watched>,
    durable: watch::Receiver<Durable>,
    tree: Tree,
    steps: Steps,
}

fn rig(fails: Option<&'static str>) -> Rig {
    let db = sled::Config::new().temporary(true).flush_every_ms(None).open().unwrap();
    let (tree, steps) = (Tree::new((*db).clone()), Steps::default());
    let disk = Watched { tree: tree.clone(), steps: steps.clone(), fails, is_full: false, survived: None };
    let (sender, durable) = watch::channel(Durable::Until(Position::default()));
    let committer = Committer::new(disk, Head::START, sender);
    Rig { committer, durable, tree, steps }
}

type Answer = oneshot::Receiver<Result<Position, AppendError>>;

fn work(commit: &Commit) -> (Work, Answer) {
    work_after(commit, Earlier::default())
}

fn work_after(commit: &Commit, earlier: Earlier) -> (Work, Answer) {
    let (reply, answer) = oneshot::channel();
    (Work::Commit(Box::new(Plan::of(commit, earlier).unwrap()), reply), answer)
}

fn conversation() -> ConversationId {
    ConversationId::new("c").unwrap()
}

fn fact(turn: u128, expected: u32) -> Commit {
    let by = PrincipalId::new("ann").unwrap();
    let events = vec![Event::TurnCancelled { by, at: Timestamp::from_millis(1) }];
    Commit::turn(TurnId::from_bits(turn), conversation(), expected, events)
}

fn commit(turn: u128, expected: u32, owner: &str) -> (Work, Answer) {
    let owner = RowChange::Owner { conversation: conversation(), owner: PrincipalId::new(owner).unwrap() };
    work(&fact(turn, expected).with([owner]))
}

#[test]
fn a_failed_cleaning_fails_only_later_commits() {
    let Rig { mut committer, .. } = rig(Some("clean"));
    let (first, answer) = commit(1, 0, "ann");
    committer.work([first].into_iter());
    committer.clean();
    assert_eq!(answer.blocking_recv().unwrap().unwrap(), Position(1));
    let (second, answer) = commit(2, 0, "ann");
    committer.work([second].into_iter());
    let refused = answer.blocking_recv().unwrap();
    assert!(matches!(&refused, Err(AppendError::Fault(fault)) if fault.reason.contains("on fire")), "{refused:?}");
}

#[test]
fn a_batch_is_on_disk_before_anybody_gets_a_reply() {
    let Rig { mut committer, durable, steps, .. } = rig(None);
    let (work, answers): (Vec<_>, Vec<_>) = (1..=100).map(|turn| commit(turn, 0, "ann")).unzip();
    committer.work(work.into_iter());
    assert_eq!(*steps.lock().unwrap(), ["write", "flush", "sync"], "a hundred commits share one of each");
    for (answer, expected) in answers.into_iter().zip(1..) {
        assert_eq!(answer.blocking_recv().unwrap().unwrap(), Position(expected));
    }
    assert!(matches!(*durable.borrow(), Durable::Until(Position(100))));
}

#[test]
fn commits_of_one_batch_see_each_other_and_fail_alone() {
    let Rig { mut committer, .. } = rig(None);
    let wanted = [(1, 0, "ann"), (1, 0, "ann"), (2, 0, "bob"), (1, 1, "ann"), (3, 1, "ann"), (4, 0, "ann")];
    let (work, answers): (Vec<_>, Vec<_>) = wanted.into_iter().map(|(turn, n, by)| commit(turn, n, by)).unzip();
    committer.work(work.into_iter());
    let answers: Vec<_> = answers
        .into_iter()
        .map(|answer| match answer.blocking_recv().unwrap() {
            Ok(position) => format!("at {}", position.0),
            Err(AppendError::Conflict) => "conflict".into(),
            Err(AppendError::NotOwner) => "not owner".into(),
            Err(other) => format!("{other}"),
        })
        .collect();
    assert_eq!(answers, ["at 1", "conflict", "not owner", "at 2", "conflict", "at 3"]);
}

#[test]
fn after_a_failed_step_every_commit_fails() {
    for failing in ["write", "flush", "sync"] {
        let Rig { mut committer, durable, steps, tree } = rig(Some(failing));
        let (first, answered) = commit(1, 0, "ann");
        let (refused, also_answered) = commit(1, 0, "ann");
        committer.work([first, refused].into_iter());
        for answer in [answered, also_answered] {
            let fault = answer.blocking_recv().unwrap().unwrap_err();
            assert!(matches!(fault, AppendError::Fault(_)), "{failing}: {fault}");
        }
        assert!(matches!(*durable.borrow(), Durable::Failed(..)), "{failing}: readers get the failure too");

        let before = (steps.lock().unwrap().len(), tree.scan_prefix([]).count());
        let (later, answer) = commit(2, 0, "ann");
        let (reply, synced) = oneshot::channel();
        committer.work([later, Work::Sync(reply)].into_iter());
        let fault = answer.blocking_recv().unwrap().unwrap_err().to_string();
        assert!(fault.contains("on fire") && fault.contains("no more commits"), "{fault}");
        assert!(synced.blocking_recv().unwrap().is_err());
        assert_eq!(
            (steps.lock().unwrap().len(), tree.scan_prefix([]).count()),
            before,
            "{failing}: the disk is left alone"
        );
    }
}

#[test]
fn only_a_write_without_space_is_made_good_while_running() {
    for (failing, recovers) in [("write", true), ("flush", true), ("sync", false)] {
        let Rig { mut committer, durable, .. } = rig(Some(failing));
        committer.disk.is_full = true;
        let (refused, answer) = commit(1, 0, "ann");
        committer.work([refused].into_iter());
        let Err(AppendError::Fault(fault)) = answer.blocking_recv().unwrap() else { panic!("{failing}: committed") };
        let kind = if recovers { FaultKind::NoSpace } else { FaultKind::Disk };
        assert_eq!((fault.kind, committer.recovers), (kind, recovers), "{failing}");
        assert_eq!(committer.failures().load(Ordering::Relaxed), 1, "{failing}");
        if recovers {
            committer.recover();
            let (again, answer) = commit(2, 0, "ann");
            committer.work([again].into_iter());
            assert_eq!(answer.blocking_recv().unwrap().unwrap(), Position(1), "{failing}");
            assert!(matches!(*durable.borrow(), Durable::Until(Position(1))), "{failing}");
        }
    }
}

#[test]
fn large_record_that_is_not_written_fails_the_store() {
    let Rig { mut committer, durable, steps, .. } = rig(None);
    let mut report = |kind| {
        let (reply, answer) = oneshot::channel();
        let (beside, refused) = commit(1, 0, "ann");
        let fault = StoreFault { kind, attempted: "write a large record", reason: "on fire".into() };
        committer.work([beside, Work::Failed(fault, reply)].into_iter());
        assert!(matches!(refused.blocking_recv().unwrap(), Err(AppendError::Fault(_))), "{kind:?}");
        assert_eq!(answer.blocking_recv().unwrap().unwrap_err().kind, kind);
        assert!(matches!(&*durable.borrow(), Durable::Failed(Position(0), fault) if fault.kind == kind), "{kind:?}");
        (committer.recovers, committer.failures().load(Ordering::Relaxed))
    };
    let reports = [FaultKind::NoSpace, FaultKind::NoSpace, FaultKind::Disk].map(&mut report);
    assert_eq!(reports, [(true, 1), (true, 1), (false, 2)], "a full disk is one failure");
    assert!(steps.lock().unwrap().is_empty());
}

#[test]
fn a_refused_commit_that_survives_needs_a_restart() {
    let Rig { mut committer, durable, .. } = rig(Some("flush"));
    committer.disk.is_full = true;
    committer.disk.survived = Some(Head { position: Position(1), ..Head::START });
    let (refused, _) = commit(1, 0, "ann");
    committer.work([refused].into_iter());
    assert!(committer.recovers);
    committer.recover();
    assert!(!committer.recovers, "no feed, inbox or quota knows the commit");
    assert!(matches!(*durable.borrow(), Durable::Failed(Position(0), _)));
}

#[test]
fn a_lone_sync_reaches_the_disk_and_a_refusal_does_not() {
    let Rig { mut committer, steps, .. } = rig(None);
    let (reply, answer) = oneshot::channel();
    committer.work([Work::Sync(reply)].into_iter());
    answer.blocking_recv().unwrap().unwrap();
    assert_eq!(*steps.lock().unwrap(), ["flush", "sync"]);
    let (refused, answer) = commit(1, 7, "ann");
    committer.work([refused].into_iter());
    assert!(matches!(answer.blocking_recv().unwrap(), Err(AppendError::Conflict)));
    assert_eq!(steps.lock().unwrap().len(), 2);
}

#[test]
fn a_removal_sees_the_commits_of_its_batch() {
    let Rig { mut committer, tree, steps, .. } = rig(None);
    let alike = domain::Digest::of("call");
    let denial = |at: u64| Denial { conversation: conversation(), alike, at: Timestamp::from_millis(at) };
    let denied = |turn: u128, at: u64| work(&fact(turn, 0).with([RowChange::Denied(denial(at))]));
    let forget = |at: u64| work(&Commit::rows(vec![RowChange::ForgetDenial(denial(at))]));
    let held = || tree.get(keys::denied(&conversation(), alike)).unwrap().map(|value| keys::tail_u64(&value));

    // There is no such row.
    let (stale, answer) = forget(5);
    committer.work([stale].into_iter());
    assert!(matches!(answer.blocking_recv().unwrap(), Err(AppendError::Changed)));
    assert!(steps.lock().unwrap().is_empty(), "and the disk is left alone");

    // The denial is committed again before its removal, in the same batch.
    committer.work([denied(1, 5).0].into_iter());
    let (stale, answer) = forget(5);
    committer.work([denied(2, 9).0, stale].into_iter());
    assert!(matches!(answer.blocking_recv().unwrap(), Err(AppendError::Changed)));
    assert_eq!(held(), Some(Some(9)));

    // And after it. Only one of two removals happens, and it gets no position.
    let ((first, removed), (second, stale)) = (forget(9), forget(9));
    committer.work([first, second, denied(3, 11).0].into_iter());
    assert_eq!(removed.blocking_recv().unwrap().unwrap(), Position(2));
    assert!(matches!(stale.blocking_recv().unwrap(), Err(AppendError::Changed)));
    assert_eq!(held(), Some(Some(11)));
    let (last, removed) = forget(11);
    committer.work([last].into_iter());
    assert_eq!((removed.blocking_recv().unwrap().unwrap(), held()), (Position(3), None));
}

const CALL: CallIndex = CallIndex(0);

fn ann() -> PrincipalId {
    PrincipalId::new("ann").unwrap()
}

fn names(run: Option<u32>) -> RowChange {
    RowChange::JournalRun { turn: TurnId::from_bits(1), call: CALL, run }
}

/// Begins a turn whose call runs.
fn begins() -> Work {
    work(&fact(1, 0).with([names(Some(1)), RowChange::Kept(ann())])).0
}

fn entry_of_the_call() -> RowChange {
    let (digest, at, record) = (Digest::of("get"), Timestamp::from_millis(1), Record::Result("x".repeat(900).into()));
    let entry =
        Entry { number: 0, step: 0, run: Some(1), function: None, digest, at, salt: None, transferred: None, record };
    RowChange::JournalEntry(JournalRow { turn: TurnId::from_bits(1), call: CALL, run: 1, entry })
}

/// The row of the turn when it has ended.
fn ended() -> EndedTurn {
    let (turn, at) = (TurnId::from_bits(1), Timestamp::from_millis(9));
    EndedTurn { turn, conversation: conversation(), caller: ann(), tools: Vec::new(), at }
}

/// Ends the turn.
fn ends() -> Commit {
    fact(1, 1).with([RowChange::Ended(ended(), TurnEnd::Settled), names(None), RowChange::Kept(ann())])
}

/// The number at the beginning of this entry.
fn number(tree: &Tree, key: Vec<u8>) -> u64 {
    let value = tree.get(key).unwrap().unwrap();
    read_count(stamped(&value).unwrap().1).unwrap().0
}

#[test]
fn entry_that_is_queued_before_the_end_counts_in_both_sizes() {
    let Rig { mut committer, tree, .. } = rig(None);
    committer.work([begins()].into_iter());
    let before = number(&tree, keys::kept(&ann()));
    // The end is planned before the entry is in the tree.
    let (end, answer) = work(&ends());
    let append = work(&Commit::rows(vec![entry_of_the_call(), RowChange::Kept(ann())])).0;
    committer.work([append, end].into_iter());
    answer.blocking_recv().unwrap().unwrap();
    let size = number(&tree, keys::ended(ended().key()));
    assert!(size > 900, "{size}");
    assert_eq!(number(&tree, keys::kept(&ann())) - before, size, "a removal subtracts what was counted");
}

#[test]
fn entry_of_an_older_host_counts_at_the_end_of_its_turn() {
    let Rig { mut committer, tree, .. } = rig(None);
    committer.work([begins(), work(&Commit::rows(vec![entry_of_the_call()])).0].into_iter());
    let head = journals::head(TurnId::from_bits(1), CALL);
    let value = tree.get(&head).unwrap().unwrap();
    tree.insert(&head, &value[..keys::STAMP + 8]).unwrap();
    let before = number(&tree, keys::kept(&ann()));
    let mut earlier = Earlier::default();
    for kind in keys::OF_CALLS {
        for row in tree.scan_prefix(keys::of_calls(kind, TurnId::from_bits(1))) {
            let (key, value) = row.unwrap();
            earlier.add(&key, &value, |record| record.len() as u64);
        }
    }
    let (end, answer) = work_after(&ends(), earlier);
    committer.work([end].into_iter());
    answer.blocking_recv().unwrap().unwrap();
    let size = number(&tree, keys::ended(ended().key()));
    assert!(size > 900, "{size}");
    assert_eq!(number(&tree, keys::kept(&ann())) - before, size);
}
