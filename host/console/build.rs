//! Embeds what `cargo xtask build` made of `web/`, anew whenever that changed. Without it the crate builds as well; see
//! `src/missing.rs`.

#![expect(clippy::disallowed_macros, reason = "a build script speaks to Cargo by printing")]

use std::path::Path;

fn main() {
    // A path that does not exist counts as changed every time. Until there is a `dist`, its folder says when one comes.
    let watched = ["../../web/dist", "../../web"].into_iter().find(|folder| Path::new(folder).is_dir());
    println!("cargo::rerun-if-changed={}", watched.unwrap_or("build.rs"));
    println!("cargo::rerun-if-changed=build.rs");
}
