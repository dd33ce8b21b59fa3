//! A model of a disk that loses power.
//!
//! A program runs under `strace`, which records its writes, its syncs and its acknowledgements in one order. From the
//! record, [`Recording::after_loss`] computes a content that a disk can have after a loss of power: everything that was
//! synced, and any part of the rest. A test puts that content into a folder, opens it, and looks for what was
//! acknowledged.
//!
//! The disk may do this:
//! - It keeps any subset of the writes that no finished `fsync` or `fdatasync` of their file covers, in any order. It
//!   may keep some sectors of a write and lose others. `sync_file_range` counts as nothing.
//! - The size of a file may be on the disk before its content. The missing content reads as zeros.
//! - A name that was made, replaced or removed is durable after an `fsync` of its folder. Before that the disk keeps the
//!   changes of names up to some moment, as file systems with a journal do.

mod recording;
mod trace;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use self::recording::Recording;
use self::recording::{Change, Event, FileId};
use crate::random::Random;

/// Every system call that can change a file or a name. The recording refuses those that it has no model of.
const CALLS: &str = "trace=openat,open,creat,write,writev,pwrite64,pwritev,pwritev2,ftruncate,truncate,fallocate,\
                     copy_file_range,sendfile,fsync,fdatasync,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,\
                     symlink,symlinkat,unlink,unlinkat,rmdir";

/// The sizes of the parts that a disk writes completely or not at all.
const SECTORS: [usize; 2] = [512, 4096];

/// A command that runs another program and records its system calls in a file.
#[must_use]
pub fn traced(output: &Path) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-s", "1000000000", "-e", "signal=none", "-e", CALLS, "-o"]).arg(output);
    strace
}

/// How a loss of power treats the writes that were not synced.
#[derive(Clone, Copy)]
enum Loss {
    /// All are lost.
    All,
    /// None is lost.
    None,
    /// This one is lost, and none of the others.
    One(usize),
    /// Those from this one on are lost, and this one in part.
    From(usize),
    /// Each is lost or kept.
    Some,
    /// Each of their sectors is lost or kept.
    Sectors,
}

/// The content of a folder after a loss of power.
pub struct AfterLoss {
    folders: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// The writes that were not synced, and how many of them were lost at least in part.
    pub unsynced: usize,
    pub lost: usize,
}

impl Recording {
    /// A possible content after a loss of power before a moment of the record.
    #[must_use]
    pub fn after_loss(&self, moment: usize, random: &mut Random) -> AfterLoss {
        let synced = self.synced_before(moment);
        let is_synced = |event: &Event| synced.get(&event.target()).is_some_and(|begun| event.ended < *begun);
        let events: Vec<&Event> = self.events().iter().take_while(|event| event.begun < moment).collect();
        let unsynced = |names: bool| {
            let is_one = |event: &&&Event| event.is_name() == names && !is_synced(event);
            events.iter().filter(is_one).count()
        };
        let (writes, names) = (unsynced(false), unsynced(true));
        let kept_names = random.below(names + 1);
        let loss = match random.below(6) {
            0 => Loss::All,
            1 => Loss::None,
            2 => Loss::One(random.below(writes)),
            3 => Loss::From(random.below(writes)),
            4 => Loss::Some,
            _ => Loss::Sectors,
        };
        let mut disk = Contents { sector: *random.pick(&SECTORS), grows: random.once_in(2), ..Contents::default() };
        let (mut write, mut name, mut lost) = (0, 0, 0);
        for event in events {
            if is_synced(event) {
                disk.apply(&event.change);
            } else if event.is_name() {
                if name < kept_names {
                    disk.apply(&event.change);
                }
                name += 1;
            } else {
                lost += usize::from(disk.apply_unsynced(&event.change, loss, write, random));
                write += 1;
            }
        }
        disk.finished(writes, lost)
    }
}

/// The files and names on the simulated disk.
#[derive(Default)]
struct Contents {
    files: HashMap<FileId, Vec<u8>>,
    names: BTreeMap<PathBuf, FileId>,
    folders: BTreeSet<PathBuf>,
    sector: usize,
    /// A lost write may have made its file longer.
    grows: bool,
}

impl Contents {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Write { file, at, bytes } => put(self.files.entry(*file).or_default(), *at, bytes),
            Change::Resize { file, len } => self.files.entry(*file).or_default().resize(*len, 0),
            Change::Folder { name } => drop(self.folders.insert(name.clone())),
            Change::Create { name, file } => drop(self.names.insert(name.clone(), *file)),
            Change::Rename { from, to, file } => {
                self.names.remove(from);
                self.names.insert(to.clone(), *file);
            }
            Change::Remove { name } => drop(self.names.remove(name)),
        }
    }

    /// Applies what the disk keeps of a write. Returns whether something is lost.
    fn apply_unsynced(&mut self, change: &Change, loss: Loss, number: usize, random: &mut Random) -> bool {
        let (keeps, in_part) = match loss {
            Loss::All => (false, false),
            Loss::None => (true, false),
            Loss::One(lost) => (number != lost, false),
            Loss::From(first) => (number < first, number == first),
            Loss::Some => (random.once_in(2), false),
            Loss::Sectors => (false, true),
        };
        match change {
            _ if keeps => self.apply(change),
            Change::Write { file, at, bytes } => {
                let (sector, grows) = (self.sector, self.grows);
                let content = self.files.entry(*file).or_default();
                if grows && content.len() < at + bytes.len() {
                    content.resize(at + bytes.len(), 0);
                }
                let mut from = 0;
                while in_part && from < bytes.len() {
                    let until = bytes.len().min((at + from) / sector * sector + sector - at);
                    if random.once_in(2) {
                        put(content, at + from, &bytes[from..until]);
                    }
                    from = until;
                }
            }
            _ => {}
        }
        !keeps
    }

    fn finished(mut self, unsynced: usize, lost: usize) -> AfterLoss {
        let mut folders = BTreeSet::new();
        // A folder whose parent is lost is lost. Parents sort before their children.
        for folder in self.folders {
            let is_top = folder.components().count() == 1;
            if is_top || folder.parent().is_some_and(|parent| folders.contains(parent)) {
                folders.insert(folder);
            }
        }
        let mut files = BTreeMap::new();
        for (name, file) in self.names {
            if name.components().count() == 1 || name.parent().is_some_and(|parent| folders.contains(parent)) {
                files.insert(name, self.files.remove(&file).unwrap_or_default());
            }
        }
        AfterLoss { folders, files, unsynced, lost }
    }
}

fn put(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if content.len() < at + bytes.len() {
        content.resize(at + bytes.len(), 0);
    }
    content[at..at + bytes.len()].copy_from_slice(bytes);
}

impl AfterLoss {
    /// Writes the content into an empty folder.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn write_to(&self, folder: &Path) -> io::Result<()> {
        self.folders.iter().try_for_each(|name| fs::create_dir(folder.join(name)))?;
        self.files.iter().try_for_each(|(name, content)| fs::write(folder.join(name), content))
    }

    /// The names and sizes of the files.
    #[must_use]
    pub fn listing(&self) -> String {
        let lines = self.files.iter().map(|(name, content)| format!("{} ({} bytes)", name.display(), content.len()));
        lines.collect::<Vec<_>>().join(", ")
    }
}
