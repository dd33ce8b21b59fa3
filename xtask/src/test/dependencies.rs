//! Counts the third-party crates that the library and the binary depend on, and bounds both numbers.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use crate::console;
use crate::workspace::Invocation;

/// The packages with their bounds. Raising a bound is a decision: the commit says what the new crates are for.
/// 368 to 371: `jsonwebtoken` reads access tokens, with `signature` and `zeroize_derive`. It has no cryptography of its own here.
/// 371 to 386: `tokio-postgres` and `deadpool-postgres` are the client of PostgreSQL and its pool, with 13 crates. The library has them
/// only with the feature `postgres`.
const LIMITS: [(&str, usize); 2] = [("toolgate", 282), ("toolgate-cli", 386)];

/// Counts the crates that a package is built from, procedural macros and build scripts included.
pub(crate) fn check() -> Result<()> {
    for (package, limit) in LIMITS {
        let line = format!("cargo tree --locked -p {package} -e normal,build --prefix none --no-dedupe --format {{p}}");
        let tree = Invocation::new(&line).output()?;
        // cargo shows the folder of a crate of this repository in parentheses.
        let foreign: BTreeSet<&str> = tree.lines().filter(|line| !line.is_empty() && !line.contains("(/")).collect();
        let count = foreign.len();
        console::line(&format!("{package:<12} {count} third-party crates, at most {limit} are allowed"));
        if count > limit {
            bail!("{package} depends on {count} crates, and {limit} are allowed. Is the newest one worth it?");
        }
    }
    Ok(())
}
