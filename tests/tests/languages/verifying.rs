//! The same source gives the same component, in another folder, at another time and for another user: `toolgate verify-build` agrees
//! with the build that the suite made earlier.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use domain::Digest;
use serde_json::Value;
use tempfile::TempDir;
use toolgate_tests::dev::toolgate_with;
use toolgate_tests::host::{Host, Setup};

use super::{done, left_out, root, toolgate};

/// Another user: another home, other folders for temporary files and for caches. The cache has these toolchains of the suite's cache,
/// so nothing is downloaded, and what they compile themselves, such as a standard library, is compiled again.
struct OtherUser(TempDir);

impl OtherUser {
    fn with(toolchains: &[&str]) -> Self {
        let target = root().join("target");
        // Links are possible within one file system.
        let user = Self(tempfile::Builder::new().prefix("other-user-").tempdir_in(&target).unwrap());
        for folder in ["home", "tmp", "cache/toolchains"] {
            fs::create_dir_all(user.path(folder)).unwrap();
        }
        let all = target.join("toolchains/toolchains");
        for name in all.read_dir().unwrap().map(|entry| entry.unwrap().file_name()) {
            let is_toolchain = |known: &&str| name.to_string_lossy().starts_with(&format!("{known}-"));
            if toolchains.iter().any(is_toolchain) {
                link(&all.join(&name), &user.path("cache/toolchains").join(&name));
            }
        }
        user
    }

    /// With the suite's Rust, and with its packages at another path.
    fn with_rust() -> (Self, Vec<(&'static str, PathBuf)>) {
        let user = Self::with(&[]);
        let home = variable("HOME").unwrap_or_default();
        let cargo = variable("CARGO_HOME").unwrap_or_else(|| home.join(".cargo"));
        fs::create_dir(user.path("cargo")).unwrap();
        for entry in cargo.read_dir().unwrap() {
            let name = entry.unwrap().file_name();
            symlink(cargo.join(&name), user.path("cargo").join(&name)).unwrap();
        }
        let rustup = variable("RUSTUP_HOME").unwrap_or_else(|| home.join(".rustup"));
        let folders = [user.folders(), vec![("CARGO_HOME", user.path("cargo")), ("RUSTUP_HOME", rustup)]].concat();
        (user, folders)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn folders(&self) -> Vec<(&'static str, PathBuf)> {
        let named = [("HOME", "home"), ("TMPDIR", "tmp"), ("TOOLGATE_CACHE", "cache")];
        named.iter().map(|(variable, name)| (*variable, self.path(name))).collect()
    }
}

#[expect(clippy::disallowed_methods, reason = "the suite's Rust is where these variables say")]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

/// Links a file, or all files of a folder. Its own links are copied.
fn link(from: &Path, to: &Path) {
    let kind = from.symlink_metadata().unwrap().file_type();
    if kind.is_symlink() {
        symlink(from.read_link().unwrap(), to).unwrap();
    } else if kind.is_dir() {
        fs::create_dir(to).unwrap();
        for name in from.read_dir().unwrap().map(|entry| entry.unwrap().file_name()) {
            link(&from.join(&name), &to.join(&name));
        }
    } else {
        fs::hard_link(from, to).unwrap();
    }
}

/// Folders that are not sources.
const GENERATED: [&str; 6] = ["build", "target", "node_modules", "__pycache__", "template", "toolchain"];

/// Copies a folder of the repository without generated files and links.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in from.read_dir().unwrap() {
        let entry = entry.unwrap();
        let (kind, to) = (entry.file_type().unwrap(), to.join(entry.file_name()));
        if kind.is_file() {
            fs::copy(entry.path(), to).unwrap();
        } else if kind.is_dir() && !GENERATED.iter().any(|name| entry.file_name() == *name) {
            copy(&entry.path(), &to);
        }
    }
}

/// Verifies a folder against a component, with these folders in the environment. Returns the exit code and the answer.
fn verified(host: &Host, folder: &str, component: &Path, folders: &[(&str, PathBuf)]) -> (Option<i32>, Value) {
    let digest = Digest::of(fs::read(component).unwrap()).to_string();
    let words = ["verify-build", folder, &digest, "--component", &component.display().to_string(), "--json"];
    let output = toolgate_with(host, &words, folders);
    let said = String::from_utf8_lossy(&output.stderr);
    let answer = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_ne!(output.status.code(), Some(4), "{said}");
    (output.status.code(), answer)
}

/// Another user builds an example plugin again, in a copy of the folders that it needs.
#[track_caller]
fn example(name: &str, sdk: &str, toolchains: &[&str]) -> (Option<i32>, Value) {
    let host = Setup::default().prepare();
    for folder in [format!("plugins/{name}"), format!("sdk/{sdk}"), "wit".into()] {
        copy(&root().join(&folder), &host.folder().join("another/checkout").join(&folder));
    }
    let component = root().join("plugins").join(name).join("build").join(format!("{name}.wasm"));
    let folder = format!("another/checkout/plugins/{name}");
    let answer = verified(&host, &folder, &component, &OtherUser::with(toolchains).folders());
    for generated in ["build", "node_modules", "target"] {
        assert!(!host.folder().join(&folder).join(generated).exists(), "{generated} is removed");
    }
    answer
}

