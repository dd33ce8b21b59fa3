//! The sources of a plugin: the files of its folder, without the output of tools.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::SystemTime;
use std::{fs, io};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::Event;

/// Names of folders that tools write into.
const OUTPUT: [&str; 10] = [
    "build",
    "target",
    "node_modules",
    ".git",
    "__pycache__",
    ".mypy_cache",
    ".pytest_cache",
    ".venv",
    ".zig-cache",
    "toolgate-data",
];

/// Extensions of files that are not sources: components in a host's folder of plugins, and logs.
const NO_SOURCES: [&str; 2] = ["wasm", "log"];

/// Files in which a build writes the versions that it chose.
const LOCKS: [&str; 3] = ["Cargo.lock", "package-lock.json", "go.sum"];

/// The maximal number of files in a snapshot.
const MAX_FILES: usize = 20_000;

/// The folder, watched.
pub(super) struct Sources {
    folder: PathBuf,
    watcher: RecommendedWatcher,
}

/// The content of the folder: each file with its length and the time of its last change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Snapshot(BTreeMap<PathBuf, (u64, Option<SystemTime>)>);

impl Sources {
    /// Watches a folder and sends an event for each change.
    pub(super) fn watch(folder: &Path, sender: Sender<Event>) -> anyhow::Result<Self> {
        let tell = move |event: notify::Result<notify::Event>| {
            let is_read = event.is_ok_and(|event| matches!(event.kind, EventKind::Access(_)));
            if !is_read {
                // The receiver may have ended; then this ends too.
                let _ = sender.send(Event::Changed);
            }
        };
        let mut watcher = notify::recommended_watcher(tell)?;
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
        Ok(Self { folder: folder.to_owned(), watcher })
    }

    /// The content now. New folders are watched from now on.
    pub(super) fn look(&mut self) -> Snapshot {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            // Each folder is watched on its own, before it is read. So no change is missed, and output folders are not watched.
            let _ = self.watcher.watch(&folder, RecursiveMode::NonRecursive);
            // The folder may have been removed in between.
            let _ = read(&folder, &mut files, &mut folders);
        }
        Snapshot(files)
    }
}

fn read(
    folder: &Path,
    files: &mut BTreeMap<PathBuf, (u64, Option<SystemTime>)>,
    folders: &mut Vec<PathBuf>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        // A symbolic link is not followed: it may leave the folder, or lead in a circle.
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !OUTPUT.iter().any(|output| name == *output) {
                folders.push(entry.path());
            }
        } else if files.len() < MAX_FILES
            && !NO_SOURCES.iter().any(|end| Path::new(&name).extension().is_some_and(|it| it == *end))
        {
            let found = entry.metadata()?;
            files.insert(entry.path(), (found.len(), found.modified().ok()));
        }
    }
    Ok(())
}

impl Snapshot {
    /// Whether only lock files differ.
    pub(super) fn differs_by_locks_from(&self, other: &Self) -> bool {
        let is_lock = |path: &Path| LOCKS.iter().any(|lock| path.file_name().is_some_and(|name| name == *lock));
        let without = |snapshot: &Self| -> Vec<_> {
            let rest = snapshot.0.iter().filter(|(path, _)| !is_lock(path));
            rest.map(|(path, stamp)| (path.clone(), *stamp)).collect()
        };
        without(self) == without(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn output_of_tools_is_not_a_source() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        };
        write("src/a.py");
        let (sender, _events) = mpsc::channel();
        let mut sources = Sources::watch(folder.path(), sender).unwrap();
        let before = sources.look();
        for output in [
            "build/x.wasm",
            "target/debug/x",
            "src/__pycache__/a.pyc",
            "node_modules/a/index.js",
            ".git/HEAD",
            "plugins/x.wasm",
            "toolgate-data/store/db",
            "host.log",
        ] {
            write(output);
        }
        assert_eq!(sources.look(), before);
        write("Cargo.lock");
        let locked = sources.look();
        assert!(locked != before && locked.differs_by_locks_from(&before));
        write("src/deep/b.py");
        let more = sources.look();
        assert!(!more.differs_by_locks_from(&before));
        fs::remove_file(folder.path().join("src/a.py")).unwrap();
        assert_ne!(sources.look(), more);
    }

    #[test]
    fn a_change_in_a_new_folder_sends_an_event() {
        let folder = tempfile::tempdir().unwrap();
        let (sender, events) = mpsc::channel();
        let mut sources = Sources::watch(folder.path(), sender).unwrap();
        fs::create_dir(folder.path().join("new")).unwrap();
        assert_eq!(events.recv().unwrap(), Event::Changed);
        let before = sources.look();
        assert!(events.try_iter().count() < 2, "a new folder is one change");
        fs::write(folder.path().join("new/a.py"), "a").unwrap();
        assert_eq!(events.recv().unwrap(), Event::Changed);
        assert_ne!(sources.look(), before);
    }
}
