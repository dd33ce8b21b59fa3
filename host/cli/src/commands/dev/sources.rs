//! The sources of a plugin: what is in its folder and was not made there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::SystemTime;
use std::{fs, io};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::Event;

/// Folders that tools write into, wherever they are.
const MADE: [&str; 10] = [
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

/// Ends of the names of files that no plugin is written in: components, which lie in a host's folder of plugins, and logs.
const NO_SOURCES: [&str; 2] = ["wasm", "log"];

/// Files that a build writes itself where it had to choose versions.
const LOCKS: [&str; 3] = ["Cargo.lock", "package-lock.json", "go.sum"];

/// Files of a plugin that are looked at, at most.
const MOST: usize = 20_000;

/// The folder, watched.
pub(super) struct Sources {
    folder: PathBuf,
    watcher: RecommendedWatcher,
}

/// What the folder held: each file with its length and when it was changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Snapshot(BTreeMap<PathBuf, (u64, Option<SystemTime>)>);

impl Sources {
    /// Watches a folder, and tells of whatever happens in it.
    pub(super) fn watch(folder: &Path, sender: Sender<Event>) -> anyhow::Result<Self> {
        let tell = move |event: notify::Result<notify::Event>| {
            let is_read = event.is_ok_and(|event| matches!(event.kind, EventKind::Access(_)));
            if !is_read {
                // Whoever listened may be gone, which is the end of this as well.
                let _ = sender.send(Event::Changed);
            }
        };
        let mut watcher = notify::recommended_watcher(tell)?;
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
        Ok(Self { folder: folder.to_owned(), watcher })
    }

    /// What it holds now. Folders that are new are watched from now on.
    pub(super) fn look(&mut self) -> Snapshot {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            // Each on its own and before it is read, so that nothing is missed and what tools write into is not watched.
            let _ = self.watcher.watch(&folder, RecursiveMode::NonRecursive);
            // What is gone again holds nothing.
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
        // A link is not followed: it may lead anywhere, and round in a circle.
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !MADE.iter().any(|made| name == *made) {
                folders.push(entry.path());
            }
        } else if files.len() < MOST
            && !NO_SOURCES.iter().any(|end| Path::new(&name).extension().is_some_and(|it| it == *end))
        {
            let found = entry.metadata()?;
            files.insert(entry.path(), (found.len(), found.modified().ok()));
        }
    }
    Ok(())
}

impl Snapshot {
    /// Whether nothing else is different but the files in which a build writes down the versions it chose.
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
    fn what_tools_make_is_no_source() {
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
        for made in [
            "build/x.wasm",
            "target/debug/x",
            "src/__pycache__/a.pyc",
            "node_modules/a/index.js",
            ".git/HEAD",
            "plugins/x.wasm",
            "toolgate-data/store/db",
            "host.log",
        ] {
            write(made);
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
    fn a_change_in_a_folder_that_is_new_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (sender, events) = mpsc::channel();
        let mut sources = Sources::watch(folder.path(), sender).unwrap();
        fs::create_dir(folder.path().join("new")).unwrap();
        assert_eq!(events.recv().unwrap(), Event::Changed);
        let before = sources.look();
        assert!(events.try_iter().count() < 2, "making a folder is one change");
        fs::write(folder.path().join("new/a.py"), "a").unwrap();
        assert_eq!(events.recv().unwrap(), Event::Changed);
        assert_ne!(sources.look(), before);
    }
}
