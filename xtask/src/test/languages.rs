//! Plugins in every language: the examples are built, and what is tested natively is tested.
//!
//! What needs a host is tested by the part `tests`, with what is built here.

use anyhow::{Context as _, Result};

use crate::console;
use crate::languages;
use crate::workspace::{Invocation, root};

/// The native tests of the SDKs and of the examples: the folder, and the command. None of them fetches anything.
const NATIVE: [(&str, &str); 1] = [("sdk/python", "python3 -B -m unittest discover -q -s tests -t .")];

/// Builds and tests.
pub(super) fn run() -> Result<()> {
    languages::build()?;
    for (folder, line) in NATIVE {
        let command = Invocation::new(line).in_folder(folder);
        console::aside(&format!("$ {command}"));
        command.run().with_context(|| format!("the tests in {} failed", root().join(folder).display()))?;
    }
    Ok(())
}
