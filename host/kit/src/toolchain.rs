//! Toolchains from registries. A list pins the packages with their hashes, and names the folder in the cache.
//!
//! An installation happens in a temporary folder, under a lock. Its last step renames the folder. So a folder with the final
//! name is complete, and the next installation removes what a killed one left.

#[cfg(test)]
mod accidents;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::command::Invocation;
use crate::{Failed, Kit};

/// The registry of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Registry {
    /// PyPI: `requirements.txt` with `--hash` for each package.
    Pip,
    /// The same, for a package whose wheel has sources. Every machine installs the wheel for [`SOURCES`].
    PipSources,
    /// npm: `package.json` and `package-lock.json` with `integrity`.
    Npm,
}

/// A toolchain that comes from a registry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Toolchain {
    name: &'static str,
    registry: Registry,
    /// The folder of the list, from the repository's root.
    list: &'static str,
}

/// componentize-py.
pub(crate) const PYTHON: Toolchain =
    Toolchain { name: "python", registry: Registry::Pip, list: "sdk/python/toolchain" };

/// Go, for machines without one that is new enough.
pub(crate) const GO: Toolchain = Toolchain { name: "go", registry: Registry::Pip, list: "sdk/go/toolchain" };

/// zig, for its C compiler.
pub(crate) const C: Toolchain = Toolchain { name: "c", registry: Registry::Pip, list: "sdk/c/toolchain" };

/// yyjson, in C. PyPI's package `yyjson` has it in its wheels.
pub(crate) const YYJSON: Toolchain =
    Toolchain { name: "yyjson", registry: Registry::PipSources, list: "sdk/c/toolchain/yyjson" };

/// QuickJS, with the bundler and the type checker.
pub(crate) const QUICKJS: Toolchain =
    Toolchain { name: "quickjs", registry: Registry::Npm, list: "sdk/js/toolchain/quickjs" };

/// StarlingMonkey, with the bundler and the type checker.
pub(crate) const STARLINGMONKEY: Toolchain =
    Toolchain { name: "starlingmonkey", registry: Registry::Npm, list: "sdk/js/toolchain/starlingmonkey" };

/// The folder of an installed toolchain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installed(PathBuf);

/// The file that an installation writes last, with the digest of the list.
const STAMP: &str = "installed.txt";

/// Puts the packages of the toolchain before all others and imports a function `MODULE:FUNCTION`, as entry points name them. `-I`
/// ignores the user's packages and the current folder.
const IMPORT_FUNCTION: &str = "import sys, importlib; sys.path.insert(0, sys.argv.pop(1)); sys.argv.pop(0); \
                               m, f = sys.argv[0].split(':'); f = getattr(importlib.import_module(m), f)";

impl Installed {
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// Runs an entry point of a Python package, such as `componentize_py:script`. Its module is imported, then these lines run,
    /// and then the function.
    pub(crate) fn python(&self, lines: &str, function: &str) -> Invocation {
        let code = format!("{IMPORT_FUNCTION}\n{lines}sys.exit(f())");
        python3().args(["-I", "-B", "-c", &code]).arg(self.path("site")).arg(function)
    }
}

