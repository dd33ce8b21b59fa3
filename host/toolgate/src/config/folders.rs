//! Granted folders. A folder that overlaps one that a plugin may write to, or files of the host, is refused; the others are
//! opened once, when the host starts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use capabilities::Opened;
use capabilities::filesystem::FolderHandle;
use domain::PluginName;

use super::source::Source;
use super::{Config, ConfigError};

/// A file system and a file in it.
type FileId = (u64, u64);

/// Symbolic links that one path may lead through, as on Linux.
const MAX_LINKS: usize = 40;

/// Where a path leads.
struct Resolved {
    /// The path without symbolic links. The end of it may not exist.
    path: PathBuf,
    /// Every folder that the path leads through, also before a symbolic link, and the target itself.
    visited: Vec<FileId>,
    /// The target, if it exists.
    target: Option<FileId>,
}

impl Resolved {
    fn of(path: &Path) -> Self {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut found = Self { path: PathBuf::new(), visited: Vec::new(), target: None };
        // `kept` counts the folders up to the last link: who may write to them can change that link.
        let (mut rest, mut links, mut kept) = (steps(&absolute), 0, 0);
        while let Some(step) = rest.pop() {
            if step == ".." {
                // The path leaves this folder: nothing in it can change where the path leads.
                if found.visited.len() > kept && found.visited.last().copied() == id(&found.path) {
                    found.visited.pop();
                }
                found.path.pop();
                continue;
            }
            let next = found.path.join(step);
            if links < MAX_LINKS
                && let Ok(target) = std::fs::read_link(&next)
            {
                links += 1;
                kept = found.visited.len();
                rest.extend(steps(&target));
                continue;
            }
            found.visited.extend(id(&next));
            found.path = next;
        }
        found.target = id(&found.path);
        found
    }

    /// Whether the path leads to `other` or through it. Two paths with one target can differ, for example because of a bind
    /// mount, so the file system's numbers are compared as well.
    fn leads_through(&self, other: &Self) -> bool {
        self.path.starts_with(&other.path) || other.target.is_some_and(|target| self.visited.contains(&target))
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.leads_through(other) || other.leads_through(self)
    }
}

fn id(path: &Path) -> Option<FileId> {
    std::fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// The steps of a path, the last one first.
fn steps(path: &Path) -> Vec<OsString> {
    let named = path.components().rev().filter(|step| *step != Component::CurDir);
    named.map(|step| step.as_os_str().to_owned()).collect()
}

/// A folder that is granted.
struct Granted<'a> {
    plugin: &'a PluginName,
    position: usize,
    write: bool,
    path: PathBuf,
    at: Resolved,
}

impl Granted<'_> {
    fn error(&self, source: &Source, message: &str, hint: &str) -> ConfigError {
        let position = self.position.to_string();
        let keys = ["plugin", self.plugin.as_str(), "grants", "folders", &position, "path"];
        let message = format!("the folder {} of the plugin {} {message}", self.path.display(), self.plugin);
        source.error(&keys, message, Some(hint.to_owned()))
    }
}

/// Refuses a folder that overlaps another folder, if a plugin may write to one of the two, or a file or folder of the host.
pub(super) fn check(config: &Config, source: &Source) -> Result<(), ConfigError> {
    const HINT: &str =
        "two paths overlap if one leads to the other or through it; grant a folder that holds nothing else";
    let granted = granted(config, source);
    if granted.is_empty() {
        return Ok(());
    }
    let of_host: Vec<_> =
        files_of_host(config, source).into_iter().map(|(what, path)| (what, Resolved::of(&path), path)).collect();
    for (position, folder) in granted.iter().enumerate() {
        if let Some((what, _, path)) = of_host.iter().find(|(_, at, _)| folder.at.overlaps(at)) {
            return Err(folder.error(source, &format!("overlaps {what} {}", path.display()), HINT));
        }
        let clashes = |other: &&Granted<'_>| (folder.write || other.write) && folder.at.overlaps(&other.at);
        if let Some(other) = granted[..position].iter().find(clashes) {
            let writer = if other.write { other.plugin } else { folder.plugin };
            let path = other.path.display();
            let message = format!("overlaps the folder {path} of the plugin {}, and {writer} may write", other.plugin);
            return Err(folder.error(source, &message, HINT));
        }
    }
    Ok(())
}

