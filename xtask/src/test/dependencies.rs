//! How many crates of other people the binary is made of, and how many it may be.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use crate::console;
use crate::workspace::Invocation;

/// Raising this is a decision: say in the commit what the new ones are good for.
const LIMIT: usize = 345;

/// Counts what the binary is built from; what only builds it (procedural macros, build scripts) counts too.
pub(crate) fn check() -> Result<()> {
    let tree =
        Invocation::new("cargo tree --locked -p toolgate -e normal,build --prefix none --no-dedupe --format {p}")
            .output()?;
    // A crate of this repository is shown with its folder in parentheses.
    let foreign: BTreeSet<&str> = tree.lines().filter(|line| !line.is_empty() && !line.contains("(/")).collect();
    let count = foreign.len();
    console::line(&format!("{count} crates of other people, at most {LIMIT} are agreed"));
    if count > LIMIT {
        bail!("{count} dependencies are more than the {LIMIT} that are agreed; is the newest one worth it?");
    }
    Ok(())
}
