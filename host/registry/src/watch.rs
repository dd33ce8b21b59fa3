//! The watched folder: each `NAME.wasm` in it is a plugin, live within a second of being there.
//!
//! Editors, compilers and copies write a file in pieces, so a file is loaded when two looks, a tenth of a second apart, saw
//! the same; one that was renamed into place is whole and is loaded at once. The folder is looked at when the operating system says that
//! something changed, and every half second all the same: not every file system says so, and none always does.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::Duration;

use domain::Digest;
use notify::event::{EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::components::MAX_COMPONENT;
use crate::load::NotLoaded;
use crate::registry::Shared;
use crate::{Finding, LoadRule, files};

mod file;

use file::{Stamp, is_plugin, plugin_name};

/// How long a file has to stay as it is, and so the least time between two looks.
const SETTLE: Duration = Duration::from_millis(100);

/// How long nobody looks if nothing is said to have changed.
const RESCAN: Duration = Duration::from_millis(500);

/// Looks until a load that the host failed at is tried again: ten seconds.
const RETRY: u32 = 20;

/// Loads what is in the folder and begins to watch it. The thread ends soon after the registry is gone.
pub(crate) fn start(shared: &Arc<Shared>, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let folder = fs::canonicalize(folder)?;
    let (sender, changes) = mpsc::channel();
    let tell = move |event: notify::Result<notify::Event>| {
        // Whoever listened may be gone, which is the end of this as well.
        let _ = sender.send(event.map_or_else(|_| Vec::new(), |event| renamed(&event)));
    };
    // Without a watcher the folder is still looked at twice a second.
    let watcher = notify::recommended_watcher(tell)
        .and_then(|mut watcher| watcher.watch(&folder, RecursiveMode::NonRecursive).map(|()| watcher))
        .inspect_err(|error| tracing::warn!(%error, "changes of plugins are found by looking, not by being told"))
        .ok();
    let mut watch = Watch { folder, files: BTreeMap::new() };
    watch.look(shared, &Look::First)?;
    let shared = Arc::downgrade(shared);
    std::thread::Builder::new()
        .name("toolgate-watch".into())
        .spawn(move || watch.follow(&shared, &changes, watcher))
        .map(drop)
}

/// The files that an event says are whole.
fn renamed(event: &notify::Event) -> Vec<PathBuf> {
    match event.kind {
        EventKind::Modify(ModifyKind::Name(_)) => event.paths.clone(),
        _ => Vec::new(),
    }
}

/// What a look is for.
enum Look<'a> {
    /// Everything, and nothing has to settle: nobody is at work in a folder that was not watched before.
    First,
    /// Everything that settled.
    All,
    /// Only these files, which are whole.
    These(&'a [PathBuf]),
}

impl Look<'_> {
    fn covers(&self, path: &Path) -> bool {
        match self {
            Self::First | Self::All => true,
            Self::These(paths) => paths.iter().any(|whole| whole == path),
        }
    }
}

/// What is known of a file.
struct File {
    /// As it was at the last look; `None`: it was gone.
    seen: Option<Stamp>,
    /// As it was when it was last acted upon.
    done: Option<Stamp>,
    /// Whether what was found may have become loadable without a change of the file.
    blocked: bool,
    /// Looks until a failed load is tried again.
    retry: Option<u32>,
}

struct Watch {
    folder: PathBuf,
    files: BTreeMap<PathBuf, File>,
}

