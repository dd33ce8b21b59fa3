//! Makes a store from its portable form (`portable.rs`). It is made in a folder beside the new one, which gets its name when it is
//! whole and its audit is verified.

use std::fs::{self, File};
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use dispatch::ports::{Position, Source, StoreFault};
use domain::{CallId, CallIndex, ConversationId, Digest, Event, Turn, TurnId};

use super::blobs::{self, Blobs};
use super::building::Building;
use super::folder::{self, Folder};
use super::journals::{self, JournalHead};
use super::keys::{self, StandingUsage};
use super::remains::{lost_record, tombstone, tombstone_of};
use super::tree::{Tree, attempt};
use super::verify::{VerifyError, verified};
use super::{SledStore, VALUES, chain};
use crate::fault::fault;
use crate::portable::bounds::Events;
use crate::portable::{CommitItem, Content, EntryItem, ImportError, Item, Key, LineReader, Moved, Shared, same_head};
use crate::{OpenError, StoreSettings, record};

/// The operation that fails.
const IMPORT: &str = "import a store";

/// The format that is written.
const FORMAT: u8 = 3;

/// The tree with the ids of the ended turns. It exists only during an import: a store has no index of them.
const ENDED_TURNS: &str = "ended-turns";

/// The folder in an imported store with the parts that belong beside it, until they are moved there.
pub const BESIDE: &str = "beside";

/// Makes a store in a folder that does not exist or is empty. No other process may use it. After an error or a kill, there is no store
/// in it. `keep` keeps the parts that a data folder has beside the store in a folder, which becomes [`BESIDE`] of the new store. So the
/// rename of the new store is the only moment at which all of it begins to count. No record has more than `max_record` bytes.
///
/// # Errors
/// [`ImportError`].
pub fn import(
    path: &Path,
    settings: &StoreSettings,
    max_record: usize,
    input: &mut dyn BufRead,
    keep: &mut dyn FnMut(&Path, Shared) -> io::Result<()>,
) -> Result<Moved, ImportError> {
    let at = |source| OpenError::io(path, source);
    if path.exists() && fs::read_dir(path).map_err(at)?.next().is_some() {
        let (target, content) = (format!("the folder {}", path.display()), "a store".to_owned());
        return Err(ImportError::NotEmpty { target, content });
    }
    let mut work = path.as_os_str().to_owned();
    work.push(".importing");
    let work = PathBuf::from(work);
    if work.exists() {
        // An import that was killed left it. One that runs has its lock.
        let _lock = folder::lock(&work)?;
        fs::remove_dir_all(&work).map_err(at)?;
    }
    // An input that is no export makes no folder.
    let mut lines = LineReader::begin(input, max_record)?;
    let imported = imported(&work, settings, &mut lines, keep).and_then(|()| {
        File::open(&work).and_then(|work| work.sync_all()).map_err(at)?;
        fs::rename(&work, path).map_err(at)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(at)?;
        Ok(lines.moved())
    });
    if imported.is_err() && work.exists() {
        fs::remove_dir_all(&work).map_err(at)?;
    }
    imported
}

fn imported(
    work: &Path,
    settings: &StoreSettings,
    lines: &mut LineReader<'_>,
    keep: &mut dyn FnMut(&Path, Shared) -> io::Result<()>,
) -> Result<(), ImportError> {
    let (head, max_memory) = (lines.head(), lines.max_memory());
    let Folder { folder_lock, db, file, blobs, .. } = Folder::open(work, settings, |_, _| Ok(()))?;
    let tree = |name| attempt(|| db.open_tree(name)).map(Tree::new).map_err(fault(IMPORT));
    let (values, ended_turns) = (tree(VALUES)?, tree(ENDED_TURNS)?);
    let out = Building::new(Tree::new((*db).clone()), IMPORT);
    let mut import = Import { out, values, ended_turns, blobs, stamp: head.position, journal: None };
    while let Some(item) = lines.next()? {
        match item {
            Item::Shared(shared) => {
                keep(&work.join(BESIDE), shared).map_err(|source| OpenError::io(work, source))?;
            }
            item => {
                if let Some(repeated) = import.item(item)? {
                    return Err(lines.damaged(repeated.repeated()));
                }
            }
        }
    }
    import.journal(None)?;
    import.out.write()?;
    attempt(|| db.drop_tree(ENDED_TURNS)).map_err(fault(IMPORT))?;
    import.due_times(max_memory)?;
    if head.position > Position::default() {
        import.out.put(keys::HEAD.to_vec(), keys::head_value(head))?;
    }
    import.values.flush().map_err(fault(IMPORT))?;
    import.out.finish(FORMAT, &file)?;
    import.blobs.sync().map_err(fault(IMPORT))?;
    drop((import, file, db));
    drop(folder_lock);
    match verified(Folder::open(work, settings, |_, _| Ok(()))?, Vec::new()) {
        Ok(found) => same_head(head, found)?,
        Err(VerifyError::Tampered(tampering)) => return Err(ImportError::Unverified(tampering)),
        Err(VerifyError::Open(error)) => return Err(error.into()),
        Err(VerifyError::Store(fault)) => return Err(fault.into()),
    }
    // The migration makes the indexes.
    drop(SledStore::open(work, &StoreSettings { migrates: true, ..*settings })?);
    Ok(())
}

