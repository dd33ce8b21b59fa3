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

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use super::*;
    use crate::command::Invocation;
    use crate::toolchain::{left_out, python3};

    #[test]
    fn preloaded_program_has_fixed_random_numbers_and_time() {
        if left_out() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let library = write(folder.path()).unwrap().unwrap();
        let script = "import os, time; print(os.getrandom(3).hex(), time.time(), time.monotonic() - time.monotonic())";
        let run = |python: Invocation| python.args(["-I", "-c", script]).run("trying").unwrap();
        assert_eq!(run(python3().env(PRELOAD, library)), "070707 1000000000.0 0.0\n");
        assert!(!run(python3()).starts_with("070707 1000000000.0"), "without it they are real");
    }
}