impl Toolchain {
    /// Finds it, or installs it.
    pub(crate) fn installed(&self, kit: &Kit<'_>) -> Result<Installed, Failed> {
        let list = self.list(kit)?;
        let digest = digest(&list);
        let (all, name) = (kit.cache.toolchains()?, format!("{}-{}", self.name, &digest[..12]));
        let place = all.join(&name);
        if is_installed(&place, &digest) {
            return Ok(Installed(place));
        }
        if kit.offline {
            return Err(Failed::Offline { what: format!("the toolchain {name}, in {},", all.display()) });
        }
        let _lock = lock(kit, &all.join(format!("{name}.lock")), &name)?;
        if is_installed(&place, &digest) {
            return Ok(Installed(place));
        }
        if place.exists() {
            // An installation renames complete folders, so this one comes from elsewhere.
            fs::remove_dir_all(&place).map_err(Failed::writing(&place))?;
        }
        sweep(&all, &name);
        let part = tempfile::Builder::new().prefix(&format!(".{name}-")).tempdir_in(&all);
        let part = part.map_err(Failed::writing(&all))?;
        let from = if self.registry == Registry::Npm { "npm" } else { "PyPI" };
        (kit.say)(&format!("installing the toolchain {name} from {from}, once, into {}", all.display()));
        for (file, content) in &list {
            let path = part.path().join(file);
            fs::write(&path, content).map_err(Failed::writing(&path))?;
        }
        match self.registry {
            Registry::Pip => pip(kit, part.path(), &[])?,
            Registry::PipSources => pip(kit, part.path(), &SOURCES)?,
            Registry::Npm => npm(kit, part.path())?,
        }
        let stamp = part.path().join(STAMP);
        fs::write(&stamp, &digest).map_err(Failed::writing(&stamp))?;
        fs::rename(part.path(), &place).map_err(Failed::writing(&place))?;
        // The folder has a new name, so there is nothing to remove.
        let _ = part.keep();
        Ok(Installed(place))
    }

    /// The files of the list, with their names.
    fn list(&self, kit: &Kit<'_>) -> Result<Vec<(&'static str, &'static [u8])>, Failed> {
        let files: &[&str] = match self.registry {
            Registry::Pip | Registry::PipSources => &["requirements.txt"],
            Registry::Npm => &["package.json", "package-lock.json"],
        };
        files.iter().map(|file| Ok((*file, kit.carried(&format!("{}/{file}", self.list))?))).collect()
    }
}

/// The SHA-256 of a list, in hexadecimal digits.
fn digest(list: &[(&str, &[u8])]) -> String {
    let hash = list.iter().fold(Sha256::new(), |hash, (_, content)| hash.chain_update(content));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether the folder holds a complete installation of this list.
fn is_installed(place: &Path, digest: &str) -> bool {
    fs::read_to_string(place.join(STAMP)).is_ok_and(|stamp| stamp == digest)
}

/// Excludes other processes from the same installation. The lock ends with the file's last handle, also in a killed process.
fn lock(kit: &Kit<'_>, path: &Path, name: &str) -> Result<File, Failed> {
    let file = File::create(path).map_err(Failed::writing(path))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => (kit.say)(&format!("waiting until another toolgate has installed {name}")),
        Err(TryLockError::Error(error)) => return Err(Failed::io(format!("lock {}", path.display()))(error)),
    }
    file.lock().map_err(Failed::io(format!("lock {}", path.display())))?;
    Ok(file)
}