struct Import {
    out: Building,
    values: Tree,
    ended_turns: Tree,
    blobs: Blobs,
    /// The position that the entries beside the logs get.
    stamp: Position,
    /// The journal whose entries come, with its head.
    journal: Option<(TurnId, CallIndex, JournalHead)>,
}

impl Import {
    /// Returns a key that an earlier line has, if the order of the lines does not show this.
    fn item(&mut self, item: Item) -> Result<Option<Key>, StoreFault> {
        match item {
            Item::RetentionTime(at) => self.stamped(keys::RETENTION_TIME.to_vec(), &at.millis().to_be_bytes())?,
            Item::Commit(commit) => return self.commit(commit),
            Item::Owner(conversation, owner) => self.stamped(keys::owner(&conversation), owner.as_str().as_bytes())?,
            Item::Call(conversation, id, turn) => return self.call(&conversation, id, turn),
            Item::Suspension(suspension) => {
                self.recorded(keys::suspension(suspension.row.id), &[], suspension.record)?
            }
            Item::Ended { bytes, ended, .. } => {
                let (at, turn) = ended.row.key();
                if self.ended_turns.insert(turn.bits().to_be_bytes(), &[]).map_err(fault(IMPORT))?.is_some() {
                    return Ok(Some(Key::Ended(at, turn)));
                }
                self.recorded(keys::ended((at, turn)), &bytes.to_be_bytes(), ended.record)?;
            }
            Item::Standing(standing) => {
                let id = standing.row.standing.id;
                let usage = StandingUsage::of(&standing.row).to_bytes();
                self.stamped(keys::standing(keys::STANDING_STATE, id), &usage)?;
                self.recorded(keys::standing(keys::STANDING, id), &[], standing.record)?;
            }
            Item::Denial(denial) => {
                self.stamped(keys::denied(&denial.conversation, denial.alike), &denial.at.millis().to_be_bytes())?;
            }
            Item::Delivery(delivery) => {
                let row = &delivery.row;
                if let Some(next) = keys::next_delivery(row) {
                    self.out.put(next, Vec::new())?;
                }
                let key = keys::delivery(row.report.subject(), row.report.number(), &row.webhook);
                self.recorded(key, &[], delivery.record)?;
            }
            Item::RunLog(log) => {
                let key = keys::run_log(log.row.turn, log.row.call, log.row.run);
                self.recorded(key, &log.row.written.to_be_bytes(), log.record)?;
            }
            Item::Journal { turn, call, run, length } => {
                let head = JournalHead { run: run.unwrap_or_default(), length, counted: 0 };
                self.stamped(journals::head(turn, call), &head.value())?;
            }
            Item::JournalEntry(entry) => self.journal_entry(entry)?,
            Item::Value { key, value } => drop(self.values.insert(key, &value).map_err(fault(IMPORT))?),
            Item::Shared(_) => {}
        }
        Ok(None)
    }

    fn commit(
        &mut self,
        CommitItem { head, source, conversation, content }: CommitItem,
    ) -> Result<Option<Key>, StoreFault> {
        self.out.put(keys::at(&[keys::AUDIT], head.position), keys::link(head.hash, source))?;
        let key = chain::key_of(head.position, source);
        let (Source::Turn { turn, number }, Some(conversation)) = (source, conversation) else {
            let value = match content {
                Content::Record(record, _) => self.whole(record)?,
                Content::Removed { digest, by } => lost_record(digest, by),
            };
            self.out.put(key, value)?;
            return Ok(None);
        };
        match content {
            Content::Record(record, calls) => {
                for id in calls {
                    if let Some(repeated) = self.call(&conversation, id, turn)? {
                        return Ok(Some(repeated));
                    }
                }
                let feed = keys::at(&keys::feed(&conversation), head.position);
                self.out.put(feed, keys::pointer(turn, number))?;
                let value = [head.position.0.to_be_bytes().as_slice(), &self.whole(record)?].concat();
                self.out.put(key, value)?;
            }
            Content::Removed { digest, by } => {
                let name = conversation.as_str().as_bytes();
                self.out.put(keys::removed_before(turn), [by.0.to_be_bytes().as_slice(), name].concat())?;
                self.out.put(key, tombstone_of(head.position, digest))?;
            }
        }
        Ok(None)
    }

