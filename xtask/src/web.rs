//! npm checks and builds the console, `sdk/web` and `sdk/js`. Without Node.js the host builds without its console, and only the
//! checks fail.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::console::{self, Tone};
use crate::schema_suite;
use crate::sdk_docs::{self, Sdk};
use crate::tools::Tool;
use crate::workspace::{Invocation, root};

/// The oldest Node.js that our tools run on. `package.json` says the same.
const OLDEST: (u32, u32) = (20, 19);

const REMEDY: &str = "install Node.js 20.19 or newer (https://nodejs.org), or leave this out with `--without web`";

/// The sources of the console. It is built again if one of them changes.
const SOURCES: [&str; 8] = [
    "package-lock.json",
    "web/package.json",
    "web/index.html",
    "web/vite.config.ts",
    "web/src",
    "sdk/web/package.json",
    "sdk/web/openapi.json",
    "sdk/web/src",
];

/// The schemas of `tests/published` that pydantic makes.
const PYDANTIC: Tool =
    Tool { name: "pydantic", program: "python", requirements: "tests/published/requirements.txt", part: "web" };

/// The checks, which need the packages.
const CHECKS: [&str; 4] = [
    "npm run lint",
    "npm run typecheck --workspaces",
    "npm test --workspace sdk/js --workspace sdk/web --workspace web --workspace tests/published",
    "npm run build --workspace sdk/web",
];

/// The part `web` of the checks.
pub(crate) fn check() -> Result<()> {
    node()?;
    packages()?;
    PYDANTIC.installed()?;
    schema_suite::installed()?;
    for line in CHECKS {
        let command = Invocation::new(line);
        console::aside(&format!("$ {command}"));
        command.run()?;
    }
    sdk_docs::check(&[Sdk::JavaScript, Sdk::Web])?;
    console_files()
}

/// Makes sure that Node.js and the packages are installed.
pub(crate) fn must_be_set_up() -> Result<()> {
    node()?;
    packages()
}

/// Installs the packages if there is Node.js.
pub(crate) fn set_up() -> Result<()> {
    match node() {
        Ok(()) => packages(),
        Err(missing) => {
            without(&missing);
            Ok(())
        }
    }
}

/// Builds the console for the binary if there is Node.js. Without it there is a warning, because the host works without its
/// console.
pub(crate) fn before_the_binary() -> Result<()> {
    if let Err(missing) = node() {
        without(&missing);
        return Ok(());
    }
    packages()?;
    console_files()
}

fn without(missing: &anyhow::Error) {
    let warning = format!("{missing}. The host is built without its console; everything else works.");
    console::line(&console::toned(Tone::Waiting, &warning));
}

/// Makes sure that Node.js is installed and new enough.
pub(crate) fn node() -> Result<()> {
    if !Invocation::new("node --version").succeeds() || !Invocation::new("npm --version").succeeds() {
        bail!("Node.js with npm is missing; {REMEDY}");
    }
    let version = Invocation::new("node --version").output()?;
    if parsed(&version).is_none_or(|version| version < OLDEST) {
        bail!("Node.js {} is too old; {REMEDY}", version.trim());
    }
    Ok(())
}

/// `v20.19.1` is (20, 19).
fn parsed(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.trim().strip_prefix('v')?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Installs the packages in the versions of the lock file, if it has changed.
fn packages() -> Result<()> {
    let wanted = fs::read_to_string(root().join("package-lock.json")).context("could not read package-lock.json")?;
    let stamp = stamp("packages");
    if root().join("node_modules").is_dir() && fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
        console::aside("the npm packages are installed");
        return Ok(());
    }
    console::line("installing the npm packages of package-lock.json");
    Invocation::new("npm ci --no-audit --no-fund")
        .run()
        .context("could not install the npm packages; without a network leave this out with `--without web`")?;
    keep(&stamp, &wanted)
}

/// Builds the console if its sources have changed. Writing unchanged files would link the binary again.
fn console_files() -> Result<()> {
    let digest = digest()?;
    let stamp = stamp("built");
    if root().join("web/dist/index.html").is_file() && fs::read_to_string(&stamp).is_ok_and(|there| there == digest) {
        console::aside("the console is built");
        return Ok(());
    }
    let command = Invocation::new("npm run build --workspace web");
    console::aside(&format!("$ {command}"));
    command.run()?;
    keep(&stamp, &digest)
}

/// A digest that detects changes of the sources. It is not for security.
fn digest() -> Result<String> {
    let mut files = Vec::new();
    for source in SOURCES {
        let path = root().join(source);
        // A missing source has no content, so its creation is a change.
        if path.exists() {
            collect(&path, &mut files).with_context(|| format!("could not read {}", path.display()))?;
        }
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.hash(&mut hasher);
        fs::read(&file).with_context(|| format!("could not read {}", file.display()))?.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if path.is_file() {
        // The build generates the client from openapi.json, which is a source itself.
        if !path.ends_with("generated/api.ts") {
            files.push(path.to_owned());
        }
        return Ok(());
    }
    for entry in path.read_dir()? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}

fn stamp(name: &str) -> PathBuf {
    root().join("target/web").join(name)
}

fn keep(stamp: &Path, text: &str) -> Result<()> {
    let write = || {
        fs::create_dir_all(stamp.parent().unwrap_or(stamp))?;
        fs::write(stamp, text)
    };
    write().with_context(|| format!("could not write {}", stamp.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_node_are_parsed() {
        for (text, expected) in [
            ("v20.19.1\n", Some((20, 19))),
            ("v22.3.0", Some((22, 3))),
            ("v24.0.0-nightly", Some((24, 0))),
            ("20.19.1", None),
            ("v20", None),
            ("", None),
        ] {
            assert_eq!(parsed(text), expected, "{text:?}");
        }
    }

    #[test]
    fn sources_exist() {
        for source in SOURCES {
            assert!(root().join(source).exists(), "{source} was moved");
        }
    }
}
