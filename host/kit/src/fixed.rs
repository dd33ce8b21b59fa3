//! Fixed random numbers, times and files for tools that run the plugin's engine while they build. Without them, the same source gives
//! another component each time.

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

/// Python code that fixes the times and numbers of all files, and the order of the names in a folder. The program must have the
/// library. Afterwards it cannot start programs or load libraries, because the loader recognises those by their numbers. If the
/// code fails, it prints a line that [`failure`] finds.
pub(crate) const FIX_FILES: &str = "\
try:
    import ctypes
    failed = ctypes.CDLL(None).toolgate_fix_files() and 'this system does not allow seccomp filters'
except (ImportError, OSError, AttributeError) as error:
    failed = error
if failed:
    print('toolgate cannot fix files:', failed)
";

/// The reason why [`FIX_FILES`] failed, from the output of the program.
pub(crate) fn failure(output: &str) -> Option<&str> {
    output.lines().find_map(|line| line.strip_prefix("toolgate cannot fix files: "))
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

    #[test]
    fn files_have_fixed_times_and_sorted_names() {
        if left_out() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let library = write(folder.path()).unwrap().unwrap();
        let many = folder.path().join("many");
        fs::create_dir(&many).unwrap();
        // More than one buffer of names.
        let names: Vec<String> = (0..3000).map(|n| format!("{:04}-{}", n * 7919 % 3000, "x".repeat(60))).collect();
        for name in &names {
            fs::write(many.join(name), "").unwrap();
        }
        let script = format!(
            "{FIX_FILES}
import os, sys, threading
def look():
    names = os.listdir('many')
    print(len(names), names == sorted(names))
    for found in os.stat('many'), os.lstat('fixed.so'), os.fstat(os.open('many', os.O_RDONLY)):
        print(found.st_dev, found.st_ino, found.st_nlink, found.st_mtime, found.st_ctime, found.st_atime)
    print(os.stat('many').st_size, os.stat('fixed.so').st_size > 0, os.stat('/proc/self').st_ino == 1)
    for name in os.scandir('many'):
        os.remove(name)
    os.rmdir('many')
    try:
        os.stat('many')
    except FileNotFoundError:
        print('missing')
thread = threading.Thread(target=look)
thread.start()
thread.join()
"
        );
        let python = python3().in_folder(folder.path()).env(PRELOAD, library).args(["-I", "-c", &script]);
        let one = "1 1 1 1000000000.0 1000000000.0 1000000000.0\n";
        let expected = format!("3000 True\n{one}{one}{one}0 True False\nmissing\n");
        assert_eq!(python.run("trying").unwrap(), expected);
    }

    #[test]
    fn failure_to_fix_files_has_a_reason() {
        if left_out() {
            return;
        }
        let output = python3().args(["-I", "-c", &format!("{FIX_FILES}print('more')")]).run("trying").unwrap();
        assert!(failure(&output).is_some_and(|reason| reason.contains("toolgate_fix_files")), "{output}");
        assert_eq!(failure("Component built successfully\n"), None);
    }
}
