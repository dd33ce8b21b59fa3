//! The files of a data folder that replace what the hosts on a database shared.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use store::Shared;

use crate::files::{existing, replace};
use crate::revoked;
use crate::tokens::{self, MARKER};

/// Makes the file of a data folder for a part of an export. Tokens of the folder itself are not replaced, and its revoked sessions stay
/// revoked.
///
/// # Errors
/// Faults of the disk, other tokens in the folder, and documents of a newer toolgate.
pub fn take_over(data: &Path, shared: Shared) -> io::Result<()> {
    match shared {
        Shared::Document { name, body } if name == tokens::DOCUMENT => {
            let path = data.join(tokens::FILE);
            if existing(fs::read(&path))?.is_some_and(|own| own != MARKER && own != body) {
                let message = format!("{} has other tokens; move it out of the folder", path.display());
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
            }
            tokens::check(&body, &path).map_err(io::Error::other)?;
            replace(&path, &body)
        }
        Shared::Document { name, body } if name == revoked::DOCUMENT => revoked::add(&data.join(revoked::FILE), &body),
        Shared::Document { name, .. } => Err(io::Error::other(format!("`{name}` is not known; use a newer toolgate"))),
        Shared::Component { digest, bytes, record } => {
            let folder = data.join("components");
            fs::create_dir_all(&folder)?;
            if !record.is_empty() {
                replace(&folder.join(format!("{}.json", digest.hex())), &record)?;
            }
            replace(&folder.join(format!("{}.wasm", digest.hex())), &bytes)?;
            File::open(data)?.sync_all()
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{Digest, Timestamp};
    use server::{OpenedBy, RevokedSessions as _, SessionMark};

    use super::*;
    use crate::revoked::RevokedFile;

    fn document(name: &str, body: impl Into<Vec<u8>>) -> Shared {
        Shared::Document { name: name.to_owned(), body: body.into() }
    }

    #[tokio::test]
    async fn log_outs_of_the_folder_and_of_the_database_count() {
        let folder = tempfile::tempdir().unwrap();
        let (session, now) = (
            |id| SessionMark {
                id,
                token: Digest::of("a"),
                opened_by: OpenedBy::LogIn,
                expires: Timestamp::from_millis(10),
            },
            Timestamp::from_millis(0),
        );
        let elsewhere = tempfile::tempdir().unwrap();
        for (of, id) in [(&folder, 1), (&elsewhere, 2)] {
            RevokedFile::open(&of.path().join(revoked::FILE), now).unwrap().revoke(session(id), now).await.unwrap();
        }
        let body = fs::read(elsewhere.path().join(revoked::FILE)).unwrap();
        take_over(folder.path(), document(revoked::DOCUMENT, body)).unwrap();
        let both = RevokedFile::open(&folder.path().join(revoked::FILE), now).unwrap();
        assert_eq!([1, 2, 3].map(|id| both.has(&session(id))), [true, true, false]);
    }

    #[test]
    fn documents_that_no_host_can_use_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for refused in [document("keys", "x"), document(tokens::DOCUMENT, "x"), document(revoked::DOCUMENT, "x y\n")] {
            take_over(folder.path(), refused).unwrap_err();
        }
        fs::write(folder.path().join(tokens::FILE), "others").unwrap();
        let other = take_over(folder.path(), document(tokens::DOCUMENT, MARKER)).unwrap_err().to_string();
        assert!(other.contains("has other tokens"), "{other}");
        assert_eq!(fs::read(folder.path().join(tokens::FILE)).unwrap(), b"others");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
