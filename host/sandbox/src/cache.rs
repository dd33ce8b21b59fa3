//! Compiled code on disk. The name of a file has the component's digest, and a digest of the engine's version and
//! configuration.
//!
//! Compiled code can do anything in the host, so the host loads only code that it wrote. Each file ends with an HMAC-SHA-256
//! (RFC 2104) over the digests of its chunks. The key of the HMAC is a file in the same folder that only the host's user can
//! read. The host loads the same bytes that it authenticates, even if the file changes in between. It does not use a file that
//! is damaged, old or not its own, and compiles again. A cache that cannot be read or written only costs time.
//!
//! A folder belongs to one host, or to a user whose programs share it: [`CacheOwner`]. A host may copy code from its user's
//! folder into its own.

pub(crate) mod code;
mod image;
mod key;

use std::collections::HashSet;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use domain::Digest;
use rustix::process::geteuid;
use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use self::image::Image;
use self::key::{Key, TAG};
use crate::engine::CONFIGURATION;

/// The owner of a folder of compiled code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CacheOwner {
    /// One host. It removes the code that it no longer needs: [`Sandbox::retain`](crate::Sandbox::retain).
    #[default]
    Host,
    /// A user, whose programs share the folder. Their bounds can differ, and a program must not accept a component only
    /// because another program did. So each program checks the structure itself. The folder has only code that was compiled
    /// within [`CompileBounds::default`](crate::CompileBounds), and only programs with these or looser bounds use it. The
    /// files have the digest of the component without its declaration, so a component that is packed is not compiled again.
    ///
    /// If the folder cannot be used, or belongs to another user, the programs have no cache. This is not an error.
    User,
}

pub(crate) struct Cache {
    pub(crate) owner: CacheOwner,
    folder: PathBuf,
    key: Key,
    /// The first part of each file's name: see [`version`].
    engine: String,
    /// The maximum size of all files together, in bytes.
    max: u64,
}

/// Part of the files' names. Increase it when the format of the files changes.
const FORMAT: u32 = 2;

/// The beginning of the name of a file that is being written: a draft. The process id and a random number follow.
const DRAFT: &str = "draft-";

/// A draft of this age is left from a program that was killed.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

impl Cache {
    /// Opens the folder, and makes it and its key if they are missing.
    pub(crate) fn open(folder: &Path, owner: CacheOwner, engine: &Engine, max: u64) -> anyhow::Result<Self> {
        let in_folder = || format!("could not set up the folder of compiled code at {}", folder.display());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(in_folder)?;
        if owner == CacheOwner::User {
            is_ours(folder).with_context(in_folder)?;
        }
        // An existing folder may have other permissions.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).with_context(in_folder)?;
        let key = Key::open(&folder.join("key")).with_context(in_folder)?;
        Ok(Self { owner, folder: folder.to_owned(), key, engine: version(engine), max })
    }

    /// Opens a user's folder to copy from it, and changes nothing there. `None` if it does not exist, or if others can write to it.
    fn of_user(folder: &Path, engine: &Engine) -> Option<Self> {
        is_ours(folder).ok()?;
        let others_write = fs::metadata(folder).ok()?.mode() & 0o022 != 0;
        let key = Key::read(&folder.join("key")).ok()?.filter(|_| !others_write)?;
        Some(Self { owner: CacheOwner::User, folder: folder.to_owned(), key, engine: version(engine), max: 0 })
    }

    /// Copies code from the user's folder into this one, and loads it. `plain` is the digest of the component without its
    /// declaration, under which the user's programs keep it.
    pub(crate) fn copy(&self, user: &Path, engine: &Engine, plain: Digest, digest: Digest) -> Option<Component> {
        let user = Self::of_user(user, engine)?;
        let image = user.image(plain)?;
        let component = user.usable(plain, image.load(engine))?;
        match image.bytes() {
            Ok(code) => self.put(digest, &code),
            Err(error) => tracing::warn!(%digest, %error, "compiled code could not be copied"),
        }
        Some(component)
    }

    /// The compiled code of a component, if this host wrote a file for it.
    pub(crate) fn get(&self, engine: &Engine, digest: Digest) -> Option<Component> {
        let image = self.image(digest)?;
        self.usable(digest, image.load(engine))
    }

    /// The code in a component's file, if this host wrote it.
    fn image(&self, digest: Digest) -> Option<Image> {
        let file = fs::File::open(self.path(digest)).ok()?;
        self.usable(digest, self.authenticated(digest, &file))
    }

    /// Turns an error into a warning.
    fn usable<T>(&self, digest: Digest, found: Result<T, String>) -> Option<T> {
        let warn = |why: &String| {
            let path = self.path(digest);
            tracing::warn!(path = %path.display(), why, "compiled code is not used; compiling again");
        };
        found.inspect_err(warn).ok()
    }

