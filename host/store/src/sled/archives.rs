//! The records in the data folders of older hosts, which `tests/fixtures` keeps. `tests/tests/versions` opens these folders.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dispatch::ports::{DeliveryRow, EndedTurn, RunLog, SuspensionRow};
use domain::event::{HostStarted, PluginEvent};
use domain::journal::Entry;
use domain::retention::Removal;
use domain::standing::{StandingRevoked, StandingRow};
use domain::suspension::Audience;
use tempfile::TempDir;

use super::folder::{FORMAT, OLDEST, open_sled};
use super::remains::tombstone;
use super::{blobs, keys};
use crate::StoreSettings;
use crate::record::tests::names::{self, Named, file_of};
use crate::record::{NEWEST_EVENTS, Record, newest_of, read_events};

/// The golden files of records that no archive has, and why.
const IN_NO_ARCHIVE: [(&str, &str); 4] = [
    ("call_suspended", "the first test had one file for suspensions of all kinds; each kind has its own now"),
    ("call_voted_without_needs", "votes have named what they count for since before the first archive"),
    ("lease_extended", "only a call that a host runs 30 seconds beyond its limits has it"),
    ("suspension_delegated_without_needs", "as a vote without needs"),
];

/// A record in an archive: the index that holds it, and its bytes.
type Archived = (u8, Vec<u8>);

/// The names of the archives.
pub(super) fn archives() -> Vec<String> {
    let found = fs::read_dir(fixtures()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = found
        .filter_map(|file| Some(file.strip_suffix(".tar.gz")?.to_owned()))
        .filter(|it| it.starts_with("data-"))
        .collect();
    names.sort();
    names
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures")
}

/// An unpacked archive, and its store.
pub(super) fn extracted(archive: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(fixtures().join(format!("{archive}.tar.gz"))).arg("-C").arg(folder.path());
    assert!(unpack.status().unwrap().success(), "tar unpacks {archive}");
    let store = folder.path().join("data/store");
    (folder, store)
}

/// The format of an archive, and its records.
fn unpacked(archive: &str) -> (u8, Vec<Archived>) {
    let (_folder, store) = extracted(archive);
    let db = open_sled(&store.join("sled"), &StoreSettings::default()).unwrap();
    let format = db.get(keys::FORMAT).unwrap().unwrap()[0];
    let records = db.iter().filter_map(|entry| {
        let (key, value) = entry.unwrap();
        let record = keys::record(&key, &value).filter(|record| tombstone(record).is_none())?;
        let bytes = match blobs::referred(record) {
            Some(digest) => fs::read(store.join("blobs").join(digest.hex())).unwrap(),
            None => record.to_vec(),
        };
        Some((key[0], bytes))
    });
    (format, records.collect())
}

#[test]
fn current_format_has_archives_with_the_newest_records() {
    let name = format!("data-format-{FORMAT}");
    let mut newest = BTreeMap::<u8, u8>::new();
    for archive in archives().iter().filter(|archive| archive.starts_with(&name)) {
        for (index, bytes) in unpacked(archive).1 {
            let known = newest.entry(index).or_default();
            *known = bytes[0].max(*known);
        }
    }
    for (index, written) in [
        (keys::LOG, NEWEST_EVENTS),
        (keys::SUSPENSION, newest_of::<SuspensionRow>()),
        (keys::ENDED, newest_of::<EndedTurn>()),
        (keys::AUDIENCE, newest_of::<Audience>()),
        (keys::REMOVAL, newest_of::<Removal>()),
        (keys::RUN_LOG, newest_of::<RunLog>()),
        (keys::JOURNAL_ENTRY, newest_of::<Entry>()),
        (keys::DELIVERY, newest_of::<DeliveryRow>()),
        (keys::STANDING, newest_of::<StandingRow>()),
        (keys::REVOKED, newest_of::<StandingRevoked>()),
    ] {
        let words = keys::in_words(&[index]);
        assert_eq!(newest.get(&index), Some(&written), "{words}: keep a folder of this host, as the others are kept");
    }
}

/// The names of the golden files of a record.
fn named((index, bytes): &Archived) -> Vec<&'static str> {
    fn row<T: Record + Named>(bytes: &[u8]) -> Vec<&'static str> {
        vec![T::read(bytes).unwrap().name()]
    }
    match *index {
        keys::LOG => read_events(bytes).unwrap().iter().map(file_of).collect(),
        keys::HOST_FEED => row::<PluginEvent>(bytes),
        keys::STARTED => row::<HostStarted>(bytes),
        keys::SUSPENSION => row::<SuspensionRow>(bytes),
        keys::ENDED => row::<EndedTurn>(bytes),
        keys::AUDIENCE => row::<Audience>(bytes),
        keys::REMOVAL => row::<Removal>(bytes),
        keys::RUN_LOG => row::<RunLog>(bytes),
        keys::JOURNAL_ENTRY => row::<Entry>(bytes),
        keys::DELIVERY => row::<DeliveryRow>(bytes),
        keys::STANDING => row::<StandingRow>(bytes),
        keys::REVOKED => row::<StandingRevoked>(bytes),
        other => panic!("{}: name its records", keys::in_words(&[other])),
    }
}

#[test]
fn each_kind_of_record_is_in_an_archive() {
    let unpacked: Vec<_> = archives().iter().map(|archive| unpacked(archive)).collect();
    let found: BTreeSet<_> = unpacked.iter().flat_map(|(_, records)| records).flat_map(named).collect();
    let missing: Vec<_> = names::all().into_iter().filter(|name| !found.contains(name.as_str())).collect();
    assert_eq!(missing, IN_NO_ARCHIVE.map(|(name, _)| name), "keep a folder that has them, or say why none has");

    let formats: BTreeSet<_> = unpacked.iter().map(|(format, _)| *format).collect();
    assert!((OLDEST..=FORMAT).eq(formats), "each format that this host opens has an archive");
}
