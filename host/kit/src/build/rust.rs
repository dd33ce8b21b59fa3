//! Rust: the user's own cargo builds for wasm32-wasip2, whose linker makes the component.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Made, read};
use crate::command::Invocation;
use crate::{Failed, Kit, Project};

const TARGET: &str = "wasm32-wasip2";

/// A small shadow stack makes a call 2.6 times cheaper. `plugins/.cargo` has the same setting.
const STACK: [&str; 2] = ["-C", "link-arg=-zstack-size=65536"];

pub(super) fn build(kit: &Kit<'_>, project: &Project) -> Result<Made, Failed> {
    let version = rustc(project).arg("--version").run("asking rustc for its version")?;
    target(kit, project)?;
    (kit.say)(&format!("compiling {} with {}", project.name(), version.trim()));
    let mut cargo = rustup("cargo").in_folder(project.folder()).args(["build", "--release", "--target", TARGET]);
    cargo = cargo.args(["--message-format", "json-render-diagnostics", "--config", "profile.release.strip=true"]);
    // These flags are for the machine's own target, and would replace those of the folder.
    cargo = cargo.without_env("RUSTFLAGS").without_env("CARGO_ENCODED_RUSTFLAGS").without_env("CARGO_BUILD_TARGET");
    if let Some(target) = project.target() {
        cargo = cargo.env("CARGO_TARGET_DIR", target);
    }
    let (table, flags) = (flags_table(project.folder()), flags(kit, project)?);
    cargo = cargo.arg("--config").arg(format!("{table}.rustflags={}", json!(flags)));
    if kit.offline {
        cargo = cargo.arg("--offline");
    }
    let printed = cargo.compile("compiling the plugin").map_err(without_messages)?;
    let others: Vec<_> = printed.lines().filter(|line| !is_message(line) && !is_progress(line)).collect();
    kit.pass_on(&others.join("\n"));
    let file = artifact(&printed, project.folder()).ok_or_else(|| {
        Failed::project(
            format!("{} makes no component", project.folder().join("Cargo.toml").display()),
            "add to it: [lib] crate-type = [\"cdylib\"]",
        )
    })?;
    Ok(Made { component: read(&file)?, tools: vec![version.trim().to_owned()] })
}

/// Installs the target if it is missing. This is the only change outside toolgate's own folders, and rustup keeps it.
fn target(kit: &Kit<'_>, project: &Project) -> Result<(), Failed> {
    let there = || {
        let libraries = rustc(project).args(["--print", "target-libdir", "--target", TARGET]);
        libraries.run("asking rustc for its targets").map(|folder| Path::new(folder.trim()).is_dir())
    };
    if there()? {
        return Ok(());
    }
    if kit.offline {
        return Err(Failed::Offline { what: format!("Rust's target {TARGET}") });
    }
    (kit.say)(&format!("adding Rust's target {TARGET}: rustup target add {TARGET}"));
    let rustup = Invocation::new("rustup").or_install(&format!("Rust's target {TARGET}"), RUSTUP).of_the_machine();
    rustup.in_folder(project.folder()).args(["target", "add", TARGET]).run("adding the target")?;
    if there()? {
        return Ok(());
    }
    let what = format!("the target {TARGET} of the `rustc` in the PATH, which is not rustup's,");
    Err(Failed::Missing { what, install: RUSTUP.to_owned() })
}

const RUSTUP: &str = "install Rust with rustup: https://rustup.rs, then `rustup target add wasm32-wasip2`";

fn rustup(program: &str) -> Invocation {
    Invocation::new(program).or_install("Rust", RUSTUP)
}

fn rustc(project: &Project) -> Invocation {
    rustup("rustc").in_folder(project.folder()).of_the_machine()
}

/// The flags that a build adds to those of the folder.
fn flags(kit: &Kit<'_>, project: &Project) -> Result<Vec<String>, Failed> {
    let mut flags = renamed(kit, project)?;
    if !configurations(project.folder()).any(|text| text.contains("stack-size")) {
        flags.extend(STACK.map(str::to_owned));
    }
    Ok(flags)
}

/// Flags that give the folder of each package a fixed name. A panic names the file of its code, and the component must not
/// depend on the folder of the build.
fn renamed(kit: &Kit<'_>, project: &Project) -> Result<Vec<String>, Failed> {
    let mut cargo = rustup("cargo").in_folder(project.folder()).args(["metadata", "--format-version", "1"]);
    cargo = cargo.args(["--filter-platform", TARGET]);
    if kit.offline {
        cargo = cargo.arg("--offline");
    }
    let said: Value = serde_json::from_str(&cargo.run("finding the packages")?).unwrap_or_default();
    let name = |package: &Value| {
        let folder = Path::new(package["manifest_path"].as_str()?).parent()?.display();
        Some(format!("--remap-path-prefix={folder}=/{}-{}", package["name"].as_str()?, package["version"].as_str()?))
    };
    Ok(said["packages"].as_array().into_iter().flatten().filter_map(name).collect())
}

