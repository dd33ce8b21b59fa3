//! Compiles the confinement of the compiler for AArch64: its list of system calls is another one there. The whole host would
//! need a C compiler for that target, so the file is checked in a package of its own, with the versions of the workspace.

use std::fs;

use anyhow::{Context as _, Result};

use crate::setup;
use crate::workspace::{Invocation, binary, root};

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// The file, below the root.
const FILE: &str = "host/sandbox/src/compile/confine.rs";

/// The rest of its crate: a type that the file uses, and a caller.
const REST: &str = "
pub enum Landlock { Full, InPart, Missing }
pub fn confine() -> bool {
    confine::only_pipes().is_ok() && matches!(confine::landlock(), Landlock::Full) && confine::seccomp()
}
";

pub(crate) fn check() -> Result<()> {
    setup::target(TARGET)?;
    let folder = binary("aarch64")?;
    fs::create_dir_all(&folder)?;
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).context(name.to_owned());
    write("Cargo.toml", &manifest(&fs::read_to_string(root().join("Cargo.toml"))?))?;
    write("lib.rs", &format!("{REST}\n#[path = {:?}]\nmod confine;\n", root().join(FILE)))?;
    // Without this lock file, cargo would choose newer versions. It removes what this package does not need.
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let check = Invocation::new(&format!("cargo check --target {TARGET} --manifest-path"));
    check.word(&folder.join("Cargo.toml").display().to_string()).run()
}

/// A package with the dependencies of the file, from the manifest of the workspace.
fn manifest(workspace: &str) -> String {
    let dependencies = ["landlock = ", "libc = ", "seccompiler = "];
    let lines: Vec<_> =
        workspace.lines().filter(|line| dependencies.iter().any(|name| line.starts_with(name))).collect();
    format!(
        "[package]\nname = \"aarch64\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n[dependencies]\n\
         rustix = {{ version = \"1\", features = [\"fs\"] }}\n{}\n",
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_has_the_versions_of_the_workspace() {
        let made = manifest("libc = \"0.2\"\nother = \"1\"\nseccompiler = \"0.5\"\nlandlock = \"0.4\"\n");
        assert!(made.ends_with("libc = \"0.2\"\nseccompiler = \"0.5\"\nlandlock = \"0.4\"\n"), "{made}");
    }
}
