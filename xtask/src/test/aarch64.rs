//! Compiles what has code of its own for AArch64: the confinement of the compiler, and the library that builds preload.
//!
//! The whole host would need a C compiler for that target. So the confinement is checked in a package of its own, with the
//! versions of the workspace.

use std::fs;

use anyhow::{Context as _, Result};

use crate::setup;
use crate::workspace::{Invocation, binary, root};

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// The confinement, below the root.
const CONFINEMENT: &str = "host/sandbox/src/compile/confine.rs";

/// The library, as `host/kit/build.rs` compiles it. An object needs no linker, and its assembly is assembled.
const LIBRARY: &str = "rustc host/kit/preload/fixed.rs --edition=2024 --crate-type=cdylib --emit=obj -Dwarnings \
                       -Cpanic=abort -Copt-level=s --target";

/// The rest of the crate of the confinement: a type that the file uses, and a caller.
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
    write("lib.rs", &format!("{REST}\n#[path = {:?}]\nmod confine;\n", root().join(CONFINEMENT)))?;
    // Without this lock file, cargo would choose newer versions. It removes what this package does not need.
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let check = Invocation::new(&format!("cargo check --target {TARGET} --manifest-path"));
    check.word(&folder.join("Cargo.toml").display().to_string()).run()?;
    let library = Invocation::new(&format!("{LIBRARY} {TARGET} -o"));
    library.word(&folder.join("fixed.o").display().to_string()).run()
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