/// The table of cargo's configuration that gets the flags. Cargo reads `build` only if the target has no flags.
fn flags_table(folder: &Path) -> &'static str {
    let has = |tables: &[&str]| {
        let flags = |text: &str| {
            let parsed = toml::Value::Table(text.parse().ok()?);
            tables.iter().try_fold(&parsed, |value, table| value.get(table))?.get("rustflags").map(drop)
        };
        configurations(folder).any(|text| flags(&text).is_some())
    };
    if has(&["build"]) && !has(&["target", TARGET]) { "build" } else { "target.wasm32-wasip2" }
}

/// The configurations that cargo reads for this folder, except that of the user.
fn configurations(folder: &Path) -> impl Iterator<Item = String> {
    let files =
        folder.ancestors().flat_map(|above| ["config.toml", "config"].map(|name| above.join(".cargo").join(name)));
    files.filter_map(|file| fs::read_to_string(file).ok())
}

/// Finds the component of the folder's own package in cargo's messages.
fn artifact(messages: &str, folder: &Path) -> Option<PathBuf> {
    let manifest = folder.join("Cargo.toml");
    let ours = |message: &Value| message["manifest_path"].as_str().is_some_and(|path| Path::new(path) == manifest);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let artifacts = messages.filter(|message| message["reason"] == "compiler-artifact" && ours(message));
    let files = artifacts.flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default());
    let paths = files.filter_map(|file| file.as_str().map(PathBuf::from));
    paths.into_iter().rfind(|path| path.extension().is_some_and(|extension| extension == "wasm"))
}

/// Removes cargo's messages from the output that the user sees.
fn without_messages(failed: Failed) -> Failed {
    match failed {
        Failed::Program { attempt, command, output, fault } => {
            let lines: Vec<_> = output.lines().filter(|line| !is_message(line)).collect();
            Failed::Program { attempt, command, output: lines.join("\n"), fault }
        }
        other => other,
    }
}

/// Whether a line is for programs.
fn is_message(line: &str) -> bool {
    line.starts_with("{\"reason\":")
}

/// Whether a line says what cargo does, as in `   Compiling hello v0.1.0`. The verb ends at the twelfth column.
fn is_progress(line: &str) -> bool {
    let verb = line.split_at_checked(12).filter(|(_, rest)| rest.starts_with(' ')).map(|(verb, _)| verb.trim_start());
    verb.is_some_and(|verb| {
        verb.starts_with(|c: char| c.is_ascii_uppercase()) && verb.bytes().all(|b| b.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn component_of_the_folders_own_package_is_found() {
        let line = |manifest: &str, file: &str| {
            format!(r#"{{"reason":"compiler-artifact","manifest_path":"{manifest}","filenames":["{file}"]}}"#)
        };
        let messages = [
            line("/p/dep/Cargo.toml", "/p/target/dep.wasm"),
            line("/p/Cargo.toml", "/p/target/libown.rlib"),
            line("/p/Cargo.toml", "/p/target/own.wasm"),
            "not JSON".to_owned(),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let found = artifact(&messages.join("\n"), Path::new("/p"));
        assert_eq!(found, Some(PathBuf::from("/p/target/own.wasm")));
        assert_eq!(artifact(&messages[..2].join("\n"), Path::new("/p")), None);
    }

    #[test]
    fn progress_of_cargo_is_no_warning() {
        for line in ["    Updating crates.io index", "   Compiling hello v0.1.0 (/p)", "    Finished `release` profile"]
        {
            assert!(is_progress(line), "{line}");
        }
        let diagnostic = "warning: unused variable: `x`\n --> src/lib.rs:12:9\n   |\n12 |     let x = 1;\n   |         ^ help: x\n  = note: y";
        for line in diagnostic.lines().chain(["", "Compiling", "warning: `hello` (lib) generated 1 warning"]) {
            assert!(!is_progress(line), "{line}");
        }
    }

    #[test]
    fn flags_are_added_to_the_table_that_cargo_reads() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::create_dir(folder.path().join(".cargo")).unwrap();
        for (text, expected) in [
            ("", "target.wasm32-wasip2"),
            ("[build]\njobs = 1", "target.wasm32-wasip2"),
            ("[build]\nrustflags = [\"-zstack-size=1\"]", "build"),
            ("[build]\nrustflags = []\n[target.wasm32-wasip2]\nrustflags = []", "target.wasm32-wasip2"),
        ] {
            fs::write(folder.path().join(".cargo/config.toml"), text).unwrap();
            assert_eq!(flags_table(&inner), expected, "{text}");
            let sets_stack = configurations(&inner).any(|text| text.contains("stack-size"));
            assert_eq!(sets_stack, text.contains("stack-size"));
        }
    }
}
