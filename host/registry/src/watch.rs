//! The watched folder: each `NAME.wasm` in it is a plugin. The host sees a change within a second.
//!
//! At the start a thread loads the files that are there. The host does not wait for it.
//!
//! Editors, compilers and copies write a file in pieces. So a file is loaded only when two scans, a tenth of a second
//! apart, find it unchanged. A renamed file is complete and is loaded at once. The folder is scanned after each
//! notification of the operating system, and every half second in any case, because not every file system sends all
//! notifications.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use domain::Digest;
use notify::event::{EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::load::{NotLoaded, Origin};
use crate::shared::{Refused, Shared, Start};
use crate::{Finding, LoadRule};

mod file;

use file::{Stamp, is_plugin};
pub use file::{nearest_name, plugin_name, read_component};

/// How long a file must stay unchanged, and the shortest time between two scans.
const SETTLE: Duration = Duration::from_millis(100);

/// The time between two scans without notifications.
const RESCAN: Duration = Duration::from_millis(500);

/// If the host failed to load a plugin, it tries again after this many scans: at most about twelve seconds.
const RETRY: u32 = 20;

/// Begins to load the folder's plugins and to watch it. The thread ends soon after the registry is dropped.
pub(crate) fn start(shared: &Arc<Shared>, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let folder = fs::canonicalize(folder)?;
    let (sender, changes) = mpsc::channel();
    let tell = move |event: notify::Result<notify::Event>| {
        // The receiver ends together with the watch, so a failed send has no effect.
        let _ = sender.send(event.map_or_else(|_| Vec::new(), |event| renamed(&event)));
    };
    // Without a watcher the folder is still scanned twice a second.
    let watcher = notify::recommended_watcher(tell)
        .and_then(|mut watcher| watcher.watch(&folder, RecursiveMode::NonRecursive).map(|()| watcher))
        .inspect_err(
            |error| tracing::warn!(%error, "the system does not report changes of plugins; the host scans for them"),
        )
        .ok();
    let watch = Watch { folder, files: BTreeMap::new() };
    let plugins = watch.stamps()?.into_keys().filter_map(|path| plugin_name(&path).ok());
    let start = shared.starting(plugins.collect::<Vec<_>>());
    std::thread::Builder::new()
        .name("toolgate-watch".into())
        .spawn(move || watch.follow(start, &changes, watcher))
        .map(drop)
}

/// The files of an event that are complete.
fn renamed(event: &notify::Event) -> Vec<PathBuf> {
    match event.kind {
        EventKind::Modify(ModifyKind::Name(_)) => event.paths.clone(),
        _ => Vec::new(),
    }
}

/// The scope of one scan.
enum Look<'a> {
    /// All files. They need not settle first, because this is the first scan.
    First,
    /// All files that have settled.
    All,
    /// Only these files, which are complete.
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

/// The state of one file.
struct File {
    /// The file at the last scan. `None` if it was missing.
    seen: Option<Stamp>,
    /// The file when it was last loaded or refused.
    done: Option<Stamp>,
    /// Whether the plugin may become loadable without a change of the file.
    blocked: bool,
    /// The number of scans until a failed load is tried again.
    retry: Option<u32>,
}

/// The files that a scan found to handle.
#[derive(Default)]
struct Changes {
    /// New and changed files.
    due: Vec<(PathBuf, Stamp)>,
    missing: Vec<PathBuf>,
}

struct Watch {
    folder: PathBuf,
    files: BTreeMap<PathBuf, File>,
}

impl Watch {
    /// Scans at the start, after every change, and otherwise at intervals. It holds the registry only during a scan, so
    /// that the registry and this thread end when the last owner drops it.
    fn follow(mut self, start: Start, changes: &Receiver<Vec<PathBuf>>, watcher: Option<RecommendedWatcher>) {
        // Dropping the watcher would end the notifications.
        let _watcher = watcher;
        let shared = Arc::downgrade(&start.shared);
        let mut failing = false;
        let mut looked = self.first_look(start);
        loop {
            if let Err(error) = &looked
                && !failing
            {
                tracing::error!(%error, folder = %self.folder.display(), "the plugin folder cannot be read");
            }
            failing = looked.is_err();
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
                // The scan below meets the same error and reports it.
                let _ = self.look(&shared, &Look::These(&whole));
            }
            std::thread::sleep(SETTLE);
            looked = self.look(&shared, &Look::All);
        }
    }

    /// Loads the files that are there at the start.
    fn first_look(&mut self, mut start: Start) -> io::Result<()> {
        let due = self.scan(&Look::First)?.due;
        let mut changed = false;
        for (path, stamp) in due {
            if start.is_abandoned() {
                return Ok(());
            }
            changed |= self.act(&start.shared, &path, stamp);
            if let Ok(name) = plugin_name(&path) {
                start.ended(&name);
            }
        }
        if changed {
            self.retry_blocked(&start.shared);
        }
        Ok(())
    }

    fn is_settled(&self) -> bool {
        self.files.values().all(|file| file.seen == file.done)
    }

    /// Scans the files and handles those that changed and settled. Missing files come first. Otherwise the tool names of a
    /// renamed plugin would still be taken by its old name.
    fn look(&mut self, shared: &Shared, look: &Look<'_>) -> io::Result<()> {
        let Changes { due, missing } = self.scan(look)?;
        for path in &missing {
            self.files.remove(path);
            match plugin_name(path) {
                Ok(name) => shared.unload_missing(&name, path),
                Err(_) => shared.forget_misnamed(path),
            }
        }
        let mut freed = !missing.is_empty();
        for (path, stamp) in due {
            freed |= self.act(shared, &path, stamp);
        }
        if freed {
            self.retry_blocked(shared);
        }
        Ok(())
    }

    /// The files that changed and settled.
    fn scan(&mut self, look: &Look<'_>) -> io::Result<Changes> {
        let mut present = self.stamps()?;
        for path in present.keys() {
            let unknown = || File { seen: None, done: None, blocked: false, retry: None };
            self.files.entry(path.clone()).or_insert_with(unknown);
        }
        let mut changes = Changes::default();
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
                    Some(stamp) => changes.due.push((path.clone(), stamp)),
                    None => changes.missing.push(path.clone()),
                }
            }
        }
        // Forgets files that appeared and disappeared between two scans.
        self.files.retain(|_, file| file.seen.is_some() || file.done.is_some());
        Ok(changes)
    }

    /// The state of every `*.wasm` in the folder.
    fn stamps(&self) -> io::Result<BTreeMap<PathBuf, Stamp>> {
        let mut stamps = BTreeMap::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            // The file can disappear between the listing and this line. A link counts as its target.
            if let Ok(metadata) = fs::metadata(&path)
                && metadata.is_file()
                && is_plugin(&path)
            {
                stamps.insert(path, Stamp::of(&metadata));
            }
        }
        Ok(stamps)
    }

    /// Loads one file. Returns whether it replaced a live plugin.
    fn act(&mut self, shared: &Shared, path: &Path, stamp: Stamp) -> bool {
        let Some(file) = self.files.get_mut(path) else { return false };
        let name = match plugin_name(path) {
            Ok(name) => name,
            Err(finding) => {
                file.done = Some(stamp);
                shared.misname(path, finding);
                return false;
            }
        };
        let _in_progress = shared.in_progress(&name);
        // The host changes a plugin's file only under this lock, so the bytes stay valid until the load is done.
        let mut loading = shared.loading();
        let is_the_same = || fs::metadata(path).is_ok_and(|metadata| Stamp::of(&metadata) == stamp);
        if !is_the_same() {
            return false;
        }
        let read = read_component(path);
        if !is_the_same() {
            // The file changed during the read. The next scan handles its new state.
            return false;
        }
        file.done = Some(stamp);
        file.blocked = false;
        file.retry = None;
        let bytes = match read {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(finding) => {
                shared.reject(&name, unread(finding));
                return false;
            }
        };
        match shared.load_holding(&mut loading, &name, &bytes, Origin::Found) {
            Ok(loaded) => loaded.changed,
            Err(NotLoaded::Rejected { findings, .. }) => {
                file.blocked = findings.iter().any(|finding| finding.rule == LoadRule::ToolNameTaken);
                false
            }
            Err(NotLoaded::Fault(error)) => {
                tracing::error!(plugin = %name, %error, "the host failed to load a plugin and will try again");
                file.retry = Some(RETRY);
                false
            }
        }
    }

    /// Some plugins were refused because another plugin had their tool names. That plugin is no longer live, so this
    /// loads them again. Other refusals do not change until the file changes.
    fn retry_blocked(&mut self, shared: &Shared) {
        let blocked =
            |(path, file): (&PathBuf, &File)| file.seen.filter(|_| file.blocked).map(|seen| (path.clone(), seen));
        let paths: Vec<_> = self.files.iter().filter_map(blocked).collect();
        for (path, stamp) in paths {
            self.act(shared, &path, stamp);
        }
    }
}

