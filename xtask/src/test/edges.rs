//! Which crates each crate may depend on. Arrows point at the domain. Edges do not know each other; only the registry knows
//! the sandbox.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use crate::console;
use crate::workspace::{Invocation, root};

/// The dependencies that one crate under `host` may have.
struct Allowed {
    /// Its folder.
    name: &'static str,
    /// The crates under `host` that it may name, separated by spaces.
    ours: &'static str,
    /// Third-party crates that it must not have, not even through another crate.
    never: &'static str,
}

const fn allowed(name: &'static str, ours: &'static str, never: &'static str) -> Allowed {
    Allowed { name, ours, never }
}

const CRATES: [Allowed; 19] = [
    allowed("domain", "", "tokio futures async-trait serde serde_json uuid tracing"),
    allowed("escape", "", "tokio serde serde_json"),
    allowed("dispatch", "domain escape", "wasmtime wasmtime-wasi sled axum"),
    allowed("store", "domain dispatch", "wasmtime axum"),
    allowed("capabilities", "domain escape", "sled axum"),
    allowed("sandbox", "capabilities domain escape", "sled axum"),
    allowed("kit", "", "wasmtime sled axum tokio"),
    allowed("conform", "capabilities domain dispatch kit registry sandbox", "sled axum"),
    allowed("policy", "dispatch domain escape", "wasmtime sled axum"),
    allowed("webhook", "dispatch domain escape", "wasmtime sled axum"),
    allowed("console", "", "wasmtime sled"),
    allowed("registry", "capabilities dispatch domain escape policy sandbox", "sled axum"),
    allowed("api", "dispatch domain escape", "wasmtime sled axum hyper"),
    allowed("mcp", "dispatch domain escape", "wasmtime sled axum"),
    allowed("oauth", "domain escape", "wasmtime sled axum"),
    allowed("upstream", "dispatch domain escape", "wasmtime sled axum"),
    allowed("server", "api dispatch domain escape", "wasmtime sled"),
    allowed(
        "toolgate",
        "api capabilities dispatch domain escape oauth policy registry sandbox store webhook",
        "clap axum tracing-subscriber",
    ),
    allowed(
        "cli",
        "api capabilities conform console dispatch domain escape kit mcp policy registry sandbox server store toolgate",
        "",
    ),
];

/// Checks every crate, with its default features.
pub(crate) fn check() -> Result<()> {
    let folders = std::fs::read_dir(root().join("host"))?.count();
    if folders != CRATES.len() {
        bail!("host has {folders} folders, and `CRATES` in {} has {} rows: add the new crate", file!(), CRATES.len());
    }
    for Allowed { name, ours, never } in CRATES {
        let package = package(name);
        let line = format!("cargo tree --locked -p {package} -e normal --prefix depth --format {{p}}");
        let tree = Invocation::new(&line).output()?;
        let crates: BTreeSet<(bool, &str)> = tree.lines().filter_map(row).collect();
        let forbidden = |(is_direct, found): &(bool, &str)| {
            let is_other = CRATES.iter().map(|other| self::package(other.name)).any(|other| other == *found);
            let is_ours = ours.split(' ').any(|allowed| self::package(allowed) == *found);
            (*is_direct && is_other && !is_ours) || never.split(' ').any(|never| never == *found)
        };
        let found: Vec<&str> = crates.iter().filter(|row| forbidden(row)).map(|(_, name)| *name).collect();
        if let Some(first) = found.first() {
            bail!(
                "{package} must not depend on {}; ARCHITECTURE.md says why. To see the way:\n  cargo tree -p {package} -e normal -i {first}",
                found.join(", ")
            );
        }
        console::line(&format!("{package:<21} depends on {:>3} crates, and on none that is forbidden", crates.len()));
    }
    Ok(())
}

/// The name of the package in a folder under `host`.
fn package(folder: &str) -> String {
    if folder == "toolgate" { folder.to_owned() } else { format!("toolgate-{folder}") }
}

/// A line like `1tokio v1.2.3`: whether the dependency is direct, and its name. The crate itself has depth 0.
fn row(line: &str) -> Option<(bool, &str)> {
    let name = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let depth: u32 = line[..line.len() - name.len()].parse().ok()?;
    (depth > 0).then_some((depth == 1, name.split(' ').next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_dependency_has_depth_one() {
        assert_eq!(row("0toolgate-store v0.1.0 (here)"), None);
        assert_eq!(row("1toolgate-domain v0.1.0 (here)"), Some((true, "toolgate-domain")));
        assert_eq!(row("12serde v1.0.0 (*)"), Some((false, "serde")));
    }
}
