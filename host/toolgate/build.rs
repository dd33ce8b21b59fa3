//! Collects what `toolgate new` writes: the Rust SDK, the interface and the template, so that the binary carries them and a
//! new plugin needs nothing but crates.io.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// What of the repository belongs to a skeleton. Folders are taken with all that is in them.
const PARTS: [&str; 7] = [
    "sdk/rust/Cargo.toml",
    "sdk/rust/README.md",
    "sdk/rust/clippy.toml",
    "sdk/rust/src",
    "sdk/rust/template",
    "wit/v0.1",
    "wit/policy/v0.1",
];

#[expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "cargo speaks so with a build script")]
fn main() -> io::Result<()> {
    let folder = |name: &str| env::var_os(name).map(PathBuf::from).ok_or_else(|| io::Error::other("cargo sets it"));
    let root = folder("CARGO_MANIFEST_DIR")?.join("../..").canonicalize()?;
    let mut files = Vec::new();
    for part in PARTS {
        println!("cargo::rerun-if-changed={}", root.join(part).display());
        collect(&root.join(part), &mut files)?;
    }
    files.sort();
    let mut source = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(&root).map_err(io::Error::other)?.to_string_lossy().replace('\\', "/");
        let _ = writeln!(source, "    ({name:?}, include_str!({:?})),", file.display().to_string());
    }
    source.push(']');
    let made = folder("OUT_DIR")?.join("skeleton.rs");
    // Written only if it is another one: what is built of it is as old as it.
    if fs::read_to_string(&made).is_ok_and(|before| before == source) { Ok(()) } else { fs::write(made, source) }
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        if path.file_name().is_none_or(|name| name != "target" && name != "Cargo.lock") {
            collect(&path, files)?;
        }
    }
    Ok(())
}
