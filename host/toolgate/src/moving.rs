//! Fills the store of a data folder with an export, and the files of the folder that replace what the hosts on a database shared.
//!
//! These files come into a folder of the new store first. The rename of the new store makes all of it count, and then they are moved to
//! their places. After a kill in between, the next start of the host or the next command that reads tokens moves the rest.

use std::fs::{self, File};
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use store::{ImportError, Moved, Shared, StoreSettings};

use crate::files::{existing, replace};
use crate::folder::{Claim, private};
use crate::revoked;
use crate::tokens::{self, MARKER};

/// The folder of components.
const COMPONENTS: &str = "components";

/// Why an export was not imported into a data folder, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// Nothing was imported.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The import before was killed at its end.
    #[error(
        "the last import into {} was killed when its store was whole, and now it is complete; start the host, or move `store` out of \
         the folder to import again",
        data.display()
    )]
    Completed {
        /// The data folder.
        data: PathBuf,
    },
    /// The store was imported.
    #[error(
        "the store is imported, and the tokens, the ended sessions and the components are still in {}; the next start of the host \
         moves them to their places",
        path.display()
    )]
    Beside {
        /// The folder in the store.
        path: PathBuf,
        /// The reason.
        #[source]
        reason: io::Error,
    },
}

/// Fills the empty store of a data folder. No host and no other import may use the folder. No record has more than `max_record` bytes.
///
/// # Errors
/// [`MoveError`].
pub fn import(data: &Path, max_record: usize, input: &mut dyn BufRead) -> Result<Moved, MoveError> {
    let failed = |source| ImportError::Open(store::OpenError::Io { path: data.to_owned(), source });
    private(data).map_err(failed)?;
    let in_use = || ImportError::Open(store::OpenError::InUse { path: data.to_owned() });
    let _claim = Claim::take(data).map_err(failed)?.ok_or_else(in_use)?;
    if beside(data).exists() {
        complete(data).map_err(|reason| MoveError::Beside { path: beside(data), reason })?;
        return Err(MoveError::Completed { data: data.to_owned() });
    }
    let mut keep = |beside: &Path, shared| keep(data, beside, shared);
    let moved = store::import(&data.join("store"), &StoreSettings::default(), max_record, input, &mut keep)?;
    complete(data).map_err(|reason| MoveError::Beside { path: beside(data), reason })?;
    Ok(moved)
}

fn beside(data: &Path) -> PathBuf {
    data.join("store").join(store::BESIDE)
}

/// Keeps the file of a data folder for a part of an export. Tokens of the folder itself are not replaced.
fn keep(data: &Path, beside: &Path, shared: Shared) -> io::Result<()> {
    check(&shared)?;
    fs::create_dir_all(beside)?;
    match shared {
        Shared::Document { name, body } if name == tokens::DOCUMENT => {
            check_own_tokens(&data.join(tokens::FILE), &body)?;
            replace(&beside.join(tokens::FILE), &body)
        }
        Shared::Document { name, body } if name == revoked::DOCUMENT => replace(&beside.join(revoked::FILE), &body),
        Shared::Document { name, .. } => Err(io::Error::other(format!("`{name}` is not known; use a newer toolgate"))),
        Shared::Component { digest, bytes, record } => {
            let folder = beside.join(COMPONENTS);
            fs::create_dir_all(&folder)?;
            if !record.is_empty() {
                replace(&folder.join(format!("{}.json", digest.hex())), &record)?;
            }
            replace(&folder.join(format!("{}.wasm", digest.hex())), &bytes)?;
            File::open(beside)?.sync_all()
        }
    }
}

/// Whether hosts can use a part of an export.
///
/// # Errors
/// The reason if they cannot.
pub fn check(shared: &Shared) -> io::Result<()> {
    let path = Path::new("the export");
    match shared {
        Shared::Document { name, body } if name == tokens::DOCUMENT => {
            tokens::check(body, path).map_err(io::Error::other)
        }
        Shared::Document { name, body } if name == revoked::DOCUMENT => revoked::check(body, path),
        Shared::Document { .. } | Shared::Component { .. } => Ok(()),
    }
}