    /// The code in a file, if this host wrote it.
    fn authenticated(&self, digest: Digest, file: &fs::File) -> Result<Image, String> {
        let read = || -> io::Result<Option<Image>> {
            let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
            let Some(length) = length.checked_sub(TAG) else { return Ok(None) };
            let mut tag = [0; TAG];
            file.read_exact_at(&mut tag, length as u64)?;
            let image = Image::copy(file, length)?;
            let is_signed = self.key.verify(&self.name(digest), &image.digests()?, &tag);
            Ok(is_signed.then_some(image))
        };
        match read() {
            Ok(Some(image)) => Ok(image),
            Ok(None) => Err("this host did not write it, or it was changed".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Keeps compiled code. If this fails, the code still runs.
    pub(crate) fn put(&self, digest: Digest, code: &[u8]) {
        if let Err(error) = self.write(digest, code).and_then(|()| Ok(self.shrink(digest)?)) {
            tracing::warn!(%digest, error = format!("{error:#}"), "the host could not cache the compiled code; it compiles the component again next time");
        }
    }

    /// Removes the code of every component that is not in the set, code for other versions of the engine, and files that
    /// killed hosts left incomplete. Returns the number of files.
    pub(crate) fn retain(&self, kept: &HashSet<Digest>) -> io::Result<usize> {
        let kept: HashSet<String> = kept.iter().map(|digest| self.name(*digest)).collect();
        let ours = format!("{DRAFT}{}-", std::process::id());
        let mut removed = 0;
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let stale = match name.strip_suffix(".cwasm") {
                Some(_) => !kept.contains(name),
                None => name.starts_with(DRAFT) && !name.starts_with(&ours),
            };
            if stale {
                fs::remove_file(entry.path())?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Removes the oldest code until the rest is within the bound, and drafts of killed programs. The code that was just
    /// written stays.
    fn shrink(&self, written: Digest) -> io::Result<()> {
        let (mut files, mut drafts) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            // A file that was removed meanwhile needs no room.
            let Ok(metadata) = path.metadata() else { continue };
            if path.extension().is_some_and(|end| end == "cwasm") {
                files.push((metadata.modified()?, metadata.len(), path));
            } else if path.file_name().is_some_and(|name| name.to_string_lossy().contains(DRAFT)) {
                drafts.push((metadata.modified()?, path));
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        let newest = self.path(written);
        let now = files.iter().find(|(_, _, path)| *path == newest).map(|(time, _, _)| *time);
        for (time, draft) in drafts {
            if now.is_some_and(|now| now.duration_since(time).is_ok_and(|age| age > ABANDONED)) {
                remove(&draft)?;
            }
        }
        for (_, size, path) in files.into_iter().filter(|(_, _, path)| *path != newest) {
            if total <= self.max {
                break;
            }
            remove(&path)?;
            total = total.saturating_sub(size);
        }
        Ok(())
    }

    /// Writes a draft and renames it, so that a reader sees a complete file or none. The file is not synced: if a power
    /// failure damages it, it does not authenticate.
    fn write(&self, digest: Digest, code: &[u8]) -> anyhow::Result<()> {
        let draft = self.folder.join(draft()?);
        let tag = self.key.sign(&self.name(digest), &image::digests(code));
        let write = || -> io::Result<()> {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
            file.write_all(code)?;
            file.write_all(&tag)?;
            fs::rename(&draft, self.path(digest))
        };
        write().inspect_err(|_| {
            let _ = fs::remove_file(&draft);
        })?;
        Ok(())
    }

    fn path(&self, digest: Digest) -> PathBuf {
        self.folder.join(self.name(digest))
    }

    /// The tag covers the name, so that nobody can use the file of one component for another.
    fn name(&self, digest: Digest) -> String {
        format!("{}-{}.cwasm", self.engine, digest.hex())
    }
}

/// The part of a file's name that all components share: a digest of the format, the engine and its configuration.
fn version(engine: &Engine) -> String {
    let mut version = Stable(Sha256::new());
    (FORMAT, CONFIGURATION).hash(&mut version);
    engine.precompile_compatibility_hash().hash(&mut version);
    Digest::from_bytes(version.0.finalize().into()).hex()[..16].to_owned()
}

/// A name for a draft that no other draft has. The process id alone is not enough: containers that share a folder can have
/// equal ones, and a process can have several caches.
fn draft() -> io::Result<String> {
    Ok(format!("{DRAFT}{}-{:016x}", std::process::id(), getrandom::u64()?))
}

/// Fails unless this is a folder of the current user. In the folder of another user, that user has the key, and could make the
/// host run other code.
fn is_ours(folder: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user, or is not a folder"));
    }
    Ok(())
}

/// Removes a file, unless another program has removed it.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A hasher with the same result in every process. The standard library's hasher does not promise this.
struct Stable(Sha256);

impl Hasher for Stable {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The trait requires this; callers use the whole digest.
    fn finish(&self) -> u64 {
        0
    }
}