/// The refusal of a file that was not read.
fn unread(finding: Finding) -> Refused {
    Refused { component: Digest::of([]), findings: vec![finding], access: None, built_against: None, found: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestRegistry, component, one, plugin};

    #[test]
    fn a_file_is_loaded_once_it_stops_changing() {
        let world = TestRegistry::new();
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

    #[test]
    fn finding_about_a_name_goes_with_the_file() {
        let world = TestRegistry::new();
        let folder = world.data.path().join("by hand");
        fs::create_dir(&folder).expect("creates");
        let mut watch = Watch { folder: folder.clone(), files: BTreeMap::new() };
        let mut misnamed = || {
            // The second look finds the files settled.
            [Look::All, Look::All].iter().for_each(|look| watch.look(&world.registry.shared, look).expect("looks"));
            Vec::from_iter(world.registry.misnamed().into_keys())
        };
        let file = folder.join("my tool.wasm");
        fs::write(&file, one("mine")).expect("writes");
        assert_eq!(misnamed(), std::slice::from_ref(&file));
        fs::rename(&file, folder.join("my_tool.wasm")).expect("renames");
        assert!(misnamed().is_empty());
        assert_eq!(world.event(), "my_tool loaded [mine]");
        assert!(world.is_quiet());
    }

    /// A folder that is scanned only when a test says so. It contains the plugin `mail`.
    struct Put {
        world: TestRegistry,
        folder: PathBuf,
        watch: Watch,
    }

    impl Put {
        fn new() -> Self {
            let world = TestRegistry::new();
            let folder = world.data.path().join("by hand");
            fs::create_dir(&folder).expect("creates");
            let put = Self { watch: Watch { folder: folder.clone(), files: BTreeMap::new() }, world, folder };
            put.world.registry.shared.load(&plugin("mail"), &one("old"), Some(&put.folder)).expect("loads");
            assert_eq!(put.world.event(), "mail loaded [old]");
            put
        }

        /// Sets an action that runs right before the lock is next taken.
        fn meanwhile(&self, act: impl FnOnce(&Shared, &Path) + Send + 'static) {
            let (registry, folder) = (self.world.registry.clone(), self.folder.clone());
            let act = Box::new(move || act(&registry.shared, &folder));
            *self.world.registry.shared.meanwhile.lock().expect("unpoisoned") = Some(act);
        }

        fn look(&mut self) {
            let whole = [self.folder.join("mail.wasm")];
            self.watch.look(&self.world.registry.shared, &Look::These(&whole)).expect("looks");
            let meanwhile = self.world.registry.shared.meanwhile.lock().expect("unpoisoned");
            assert!(meanwhile.is_none(), "the look took the lock");
        }
    }

    #[test]
    fn a_replaced_plugin_does_not_come_back() {
        let mut put = Put::new();
        put.meanwhile(|shared, folder| {
            shared.load(&plugin("mail"), &one("new"), Some(folder)).expect("loads");
        });
        put.look();
        assert_eq!(put.world.event(), "mail loaded [new]");
        assert!(put.world.is_quiet(), "the first was loaded again");
        assert_eq!(put.world.tools(), ["new"]);
        put.look();
        assert!(put.world.is_quiet() && put.world.tools() == ["new"], "what is live is what is in the folder");
    }

    #[test]
    fn a_removed_plugin_does_not_come_back() {
        let mut put = Put::new();
        put.meanwhile(|shared, folder| {
            assert!(shared.remove(&plugin("mail"), Some(folder)).expect("removes"));
        });
        put.look();
        assert_eq!(put.world.event(), "mail unloaded");
        put.look();
        assert!(put.world.is_quiet() && put.world.tools().is_empty());
    }

    #[test]
    fn a_plugin_that_was_put_back_stays_live() {
        let mut put = Put::new();
        put.look();
        fs::remove_file(put.folder.join("mail.wasm")).expect("removes");
        put.meanwhile(|shared, folder| {
            shared.load(&plugin("mail"), &one("new"), Some(folder)).expect("loads");
        });
        put.look();
        assert_eq!(put.world.event(), "mail loaded [new]");
        assert!(put.world.is_quiet() && put.world.tools() == ["new"]);
    }

    #[test]
    fn a_removal_covers_a_load_in_progress() {
        let put = Put::new();
        put.meanwhile(|shared, folder| {
            shared.load(&plugin("mail"), &one("new"), Some(folder)).expect("loads");
            // As if this load had begun before the removal.
            shared.begun().1.insert(plugin("mail"), 0);
        });
        assert!(put.world.registry.shared.remove(&plugin("mail"), Some(&put.folder)).expect("removes"));
        assert!(put.world.tools().is_empty());
        assert!(!put.folder.join("mail.wasm").exists(), "it would be live again at the next start");
    }

    #[test]
    fn a_put_after_a_removal_stays() {
        let put = Put::new();
        put.meanwhile(|shared, folder| {
            shared.load(&plugin("mail"), &one("new"), Some(folder)).expect("loads");
        });
        assert!(put.world.registry.shared.remove(&plugin("mail"), Some(&put.folder)).expect("removes"));
        assert_eq!(put.world.tools(), ["new"]);
        assert!(put.folder.join("mail.wasm").exists(), "what is live is in the folder");
    }

    #[test]
    fn a_refused_upload_stays_listed_after_a_scan() {
        let mut put = Put::new();
        let refused = component(&[serde_json::json!({"name": "a b"})]);
        put.world.registry.shared.load(&plugin("mail"), &refused, Some(&put.folder)).expect_err("is refused");
        let found = |put: &Put| put.world.registry.plugins()[0].rejected.as_ref().map(|(digest, _)| *digest);
        put.look();
        assert_eq!(found(&put), Some(Digest::of(&refused)));

        fs::write(put.folder.join("mail.wasm"), "half a compo").expect("writes");
        put.look();
        assert_eq!(found(&put), Some(Digest::of("half a compo")));
        fs::write(put.folder.join("mail.wasm"), one("old")).expect("writes");
        put.look();
        assert_eq!(found(&put), None, "what was wrong with the file is mended");
    }
}
