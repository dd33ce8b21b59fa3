//! Installs the missing tools that a build needs. `rust-toolchain.toml` names them, but with `RUSTUP_AUTO_INSTALL=0` rustup does
//! not install them by itself.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::console;
use crate::web;
use crate::workspace::{GUEST_TARGET, Invocation};

/// Checks every tool, installs the missing ones, and reports both.
pub(crate) fn run() -> Result<()> {
    toolchain()?;
    web::set_up()
}

/// Sets up the tools of every build.
pub(crate) fn toolchain() -> Result<()> {
    guest_target()?;
    component("rustfmt", "cargo fmt --version")?;
    component("clippy", "cargo clippy --version")
}

/// The free space of the disk that the repository is on, in gigabytes.
pub(crate) fn free_space() -> Option<u64> {
    let table = Invocation::new("df -Pk .").output().ok()?;
    let kilobytes: u64 = table.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    Some(kilobytes / 1_000_000)
}

/// Makes sure that guests can be compiled.
pub(crate) fn guest_target() -> Result<()> {
    target(GUEST_TARGET)
}

/// Makes sure that a target is installed.
pub(crate) fn target(name: &str) -> Result<()> {
    if has_target(name)? {
        console::aside(&format!("the target {name} is installed"));
        return Ok(());
    }
    install(&format!("the target {name}"), &format!("rustup target add {name}"))?;
    if !has_target(name)? {
        bail!(
            "rustup installed the target {name}, and `rustc` does not have it; is another `rustc` before rustup's in PATH?"
        );
    }
    Ok(())
}

/// Asks the compiler, not rustup, because a target can be installed in other ways.
fn has_target(name: &str) -> Result<bool> {
    let query = Invocation::new(&format!("rustc --print target-libdir --target {name}"));
    let folder = query.output().context("there is no usable Rust compiler; see https://rustup.rs")?;
    Ok(PathBuf::from(folder.trim()).is_dir())
}

/// Makes sure that strace is installed.
pub(crate) fn strace() -> Result<()> {
    debian_package("strace", "strace -V", "syscalls")
}

/// Checks that this user may mount a file system that nobody else sees.
pub(crate) fn mounts() -> Result<()> {
    if !Invocation::new("unshare --map-root-user --mount mount -t tmpfs tmpfs /tmp").succeeds() {
        bail!(
            "this user may not mount a file system of its own; run this as root, or allow user namespaces \
             (`sysctl kernel.unprivileged_userns_clone=1`, and `kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu), \
             or leave it out with `--without mounts`"
        );
    }
    Ok(())
}

/// Checks that the kernel has Landlock, if it lists what it has. A test asks the kernel itself.
pub(crate) fn landlock() -> Result<()> {
    let modules = fs::read_to_string("/sys/kernel/security/lsm").ok();
    if modules.is_some_and(|modules| !modules.split(',').any(|module| module.trim() == "landlock")) {
        bail!(
            "this kernel has no Landlock; use Linux 5.13 or newer with `landlock` in `lsm=`, or leave it out with \
             `--without landlock`"
        );
    }
    Ok(())
}

/// Makes sure that the programs of a PostgreSQL server are installed: on the path, or in the folder of Debian's package.
pub(crate) fn postgres() -> Result<()> {
    if has_server(Path::new("/usr/lib/postgresql")) {
        console::aside("PostgreSQL is installed");
        return Ok(());
    }
    debian_package("postgresql", "postgres --version", "postgres")
}

/// Whether a server is in the folder of Debian's packages. The package of the client is in the same folder.
fn has_server(folder: &Path) -> bool {
    let versions = fs::read_dir(folder).into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin/postgres")).any(|server| server.is_file())
}

/// Makes sure that a program is installed. Only root installs Debian packages.
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
    // A new machine may have empty or old package lists. The installation may succeed without an update.
    let _ = Invocation::new("apt-get update").run();
    Invocation::new("apt-get install --yes --no-install-recommends").word(name).run().with_context(|| {
        format!("could not install {name}; install it by other means, or leave it out with `--without {part}`")
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
        format!("could not install {what}; without rustup or a network, install it by other means and try again")
    })
}
