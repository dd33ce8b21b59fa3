//! Collects the files that the binary embeds for authors of plugins: the SDKs with their templates and lists of tools,
//! and the WIT interfaces. So `toolgate new` and `toolgate build` work without the repository.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The files and folders that the binary embeds. A folder includes all its contents except [`LEFT_OUT`] and [`TRIED`].
const PARTS: [&str; 12] = [
    "sdk/rust/Cargo.toml",
    "sdk/rust/README.md",
    "sdk/rust/clippy.toml",
    "sdk/rust/src",
    "sdk/rust/template",
    "sdk/rust/template-durable",
    "sdk/python",
    "sdk/js",
    "sdk/go",
    "sdk/c",
    "wit/v0.1",
    "wit/policy/v0.1",
];

/// Generated files and folders, which are left out at every level. [`TRIED`] has the folders of tests, which are left
/// out only directly inside a folder of [`PARTS`].
const LEFT_OUT: [&str; 9] =
    ["target", "node_modules", "dist", "build", "__pycache__", ".mypy_cache", ".venv", "Cargo.lock", ".DS_Store"];
const TRIED: [&str; 3] = ["tests", "test", "testdata"];

#[expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "cargo speaks so with a build script")]
fn main() -> io::Result<()> {
    let folder = |name: &str| env::var_os(name).map(PathBuf::from).ok_or_else(|| io::Error::other("cargo sets it"));
    let root = folder("CARGO_MANIFEST_DIR")?.join("../..").canonicalize()?;
    let mut files = Vec::new();
    for part in PARTS {
        let path = root.join(part);
        if !path.is_dir() {
            println!("cargo::rerun-if-changed={}", path.display());
            files.push(path);
            continue;
        }
        for path in content(&path)? {
            // Cargo watches the entries and not the folder itself. Other tools write into the folder, and each of their
            // runs would cause a rebuild.
            if !TRIED.iter().any(|tried| path.ends_with(tried)) {
                println!("cargo::rerun-if-changed={}", path.display());
                collect(&path, &mut files)?;
            }
        }
    }
    files.sort();
    let mut source = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(&root).map_err(io::Error::other)?.to_string_lossy().replace('\\', "/");
        let _ = writeln!(source, "    ({name:?}, include_bytes!({:?})),", file.display().to_string());
    }
    source.push(']');
    let made = folder("OUT_DIR")?.join("carried.rs");
    // An unchanged file is not written again, because a new modification time would cause a rebuild.
    if fs::read_to_string(&made).is_ok_and(|before| before == source) { Ok(()) } else { fs::write(made, source) }
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    content(path)?.iter().try_for_each(|path| collect(path, files))
}

/// Lists the contents of a folder, without generated files and symbolic links.
fn content(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if !LEFT_OUT.iter().any(|left_out| name == *left_out) && !entry.file_type()?.is_symlink() {
            paths.push(entry.path());
        }
    }
    Ok(paths)
}