impl Watch {
    /// Looks whenever something changed, and otherwise now and then. The registry is held only while it looks, so that it
    /// ends when its last owner drops it, and this thread with it.
    fn follow(mut self, shared: &Weak<Shared>, changes: &Receiver<Vec<PathBuf>>, watcher: Option<RecommendedWatcher>) {
        // Held for as long as this thread lives: dropping it ends the watching.
        let _watcher = watcher;
        let mut failing = false;
        loop {
            let patience = if self.is_settled() { RESCAN } else { SETTLE };
            let mut whole = match changes.recv_timeout(patience) {
                Ok(paths) => paths,
                Err(RecvTimeoutError::Timeout) => Vec::new(),
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(patience);
                    Vec::new()
                }
            };
            whole.extend(changes.try_iter().flatten());
            let Some(shared) = shared.upgrade() else { return };
            if !whole.is_empty() {
                // What goes wrong here goes wrong in the look that follows, which reports it.
                let _ = self.look(&shared, &Look::These(&whole));
            }
            std::thread::sleep(SETTLE);
            let looked = self.look(&shared, &Look::All);
            if let Err(error) = &looked
                && !failing
            {
                tracing::error!(%error, folder = %self.folder.display(), "the plugins' folder cannot be read");
            }
            failing = looked.is_err();
        }
    }

    fn is_settled(&self) -> bool {
        self.files.values().all(|file| file.seen == file.done)
    }

    /// Looks at every file and acts upon those that changed and have settled: first upon those that are gone, so that a
    /// plugin under a new name does not find its tools taken by the old one.
    fn look(&mut self, shared: &Shared, look: &Look<'_>) -> io::Result<()> {
        let mut present = self.stamps()?;
        for path in present.keys() {
            let unknown = || File { seen: None, done: None, blocked: false, retry: None };
            self.files.entry(path.clone()).or_insert_with(unknown);
        }
        let mut due = Vec::new();
        let mut gone = Vec::new();
        for (path, file) in self.files.iter_mut().filter(|(path, _)| look.covers(path)) {
            let stamp = present.remove(path);
            let settled = file.seen == stamp || !matches!(look, Look::All);
            file.seen = stamp;
            let again = file.retry.as_mut().is_some_and(|looks| {
                *looks = looks.saturating_sub(1);
                *looks == 0
            });
            if settled && (file.done != stamp || again) {
                match stamp {
                    Some(stamp) => due.push((path.clone(), stamp)),
                    None => gone.push(path.clone()),
                }
            }
        }
        // A file that came and went between two looks was never acted upon and is forgotten.
        self.files.retain(|_, file| file.seen.is_some() || file.done.is_some());
        for path in &gone {
            self.files.remove(path);
            if let Ok(name) = plugin_name(path) {
                shared.unload(&name);
            }
        }
        let mut freed = !gone.is_empty();
        for (path, stamp) in due {
            freed |= self.act(shared, &path, stamp);
        }
        if freed {
            self.retry_blocked(shared);
        }
        Ok(())
    }

    /// Every `*.wasm` in the folder.
    fn stamps(&self) -> io::Result<BTreeMap<PathBuf, Stamp>> {
        let mut stamps = BTreeMap::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            // A file can be gone between the listing and this; a link counts as what it leads to.
            if let Ok(metadata) = fs::metadata(&path)
                && metadata.is_file()
                && is_plugin(&path)
            {
                stamps.insert(path, Stamp::of(&metadata));
            }
        }
        Ok(stamps)
    }

    /// Loads one file, and says whether a live plugin was replaced by it.
    fn act(&mut self, shared: &Shared, path: &Path, stamp: Stamp) -> bool {
        let Some(file) = self.files.get_mut(path) else { return false };
        let name = match plugin_name(path) {
            Ok(name) => name,
            Err((near, finding)) => {
                file.done = Some(stamp);
                match near {
                    Some(near) => shared.reject(&near, Digest::of([]), vec![finding], None),
                    None => tracing::warn!(%finding, "a file is no plugin"),
                }
                return false;
            }
        };
        let read = files::read(path, MAX_COMPONENT);
        if fs::metadata(path).ok().map(|metadata| Stamp::of(&metadata)) != Some(stamp) {
            // It changed while it was read, so what was read is nothing. The next look sees it as it is then.
            return false;
        }
        file.done = Some(stamp);
        file.blocked = false;
        file.retry = None;
        let bytes = match read {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(error) => {
                let finding = Finding {
                    tool: None,
                    rule: LoadRule::ComponentFile,
                    message: format!("the file cannot be read: {error}"),
                    remedy: "put a readable component of bounded size in its place".into(),
                };
                shared.reject(&name, Digest::of([]), vec![finding], None);
                return false;
            }
        };
        match shared.load(&name, &bytes, None) {
            Ok(loaded) => loaded.changed,
            Err(NotLoaded::Rejected { findings, .. }) => {
                file.blocked = findings.iter().any(|finding| finding.rule == LoadRule::ToolNameTaken);
                false
            }
            Err(NotLoaded::Fault(error)) => {
                tracing::error!(plugin = %name, %error, "the host could not load a plugin and will try again");
                file.retry = Some(RETRY);
                false
            }
        }
    }

    /// Tries those again whose tools' names were taken: the plugin that had them was unloaded or replaced. Every other
    /// refusal stands until the file changes.
    fn retry_blocked(&mut self, shared: &Shared) {
        let blocked =
            |(path, file): (&PathBuf, &File)| file.seen.filter(|_| file.blocked).map(|seen| (path.clone(), seen));
        let paths: Vec<_> = self.files.iter().filter_map(blocked).collect();
        for (path, stamp) in paths {
            self.act(shared, &path, stamp);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, one};

    #[test]
    fn a_file_that_is_written_in_pieces_is_loaded_once_it_stays_as_it_is() {
        let world = World::new();
        let folder = world.data.path().join("by hand");
        fs::create_dir(&folder).expect("creates");
        let mut watch = Watch { folder: folder.clone(), files: BTreeMap::new() };
        let mut look = |look: &Look<'_>| watch.look(&world.registry.shared, look).expect("looks");
        let file = folder.join("slow.wasm");
        let bytes = one("slow");
        for end in [0, 10, bytes.len()] {
            fs::write(&file, &bytes[..end]).expect("writes");
            look(&Look::All);
        }
        assert!(world.is_quiet(), "it changed between any two looks");
        look(&Look::These(&[folder.join("other.wasm")]));
        assert!(world.is_quiet(), "that look was for another file");
        look(&Look::All);
        assert_eq!(world.event(), "slow loaded [slow]");
        look(&Look::All);

        fs::remove_file(&file).expect("removes");
        look(&Look::All);
        assert!(world.is_quiet(), "it may be about to be replaced");
        look(&Look::All);
        assert_eq!(world.event(), "slow unloaded");
        assert!(watch.files.is_empty());
    }
}
