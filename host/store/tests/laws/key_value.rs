//! The plugins' data: buckets work, and no namespace reaches another's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use dispatch::ports::StoreFault;
use domain::journal::ValueChange;

use crate::store::{self, CommitValue, KeyValue, KeyValueError, MAX_VALUE, NamespaceQuota, StoreSettings};

const ANY: NamespaceQuota = NamespaceQuota::UNBOUNDED;

fn on_each(check: impl Fn(KeyValue)) {
    check(KeyValue::in_memory());
    let folder = tempfile::tempdir().unwrap();
    let store = store::open(folder.path(), &StoreSettings::default()).unwrap();
    check(store.key_value());
    #[cfg(feature = "postgres")]
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        if let Some(store) = runtime.block_on(crate::on_server::store()) {
            check(store.key_value());
        }
    }
}

#[test]
fn a_bucket_holds_what_was_set() {
    on_each(|data| {
        assert_eq!(data.get("p", "b", b"k").unwrap(), None);
        data.set("p", "b", b"k", b"1", ANY).unwrap();
        data.set("p", "b", b"k", b"2", ANY).unwrap();
        assert_eq!(data.get("p", "b", b"k").unwrap().as_deref(), Some(b"2".as_slice()));
        data.delete("p", "b", b"k").unwrap();
        data.delete("p", "b", b"k").unwrap();
        assert_eq!(data.get("p", "b", b"k").unwrap(), None);
    });
}

#[test]
fn a_swap_happens_only_from_what_was_expected() {
    on_each(|data| {
        let swap = |expected: Option<&[u8]>, new: Option<&[u8]>| {
            data.compare_and_swap("p", "b", b"k", expected, new, ANY).unwrap().is_ok()
        };
        assert!(!swap(Some(b"1"), Some(b"2")));
        assert!(swap(None, Some(b"1")));
        assert!(!swap(None, Some(b"2")));
        assert!(swap(Some(b"1"), Some(b"2")));
        assert!(swap(Some(b"2"), None));
        assert_eq!(data.get("p", "b", b"k").unwrap(), None);
    });
}

#[test]
fn no_choice_of_names_reaches_another_namespace() {
    on_each(|data| {
        // Every way to write the same bytes as namespace, bucket and key.
        let ways = [
            ("a", "bc", "d"),
            ("ab", "c", "d"),
            ("a", "b", "cd"),
            ("", "abc", "d"),
            ("abc", "", "d"),
            ("a", "\0\x01b", "c"),
        ];
        for (number, (namespace, bucket, key)) in ways.iter().enumerate() {
            data.set(namespace, bucket, key.as_bytes(), &[number as u8], ANY).unwrap();
        }
        for (number, (namespace, bucket, key)) in ways.iter().enumerate() {
            assert_eq!(data.get(namespace, bucket, key.as_bytes()).unwrap(), Some(vec![number as u8]));
            let listing = data.list(namespace, bucket, b"", None, 100).unwrap();
            assert_eq!(listing.keys, [key.as_bytes()], "{namespace:?} {bucket:?}");
        }
        assert!(data.list("ab", "c", b"", Some(b"\xff\xff"), 100).unwrap().keys.is_empty());
    });
}

