//! Installs what building needs and is not there. `rust-toolchain.toml` names it all, but where rustup does not install by
//! itself (`RUSTUP_AUTO_INSTALL=0`) somebody has to run the command.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::console;
use crate::web;
use crate::workspace::{GUEST_TARGET, Invocation};

/// Checks everything, installs what is missing, and says which is which.
pub(crate) fn run() -> Result<()> {
    toolchain()?;
    web::set_up()
}

/// What every build needs.
pub(crate) fn toolchain() -> Result<()> {
    guest_target()?;
    component("rustfmt", "cargo fmt --version")?;
    component("clippy", "cargo clippy --version")
}

/// Makes sure that guests can be compiled.
pub(crate) fn guest_target() -> Result<()> {
    if has_guest_target()? {
        console::aside(&format!("the target {GUEST_TARGET} is installed"));
        return Ok(());
    }
    install(&format!("the target {GUEST_TARGET}"), &format!("rustup target add {GUEST_TARGET}"))?;
    if !has_guest_target()? {
        bail!(
            "the target {GUEST_TARGET} is still missing for the compiler in use; is another `rustc` before rustup's in PATH?"
        );
    }
    Ok(())
}

/// Asks the compiler and not rustup: there are other ways to install a target.
fn has_guest_target() -> Result<bool> {
    let query = Invocation::new(&format!("rustc --print target-libdir --target {GUEST_TARGET}"));
    let folder = query.output().context("there is no usable Rust compiler; see https://rustup.rs")?;
    Ok(PathBuf::from(folder.trim()).is_dir())
}

/// Makes sure that system calls can be watched.
pub(crate) fn strace() -> Result<()> {
    debian_package("strace", "strace -V", "syscalls")
}

/// Makes sure that a program is there. Debian packages are installed only by root, who may.
pub(crate) fn debian_package(name: &str, probe: &str, part: &str) -> Result<()> {
    if Invocation::new(probe).succeeds() {
        console::aside(&format!("{name} is installed"));
        return Ok(());
    }
    let is_root = Invocation::new("id -u").output().is_ok_and(|id| id.trim() == "0");
    if !is_root || !Invocation::new("apt-get --version").succeeds() {
        bail!("{name} is missing; install it (`apt-get install {name}`), or leave it out with `--without {part}`");
    }
    console::line(&format!("{name} is missing; installing the Debian package"));
    // The lists of a new machine may be empty or old. That they cannot be brought up to date is not yet a failure.
    let _ = Invocation::new("apt-get update").run();
    Invocation::new("apt-get install --yes --no-install-recommends").word(name).run().with_context(|| {
        format!("could not install {name}; install it in your own way, or leave it out with `--without {part}`")
    })
}

fn component(name: &str, probe: &str) -> Result<()> {
    if Invocation::new(probe).succeeds() {
        console::aside(&format!("{name} is installed"));
        return Ok(());
    }
    install(name, &format!("rustup component add {name}"))
}

fn install(what: &str, line: &str) -> Result<()> {
    console::line(&format!("{what} is missing; running `{line}`"));
    let command = Invocation::new(line);
    command.run().with_context(|| {
        format!(
            "could not install {what}: without rustup, or without a network, install it in your own way and try again"
        )
    })
}
