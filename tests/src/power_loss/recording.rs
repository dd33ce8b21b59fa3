//! The changes of a folder, its syncs and the acknowledgements, in one order.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::trace::{self, Call};

/// Lines that begin like this on the standard output of the recorded program are acknowledgements.
const ACKNOWLEDGED: &[u8] = b"acknowledged ";

pub(super) type FileId = usize;

/// A change of the folder. Names are relative to it.
#[derive(Debug)]
pub(super) enum Change {
    Write { file: FileId, at: usize, bytes: Vec<u8> },
    Resize { file: FileId, len: usize },
    Folder { name: PathBuf },
    Create { name: PathBuf, file: FileId },
    Rename { from: PathBuf, to: PathBuf, file: FileId },
    Remove { name: PathBuf },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { file, at, bytes } => write!(f, "write {} bytes at {at} of file {file}", bytes.len()),
            Self::Resize { file, len } => write!(f, "cut file {file} to {len} bytes"),
            Self::Folder { name } => write!(f, "make folder {}", name.display()),
            Self::Create { name, file } => write!(f, "make file {file}, {}", name.display()),
            Self::Rename { from, to, .. } => write!(f, "rename {} to {}", from.display(), to.display()),
            Self::Remove { name } => write!(f, "remove {}", name.display()),
        }
    }
}

/// A file, or a folder with its names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Target {
    File(FileId),
    Folder(PathBuf),
}

#[derive(Debug)]
pub(super) struct Event {
    pub(super) change: Change,
    pub(super) begun: usize,
    pub(super) ended: usize,
}

impl Event {
    /// The sync that makes it durable is one of this target.
    pub(super) fn target(&self) -> Target {
        match &self.change {
            Change::Write { file, .. } | Change::Resize { file, .. } => Target::File(*file),
            Change::Folder { name }
            | Change::Create { name, .. }
            | Change::Rename { to: name, .. }
            | Change::Remove { name } => Target::Folder(name.parent().map(Path::to_owned).unwrap_or_default()),
        }
    }

    pub(super) fn is_name(&self) -> bool {
        matches!(self.target(), Target::Folder(_))
    }
}

#[derive(Debug)]
struct Sync {
    target: Target,
    begun: usize,
    ended: usize,
}

/// The changes that one or more programs made to a folder, one after the other.
#[derive(Debug, Default)]
pub struct Recording {
    root: PathBuf,
    events: Vec<Event>,
    syncs: Vec<Sync>,
    acknowledged: Vec<(usize, String)>,
    /// The number of recorded lines.
    moments: usize,
    names: HashMap<PathBuf, FileId>,
    folders: BTreeSet<PathBuf>,
    sizes: Vec<usize>,
    /// Where the next write to an open file goes, by descriptor. `None`: to the end.
    next: HashMap<usize, Option<usize>>,
}

impl Recording {
    /// The record of an empty folder, whose path has no symbolic link.
    #[must_use]
    pub fn of(root: &Path) -> Self {
        Self { root: root.to_owned(), ..Self::default() }
    }

    /// Adds what `strace` wrote about the next program, which has just ended.
    ///
    /// # Panics
    /// When the program did something to the folder that the recording has no model of.
    pub fn add(&mut self, trace: &str) {
        self.next.clear();
        let first = self.moments;
        for mut call in trace::calls(trace) {
            call.begun += first;
            call.ended += first;
            self.take(&call);
        }
        self.moments += trace.lines().count();
    }

    /// The number of moments at which power can be lost.
    #[must_use]
    pub fn moments(&self) -> usize {
        self.moments
    }

    /// The acknowledgements before a moment.
    pub fn acknowledged_before(&self, moment: usize) -> impl Iterator<Item = &str> {
        self.acknowledged.iter().take_while(move |(at, _)| *at < moment).map(|(_, line)| line.as_str())
    }

    /// The moments right after the acknowledgements.
    #[must_use]
    pub fn after_acknowledgements(&self) -> Vec<usize> {
        self.acknowledged.iter().map(|(at, _)| at + 1).collect()
    }

    /// The moments after a change began.
    #[must_use]
    pub fn after_changes(&self) -> Vec<usize> {
        self.events.iter().map(|event| event.begun + 1).collect()
    }

    /// The last changes and syncs of the database before a moment, for the report of a failure.
    #[must_use]
    pub fn last_before(&self, moment: usize, count: usize) -> String {
        let events = self.events.iter().map(|event| (event.begun, event.ended, event.change.to_string()));
        let syncs = self.syncs.iter().map(|sync| (sync.begun, sync.ended, format!("sync {:?}", sync.target)));
        let mut lines: Vec<_> = events.chain(syncs).filter(|(begun, ..)| *begun < moment).collect();
        lines.sort();
        let last = lines.len().saturating_sub(count);
        lines.drain(last..).map(|(begun, ended, text)| format!("{begun} to {ended}: {text}\n")).collect()
    }

    pub(super) fn events(&self) -> &[Event] {
        &self.events
    }

    /// When the newest sync of each target began that ended before a moment.
    pub(super) fn synced_before(&self, moment: usize) -> HashMap<Target, usize> {
        let mut synced = HashMap::new();
        for sync in self.syncs.iter().filter(|sync| sync.ended < moment) {
            let newest = synced.entry(sync.target.clone()).or_insert(sync.begun);
            *newest = sync.begun.max(*newest);
        }
        synced
    }

