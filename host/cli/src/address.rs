//! The file in the data folder with the address of the host that runs on it.
//!
//! A host that is killed leaves its file, and then anybody on this machine can listen at its address. So the host locks the
//! file for as long as it runs, and an address counts only while its file is locked. The operating system releases the lock
//! with the host.

use std::error::Error;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ureq::unversioned::transport::{ConnectionDetails, Connector, Transport};

use crate::own;

const NAME: &str = "address";

/// The address of a running host, published until this is dropped.
pub(crate) struct Published {
    path: PathBuf,
    _locked: File,
}

impl Published {
    /// Publishes an address. The caller has the data folder for itself.
    pub(crate) fn new(data: &Path, url: &str) -> io::Result<Self> {
        let (path, new) = (data.join(NAME), data.join("address.new"));
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(&new)?;
        // Locked before it has the name, so that its reader never takes it for the file of a host that has ended.
        file.lock()?;
        writeln!(file, "{url}")?;
        fs::rename(new, &path)?;
        Ok(Self { path, _locked: file })
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        // Someone may have removed it already.
        let _ = fs::remove_file(&self.path);
    }
}

/// The address in the file of a host, running or not.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) url: String,
    data: PathBuf,
    /// The file of the host to which connections count.
    file: Mutex<File>,
}

impl Found {
    /// The address of the host that runs on a folder. `None` if no host does.
    ///
    /// # Errors
    /// As [`own::open`].
    pub(crate) fn of_running(data: &Path) -> io::Result<Option<Self>> {
        let Some(file) = own::open(data, NAME)? else { return Ok(None) };
        let url = own::text(&file)?;
        Ok(is_locked(&file)?.then(|| Self { url, data: data.to_owned(), file: Mutex::new(file) }))
    }

    /// Whether a connection that was just made is one to the host. If that host has ended and another one runs at the same
    /// address, later connections count.
    fn counts(&self) -> io::Result<bool> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if is_locked(&file)? {
            return Ok(true);
        }
        if let Some(next) = Self::of_running(&self.data)?.filter(|next| next.url == self.url) {
            *file = next.file.into_inner().unwrap_or_else(PoisonError::into_inner);
        }
        Ok(false)
    }
}

fn is_locked(file: &File) -> io::Result<bool> {
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
        Ok(()) => file.unlock().map(|()| false),
    }
}

/// Checks that the host runs after each connection is made and before anything is sent. Then it is the host that has
/// accepted the connection: nobody else can listen at its address while it runs.
impl<T: Transport> Connector<T> for Found {
    type Out = T;

    fn connect(&self, _: &ConnectionDetails, chained: Option<T>) -> Result<Option<T>, ureq::Error> {
        if self.counts()? {
            return Ok(chained);
        }
        Err(io::Error::other(Ended).into())
    }
}

/// The host of a connection has ended. Nothing was sent.
#[derive(Debug)]
struct Ended;

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the host has ended")
    }
}

impl Error for Ended {}

/// Whether nothing was sent because the host has ended. If another one runs at its address, the next request reaches that.
#[cfg(any(feature = "mcp", test))]
pub(crate) fn was_not_sent(error: &ureq::Error) -> bool {
    matches!(error, ureq::Error::Io(error) if error.get_ref().is_some_and(|inner| inner.is::<Ended>()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn address_counts_while_its_host_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("sets the mode");
        let found = || Found::of_running(folder.path()).expect("reads");
        assert!(found().is_none(), "no host has run");
        let published = Published::new(folder.path(), "http://127.0.0.1:1").expect("publishes");
        assert_eq!(found().expect("it runs").url, "http://127.0.0.1:1");

        // A kill closes the file and leaves its name.
        let left = folder.path().join("left");
        fs::rename(folder.path().join(NAME), &left).expect("renames");
        drop(published);
        fs::rename(left, folder.path().join(NAME)).expect("renames");
        assert!(found().is_none(), "the host has ended");
        assert!(found().is_none(), "and a look at it changes nothing");
        let _next = Published::new(folder.path(), "http://127.0.0.1:2").expect("publishes");
        assert_eq!(found().expect("it runs").url, "http://127.0.0.1:2");
    }

    #[test]
    fn a_restarted_host_counts_for_later_connections() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("sets the mode");
        let published = |url| Published::new(folder.path(), url).expect("publishes");
        let first = published("http://127.0.0.1:1");
        let found = Found::of_running(folder.path()).expect("reads").expect("it runs");
        let counts = || found.counts().expect("reads");
        assert!(counts());
        drop(first);
        assert!(!counts() && !counts());
        let elsewhere = published("http://127.0.0.1:2");
        assert!(!counts() && !counts(), "another address");
        drop(elsewhere);
        let _again = published("http://127.0.0.1:1");
        assert!(!counts(), "the connection may have been made before this host ran");
        assert!(counts());
    }

    #[test]
    fn nothing_is_sent_when_the_host_ends_before_the_connection() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("sets the mode");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let published = Published::new(folder.path(), &url).expect("publishes");
        let found = Found::of_running(folder.path()).expect("reads").expect("it runs");
        drop(published);
        let agent = crate::client::agent(Some(found), true);
        let failed = agent.get(&url).header("authorization", "Bearer secret").call().expect_err("the host has ended");
        assert!(was_not_sent(&failed), "{failed}");
        assert!(failed.to_string().contains("the host has ended"), "{failed}");
        let (mut stream, _) = listener.accept().expect("a connection");
        assert_eq!(io::read_to_string(&mut stream).expect("reads"), "", "and nothing was sent");
    }
}
