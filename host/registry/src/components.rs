//! The bytes of components, stored under their digest in the data folder for as long as a call needs them. Beside each
//! is a record of its tools, so that the host asks a component for them only once.
//!
//! ```text
//! components/<hex>.wasm    the bytes; the digest is checked at every read
//! components/<hex>.json    the record; if it is lost, the host asks the component again
//! ```
//!
//! Hosts on one database also keep components there. A host that lacks one gets it from there when a call needs it.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use capabilities::Capabilities;
use domain::{Digest, PluginName};
use sandbox::Declared;

use crate::files;
use crate::manifest::Manifest;

mod record;

/// The largest component that the host reads. A Python plugin has 18 MB.
pub(crate) const MAX_COMPONENT: u64 = 64 << 20;

/// The largest record that the host reads. The limits on tools and their texts keep real records far below it.
const MAX_RECORD: u64 = 128 << 20;

/// The facts about a component that the host knows without reading its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    /// The plugin name under which it was last loaded.
    pub(crate) plugin: PluginName,
    /// The capabilities that it was linked with.
    pub(crate) capabilities: Capabilities,
    pub(crate) has_server: bool,
    pub(crate) declared: Vec<Declared>,
    pub(crate) manifest: Option<Manifest>,
    /// Whether this version of the host wrote the record. Another version may link other imports.
    pub(crate) current: bool,
}

/// The components that several hosts share. Its functions block their thread, so they are called only on threads for it.
pub trait RemoteComponents: Send + Sync {
    /// Keeps the bytes and the record of a component, which is live now.
    ///
    /// # Errors
    /// If they may not be kept.
    fn keep(&self, component: Digest, bytes: &[u8], record: &[u8]) -> io::Result<()>;

    /// The bytes of a component, as they are stored.
    ///
    /// # Errors
    /// If they cannot be read.
    fn bytes(&self, component: Digest) -> io::Result<Option<Vec<u8>>>;

    /// The record of a component.
    ///
    /// # Errors
    /// If it cannot be read.
    fn record(&self, component: Digest) -> io::Result<Option<Vec<u8>>>;

    /// These components are live, or calls need them. Returns those of them that are kept.
    ///
    /// # Errors
    /// If they may still be taken for unused.
    fn live(&self, components: &HashSet<Digest>) -> io::Result<HashSet<Digest>>;

    /// Removes the components that are not pinned and that no host needed for this time. Returns how many.
    ///
    /// # Errors
    /// If they may not be removed.
    fn collect(&self, pinned: &HashSet<Digest>, older_than: Duration) -> io::Result<usize>;
}

/// The folder of components, and the components that hosts share.
pub(crate) struct Components {
    folder: PathBuf,
    pub(crate) remote: Option<Arc<dyn RemoteComponents>>,
}

impl Components {
    /// Opens the folder inside the data folder, and creates it if it is missing.
    pub(crate) fn open(data: &Path, remote: Option<Arc<dyn RemoteComponents>>) -> io::Result<Self> {
        let folder = data.join("components");
        std::fs::create_dir_all(&folder)?;
        files::remove_partial(&folder)?;
        Ok(Self { folder, remote })
    }

    fn bytes_path(&self, digest: Digest) -> PathBuf {
        self.folder.join(format!("{}.wasm", digest.hex()))
    }

    fn record_path(&self, digest: Digest) -> PathBuf {
        self.folder.join(format!("{}.json", digest.hex()))
    }

    /// Whether the bytes are stored in the folder. Does not read them.
    pub(crate) fn has(&self, digest: Digest) -> bool {
        self.bytes_path(digest).is_file()
    }

    /// Stores the bytes and syncs them to disk.
    pub(crate) fn keep(&self, digest: Digest, bytes: &[u8]) -> io::Result<()> {
        let size = self.bytes_path(digest).metadata().map(|metadata| metadata.len());
        if size.is_ok_and(|size| size == bytes.len() as u64) {
            // If these are other bytes, the next read detects it and removes them.
            return Ok(());
        }
        files::write(&self.folder, &format!("{}.wasm", digest.hex()), bytes)
    }

    /// Keeps a component and its record, which are in the folder, for the other hosts.
    pub(crate) fn share(&self, digest: Digest, bytes: &[u8]) -> io::Result<()> {
        let Some(remote) = &self.remote else { return Ok(()) };
        let record = files::read(&self.record_path(digest), MAX_RECORD)?.unwrap_or_default();
        remote.keep(digest, bytes, &record)
    }

    /// Tells the other hosts that these components are needed. Keeps those for them that only the folder has.
    pub(crate) fn share_needed(&self, needed: &HashSet<Digest>) -> io::Result<()> {
        let Some(remote) = &self.remote else { return Ok(()) };
        let kept = remote.live(needed)?;
        for digest in needed.difference(&kept) {
            if let Some(bytes) = self.own_bytes(*digest)? {
                self.share(*digest, &bytes)?;
            }
        }
        Ok(())
    }

    /// The bytes. If the folder does not have them, they may come from another host, with their record. `None` if the digest is
    /// unknown. Blocks its thread.
    pub(crate) fn bytes(&self, digest: Digest) -> io::Result<Option<Vec<u8>>> {
        let own = self.own_bytes(digest)?;
        let Some(remote) = self.remote.as_ref().filter(|_| own.is_none()) else { return Ok(own) };
        let Some(bytes) = remote.bytes(digest)? else { return Ok(None) };
        if Digest::of(&bytes) != digest {
            tracing::error!(component = %digest, "the bytes of a component changed where hosts share it");
            return Ok(None);
        }
        if self.known(digest).is_none()
            && let Some(record) = remote.record(digest)?.filter(|record| record::read(digest, record).is_some())
        {
            files::write(&self.folder, &format!("{}.json", digest.hex()), &record)?;
        }
        self.keep(digest, &bytes)?;
        Ok(Some(bytes))
    }