/// Opens every folder, and checks what was opened.
pub(super) fn open(config: &Config, source: &Source) -> Result<BTreeMap<PluginName, Opened>, ConfigError> {
    let mut opened = BTreeMap::<_, Opened>::new();
    for folder in granted(config, source) {
        let handle = FolderHandle::open(&folder.path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => source.error(
                &["plugin", folder.plugin.as_str(), "grants", "folders", &folder.position.to_string(), "path"],
                format!(
                    "the folder {} does not exist, and it is granted to the plugin {}",
                    folder.path.display(),
                    folder.plugin
                ),
                Some("make the folder, or correct the path".to_owned()),
            ),
            _ => {
                folder.error(source, &format!("cannot be opened: {error}"), "let the host read it, or correct the path")
            }
        })?;
        if handle.id().ok().flatten() != Resolved::of(&folder.path).target {
            return Err(folder.error(source, "changed while the host started", "start the host again"));
        }
        opened.entry(folder.plugin.clone()).or_default().folders.push(handle);
    }
    check(config, source)?;
    Ok(opened)
}

fn granted<'a>(config: &'a Config, source: &Source) -> Vec<Granted<'a>> {
    let of_plugin = |(name, table): (&'a super::Parsed<PluginName>, &'a super::PluginTable)| {
        let beside = source.beside().to_owned();
        table.grants.folders.iter().enumerate().map(move |(position, folder)| {
            let path = beside.join(&folder.path);
            Granted { plugin: &name.0, position, write: folder.write, at: Resolved::of(&path), path }
        })
    };
    config.plugin.iter().flat_map(of_plugin).collect()
}

/// The files and folders that decide what the host does, or that hold its secrets.
fn files_of_host(config: &Config, source: &Source) -> Vec<(String, PathBuf)> {
    let beside = |file: &PathBuf| source.beside().join(file);
    let mut files = vec![
        ("the data folder".to_owned(), config.data_folder()),
        ("the plugins folder".to_owned(), config.plugins_folder()),
    ];
    // Its content is run as the host's own code.
    files.extend(config.user_cache.iter().map(|cache| ("the folder of compiled code".to_owned(), cache.clone())));
    files.extend(source.file().map(|file| ("the configuration file".to_owned(), file.to_owned())));
    let tls = config.server.tls.iter().flat_map(|tls| [&tls.certificate, &tls.key]);
    files.extend(tls.map(|file| ("the TLS file".to_owned(), file.clone())));
    #[cfg(feature = "postgres")]
    let authorities = config.store.iter().filter_map(|table| ::store::authorities(&table.url));
    #[cfg(feature = "postgres")]
    files.extend(authorities.map(|file| ("the authorities of the store in".to_owned(), file)));
    files.extend(config.policies.files.iter().map(|file| ("the rules in".to_owned(), beside(file))));
    let named = |table: &super::ComponentTable| (format!("the policy {}", table.name), beside(&table.file));
    files.extend(config.policies.component.iter().map(named));
    let secrets =
        config.plugin.values().flat_map(|table| table.grants.secrets.values().filter_map(|it| it.file.as_ref()));
    let secrets = secrets.chain(config.webhook.iter().filter_map(|table| table.secret_file.as_ref()));
    let secrets = secrets.chain(config.upstream.values().filter_map(|table| table.token_file.as_ref()));
    let of_store = config.store.iter().flat_map(|table| [&table.password_file, &table.key_file]);
    let secrets = secrets.chain(of_store.flatten());
    files.extend(secrets.map(|file| ("the secret in".to_owned(), beside(file))));
    files.extend(config.files_of_upstreams());
    files
}