    /// Writes a call id at once, because a commit may have the same one as another.
    fn call(&self, conversation: &ConversationId, id: CallId, turn: TurnId) -> Result<Option<Key>, StoreFault> {
        let value = [self.stamp.0.to_be_bytes().as_slice(), &turn.bits().to_be_bytes()].concat();
        let before = self.out.tree.insert(keys::call(conversation, &id), &value).map_err(fault(IMPORT))?;
        Ok(before.map(|_| Key::call(conversation.clone(), id)))
    }

    fn journal_entry(&mut self, EntryItem { turn, call, entry }: EntryItem) -> Result<(), StoreFault> {
        if self.journal.as_ref().is_none_or(|(of, at, _)| (*of, *at) != (turn, call)) {
            self.journal(Some((turn, call)))?;
        }
        if let Some((.., head)) = &mut self.journal {
            head.counted = head.counted.saturating_add(entry.record.len() as u64);
        }
        self.recorded(journals::entry(turn, call, entry.row.number), &[], entry.record)
    }

    /// Writes the size of the journal whose entries have all come, and begins with the next one.
    fn journal(&mut self, next: Option<(TurnId, CallIndex)>) -> Result<(), StoreFault> {
        if let Some((turn, call, head)) = self.journal.take() {
            self.stamped(journals::head(turn, call), &head.value())?;
        }
        let Some((turn, call)) = next else { return Ok(()) };
        self.out.write()?;
        let head = self.out.tree.get(journals::head(turn, call)).map_err(fault(IMPORT))?;
        let head = head.as_deref().and_then(keys::stamped).and_then(|(_, head)| JournalHead::read(head));
        self.journal = head.map(|head| (turn, call, head));
        Ok(())
    }

    /// Adds the times at which unfinished turns are due, and claims nothing for ended ones. The records of a turn take at most `max`
    /// bytes of memory. This includes ended turns, because the migration reads their logs too.
    fn due_times(&mut self, max: u64) -> Result<(), ImportError> {
        let tree = self.out.tree.clone();
        let (mut of, mut log) = (None, Events::default());
        for entry in tree.scan_prefix([keys::LOG]) {
            let (key, value) = entry.map_err(fault(IMPORT))?;
            let Some((turn, _)) = key.get(1..).and_then(keys::read_pointer) else { continue };
            if of != Some(turn) {
                self.due_time(&std::mem::take(&mut log).all)?;
                of = Some(turn);
            }
            let Some((_, record)) = keys::stamped(&value).filter(|(_, record)| tombstone(record).is_none()) else {
                continue;
            };
            let blob = blobs::referred(record).map(|digest| self.blobs.read_now(digest)).transpose()?;
            let record = blob.as_deref().unwrap_or(record);
            log.add(turn, record, record::read_events(record).unwrap_or_default(), max)?;
        }
        Ok(self.due_time(&log.all)?)
    }

    fn due_time(&mut self, events: &[Event]) -> Result<(), StoreFault> {
        let Some(turn) = Turn::replay(events) else { return Ok(()) };
        let Some(due) = turn.next_due() else { return Ok(()) };
        self.out.put(keys::due(due.at, turn.id), vec![u8::from(due.running)])?;
        self.out.put(keys::unfinished(turn.id), keys::due_value(due).to_vec())
    }

    /// Writes a value behind a stamp.
    fn stamped(&mut self, key: Vec<u8>, value: &[u8]) -> Result<(), StoreFault> {
        self.out.put(key, [self.stamp.0.to_be_bytes().as_slice(), value].concat())
    }

    /// Writes a record behind a stamp and a count.
    fn recorded(&mut self, key: Vec<u8>, count: &[u8], record: Vec<u8>) -> Result<(), StoreFault> {
        let record = self.whole(record)?;
        self.stamped(key, &[count, &record].concat())
    }

    /// The record, or the reference to its file if it is too large for the tree.
    fn whole(&self, record: Vec<u8>) -> Result<Vec<u8>, StoreFault> {
        // As a commit does it: a removal compares the values.
        if keys::STAMP + record.len() <= blobs::MAX_INLINE {
            return Ok(record);
        }
        let digest = Digest::of(&record);
        self.blobs.write_one(digest, &record).map_err(fault(blobs::WRITE))?;
        Ok(blobs::reference(digest).to_vec())
    }
}
