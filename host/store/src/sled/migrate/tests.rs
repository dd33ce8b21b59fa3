//! Migrations of the archived folders, by processes that die between two batches.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;

use super::super::SledStore;
use super::super::archives::{archives, extracted};
use super::super::durable::Durable;
use super::super::folder::{Folder, OLDEST, open_sled};
use super::super::set_aside::SetAside;
use super::super::tree::Tree;
use super::super::values::VALUES;
use super::*;
use crate::StoreSettings;

/// A database whose process dies instead of writing one more batch.
struct Mortal<'a> {
    database: Database<'a>,
    left: usize,
}

impl Batches for Mortal<'_> {
    fn size(&self) -> usize {
        40
    }

    fn write(&mut self, batch: sled::Batch) -> Result<(), StoreFault> {
        self.left = self.left.checked_sub(1).ok_or_else(|| fault(MIGRATE)("the process died"))?;
        self.database.write(batch)
    }
}

/// Migrates a store in a process that dies after this many batches. Returns whether the migration ended before.
fn ends_within(batches: usize, store: &Path) -> bool {
    let settings = StoreSettings::default();
    // These are dropped in reverse order.
    let Folder { folder_lock: _folder_lock, db, file, blobs, format } =
        Folder::open(store, &settings, |_, _| Ok(())).unwrap();
    let (tree, durable) = (Tree::new((*db).clone()), watch::channel(Durable::Until(Position(u64::MAX))).1);
    let reader = Reader { tree, blobs, durable, recoveries: Arc::default(), set_aside: SetAside::default() };
    let database = Database { reader: &reader, file: &file };
    format == FORMAT || in_batches(format, &reader, &mut Mortal { database, left: batches }).is_ok()
}

/// Opens a store as a host does, and returns all that it has.
fn opened(store: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let settings = StoreSettings::default();
    let whole = SledStore::open(store, &settings).unwrap();
    assert_eq!(whole.check().unwrap().problems, []);
    drop(whole);
    let db = open_sled(&store.join("sled"), &settings).unwrap();
    assert_eq!(db.get(keys::FORMAT).unwrap().as_deref(), Some([FORMAT].as_slice()));
    let values = db.open_tree(VALUES).unwrap();
    let both = db.iter().chain(values.iter()).map(Result::unwrap);
    both.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// The archives of older formats.
fn older() -> Vec<String> {
    let newest = format!("data-format-{FORMAT}");
    let older: Vec<_> = archives().into_iter().filter(|archive| !archive.starts_with(&newest)).collect();
    assert!(older.len() > usize::from(FORMAT - OLDEST), "each format has an archive: {older:?}");
    older
}

/// A third of the moments of each archive. Archives of one format have different ones.
#[test]
fn migration_killed_between_two_batches_loses_nothing() {
    for (number, archive) in older().into_iter().enumerate() {
        let expected = opened(&extracted(&archive).1);
        for batches in (number % 3..).step_by(3) {
            let (_folder, store) = extracted(&archive);
            let ended = ends_within(batches, &store);
            assert!(opened(&store) == expected, "{archive}: killed after {batches} batches");
            if ended {
                assert!(batches > 6, "{archive}: {batches} batches");
                break;
            }
        }
    }
}

#[test]
fn migration_killed_again_and_again_loses_nothing() {
    for archive in older() {
        let expected = opened(&extracted(&archive).1);
        let (_folder, store) = extracted(&archive);
        let kills = (0..).take_while(|batches| !ends_within(*batches, &store)).count();
        assert!(kills > 6, "{archive}: {kills} kills");
        assert!(opened(&store) == expected, "{archive}");
    }
}