    /// The bytes in the folder. Bytes that do not match the digest are removed.
    fn own_bytes(&self, digest: Digest) -> io::Result<Option<Vec<u8>>> {
        let path = self.bytes_path(digest);
        let bytes = files::read(&path, MAX_COMPONENT)?;
        if bytes.as_ref().is_none_or(|bytes| Digest::of(bytes) == digest) {
            return Ok(bytes);
        }
        tracing::error!(component = %digest, "the bytes of a component changed on disk; they are removed");
        files::remove(&path)?;
        Ok(None)
    }

    /// Stores the record of a component.
    pub(crate) fn describe(&self, digest: Digest, known: &Known) -> io::Result<()> {
        files::write(&self.folder, &format!("{}.json", digest.hex()), record::write(digest, known).as_bytes())
    }

    /// The record of a component. `None` also if it is unreadable or about other bytes, because the host can ask the
    /// component again.
    pub(crate) fn known(&self, digest: Digest) -> Option<Known> {
        let bytes = files::read(&self.record_path(digest), MAX_RECORD).ok()??;
        record::read(digest, &bytes)
    }

    /// Removes every component that is not in the set, and returns how many.
    pub(crate) fn retain(&self, kept: &HashSet<Digest>) -> io::Result<usize> {
        let mut removed = 0;
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let digest = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<Digest>().ok());
            if digest.is_some_and(|digest| !kept.contains(&digest)) && files::remove(&path)? {
                removed += usize::from(path.extension().is_some_and(|extension| extension == "wasm"));
            }
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use capabilities::Capability;
    use capabilities::keyvalue::RequestedKeyValue;

    use super::*;

    fn known() -> Known {
        let declared = Declared {
            name: "search".into(),
            description: "Finds \"it\".".into(),
            parameters: r#"{ "type":"object" }"#.into(),
            executor: domain::tool::Executor::Client,
            approval: domain::tool::Approval::RequiresApproval,
            streaming: true,
            options: "{}".into(),
        };
        let plugin = PluginName::new("finder").expect("a name");
        Known {
            plugin,
            capabilities: Capabilities::of([Capability::KeyValue]),
            has_server: true,
            declared: vec![declared],
            manifest: Some(Manifest {
                keyvalue: Some(RequestedKeyValue { bytes: Some(1), keys: None, why: "to remember".into() }),
                ..Manifest::default()
            }),
            current: true,
        }
    }

    #[test]
    fn changed_bytes_are_never_returned() {
        let data = tempfile::tempdir().expect("a folder");
        let components = Components::open(data.path(), None).expect("opens");
        let digest = Digest::of("abc");
        components.keep(digest, b"abc").expect("writes");
        assert_eq!(components.bytes(digest).expect("reads"), Some(b"abc".to_vec()));
        assert_eq!(components.bytes(Digest::of("other")).expect("reads"), None);

        std::fs::write(components.bytes_path(digest), "abd").expect("writes");
        assert_eq!(components.bytes(digest).expect("reads"), None);
        assert!(!components.has(digest));
        components.keep(digest, b"abc").expect("writes again");
        assert!(components.has(digest));
    }

    #[test]
    fn records_read_back_and_strange_ones_are_ignored() {
        let data = tempfile::tempdir().expect("a folder");
        let components = Components::open(data.path(), None).expect("opens");
        let digest = Digest::of("abc");
        components.describe(digest, &known()).expect("writes");
        assert_eq!(components.known(digest), Some(known()));

        let text = std::fs::read_to_string(components.record_path(digest)).expect("reads");
        std::fs::write(components.record_path(digest), text.replace("\"host\":\"", "\"host\":\"9")).expect("writes");
        assert_eq!(components.known(digest), Some(Known { current: false, ..known() }), "of another host");
        for strange in ["", "{}", &text.replace("client", "nobody"), &text.replacen(':', ":9", 1)] {
            std::fs::write(components.record_path(digest), strange).expect("writes");
            assert_eq!(components.known(digest), None, "{strange}");
        }
        std::fs::write(components.record_path(Digest::of("other")), text).expect("writes");
        assert_eq!(components.known(Digest::of("other")), None, "a record about other bytes");
    }

    #[test]
    fn unused_components_and_partial_files_are_removed() {
        let data = tempfile::tempdir().expect("a folder");
        let components = Components::open(data.path(), None).expect("opens");
        let (old, live) = (Digest::of("old"), Digest::of("live"));
        for (digest, bytes) in [(old, b"old".as_slice()), (live, b"live")] {
            components.keep(digest, bytes).expect("writes");
            components.describe(digest, &known()).expect("writes");
        }
        assert_eq!(components.retain(&HashSet::from([live])).expect("removes"), 1);
        assert!(components.has(live) && !components.has(old));
        assert_eq!(components.known(old), None);

        let partial = data.path().join("components/.partial-1-2-x.wasm");
        std::fs::write(&partial, "half").expect("writes");
        Components::open(data.path(), None).expect("opens");
        assert!(!partial.exists());
    }
}
