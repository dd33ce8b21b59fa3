//! The plugins' data: what a bucket does, and that nobody reaches another's.

use crate::store::{self, KeyValue, KeyValueError, LARGEST_VALUE, Settings};

fn on_both(check: impl Fn(KeyValue)) {
    check(KeyValue::in_memory());
    let folder = tempfile::tempdir().unwrap();
    let store = store::open(folder.path(), &Settings::default()).unwrap();
    check(store.key_value());
}

#[test]
fn a_bucket_holds_what_was_set() {
    on_both(|data| {
        assert_eq!(data.get("p", "b", b"k").unwrap(), None);
        data.set("p", "b", b"k", b"1").unwrap();
        data.set("p", "b", b"k", b"2").unwrap();
        assert_eq!(data.get("p", "b", b"k").unwrap().as_deref(), Some(b"2".as_slice()));
        data.delete("p", "b", b"k").unwrap();
        data.delete("p", "b", b"k").unwrap();
        assert_eq!(data.get("p", "b", b"k").unwrap(), None);
    });
}

#[test]
fn a_swap_happens_only_from_what_was_expected() {
    on_both(|data| {
        let swap =
            |expected: Option<&[u8]>, new: Option<&[u8]>| data.compare_and_swap("p", "b", b"k", expected, new).unwrap();
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
    on_both(|data| {
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
            data.set(namespace, bucket, key.as_bytes(), &[number as u8]).unwrap();
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
    on_both(|data| {
        for number in 0..25 {
            data.set("p", "b", format!("user/{number:02}").as_bytes(), b"").unwrap();
            data.set("p", "b", format!("zone/{number:02}").as_bytes(), b"").unwrap();
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
fn what_is_too_large_is_refused_and_says_by_how_much() {
    on_both(|data| {
        let value = vec![0; LARGEST_VALUE + 1];
        data.set("p", "b", b"k", &value[1..]).unwrap();
        let refused = data.set("p", "b", b"k", &value).unwrap_err();
        assert_eq!(refused.to_string(), "the value has 65537 bytes; the limit is 65536");
        let long = "x".repeat(2000);
        for refused in [data.get(&long, "b", b"k"), data.get("p", &long, b"k"), data.get("p", "b", long.as_bytes())] {
            assert!(matches!(refused, Err(KeyValueError::TooLarge { .. })));
        }
    });
}
