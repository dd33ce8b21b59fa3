//! `verify` finds every change that another program made to a folder, and names the first changed position.

use std::fs;
use std::path::Path;

use dispatch::ports::{Audit as _, Head, Log as _, Source};
use domain::Digest;

use crate::given::{self, commit, events, large_fact, turn};
use crate::store::{OpenError, StoreSettings, VerifyError, open, verify};

/// Commits in the folder that is tampered with: more than a start looks at.
const COMMITS: u64 = 300;

/// Where the blob, the plugin's fact and the start are.
const SPECIAL: [u64; 3] = [11, 12, 13];

/// Writes a store. Every commit but the special ones is the only one of the turn that is called like its position.
async fn written(folder: &Path) -> Head {
    let store = open(folder, &StoreSettings::default()).unwrap();
    for position in 1..=COMMITS {
        let at = match position {
            11 => store.append(&events(11, 0, vec![large_fact(1, 300 << 10)])).await.unwrap(),
            12 => store.append(&given::record(given::plugin(1))).await.unwrap(),
            13 => store.append(&given::started(given::start(1))).await.unwrap(),
            _ => store.append(&commit(position, 0, position)).await.unwrap(),
        };
        assert_eq!(at.0, position);
    }
    store.head().await.unwrap()
}

fn db(folder: &Path) -> sled::Db {
    crate::given::database(folder)
}

fn record(position: u64) -> Vec<u8> {
    match position {
        12 => [b"h".as_slice(), &position.to_be_bytes()].concat(),
        13 => [b"n".as_slice(), &position.to_be_bytes()].concat(),
        _ => [b"e".as_slice(), &u128::from(position).to_be_bytes(), &0_u32.to_be_bytes()].concat(),
    }
}

fn link(position: u64) -> Vec<u8> {
    [b"a".as_slice(), &position.to_be_bytes()].concat()
}

fn get(db: &sled::Db, key: &[u8]) -> Vec<u8> {
    db.get(key).unwrap().unwrap().to_vec()
}

fn edit(db: &sled::Db, key: &[u8], change: impl FnOnce(&mut Vec<u8>)) {
    let mut value = get(db, key);
    change(&mut value);
    db.insert(key, value).unwrap();
}

fn swap(db: &sled::Db, a: &[u8], b: &[u8]) {
    let (first, second) = (get(db, a), get(db, b));
    db.insert(a, second).unwrap();
    db.insert(b, first).unwrap();
}

fn head_value(head: Head) -> Vec<u8> {
    [head.position.0.to_be_bytes().as_slice(), head.hash.as_bytes()].concat()
}

/// Writes a record and all hashes after it, as an attacker with write access could.
fn rebuild(db: &sled::Db, from: u64, last: u64) -> Head {
    let mut head = match from {
        1 => Head::START,
        _ => Head {
            position: dispatch::ports::Position(from - 1),
            hash: Digest::from_bytes(get(db, &link(from - 1))[..32].try_into().unwrap()),
        },
    };
    for position in from..=last {
        let source = Source::from_bytes(&get(db, &link(position))[32..]).unwrap();
        let value = get(db, &record(position));
        let stored = if matches!(source, Source::Turn { .. }) { &value[8..] } else { &value };
        let digest = match stored {
            [0, digest @ ..] => Digest::from_bytes(digest.try_into().unwrap()),
            stored => Digest::of(stored),
        };
        head = head.then(source, digest);
        db.insert(link(position), [head.hash.as_bytes().as_slice(), &source.to_bytes()].concat()).unwrap();
    }
    db.insert("mhead", head_value(head)).unwrap();
    head
}

fn verified(folder: &Path, checkpoints: &[String]) -> Result<Head, String> {
    let checkpoints = checkpoints.iter().map(|checkpoint| checkpoint.parse().unwrap()).collect();
    verify(folder, &StoreSettings::default(), checkpoints).map_err(|error| match error {
        VerifyError::Tampered(found) => found.to_string(),
        other => panic!("{other}"),
    })
}

/// A change of a folder.
type Deed = fn(&sled::Db);

