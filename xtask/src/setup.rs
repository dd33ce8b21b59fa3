//! Installs the missing tools that a build needs. `rust-toolchain.toml` names them, but with `RUSTUP_AUTO_INSTALL=0` rustup does
//! not install them by itself.

use std::fs;
use std::path::PathBuf;

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

/// The oldest version of PostgreSQL that a host uses.
const OLDEST_POSTGRES: u32 = 14;

/// Makes sure that the programs of a PostgreSQL server are installed: in PATH, or in the folder of Debian's packages. The tests take the
/// first one that is new enough.
pub(crate) fn postgres() -> Result<()> {
    if servers().is_empty() {
        debian_package("postgresql", "postgres --version", "postgres")?;
    }
    check_servers(&servers())?;
    console::aside("PostgreSQL is installed");
    Ok(())
}

/// Refuses servers of these versions if all are too old.
fn check_servers(versions: &[u32]) -> Result<()> {
    match versions.iter().max() {
        Some(newest) if *newest < OLDEST_POSTGRES => bail!(
            "PostgreSQL {newest} is too old: a host uses {OLDEST_POSTGRES} or newer; run `apt-get install postgresql`, or leave it \
             out with `--without postgres`"
        ),
        _ => Ok(()),
    }
}

/// The versions of the servers in PATH and in the folder of Debian's packages. The package of the client is in the same folder.
fn servers() -> Vec<u32> {
    let folders = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let of_debian = folders.map(|folder| folder.path().join("bin/postgres")).filter(|server| server.is_file());
    let servers = std::iter::once(PathBuf::from("postgres")).chain(of_debian);
    let said = |server: PathBuf| Invocation::new("postgres --version").program(&server).output().ok();
    servers.filter_map(said).filter_map(|said| postgres_version(&said)).collect()
}

/// The major version in `postgres (PostgreSQL) 15.18 (Debian 15.18-0)`.
fn postgres_version(said: &str) -> Option<u32> {
    let version = said.strip_prefix("postgres (PostgreSQL) ")?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_that_is_too_old_is_refused_with_the_command() {
        for (said, version) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", Some(15)),
            ("postgres (PostgreSQL) 9.6.24\n", Some(9)),
            ("postgres (PostgreSQL) 18beta1\n", Some(18)),
            ("postgres (PostgreSQL) \n", None),
            ("mysqld 9.1", None),
        ] {
            assert_eq!(postgres_version(said), version, "{said}");
        }
        for allowed in [[14].as_slice(), &[9, 13, 17], &[]] {
            assert!(check_servers(allowed).is_ok());
        }
        let refused = check_servers(&[9, 13]).unwrap_err().to_string();
        assert!(refused.starts_with("PostgreSQL 13 is too old"), "{refused}");
        assert!(refused.contains("run `apt-get install postgresql`"), "{refused}");
    }
}
