//! C: zig's clang and C library make a core module for WASI's preview 1.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Made, read};
use crate::command::Invocation;
use crate::{Failed, Kit, Project, bindings, component, toolchain, world};

pub(super) fn build(kit: &Kit<'_>, project: &Project) -> Result<Made, Failed> {
    let wit = world::write(project, world::Part::Everything)?;
    let sdk = project.sdk()?;
    let installed = toolchain::C.installed(kit)?;
    let made = project.made_output()?.join("c");
    bindings::c(&wit, &made)?;
    yyjson(kit, &made)?;
    let zig = || -> Result<Invocation, Failed> {
        let cache = kit.cache.of_tool("zig")?;
        let zig = Invocation::new(installed.path("site/ziglang/zig"));
        Ok(zig.env("ZIG_GLOBAL_CACHE_DIR", &cache).env("ZIG_LOCAL_CACHE_DIR", &cache))
    };
    let version = zig()?.of_the_machine().arg("version").run("asking zig for its version")?;
    let version = format!("zig {}", version.trim());
    (kit.say)(&format!("compiling {} with {version}", project.name()));
    let module = project.output().join("core.wasm");
    let flags = ["-target", "wasm32-wasi", "-Os", "-mexec-model=reactor", "-Wl,-z,stack-size=65536", "-s", "-Wall"];
    // `assert` puts the path of its file into the component.
    let shown = [(project.folder(), "/plugin"), (sdk.as_path(), "/sdk")];
    let shown = shown.map(|(folder, name)| format!("-ffile-prefix-map={}={name}", folder.display()));
    let printed = zig()?
        .in_folder(project.folder())
        .arg("cc")
        .args(flags)
        .args(shown)
        .arg("-I")
        .arg(&sdk)
        .arg("-I")
        .arg(&made)
        .arg("-o")
        .arg(&module)
        .args(sources(project.folder())?)
        .args(sources(&sdk)?)
        .compile("compiling the plugin")?;
    kit.pass_on(&printed);
    Ok(Made { component: component::of(&read(&module)?, &wit)?, tools: vec![version] })
}

/// Copies yyjson to where the component and the plugin's native tests find it.
fn yyjson(kit: &Kit<'_>, folder: &Path) -> Result<(), Failed> {
    let installed = toolchain::YYJSON.installed(kit)?;
    for file in ["yyjson.h", "yyjson.c"] {
        let to = folder.join(file);
        fs::copy(installed.path("site/yyjson").join(file), &to).map_err(Failed::writing(&to))?;
    }
    Ok(())
}

/// The sources of a folder without its tests, sorted by name.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    let mut found = Vec::new();
    for entry in folder.read_dir().map_err(Failed::reading(folder))? {
        let path = entry.map_err(Failed::reading(folder))?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let is_test = stem.starts_with("test_") || stem.ends_with("_test") || stem == "test";
        if path.extension().is_some_and(|extension| extension == "c")
            && !is_test
            && fs::metadata(&path).is_ok_and(|found| found.is_file())
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