/// Checks that the folder has no other tokens.
fn check_own_tokens(path: &Path, body: &[u8]) -> io::Result<()> {
    if existing(fs::read(path))?.is_some_and(|own| own != MARKER && own != body) {
        let message = format!("{} has other tokens; move it out of the folder", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    Ok(())
}

/// Moves the files of an import to their places, unless this is done. Sessions that were revoked in the folder stay revoked, and its
/// own copies of components stay. Another process that does this at once waits.
pub(crate) fn complete(data: &Path) -> io::Result<()> {
    let beside = beside(data);
    let Some(lock) = existing(File::open(&beside))? else { return Ok(()) };
    lock.lock()?;
    for entry in existing(fs::read_dir(beside.join(COMPONENTS)))?.into_iter().flatten() {
        let (from, folder) = (entry?, data.join(COMPONENTS));
        fs::create_dir_all(&folder)?;
        let to = folder.join(from.file_name());
        if !to.exists() {
            existing(fs::rename(from.path(), to))?;
        }
        File::open(folder)?.sync_all()?;
    }
    if let Some(document) = existing(fs::read(beside.join(revoked::FILE)))? {
        revoked::add(&data.join(revoked::FILE), &document)?;
    }
    let (from, to) = (beside.join(tokens::FILE), data.join(tokens::FILE));
    if let Some(body) = existing(fs::read(&from))? {
        check_own_tokens(&to, &body)?;
        existing(fs::rename(from, to))?;
    }
    File::open(data)?.sync_all()?;
    existing(fs::remove_dir_all(beside))?;
    tracing::info!(data = %data.display(), "the tokens, the ended sessions and the components of an import are in their places");
    Ok(())
}

#[cfg(test)]
mod tests {
    use domain::{Digest, Timestamp};
    use server::{OpenedBy, RevokedSessions as _, SessionMark};

    use super::*;
    use crate::revoked::RevokedFile;

    const TOKENS: &str = "{\"version\": 1, \"tokens\": []}";

    /// An export of an empty store with these lines.
    fn export(lines: &[String]) -> String {
        let hash = dispatch::ports::Head::START.hash;
        let first = format!("{{\"store\":{{\"format\":1,\"position\":0,\"hash\":\"{hash}\"}}}}\n");
        let text = [first, lines.concat()].concat();
        let (digest, lines) = (Digest::of(&text), lines.len() + 1);
        format!("{text}{{\"end\":{{\"lines\":{lines},\"digest\":\"{digest}\"}}}}\n")
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn document(name: &str, body: &[u8]) -> String {
        format!("{{\"document\":{{\"name\":\"{name}\",\"body\":\"{}\"}}}}\n", hex(body))
    }

    fn component(bytes: &[u8], record: &[u8]) -> String {
        let (digest, bytes, record) = (Digest::of(bytes), hex(bytes), hex(record));
        format!("{{\"component\":{{\"digest\":\"{digest}\",\"bytes\":\"{bytes}\",\"record\":\"{record}\"}}}}\n")
    }

    fn imported(data: &Path, lines: &[String]) -> Result<Moved, MoveError> {
        import(data, store::MAX_RECORD, &mut export(lines).as_bytes())
    }

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(name).collect();
        names.sort_unstable();
        names
    }

    fn session(id: u128) -> SessionMark {
        SessionMark { id, token: Digest::of("a"), opened_by: OpenedBy::LogIn, expires: Timestamp::from_millis(10) }
    }

    /// The file of a folder in which this session has ended.
    async fn ended(folder: &Path, id: u128) -> Vec<u8> {
        let (path, now) = (folder.join(revoked::FILE), Timestamp::from_millis(0));
        RevokedFile::open(&path, now).unwrap().revoke(session(id), now).await.unwrap();
        fs::read(path).unwrap()
    }

    #[tokio::test]
    async fn import_that_was_killed_after_the_rename_is_completed() {
        let [folder, elsewhere] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let (data, now) = (folder.path(), Timestamp::from_millis(0));
        let _ = ended(data, 1).await;
        fs::write(data.join(tokens::FILE), MARKER).unwrap();
        let own = data.join(COMPONENTS).join(format!("{}.json", Digest::of("a").hex()));
        fs::create_dir_all(own.parent().unwrap()).unwrap();
        fs::write(&own, "own").unwrap();
        let lines = [
            // A line without its end, which must not spoil the next one.
            document(revoked::DOCUMENT, &[ended(elsewhere.path(), 2).await.as_slice(), b"\0"].concat()),
            document(tokens::DOCUMENT, TOKENS.as_bytes()),
            component(b"b", b"b"),
            component(b"a", b"other"),
        ];
        // The steps of `import` before it moves files.
        let mut keep = |beside: &Path, shared| keep(data, beside, shared);
        let (settings, input) = (StoreSettings::default(), export(&lines));
        store::import(&data.join("store"), &settings, 1_000, &mut input.as_bytes(), &mut keep).unwrap();
        assert_eq!(fs::read(data.join(tokens::FILE)).unwrap(), MARKER, "nothing has moved yet");
        assert_eq!(names(&data.join(COMPONENTS)).len(), 1);

        tokens::Tokens::configured(&crate::config::Config::default(), data).await.unwrap();
        assert_eq!(fs::read(data.join(tokens::FILE)).unwrap(), TOKENS.as_bytes());
        assert_eq!((names(&data.join(COMPONENTS)).len(), fs::read(own).unwrap()), (4, b"own".to_vec()));
        assert!(!beside(data).exists());
        let both = RevokedFile::open(&data.join(revoked::FILE), now).unwrap();
        assert_eq!([1, 2, 3].map(|id| both.has(&session(id))), [true, true, false]);
        complete(data).unwrap();
        store::open(data.join("store"), &settings).unwrap();
    }

    #[test]
    fn import_that_is_refused_leaves_the_folder_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        let first = document(revoked::DOCUMENT, b"");
        for (lines, reason) in [
            (vec![first.clone(), document("keys", b"x")], "the document `keys`, which this toolgate does not know"),
            (vec![first, document(tokens::DOCUMENT, b"x")], "cannot use"),
            (vec![document(revoked::DOCUMENT, b"x y\n")], "cannot use"),
            (
                vec![component(b"first", b"x"), component(b"a", b"b").replace("\"61\"", "\"62\"")],
                "the bytes of the component have another digest",
            ),
        ] {
            let error = imported(data, &lines).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            assert_eq!(names(data), ["lock"]);
        }
        fs::write(data.join(tokens::FILE), "others").unwrap();
        let other = imported(data, &[document(tokens::DOCUMENT, TOKENS.as_bytes())]).unwrap_err();
        let reason = std::error::Error::source(&other).unwrap().to_string();
        assert!(reason.contains("has other tokens"), "{reason}");
        assert_eq!(fs::read(data.join(tokens::FILE)).unwrap(), b"others");
        assert_eq!(names(data), ["lock", tokens::FILE]);
        assert_eq!(store::DOCUMENTS, [revoked::DOCUMENT, tokens::DOCUMENT]);
    }

    #[test]
    fn import_after_a_kill_at_the_end_completes_the_killed_one() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        let mut keep = |beside: &Path, shared| keep(data, beside, shared);
        let input = export(&[document(tokens::DOCUMENT, TOKENS.as_bytes())]);
        let (target, settings) = (data.join("store"), StoreSettings::default());
        store::import(&target, &settings, 1_000, &mut input.as_bytes(), &mut keep).unwrap();
        assert_eq!(names(data), ["store"], "a kill at this moment");
        let completed = imported(data, &[]).unwrap_err().to_string();
        assert!(completed.contains("was killed when its store was whole, and now it is complete"), "{completed}");
        assert_eq!(names(data), ["lock", "store", tokens::FILE]);
        let again = imported(data, &[]).unwrap_err();
        assert!(matches!(again, MoveError::Import(ImportError::NotEmpty { .. })), "{again}");
    }

    #[test]
    fn folder_that_a_host_uses_takes_no_import() {
        let folder = tempfile::tempdir().unwrap();
        let claim = Claim::take(folder.path()).unwrap().unwrap();
        let refused = imported(folder.path(), &[]).unwrap_err().to_string();
        assert!(refused.contains("is in use by another process"), "{refused}");
        assert_eq!(names(folder.path()), ["lock"]);
        drop(claim);
        imported(folder.path(), &[]).unwrap();
    }

    /// Imports a second time at the end of the first input.
    struct Second<'a>(&'a Path, Option<MoveError>);

    impl io::Read for Second<'_> {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            self.1 = imported(self.0, &[]).err();
            Ok(0)
        }
    }

    #[test]
    fn second_import_at_once_is_refused_and_harms_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        let lines = export(&[document(tokens::DOCUMENT, TOKENS.as_bytes())]);
        let mut second = Second(data, None);
        let first = import(data, 1_000, &mut io::BufReader::new(io::Read::chain(lines.as_bytes(), &mut second)));
        assert_eq!(first.unwrap().lines, 2);
        let refused = second.1.unwrap().to_string();
        assert!(refused.contains("is in use by another process; stop that one, or choose another folder"), "{refused}");
        assert_eq!(names(data), ["lock", "store", tokens::FILE]);
    }
}