    fn take(&mut self, call: &Call<'_>) {
        match call.name {
            "openat" | "open" | "creat" => self.opened(call),
            "write" | "pwrite64" => self.written(call),
            "fsync" | "fdatasync" => self.synced(call),
            "ftruncate" => {
                let Some((Target::File(file), rest)) = self.target(call) else { return };
                let len = number(rest).expect("a length");
                if call.result.is_none() && self.content(file).len() != len {
                    return;
                }
                self.sizes[file] = len;
                self.push(call, Change::Resize { file, len });
            }
            "mkdir" | "rename" | "unlink" => self.renamed(call),
            other => {
                let root = self.root.to_string_lossy();
                assert!(!call.arguments.contains(&*root), "{other} is not in the model: {}", call.arguments);
            }
        }
    }

    fn push(&mut self, call: &Call<'_>, change: Change) {
        self.events.push(Event { change, begun: call.begun, ended: call.ended });
    }

    /// The content of a file after the recorded program has ended.
    fn content(&self, file: FileId) -> Vec<u8> {
        let name = self.names.iter().find(|(_, known)| **known == file);
        name.and_then(|(name, _)| fs::read(self.root.join(name)).ok()).unwrap_or_default()
    }

    /// The name in the folder.
    fn name(&self, path: &[u8]) -> Option<PathBuf> {
        let path = PathBuf::from(String::from_utf8_lossy(path).into_owned());
        path.strip_prefix(&self.root).ok().map(Path::to_owned)
    }

    fn opened(&mut self, call: &Call<'_>) {
        let Some(descriptor) = call.returned() else { return };
        let Some((path, flags)) = trace::quoted(call.arguments) else { return };
        let Some(name) = self.name(&path).filter(|name| self.folder(name).is_none()) else { return };
        self.next.insert(descriptor, if flags.contains("O_APPEND") { None } else { Some(0) });
        match self.names.get(&name) {
            None => {
                let file = self.sizes.len();
                self.sizes.push(0);
                self.names.insert(name.clone(), file);
                self.push(call, Change::Create { name, file });
            }
            Some(&file) if flags.contains("O_TRUNC") && self.sizes[file] > 0 => {
                self.sizes[file] = 0;
                self.push(call, Change::Resize { file, len: 0 });
            }
            Some(_) => {}
        }
    }

    fn folder(&self, name: &Path) -> Option<Target> {
        let is_folder = name.as_os_str().is_empty() || self.folders.contains(name);
        is_folder.then(|| Target::Folder(name.to_owned()))
    }

    /// The target of a call whose first argument is a file descriptor, and its other arguments.
    fn target<'a>(&self, call: &Call<'a>) -> Option<(Target, &'a str)> {
        let (_, rest) = trace::descriptor(call.arguments)?;
        let (_, path) = call.arguments.split_once('<')?;
        let name = self.name(path.split_once('>')?.0.as_bytes())?;
        let file = self.names.get(&name).map(|file| Target::File(*file));
        Some((self.folder(&name).or(file)?, rest))
    }

    fn written(&mut self, call: &Call<'_>) {
        let Some((descriptor, rest)) = trace::descriptor(call.arguments) else { return };
        let Some((mut bytes, rest)) = trace::quoted(rest) else { return };
        if descriptor == 1 && bytes.starts_with(ACKNOWLEDGED) {
            let line = String::from_utf8_lossy(&bytes[ACKNOWLEDGED.len()..]);
            return self.acknowledged.push((call.begun, line.trim_end().to_owned()));
        }
        let Some((Target::File(file), _)) = self.target(call) else { return };
        let at = match (call.name, self.next.get(&descriptor).expect("an open file")) {
            ("write", Some(next)) => *next,
            ("write", None) => self.sizes[file],
            _ => rest.rsplit_once(", ").and_then(|(_, at)| number(at)).expect("an offset"),
        };
        // A failed write may have written a part.
        let written = match call.result {
            Some(_) => call.returned().unwrap_or(0),
            None => common(&bytes, self.content(file).get(at..).unwrap_or_default()),
        };
        bytes.truncate(written);
        if let ("write", Some(Some(next))) = (call.name, self.next.get_mut(&descriptor)) {
            *next += written;
        }
        self.sizes[file] = self.sizes[file].max(at + bytes.len());
        self.push(call, Change::Write { file, at, bytes });
    }

    fn synced(&mut self, call: &Call<'_>) {
        let Some((target, _)) = self.target(call) else { return };
        if call.returned() == Some(0) {
            self.syncs.push(Sync { target, begun: call.begun, ended: call.ended });
        }
    }

    fn renamed(&mut self, call: &Call<'_>) {
        let Some((path, rest)) = trace::quoted(call.arguments) else { return };
        let Some(name) = self.name(&path) else { return };
        let succeeded = match call.result {
            Some(_) => call.returned() == Some(0),
            None => self.root.join(&name).exists() == (call.name == "mkdir"),
        };
        if !succeeded {
            return;
        }
        match call.name {
            "mkdir" => {
                self.folders.insert(name.clone());
                self.push(call, Change::Folder { name });
            }
            "unlink" => {
                self.names.remove(&name);
                self.push(call, Change::Remove { name });
            }
            _ => {
                let to = trace::quoted(rest).and_then(|(to, _)| self.name(&to)).expect("a name in the folder");
                let file = self.names.remove(&name).expect("a known file");
                self.names.insert(to.clone(), file);
                self.push(call, Change::Rename { from: name, to, file });
            }
        }
    }
}

/// The length of the longest common beginning.
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

fn number(text: &str) -> Option<usize> {
    text.trim().parse().ok()
}
