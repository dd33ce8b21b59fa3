//! Installs toolgate with the command of the README, in the profile of the tests: its dependencies are built already.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use crate::console;
use crate::workspace::{Invocation, binary, root};

pub(crate) fn run() -> Result<()> {
    let readme = fs::read_to_string(root().join("README.md")).context("could not read README.md")?;
    let folder = binary("installed")?;
    let install = Invocation::new(documented(&readme)?).words("--debug --root").word(&folder.display().to_string());
    // Cargo does not replace what it has installed from the same sources.
    let install = install.word("--force");
    console::aside(&format!("$ {install}"));
    install.run()?;
    let version = |program| Invocation::new("").program(program).word("--version").output();
    let (installed, built) = (version(&folder.join("bin/toolgate"))?, version(&binary("toolgate")?)?);
    ensure!(installed == built, "installed is {}, and built was {}", installed.trim(), built.trim());
    Ok(())
}

/// The command, without its comment.
fn documented(readme: &str) -> Result<&str> {
    let line = readme.lines().find(|line| line.starts_with("cargo install "));
    let line = line.context("README.md has no `cargo install`")?;
    Ok(line.split('#').next().unwrap_or_default().trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_has_no_comment() {
        let readme = "cargo xtask build\ncargo install --path host/cli --locked   # puts it on your path\n";
        assert_eq!(documented(readme).unwrap(), "cargo install --path host/cli --locked");
        assert!(documented("cargo xtask build").is_err());
    }
}
