//! Plugins in every language: builds the examples, runs the native tests, and compares the pages of the SDKs.
//!
//! The part `tests` runs these plugins in a host.

use anyhow::{Context as _, Result};

use crate::console;
use crate::languages;
use crate::sdk_docs::{self, Sdk};
use crate::workspace::{Invocation, binary, root};

/// The native tests of the SDKs and the examples: folder and command. None of them uses the network. The part `web` tests the npm
/// packages.
const NATIVE: [(&str, &str); 7] = [
    ("sdk/python", "python3 -B -m unittest discover -q -s tests -t ."),
    ("plugins/stats", "python3 -B -m unittest -q"),
    ("plugins/rollout-py", "python3 -B -m unittest -q"),
    ("sdk/go", "go test ./..."),
    ("plugins/differ", "go test ./..."),
    ("sdk/c/tests", "make test"),
    ("plugins/hasher", "make test"),
];

pub(super) fn run() -> Result<()> {
    languages::build(&binary("toolgate")?)?;
    for (folder, line) in NATIVE {
        let command = Invocation::new(line).in_folder(folder);
        let command = if line.starts_with("go ") { languages::with_go(command) } else { command };
        console::aside(&format!("$ {command}"));
        command.run().with_context(|| format!("the tests in {} failed", root().join(folder).display()))?;
    }
    sdk_docs::check(&[Sdk::Python, Sdk::Go, Sdk::C])
}
