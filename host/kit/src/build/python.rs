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
    let wit = world::write(project, world::Part::Requested)?;
    let folders = own_modules(project)?;
    let installed = toolchain::PYTHON.installed(kit)?;
    let tool = |lines| installed.python(lines, "componentize_py:script").in_folder(project.folder());
    let version = tool("").of_the_machine().arg("--version").run("asking componentize-py for its version")?;
    (kit.say)(&format!("building {} with {}", project.name(), version.trim()));
    // It uses the packages of a virtual environment, or those of the machine without one. A component must not depend
    // on either, so it gets an empty environment.
    let nothing = project.output().join("no-packages");
    let packages = nothing.join("lib/site-packages");
    fs::create_dir_all(&packages).map_err(Failed::writing(&packages))?;
    let made = project.output().join("component.wasm");
    let path = folders.into_iter().flat_map(|folder| ["--python-path".into(), folder.into_os_string()]);
    // The random names of the tool's temporary folders are fixed too, so it gets a folder of its own for them.
    let temporary = tempfile::tempdir().map_err(Failed::io("make a temporary folder"))?;
    // The variable is a list: a space or a colon in the path would make another library of the rest.
    let usable = |path: &PathBuf| !path.display().to_string().contains([' ', ':']);
    let tool = match fixed::write(temporary.path())? {
        Some(library) if usable(&library) => tool(fixed::FIX_FILES).env(fixed::PRELOAD, library),
        library => {
            if library.is_some() {
                let reason = "the path of the temporary folder has a space or a colon";
                (kit.say)(&format!("{NOT_FIXED} ({reason}), {ANOTHER}"));
            }
            tool("")
        }
    };
    let output = tool
        .env("TMPDIR", temporary.path())
        .env("VIRTUAL_ENV", &nothing)
        .without_env("PYTHONPATH")
        .env("RUST_BACKTRACE", "0")
        .arg("--wit-path")
        .arg(&wit)
        .args(["--world", world::WORLD, "--quiet", "componentize", "toolgate.component"])
        .args(path)
        .arg("--output")
        .arg(&made)
        .compile("building the component")
        .map_err(|failed| match failed {
            Failed::Program { attempt, command, output, fault } => {
                Failed::Program { attempt, command, output: python_message(&output).to_owned(), fault }
            }
            failed => failed,
        })?;
    if let Some(reason) = fixed::failure(&output) {
        (kit.say)(&format!("{NOT_FIXED} ({reason}), {ANOTHER}"));
    }
    let others: Vec<_> = output.lines().filter(|line| fixed::failure(line).is_none()).collect();
    kit.pass_on(&others.join("\n"));
    Ok(Made { component: read(&made)?, tools: vec![version.trim().to_owned()] })
}

/// The beginning and the end of the note for a build that cannot be repeated.
const NOT_FIXED: &str = "the times of files could not be fixed";
const ANOTHER: &str = "so another build of this source gives another component";

/// Copies the author's modules and those of the SDK to `build/python`, and returns the folders that Python imports from.
///
/// The component stores the names of all files in these folders. And Python writes its `__pycache__` beside the modules that it
/// imports, and would use that of an earlier build.
fn own_modules(project: &Project) -> Result<Vec<PathBuf>, Failed> {
    let copy = project.emptied_output("python")?;
    let mut folders = vec![copy.join("own"), copy.join("sdk")];
    copy_sources(project.folder(), &folders[0], &is_own)?;
    copy_sources(&project.sdk()?.join(PACKAGE), &folders[1].join(PACKAGE), &|_| true)?;
    let vendor = project.folder().join(VENDOR);
    if vendor.is_dir() {
        folders.push(copy.join(VENDOR));
        copy_sources(&vendor, &copy.join(VENDOR), &|_| true)?;
    }
    Ok(folders)
}

/// Folders beside `plugin.py` without the plugin's own modules.
const OTHERS: [&str; 5] = ["build", "node_modules", "toolgate", "toolgate-data", VENDOR];

/// Whether this file or folder beside `plugin.py` belongs to the plugin. Others there, such as tokens and the logs of a host, do not
/// change the component.
fn is_own(path: &Path) -> bool {
    let is_other = path.file_name().is_some_and(|name| OTHERS.iter().any(|other| name == *other));
    !is_other && has_modules(path)
}

/// Whether it is a module, or a folder with modules. Links to folders are not followed.
fn has_modules(path: &Path) -> bool {
    if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return path.read_dir().is_ok_and(|entries| entries.flatten().any(|entry| has_modules(&entry.path())));
    }
    path.is_dir() || path.extension().is_some_and(|extension| extension == "py")
}

/// Copies these files and folders of a folder, without hidden files, virtual environments and Python's caches.
fn copy_sources(from: &Path, to: &Path, is_source: &dyn Fn(&Path) -> bool) -> Result<(), Failed> {
    fs::create_dir_all(to).map_err(Failed::writing(to))?;
    for entry in from.read_dir().map_err(Failed::reading(from))? {
        let entry = entry.map_err(Failed::reading(from))?;
        let (path, name, copy) = (entry.path(), entry.file_name(), to.join(entry.file_name()));
        let name = name.to_string_lossy();
        let kind = entry.file_type().map_err(Failed::reading(&path))?;
        if name.starts_with('.') || name == "__pycache__" || !is_source(&path) {
            continue;
        }
        if kind.is_dir() && !path.join("pyvenv.cfg").exists() {
            copy_sources(&path, &copy, &|_| true)?;
        } else if kind.is_file() {
            fs::copy(&path, &copy).map_err(Failed::writing(&copy))?;
        } else if kind.is_symlink() {
            copy_link(&path, &copy)?;
        }
    }
    Ok(())
}

/// Copies a link as a link: what is outside of the folder stays unreadable for the plugin's modules.
#[cfg(unix)]
fn copy_link(from: &Path, to: &Path) -> Result<(), Failed> {
    let target = fs::read_link(from).map_err(Failed::reading(from))?;
    std::os::unix::fs::symlink(target, to).map_err(Failed::writing(to))
}

#[cfg(not(unix))]
fn copy_link(_from: &Path, _to: &Path) -> Result<(), Failed> {
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
