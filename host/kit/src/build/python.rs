//! Python: componentize-py puts CPython, the SDK and the author's modules into one component.
//!
//! The entry is the SDK's module `toolgate.component`, which imports the author's `plugin`. The component contains the
//! modules that this imports. A call cannot import others.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Made, read};
use crate::{Failed, Kit, Project, fixed, toolchain, world};

/// The folder for an author's packages in pure Python.
const VENDOR: &str = "vendor";

/// The SDK's package in its folder.
const PACKAGE: &str = "toolgate";

pub(super) fn build(kit: &Kit<'_>, project: &Project) -> Result<Made, Failed> {
    if !project.folder().join("plugin.py").is_file() && !project.folder().join("plugin/__init__.py").is_file() {
        let folder = project.folder().display();
        return Err(Failed::project(format!("{folder} has no plugin.py"), "write the plugin's tools there"));
    }
    // componentize-py imports everything that the world names.
    let wit = world::write(project, Some(project.requested()))?;
    let sdk = own_sdk(project)?;
    let installed = toolchain::PYTHON.installed(kit)?;
    let tool = || installed.python("componentize_py:script").in_folder(project.folder());
    let version = tool().of_the_machine().arg("--version").run("asking componentize-py for its version")?;
    (kit.say)(&format!("building {} with {}", project.name(), version.trim()));
    // It uses the packages of a virtual environment, or those of the machine without one. A component must not depend
    // on either, so it gets an empty environment.
    let nothing = project.output().join("no-packages");
    let packages = nothing.join("lib/site-packages");
    fs::create_dir_all(&packages).map_err(Failed::writing(&packages))?;
    let made = project.output().join("component.wasm");
    let vendor = project.folder().join(VENDOR);
    let folders = [Some(project.folder().to_owned()), Some(sdk), vendor.is_dir().then_some(vendor)];
    let path = folders.into_iter().flatten().flat_map(|folder| ["--python-path".into(), folder.into_os_string()]);
    // The random names of the tool's temporary folders are fixed too, so it gets a folder of its own for them.
    let temporary = tempfile::tempdir().map_err(Failed::io("make a temporary folder"))?;
    let mut tool = tool().env("TMPDIR", temporary.path());
    // The variable is a list: a space or a colon in the path would make another library of the rest.
    let fixed = fixed::write(temporary.path())?.filter(|path| !path.display().to_string().contains([' ', ':']));
    if let Some(fixed) = fixed {
        tool = tool.env(fixed::PRELOAD, fixed);
    }
    tool.env("VIRTUAL_ENV", &nothing)
        .without_env("PYTHONPATH")
        .env("RUST_BACKTRACE", "0")
        .arg("--wit-path")
        .arg(&wit)
        .args(["--world", world::WORLD, "componentize", "toolgate.component"])
        .args(path)
        .arg("--output")
        .arg(&made)
        .run("building the component")
        .map_err(|failed| match failed {
            Failed::Program { attempt, command, output, fault } => {
                Failed::Program { attempt, command, output: python_message(&output).to_owned(), fault }
            }
            failed => failed,
        })?;
    Ok(Made { component: read(&made)?, tools: vec![version.trim().to_owned()] })
}

/// Copies the SDK's modules to `build/python`. Python writes its `__pycache__` beside the modules that it imports, and
/// a build does not write into the SDK.
fn own_sdk(project: &Project) -> Result<PathBuf, Failed> {
    let copy = project.made_output()?.join("python");
    if copy.exists() {
        fs::remove_dir_all(&copy).map_err(Failed::writing(&copy))?;
    }
    copy_modules(&project.sdk()?.join(PACKAGE), &copy.join(PACKAGE))?;
    Ok(copy)
}

/// Copies the modules of a package and of the packages in it. Links are left out, because they may form a circle.
fn copy_modules(from: &Path, to: &Path) -> Result<(), Failed> {
    fs::create_dir_all(to).map_err(Failed::writing(to))?;
    for entry in from.read_dir().map_err(Failed::reading(from))? {
        let entry = entry.map_err(Failed::reading(from))?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(Failed::reading(&path))?;
        if kind.is_dir() && entry.file_name() != "__pycache__" {
            copy_modules(&path, &copy)?;
        } else if kind.is_file() {
            fs::copy(&path, &copy).map_err(Failed::writing(&copy))?;
        }
    }
    Ok(())
}

/// The part of componentize-py's output that came from Python in the component: the author's traceback, or the wrong
/// declarations. The output also has componentize-py's own traceback, and repeats the message.
fn python_message(output: &str) -> &str {
    let Some((_, found)) = output.split_once("\nAssertionError: ") else { return output };
    let found = found.split("\n\nCaused by:").next().unwrap_or(found);
    found.split_once("DeclarationError: ").map_or(found, |(_, findings)| findings).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_build_shows_the_authors_part() {
        let around = |found: &str| {
            format!("Traceback (most recent call last):\n  …\nAssertionError: {found}\n\nCaused by:\n    again")
        };
        let traceback = "Traceback (most recent call last):\n  File \"/0/plugin.py\", line 1\nNameError: x";
        assert_eq!(python_message(&around(traceback)), traceback);
        let declared =
            "Traceback …\ntoolgate.failure.DeclarationError: the declarations are wrong:\n  plugin.py:2: f: a\n";
        assert_eq!(python_message(&around(declared)), "the declarations are wrong:\n  plugin.py:2: f: a");
        assert_eq!(python_message("error: no such world"), "error: no such world");
    }
}
