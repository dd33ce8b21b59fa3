//! JavaScript and TypeScript: esbuild makes one module of the author's and the SDK, and an engine with it becomes a component.

use std::path::Path;

use super::{Made, read};
use crate::toolchain::{self, npm_command};
use crate::{Failed, Kit, Language, Project, project, world};

/// What runs the module inside of the component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    /// Small and quick to start.
    QuickJs,
    /// The engine of a browser.
    StarlingMonkey,
}

pub(super) fn build(kit: &Kit<'_>, project: &Project) -> Result<Made, Failed> {
    let package = project::json(&project.folder().join("package.json"))?;
    let engine = engine(&package, project.language())?;
    let main = package["main"].as_str().unwrap_or("plugin.js");
    // Both engines import whatever the world names.
    let wit = world::write(project, project.wants())?;
    let installed = match engine {
        Engine::QuickJs => toolchain::QUICKJS,
        Engine::StarlingMonkey => toolchain::STARLINGMONKEY,
    };
    let installed = installed.installed(kit)?;
    packages(kit, project.folder())?;
    if project.language() == Language::TypeScript && project.folder().join("tsconfig.json").is_file() {
        (kit.say)("checking types");
        installed.npm("tsc").in_folder(project.folder()).args(["--noEmit", "--project", "."]).run("checking types")?;
    }
    let (module, made) = (project.output().join("plugin.mjs"), project.output().join("component.wasm"));
    installed
        .npm("esbuild")
        .in_folder(project.folder())
        .arg(main)
        .args(["--bundle", "--format=esm", "--platform=neutral", "--main-fields=module,main", "--log-level=warning"])
        .args(["--external:toolgate:*", "--external:wasi:*"])
        .arg(format!("--outfile={}", module.display()))
        .run("bundling")?;
    (kit.say)(&format!("building {} with {}", project.name(), engine.tool()));
    let tool = installed.npm(engine.tool()).in_folder(project.folder());
    let tool = match engine {
        Engine::QuickJs => tool.args(["--sync", "-n", world::WORLD, "--wit"]).arg(&wit).arg("--js").arg(&module),
        Engine::StarlingMonkey => {
            tool.arg(&module).arg("-w").arg(&wit).args(["-n", world::WORLD, "--disable", "http", "fetch-event"])
        }
    };
    tool.arg("-o").arg(&made).run("building the component")?;
    Ok(Made { component: read(&made)?, tools: vec![engine.tool().to_owned()] })
}

impl Engine {
    /// The program that makes a component with it.
    fn tool(self) -> &'static str {
        match self {
            Self::QuickJs => "componentize-qjs",
            Self::StarlingMonkey => "componentize-js",
        }
    }
}

/// The engine that the package names; the small one for JavaScript, the large one for TypeScript, if it names none.
fn engine(package: &serde_json::Value, language: Language) -> Result<Engine, Failed> {
    match package["toolgate"]["engine"].as_str() {
        Some("quickjs") => Ok(Engine::QuickJs),
        Some("starlingmonkey") => Ok(Engine::StarlingMonkey),
        None if package["toolgate"]["engine"].is_null() => {
            Ok(if language == Language::TypeScript { Engine::StarlingMonkey } else { Engine::QuickJs })
        }
        _ => Err(Failed::project(
            format!("package.json names an engine that there is not: {}", package["toolgate"]["engine"]),
            "write \"toolgate\": {\"engine\": \"quickjs\"}, or \"starlingmonkey\"",
        )),
    }
}

/// Installs the plugin's own packages, if it has any and they are not those of its lock file.
fn packages(kit: &Kit<'_>, folder: &Path) -> Result<(), Failed> {
    let modified = |path: &str| folder.join(path).metadata().and_then(|found| found.modified()).ok();
    let installed = modified("node_modules/.package-lock.json");
    let is_current =
        |file: &str| modified(file).is_none_or(|wanted| installed.is_some_and(|installed| installed >= wanted));
    if is_current("package.json") && is_current("package-lock.json") {
        return Ok(());
    }
    (kit.say)("installing the packages of package.json");
    let how = if folder.join("package-lock.json").is_file() { "ci" } else { "install" };
    npm_command(kit)?.arg(how).in_folder(folder).run("installing the plugin's packages").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_engine_is_the_languages_unless_the_package_names_one() {
        let chosen = |package| engine(&package, Language::JavaScript).map_err(|error| error.to_string());
        assert_eq!(chosen(json!({})), Ok(Engine::QuickJs));
        assert_eq!(engine(&json!({}), Language::TypeScript).unwrap(), Engine::StarlingMonkey);
        assert_eq!(chosen(json!({"toolgate": {"engine": "starlingmonkey"}})), Ok(Engine::StarlingMonkey));
        for wrong in [json!("v8"), json!(1), json!({})] {
            let error = chosen(json!({"toolgate": {"engine": wrong}})).unwrap_err();
            assert!(error.starts_with("package.json names an engine that there is not"), "{error}");
        }
    }
}
