//! The commits that share a transaction. The tests with a server are in `tests/laws`.

use dispatch::ports::{Commit, RowChange};
use domain::journal::ValueChange;

use super::*;

/// A commit with a value of this size.
fn sized(bytes: usize) -> Work {
    let change = ValueChange { key: Vec::new(), old: None, value: Some(vec![0; bytes]) };
    let plan = Plan::of(Commit::rows(vec![RowChange::Value(change)])).unwrap();
    Work::Commit(Box::new(plan), oneshot::channel().0)
}

/// The number of commits in each batch.
fn batches(work: impl IntoIterator<Item = Work>) -> Vec<usize> {
    let mut waiting: VecDeque<_> = work.into_iter().collect();
    let mut sizes = Vec::new();
    while !waiting.is_empty() {
        sizes.push(batch(&mut waiting).len());
    }
    sizes
}

#[test]
fn batch_is_bounded_in_bytes_and_commits() {
    let half = MAX_BYTES / 2;
    assert_eq!(batches([half, half, 1, half].map(sized)), [2, 2]);
    assert_eq!(batches([1, MAX_BYTES + 1, 1, 1].map(sized)), [1, 1, 2], "a large commit is alone");
    let many = std::iter::repeat_with(|| sized(1)).take(MAX_AT_ONCE + 2);
    assert_eq!(batches(many), [MAX_AT_ONCE, 2]);
}