/// Removes the folders of killed installations: those of `name`, whose lock we hold, and those whose lock nobody holds.
///
/// A failure to remove one is ignored. It costs disk space only, and a program of a killed toolgate may still write there.
fn sweep(all: &Path, name: &str) {
    let entries = all.read_dir().into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let Some(of) = is_part_of(&path) else { continue };
        // An installation holds the lock before it creates its folder and until it has renamed it.
        let lock = if of == name { None } else { Some(File::create(all.join(format!("{of}.lock")))) };
        let is_free = |lock: &io::Result<File>| lock.as_ref().is_ok_and(|lock| lock.try_lock().is_ok());
        if lock.as_ref().is_none_or(is_free) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// The name of the toolchain in the name of an unfinished folder, `.NAME-XXXXXX`.
fn is_part_of(path: &Path) -> Option<&str> {
    let (name, _) = path.file_name()?.to_str()?.strip_prefix('.')?.rsplit_once('-')?;
    Some(name)
}

/// The machine whose wheel is installed where only its sources are used.
const SOURCES: [&str; 8] =
    ["--platform", "manylinux2014_x86_64", "--implementation", "cp", "--python-version", "3.11", "--abi", "cp311"];

/// Installs `requirements.txt` of a folder into its folder `site`. It accepts only wheels with a listed hash, and builds nothing.
fn pip(kit: &Kit<'_>, folder: &Path, machine: &[&str]) -> Result<(), Failed> {
    let venv = folder.join("venv");
    // Not in the plugin's folder: Python would import modules from there.
    let python3 = || python3().in_folder(folder);
    let made = python3().args(["-I", "-m", "venv"]).arg(&venv).run("making a virtual environment");
    let pip = match made {
        Ok(_) => Invocation::new(venv.join("bin/python")).in_folder(folder),
        // Debian packages venv separately. pip alone is enough.
        Err(Failed::Program { .. }) => python3(),
        Err(error) => return Err(error),
    };
    let pip =
        pip.args(["-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"]);
    let pip = pip.args(["--require-hashes", "--only-binary", ":all:", "--no-compile"]);
    let pip = pip.args(machine).arg("--requirement");
    pip.arg(folder.join("requirements.txt"))
        .arg("--target")
        .arg(folder.join("site"))
        .env("PIP_CACHE_DIR", kit.cache.of_tool("pip")?)
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .of_the_machine()
        .run("installing Python packages")
        .map_err(|error| match error {
            Failed::Program { output, .. } if output.contains("No module named pip") => Failed::Missing {
                what: "pip for Python 3".to_owned(),
                install: "on Debian and Ubuntu: apt-get install python3-venv; elsewhere see https://pip.pypa.io"
                    .to_owned(),
            },
            error => error,
        })?;
    // It was needed to run pip, and would break when it is renamed.
    if venv.exists() { fs::remove_dir_all(&venv).map_err(Failed::writing(&venv)) } else { Ok(()) }
}

/// Installs the packages of a folder's `package-lock.json`, without running their scripts.
fn npm(kit: &Kit<'_>, folder: &Path) -> Result<(), Failed> {
    npm_command(kit, folder)?.arg("ci").of_the_machine().run("installing npm packages").map(drop)
}

/// npm for the package in a folder. It downloads into the cache, runs no package's scripts, and prints only errors.
///
/// It starts in an empty folder. npm runs git for packages that are repositories, and git obeys the configuration of the
/// repository in which it starts. A plugin's folder may contain such a configuration, and it can name programs.
pub(crate) fn npm_command(kit: &Kit<'_>, folder: &Path) -> Result<Invocation, Failed> {
    node().arg("--version").run("asking Node.js for its version").and_then(|version| new_enough(version.trim()))?;
    let quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"];
    let empty = kit.cache.of_tool("empty")?;
    let npm = Invocation::new("npm").or_install("npm", NODE).in_folder(&empty).arg("--prefix").arg(folder);
    let npm = npm.args(quiet).args(NO_PROGRAMS).env("GIT_CEILING_DIRECTORIES", kit.cache.folder().join("tools"));
    let npm = if kit.offline { npm.arg("--offline") } else { npm };
    let npm = NO_PROGRAMS_INSIDE.iter().fold(npm, |npm, (name, value)| npm.env(name, value));
    Ok(npm.env("npm_config_cache", kit.cache.of_tool("npm")?))
}

/// The command line overrides a plugin's `.npmrc`: no scripts, no git but that of the PATH, and no global installation, which
/// would write where the user's own programs are.
const NO_PROGRAMS: [&str; 4] = ["--ignore-scripts", "--git=git", "--no-global", "--location=project"];

/// The same in the environment, for the npm that npm starts in a package that is a repository. That one obeys the `.npmrc` of
/// the package, and npm does not pass on options that have their default value. An empty `node_options` would count as absent.
const NO_PROGRAMS_INSIDE: [(&str, &str); 5] = [
    ("npm_config_ignore_scripts", "true"),
    ("npm_config_git", "git"),
    ("npm_config_global", "false"),
    ("npm_config_location", "project"),
    ("npm_config_node_options", "--no-warnings"),
];

const NODE: &str = "install Node.js, 20.19 or a later 20, or 22.12 or newer, with npm: https://nodejs.org";

/// Checks the version against `engines` in the SDK's `package.json`.
fn new_enough(version: &str) -> Result<(), Failed> {
    let mut numbers = version.trim_start_matches('v').split('.').map(|number| number.parse::<u32>().ok());
    let fits = match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(20), Some(minor)) => minor >= 19,
        (Some(22), Some(minor)) => minor >= 12,
        (Some(major), Some(_)) => major > 22,
        _ => false,
    };
    if fits {
        return Ok(());
    }
    Err(Failed::TooOld { what: format!("Node.js {version}"), install: NODE.to_owned() })
}