#[tokio::test]
async fn every_tampering_is_found_where_it_begins() {
    let untouched = tempfile::tempdir().unwrap();
    let head = written(untouched.path()).await;
    assert_eq!(verified(untouched.path(), &[]), Ok(head));
    let rows: [(&str, &str, Deed); 17] = [
        ("a record is edited", "position 150: its hash", |db| edit(db, &record(150), |value| value[20] ^= 1)),
        ("one about a plugin", "position 12: its hash", |db| edit(db, &record(12), |value| value[20] ^= 1)),
        ("one about a start", "position 13: its hash", |db| edit(db, &record(13), |value| value[20] ^= 1)),
        ("the newest", "position 300: its hash", |db| edit(db, &record(300), |value| value[20] ^= 1)),
        ("a record is removed", "position 150: its record is missing", |db| drop(db.remove(record(150)).unwrap())),
        ("a commit is removed", "position 150: it is missing; the next entry is 151", |db| {
            drop(db.remove(record(150)).unwrap());
            drop(db.remove(link(150)).unwrap());
        }),
        ("two commits change places", "position 150: its record", |db| swap(db, &record(150), &record(151))),
        ("two links change places", "position 150: its record", |db| swap(db, &link(150), &link(151))),
        ("and what they point to, with them", "position 150: its hash", |db| {
            swap(db, &link(150), &link(151));
            edit(db, &record(150), |value| value[..8].copy_from_slice(&151_u64.to_be_bytes()));
            edit(db, &record(151), |value| value[..8].copy_from_slice(&150_u64.to_be_bytes()));
        }),
        ("a link is edited", "position 150: its hash", |db| edit(db, &link(150), |value| value[3] ^= 1)),
        ("a link is no link", "position 150: its link is not one", |db| {
            edit(db, &link(150), |value| value.truncate(9))
        }),
        ("a commit is added to a turn", "position 200: commit 1 of turn_", |db| {
            let value = get(db, &record(200));
            db.insert([&record(200)[..17], &1_u32.to_be_bytes()].concat(), value).unwrap();
        }),
        ("a fact about a plugin is added", "position 14: the plugin event at position 14 is not in the chain", |db| {
            let value = get(db, &record(12));
            db.insert([b"h".as_slice(), &14_u64.to_be_bytes()].concat(), value).unwrap();
        }),
        ("a commit is added behind the head", "position 301: it is after the head", |db| {
            let before = Head {
                position: dispatch::ports::Position(300),
                hash: Digest::from_bytes(get(db, &link(300))[..32].try_into().unwrap()),
            };
            let source = Source::Turn { turn: turn(301), number: 0 };
            let value = [301_u64.to_be_bytes().as_slice(), b"\x01[]"].concat();
            db.insert(record(301), value).unwrap();
            let head = before.then(source, Digest::of(b"\x01[]"));
            db.insert(link(301), [head.hash.as_bytes().as_slice(), &source.to_bytes()].concat()).unwrap();
        }),
        ("the head is edited", "position 300: its hash", |db| edit(db, b"mhead", |value| value[9] ^= 1)),
        ("the head is moved on", "position 301: it is missing, and the head", |db| {
            edit(db, b"mhead", |value| value[7] += 1)
        }),
        ("the tail is cut off", "position 299: it is missing, and the head is position 300", |db| {
            for position in [299, 300] {
                drop((db.remove(link(position)).unwrap(), db.remove(record(position)).unwrap()));
            }
        }),
    ];
    for (what, expected, deed) in rows {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path()).await;
        {
            let db = db(folder.path());
            deed(&db);
            db.flush().unwrap();
        }
        let found = verified(folder.path(), &[]).unwrap_err();
        assert!(found.starts_with(expected), "{what}: {found}");
    }
}

#[tokio::test]
async fn an_edited_or_missing_blob_is_found() {
    for change in [|path: &Path| fs::write(path, "[]").unwrap(), |path: &Path| fs::remove_file(path).unwrap()] {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path()).await;
        change(&fs::read_dir(folder.path().join("blobs")).unwrap().next().unwrap().unwrap().path());
        let found = verified(folder.path(), &[]).unwrap_err();
        assert_eq!(
            found,
            format!("position {}: its record is missing, damaged, or belongs to another position", SPECIAL[0])
        );
    }
}

#[tokio::test]
async fn a_rebuilt_chain_is_found_by_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let kept = written(folder.path()).await;
    assert_eq!(verified(folder.path(), &[kept.to_string(), kept.hash.to_string()]), Ok(kept));
    let forged = {
        let db = db(folder.path());
        edit(&db, &record(150), |value| *value = [150_u64.to_be_bytes().as_slice(), b"\x01[]"].concat());
        let forged = rebuild(&db, 150, COMMITS);
        db.flush().unwrap();
        forged
    };
    assert_eq!(verified(folder.path(), &[]), Ok(forged), "nothing in the folder gives it away");
    let found = verified(folder.path(), &[kept.to_string()]).unwrap_err();
    assert!(found.starts_with("position 300: its hash is"), "{found}");
    assert!(verified(folder.path(), &[kept.hash.to_string()]).unwrap_err().contains("no commit has the hash"));

    let shortened = {
        let db = db(folder.path());
        for position in 200..=COMMITS {
            drop((db.remove(link(position)).unwrap(), db.remove(record(position)).unwrap()));
        }
        let head = rebuild(&db, 150, 199);
        db.flush().unwrap();
        head
    };
    assert_eq!(verified(folder.path(), &[]), Ok(shortened));
    let found = verified(folder.path(), &[kept.to_string()]).unwrap_err();
    assert!(found.starts_with("position 200: it is missing: the audit ends before position 300"), "{found}");
}

#[tokio::test]
async fn a_start_checks_only_the_end_of_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let head = written(folder.path()).await;
    let edit_at = |position| {
        let db = db(folder.path());
        edit(&db, &record(position), |value| {
            let end = value.len() - 5;
            value[end] ^= 1;
        });
        db.flush().unwrap();
    };
    edit_at(150);
    drop(open(folder.path(), &StoreSettings::default()).unwrap());
    assert!(verified(folder.path(), &[]).unwrap_err().starts_with("position 150:"));
    edit_at(150);
    assert_eq!(verified(folder.path(), &[]), Ok(head));
    edit_at(299);
    let Err(OpenError::Damaged { reason, .. }) = open(folder.path(), &StoreSettings::default()) else {
        panic!("opened")
    };
    assert!(reason.contains("audit verify"), "{reason}");
    assert!(
        verified(folder.path(), &[]).unwrap_err().starts_with("position 299:"),
        "what a start refuses is verified, too"
    );
    let used = tempfile::tempdir().unwrap();
    let _store = open(used.path(), &StoreSettings::default()).unwrap();
    let refused = verify(used.path(), &StoreSettings::default(), Vec::new());
    assert!(matches!(refused, Err(VerifyError::Open(OpenError::InUse { .. }))));
}