#[test]
fn a_listing_comes_in_pages_of_one_prefix() {
    on_each(|data| {
        for number in 0..25 {
            data.set("p", "b", format!("user/{number:02}").as_bytes(), b"", ANY).unwrap();
            data.set("p", "b", format!("zone/{number:02}").as_bytes(), b"", ANY).unwrap();
        }
        let (mut keys, mut cursor) = (Vec::new(), None::<Vec<u8>>);
        loop {
            let page = data.list("p", "b", b"user/", cursor.as_deref(), 10).unwrap();
            keys.extend(page.keys);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let wanted: Vec<_> = (0..25).map(|number| format!("user/{number:02}").into_bytes()).collect();
        assert_eq!(keys, wanted);
        assert_eq!(
            data.list("p", "b", b"user/", Some(b"a"), 1).unwrap().keys,
            wanted[..1],
            "a cursor before the prefix"
        );
    });
}

#[test]
fn a_large_value_is_refused_with_its_size() {
    on_each(|data| {
        let value = vec![0; MAX_VALUE + 1];
        data.set("p", "b", b"k", &value[1..], ANY).unwrap();
        let refused = data.set("p", "b", b"k", &value, ANY).unwrap_err();
        assert_eq!(refused.to_string(), "the value has 65537 bytes; the limit is 65536");
        let long = "x".repeat(2000);
        for refused in [data.get(&long, "b", b"k"), data.get("p", &long, b"k"), data.get("p", "b", long.as_bytes())] {
            assert!(matches!(refused, Err(KeyValueError::TooLarge { .. })));
        }
    });
}

/// The limit that a write would exceed.
fn room(done: Result<(), KeyValueError>) -> Option<&'static str> {
    match done {
        Ok(()) => None,
        Err(KeyValueError::Full { unit, .. }) => Some(unit),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_namespace_never_exceeds_its_quota() {
    on_each(|data| {
        let quota = NamespaceQuota { bytes: 20, keys: 3 };
        let set = |key: &str, size: usize| room(data.set("p", "b", key.as_bytes(), &vec![7; size], quota));
        // An entry costs its bucket's name, its key and its value.
        assert_eq!(set("one", 8), None);
        assert_eq!(set("two", 5), Some("bytes"));
        assert_eq!(set("two", 4), None);
        assert_eq!(data.get("p", "b", b"one").unwrap().map(|value| value.len()), Some(8));
        assert_eq!(set("one", 9), Some("bytes"), "growing costs the difference");
        assert_eq!(set("one", 0), None);
        assert_eq!(room(data.set("p", "c", b"3", b"", quota)), None, "all buckets count together");
        assert_eq!(room(data.set("p", "c", b"4", b"", quota)), Some("keys"));
        assert_eq!(room(data.set("other", "c", b"4", b"", quota)), None, "others have their own");
        data.delete("p", "c", b"3").unwrap();
        data.delete("p", "c", b"3").unwrap();
        assert_eq!(room(data.set("p", "c", b"4", b"", quota)), None, "deleting makes room, once");
        assert_eq!(room(data.set("p", "c", b"5", b"", quota)), Some("keys"));
        let refused = data.set("p", "c", b"5", b"", quota).unwrap_err().to_string();
        assert_eq!(
            refused,
            "quota exceeded: this write needs 4 keys, and the quota is 3 (grant `keyvalue.keys`); delete something first"
        );

        let swap = |seen: Option<&[u8]>, new: Option<&[u8]>| data.compare_and_swap("p", "c", b"5", seen, new, quota);
        assert!(matches!(swap(None, Some(b"x")), Err(KeyValueError::Full { unit: "keys", .. })));
        assert_eq!(swap(Some(b"y"), Some(b"x")).unwrap(), Err(None), "what is stale is not held against the quota");
        assert_eq!(data.get("p", "c", b"5").unwrap(), None);

        // An operator lowers the quota: nothing grows, and everything may shrink.
        let less = NamespaceQuota { bytes: 1, keys: 1 };
        assert_eq!(room(data.set("p", "b", b"two", b"four", less)), None);
        assert_eq!(room(data.set("p", "b", b"two", b"fiver", less)), Some("bytes"));
        assert_eq!(room(data.set("p", "b", b"two", b"", less)), None);
    });
}

#[test]
fn writers_in_a_race_share_one_quota() {
    on_each(|data| {
        let quota = NamespaceQuota { bytes: u64::MAX, keys: 100 };
        let wrote: usize = thread::scope(|threads| {
            let writers: Vec<_> = (0..4)
                .map(|writer| {
                    let data = data.clone();
                    threads.spawn(move || {
                        let key = |n| format!("{writer}-{n}").into_bytes();
                        (0..50).filter(|n| room(data.set("p", "b", &key(*n), b"", quota)).is_none()).count()
                    })
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).sum()
        });
        assert_eq!(wrote, 100);
        assert_eq!(data.list("p", "b", b"", None, 1_000).unwrap().keys.len(), 100);
    });
}

/// Another host is faster than each of the first writes.
struct Overtaken(AtomicUsize);

impl CommitValue for Overtaken {
    fn commit(&self, change: ValueChange) -> Result<bool, StoreFault> {
        assert_eq!((change.old.as_deref(), change.value.as_deref()), (Some(b"1".as_slice()), Some(b"2".as_slice())));
        Ok(self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err())
    }
}

#[test]
fn overtaken_write_is_tried_again() {
    on_each(|data| {
        data.set("p", "b", b"k", b"1", ANY).unwrap();
        let overtaken = |times| data.committed_by(Arc::new(Overtaken(AtomicUsize::new(times))));
        overtaken(99).set("p", "b", b"k", b"2", ANY).unwrap();
        assert_eq!(overtaken(3).compare_and_swap("p", "b", b"k", Some(b"1"), Some(b"2"), ANY).unwrap(), Ok(()));
        let given_up = overtaken(100).set("p", "b", b"k", b"2", ANY).unwrap_err().to_string();
        assert!(given_up.contains("other hosts changed the key each of 100 times"), "{given_up}");
        data.set("p", "b", b"k", b"3", ANY).unwrap();
    });
}

#[test]
fn usage_is_known_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let quota = NamespaceQuota { bytes: 12, keys: 10 };
    let write = |key: &[u8]| {
        let store = store::open(folder.path(), &StoreSettings::default()).unwrap();
        // Two handles of one store count together.
        room(store.key_value().set("p", "b", key, b"1234", quota))
            .or_else(|| room(store.key_value().set("p", "b", key, b"1234", quota)))
    };
    assert_eq!(write(b"1"), None);
    assert_eq!(write(b"2"), None);
    assert_eq!(write(b"3"), Some("bytes"));
    assert_eq!(write(b"2"), None);
}
