//! Whether every crate of other people comes under a licence of `deny.toml`, so that the list holds also where nobody has
//! cargo-deny.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::console;
use crate::workspace::{Invocation, root};

/// Checks everything that `Cargo.lock` names, for whatever platform.
pub(crate) fn check() -> Result<()> {
    let policy = fs::read_to_string(root().join("deny.toml")).context("could not read deny.toml")?;
    let allowed = allowed(&policy);
    let metadata = Invocation::new("cargo metadata --locked --format-version 1").output()?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo printed something other than JSON")?;
    let packages = metadata["packages"].as_array().context("cargo named no packages")?;
    let mut refused = Vec::new();
    for package in packages.iter().filter(|package| !package["source"].is_null()) {
        let licence = package["license"].as_str().unwrap_or("none");
        if !satisfied(licence, &allowed) {
            refused.push(format!("{} {} ({licence})", package["name"], package["version"]));
        }
    }
    if !refused.is_empty() {
        bail!("no licence that deny.toml allows: {}", refused.join(", "));
    }
    console::line(&format!("{} licences are allowed, and every crate comes under one of them", allowed.len()));
    Ok(())
}

/// The list under `[licenses]`.
fn allowed(policy: &str) -> BTreeSet<&str> {
    let section = policy.lines().skip_while(|line| *line != "[licenses]");
    let list = section.skip_while(|line| *line != "allow = [").skip(1).take_while(|line| *line != "]");
    list.map(|line| line.trim().trim_end_matches(',').trim_matches('"')).collect()
}

/// Whether an SPDX expression can be satisfied. `/` is how `OR` was once written.
fn satisfied(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ").replace(" WITH ", "_WITH_");
    let mut words = spaced.split_whitespace().peekable();
    either(&mut words, allowed) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn either(words: &mut Words<'_>, allowed: &BTreeSet<&str>) -> bool {
    let mut satisfied = both(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        satisfied |= both(words, allowed);
    }
    satisfied
}

fn both(words: &mut Words<'_>, allowed: &BTreeSet<&str>) -> bool {
    let mut satisfied = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        satisfied &= one(words, allowed);
    }
    satisfied
}

fn one(words: &mut Words<'_>, allowed: &BTreeSet<&str>) -> bool {
    match words.next() {
        Some("(") => {
            let satisfied = either(words, allowed);
            words.next_if_eq(&")").is_some() && satisfied
        }
        Some(name) => allowed.contains(name.replace("_WITH_", " WITH ").as_str()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_as_it_is_written() {
        let policy = "[advisories]\nignore = [\n    1,\n]\n[licenses]\nallow = [\n    \"MIT\",\n    \"A WITH b\",\n]\nx = [\n]\n";
        assert_eq!(allowed(policy), BTreeSet::from(["MIT", "A WITH b"]));
    }

    #[test]
    fn an_expression_is_satisfied_by_what_is_allowed() {
        let allowed = BTreeSet::from(["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"]);
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("Apache-2.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("(GPL-3.0 OR MIT) AND ISC", true),
            ("MIT AND (GPL-3.0 OR BSL-1.0)", false),
            ("MIT)", false),
            ("(MIT", false),
            ("", false),
        ] {
            assert_eq!(satisfied(expression, &allowed), expected, "{expression}");
        }
    }
}
