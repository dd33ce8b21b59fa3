//! Usage is counted and forgotten.

use domain::rate::Rate;
use domain::{CallIndex, ConversationId, Digest, event::Rejection, journal::Entry, journal::Record};
use futures::FutureExt as _;

use super::*;

#[test]
fn values_of_one_principal_wait_for_room() {
    let each = Quota { open_bytes: 1_024 * KIB, ..Quota::default() };
    let tracker = Arc::new(QuotaTracker::new(Quotas { each, ..Quotas::default() }, false));
    let (ann, ben) = ("ann".parse().unwrap(), "ben".parse().unwrap());
    let all = |whose, sizes: &[usize]| {
        let texts = sizes.iter().map(|kib| kib * KIB).collect();
        tracker.values(whose, texts).now_or_never()
    };
    let values = |whose, kib| all(whose, &[kib]);
    assert!(values(&ann, 3).unwrap().is_none(), "small values are not charged");
    let first = values(&ann, 8).unwrap();
    let second = values(&ann, 8).unwrap();
    assert!(values(&ann, 8).is_none(), "each takes 16 times its text for the value, and 48 times for the check");
    let other = values(&ben, 1_000).unwrap();
    assert!(other.is_some(), "one request always gets memory");
    drop(first);
    let third = values(&ann, 8).unwrap();
    drop((second, third));
    let several = all(&ann, &[8, 8, 8, 8]).unwrap();
    assert!(values(&ann, 4).is_none(), "they take 4 times 128 KiB for the values, and 384 KiB for one check");
    let last = all(&ann, &[1, 1, 1, 1]);
    assert!(last.is_some(), "64 KiB for the values, and 48 KiB for one check");
    drop((several, last, other));
    assert!(tracker.shards.iter().all(|shard| lock(shard).is_empty()));
}

#[test]
fn principals_with_whole_bursts_are_forgotten() {
    let rate = Rate { per_second: 1, burst: 1 };
    let each = Quota { turn_rate: rate, byte_rate: rate, ..Quota::default() };
    let tracker = QuotaTracker::new(Quotas { each, ..Quotas::default() }, false);
    let conversation = domain::ConversationId::new("c").unwrap();
    let rejection = domain::event::Rejection::default();
    let request = TurnRequest { conversation, calls: Vec::new(), context: None, rejection, ephemeral: false };
    let at = Timestamp::from_millis;
    for n in 0..100_000 {
        let by = format!("p{n}").parse().unwrap();
        tracker.count_new(&by, &request, 0, at(n)).unwrap();
        assert!(tracker.count_new(&by, &request, 0, at(n)).is_err());
    }
    let known: usize = tracker.shards.iter().map(|shard| lock(shard).len()).sum();
    assert!(known < 10_000, "about a thousand bursts are not whole, and there are {known}");
}

#[test]
fn journals_count_against_the_rate_of_bytes() {
    let byte_rate = Rate { per_second: 1, burst: 1_000 };
    let quotas = Quotas { each: Quota { byte_rate, ..Quota::default() }, ..Quotas::default() };
    let tracker = Arc::new(QuotaTracker::new(quotas, false));
    let [hog, other] = ["hog", "other"].map(|name| name.parse::<PrincipalId>().unwrap());
    let conversation = ConversationId::new("c").unwrap();
    let (calls, context) = (Vec::new(), Some(domain::Json::unchecked("{\"a\":1}")));
    let request = TurnRequest { conversation, calls, context, rejection: Rejection::default(), ephemeral: false };
    let at = Timestamp::from_millis(1);
    let submits = |by| tracker.count_new(by, &request, 0, at).is_ok();
    assert!(submits(&hog));
    let record = Record::Result("x".repeat(1_000).into());
    let entry = Entry {
        number: 0,
        step: 0,
        run: Some(1),
        function: None,
        digest: Digest::of("get"),
        at,
        salt: None,
        transferred: None,
        record,
    };
    let row = JournalRow { turn: TurnId::from_bits(1), call: CallIndex(0), run: 1, entry };
    let rows = vec![RowChange::JournalEntry(row), RowChange::Kept(hog.clone())];
    tracker.committed(&Commit::rows(rows), None);
    assert!(!submits(&hog) && submits(&other));
}