pub(crate) fn node() -> Invocation {
    Invocation::new("node").or_install("Node.js", NODE)
}

/// Python of any version: the toolchains have wheels for all of them.
pub(crate) fn python3() -> Invocation {
    Invocation::new("python3").or_install(
        "Python 3",
        "on Debian and Ubuntu: apt-get install python3 python3-venv; elsewhere: https://python.org",
    )
}

/// Whether `cargo xtask test --without languages` leaves out tests that need the programs of toolchains.
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a test reads its setting and prints a notice"
)]
pub(crate) fn left_out() -> bool {
    let left_out =
        std::env::var("TOOLGATE_WITHOUT").is_ok_and(|parts| parts.split(',').any(|part| part == "languages"));
    if left_out {
        println!("left out: TOOLGATE_WITHOUT names languages");
    }
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cache;

    const LIST: &[(&str, &[u8])] = &[("sdk/c/toolchain/requirements.txt", b"x==1 --hash=sha256:00\n")];

    fn kit<'a>(folder: &Path, offline: bool, say: &'a dyn Fn(&str)) -> Kit<'a> {
        Kit { carried: LIST, cache: Cache::at(folder).unwrap(), offline, say, printed: &|_| {} }
    }

    #[test]
    fn toolchain_is_named_after_its_list() {
        let folder = tempfile::tempdir().unwrap();
        let error = C.installed(&kit(folder.path(), true, &|_| {})).unwrap_err();
        let expected = format!(
            "the toolchain c-{}, in {}/toolchains, is not installed, and --offline forbids downloads",
            &digest(&[("", LIST[0].1)])[..12],
            folder.path().display()
        );
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.hint().as_deref(), Some("run it once without --offline"));
        assert_ne!(digest(&[("", b"a")]), digest(&[("", b"b")]));
    }

    #[test]
    fn incomplete_installation_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let kit = kit(folder.path(), true, &|_| {});
        let digest = digest(&[("", LIST[0].1)]);
        let place = folder.path().join("toolchains").join(format!("c-{}", &digest[..12]));
        fs::create_dir_all(place.join("site")).unwrap();
        C.installed(&kit).unwrap_err();
        fs::write(place.join(STAMP), "another list").unwrap();
        C.installed(&kit).unwrap_err();
        fs::write(place.join(STAMP), &digest).unwrap();
        assert_eq!(C.installed(&kit).unwrap(), Installed(place));
    }

    #[test]
    fn missing_list_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = GO.installed(&kit(folder.path(), false, &|_| {})).unwrap_err();
        assert_eq!(error.to_string(), "this toolgate was built without sdk/go/toolchain/requirements.txt");
    }

    #[test]
    fn old_node_is_refused() {
        for fits in ["v20.19.0", "v20.20.2", "v22.12.0", "v23.0.0", "v24.1.0"] {
            assert!(new_enough(fits).is_ok(), "{fits}");
        }
        for old in ["v20.18.3", "v21.7.3", "v22.11.0", "v20", "v20.x.1"] {
            assert!(new_enough(old).is_err(), "{old}");
        }
        let error = new_enough("v18.20.1").unwrap_err();
        assert_eq!(error.to_string(), "Node.js v18.20.1 is not supported");
        assert!(new_enough("nonsense").is_err());
    }

    #[test]
    fn functions_run_with_their_own_packages() {
        if left_out() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let site = folder.path().join("site");
        fs::create_dir_all(&site).unwrap();
        fs::write(site.join("trial.py"), "import sys\ndef main():\n    print(sys.argv)\n").unwrap();
        let installed = Installed(folder.path().to_owned());
        let run = |lines| installed.python(lines, "trial:main").arg("a b").run("trying").unwrap();
        assert_eq!(run(""), "['trial:main', 'a b']\n");
        assert_eq!(run("print('first')\n"), "first\n['trial:main', 'a b']\n");
    }
}
