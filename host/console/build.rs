//! Embeds the console that `cargo xtask build` makes from `web/`, and rebuilds after a change. The crate also builds without it; see
//! `src/missing.rs`.

#![expect(clippy::disallowed_macros, reason = "a build script prints instructions to Cargo")]

use std::path::Path;

fn main() {
    // Cargo treats a missing path as always changed. Until `dist` exists, its parent folder is watched.
    let watched = ["../../web/dist", "../../web"].into_iter().find(|folder| Path::new(folder).is_dir());
    println!("cargo::rerun-if-changed={}", watched.unwrap_or("build.rs"));
    println!("cargo::rerun-if-changed=build.rs");
}
