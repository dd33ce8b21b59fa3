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
