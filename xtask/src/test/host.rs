//! The tests of the host, in two groups at the same time. Most of the long ones wait for a host, a lease or a download, so one group
//! alone leaves a processor idle.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::console;
use crate::workspace::Invocation;

/// The tests of the group whose output is shown at the end. Together they take as long as the others.
const LONG: [&str; 7] = ["author_docs", "commands", "crash", "hostile", "hosts_faults", "languages", "postgres"];

/// Runs all of them. `left_out`: the parts whose tests are skipped.
pub(super) fn run(left_out: &str) -> Result<()> {
    let command = |words: &str| {
        let command = Invocation::new("cargo test --locked --workspace --no-fail-fast").words(words);
        if left_out.is_empty() { command } else { command.variable("TOOLGATE_WITHOUT", left_out) }
    };
    let named = |names: &[&str]| names.iter().map(|name| format!("--test {name}")).collect::<Vec<_>>().join(" ");
    let others = tests(&Invocation::new("cargo metadata --locked --no-deps --format-version 1").output()?)?;
    let others: Vec<_> = others.iter().map(String::as_str).filter(|name| !LONG.contains(name)).collect();

    let long = command(&named(&LONG));
    console::aside(&format!("$ {long}  (its output follows at the end)"));
    let beside = long.start("long-tests.log")?;
    let shown = [command(&format!("--lib --bins {}", named(&others))), command("--doc")].map(|command| {
        console::aside(&format!("$ {command}"));
        command.run()
    });
    console::headline("the long tests");
    shown.into_iter().chain([beside.wait()]).collect()
}

/// The names of the integration tests, from the metadata of cargo.
fn tests(metadata: &str) -> Result<BTreeSet<String>> {
    let metadata: Value = serde_json::from_str(metadata).context("the metadata of cargo is not JSON")?;
    let packages = metadata["packages"].as_array().context("the metadata of cargo has no packages")?;
    let targets = packages.iter().filter_map(|package| package["targets"].as_array()).flatten();
    let tests = targets.filter(|target| target["kind"][0] == "test" && target["test"] == true);
    Ok(tests.filter_map(|target| target["name"].as_str()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_integration_tests_are_named() {
        let target =
            |kind: &str, name: &str, test: bool| format!(r#"{{"kind": ["{kind}"], "name": "{name}", "test": {test}}}"#);
        let targets = [
            target("test", "b", true),
            target("lib", "c", true),
            target("test", "a", true),
            target("test", "d", false),
        ];
        let metadata = format!(r#"{{"packages": [{{"targets": [{}]}}]}}"#, targets.join(", "));
        assert_eq!(tests(&metadata).unwrap(), ["a", "b"].map(str::to_owned).into());
    }

    #[test]
    fn long_tests_exist() {
        let metadata = Invocation::new("cargo metadata --locked --no-deps --format-version 1").output().unwrap();
        let names = tests(&metadata).unwrap();
        assert_eq!(LONG.iter().find(|name| !names.contains(**name)), None);
    }
}
