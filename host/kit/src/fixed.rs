//! Fixed random numbers and a fixed time for tools that run the plugin's engine while they build. Without them, the same source
//! gives another component each time.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failed;

/// `preload/fixed.rs`, compiled by `build.rs`. It is empty where it does not work, which is outside of Linux.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fixed.so"));

/// The variable with the libraries that Linux loads into a program first.
pub(crate) const PRELOAD: &str = "LD_PRELOAD";

/// Writes the library to a folder, and returns its path. `None` on machines without it.
pub(crate) fn write(folder: &Path) -> Result<Option<PathBuf>, Failed> {
    if LIBRARY.is_empty() {
        return Ok(None);
    }
    let path = folder.join("fixed.so");
    fs::write(&path, LIBRARY).map_err(Failed::writing(&path))?;
    Ok(Some(path))
}