#[track_caller]
fn same(name: &str, sdk: &str, toolchains: &[&str], tool: &str) {
    if left_out() {
        return;
    }
    let (code, answer) = example(name, sdk, toolchains);
    assert_eq!((code, &answer["verified"]), (Some(0), &Value::Bool(true)), "{answer:#}");
    assert_eq!(answer["built"], answer["expected"]);
    let tools = answer["tools"].as_array().unwrap();
    assert!(tools.iter().any(|name| name.as_str().unwrap().starts_with(tool)), "{answer:#}");
}

#[test]
fn javascript_gives_the_same_component() {
    same("dates", "js", &["quickjs"], "componentize-qjs 0.");
}

#[test]
fn typescript_gives_the_same_component() {
    same("reshape", "js", &["starlingmonkey"], "@bytecodealliance/componentize-js 0.");
}

#[test]
fn go_gives_the_same_component() {
    same("differ", "go", &["go"], "go1.");
}

#[test]
fn c_gives_the_same_component() {
    same("hasher", "c", &["c", "yyjson"], "zig 0.");
}

#[test]
fn another_source_gives_another_component() {
    if left_out() {
        return;
    }
    let host = Setup::default().prepare();
    done(&host, &["new", "hello", "--lang", "c"]);
    done(&host, &["build", "hello"]);
    let component = host.folder().join("hello/build/hello.wasm");
    copy(&host.folder().join("hello"), &host.folder().join("another/hello"));
    assert_eq!(verified(&host, "another/hello", &component, &[]).0, Some(0));
    let source = host.folder().join("another/hello/plugin.c");
    let text = fs::read_to_string(&source).unwrap().replace("uint64_t words = 0;", "uint64_t words = 7;");
    fs::write(&source, text).unwrap();
    let (code, answer) = verified(&host, "another/hello", &component, &[]);
    assert_eq!((code, &answer["verified"]), (Some(1), &Value::Bool(false)), "{answer:#}");
    assert_eq!(answer["component"]["tools"], answer["tools"]);

    // The files of an earlier build are not used.
    let component = component.display().to_string();
    let digest = Digest::of(fs::read(&component).unwrap()).to_string();
    let said = host.cli(None, &["verify-build", "hello", &digest]);
    assert_eq!((said.code, said.err.contains("error: the folder contains files that are not sources")), (2, true));
    assert!(said.err.contains("hello/build"), "{said:?}");
    let other = Digest::of("another").to_string();
    let said = host.cli(None, &["verify-build", "another/hello", &other, "--component", &component]);
    assert_eq!((said.code, said.err.contains("has another digest: sha256:")), (2, true), "{said:?}");
}

#[test]
fn python_gives_the_same_component() {
    same("stats", "python", &["python"], "componentize-py 0.");
}

/// The files that Python, git and the tutorial make beside the sources change nothing.
#[test]
fn earlier_python_build_changes_nothing() {
    if left_out() {
        return;
    }
    let host = Setup::default().prepare();
    done(&host, &["new", "hello", "--lang", "python"]);
    let folder = host.folder().join("hello");
    let built = || {
        let output = toolgate(&host, &["build", "hello"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("could not be fixed"), "{said}");
        Digest::of(fs::read(folder.join("build/hello.wasm")).unwrap())
    };
    let first = built();
    assert!(!folder.join("__pycache__").exists(), "the build writes only to its own folder");
    let others = [".git/HEAD", "__pycache__/plugin.cpython-314.pyc", "env/pyvenv.cfg", "env/lib/x.py"];
    // The files that the tutorial makes.
    let made = ["plugins/hello.wasm", "host.log", "tools.txt", "agent.token", "answer.json"];
    for file in others.into_iter().chain(made) {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "nothing").unwrap();
    }
    assert_eq!(built(), first);
    let source = folder.join("plugin.py");
    let text = fs::read_to_string(&source).unwrap().replace("100_000", "100_001");
    fs::write(&source, text).unwrap();
    assert_ne!(built(), first, "a change of the same length is built");
}

#[test]
fn rust_gives_the_same_component() {
    if left_out() {
        return;
    }
    let host = Setup::default().prepare();
    done(&host, &["new", "hello", "--lang", "rust"]);
    // With the versions of the example plugins, cargo needs no registry.
    fs::copy(root().join("plugins/Cargo.lock"), host.folder().join("hello/Cargo.lock")).unwrap();
    done(&host, &["build", "hello"]);
    let component = host.folder().join("hello/build/hello.wasm");
    copy(&host.folder().join("hello"), &host.folder().join("another/folder"));
    let (user, folders) = OtherUser::with_rust();
    let (code, answer) = verified(&host, "another/folder", &component, &folders);
    drop(user);
    assert_eq!((code, &answer["verified"]), (Some(0), &Value::Bool(true)), "{answer:#}");
}
