//! JavaScript and TypeScript: `sdk/js/toolchain/build.mjs` checks types and bundles the plugin with the SDK. The bundle and an
//! engine become a component. Node.js runs no code of the plugin, and no script of a package.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{Made, read};
use crate::toolchain::{self, Toolchain, node, npm_command};
use crate::{Failed, Kit, Language, Project, fixed, parsed, world};

/// The folder of the scripts. They are those in the binary, which fit the toolchain, whichever SDK the plugin has.
const SCRIPTS: &str = "sdk/js/toolchain";

/// The SDK's package, which needs no npm.
const SDK: &str = "@toolgate/sdk";

/// The engine inside the component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    /// Small and quick to start.
    QuickJs,
    /// The engine of a browser.
    StarlingMonkey,
}

pub(super) fn build(kit: &Kit<'_>, project: &Project) -> Result<Made, Failed> {
    let package = parsed::json(&project.folder().join("package.json"))?;
    let engine = engine(&package, project.language())?;
    // Both engines import everything that the world names.
    let wit = world::write(project, world::Part::Requested)?;
    let sdk = project.sdk()?;
    let installed = engine.toolchain().installed(kit)?;
    packages(kit, project.folder(), &package)?;
    let work = project.emptied_output("js")?;
    let (script, made) = (work.join("build.mjs"), work.join("component.wasm"));
    for name in ["build.mjs", "quickjs.mjs", "wizer.mjs"] {
        let path = work.join(name);
        fs::write(&path, kit.carried(&format!("{SCRIPTS}/{name}"))?).map_err(Failed::writing(&path))?;
    }
    // The scripts find it beside them.
    fixed::write(&work)?;
    (kit.say)(&format!("building {} for {}", project.name(), engine.as_str()));
    let printed = node()
        .in_folder(project.folder())
        .arg(&script)
        .args(["--engine", engine.as_str(), "--world", world::WORLD, "--project"])
        .arg(project.folder())
        .arg("--toolchain")
        .arg(installed.path(""))
        .arg("--sdk")
        .arg(&sdk)
        .arg("--wit")
        .arg(&wit)
        .arg("--out")
        .arg(&made)
        .compile("building the plugin")?;
    let (tools, others): (Vec<_>, Vec<_>) = printed.lines().partition(|line| line.starts_with(TOOL));
    kit.pass_on(&others.join("\n"));
    let tools = tools.into_iter().map(|line| line[TOOL.len()..].to_owned()).collect();
    Ok(Made { component: read(&made)?, tools })
}

/// The script's prefix of a line with a tool and its version.
const TOOL: &str = "tool: ";

impl Engine {
    /// Its name in `package.json`.
    fn as_str(self) -> &'static str {
        match self {
            Self::QuickJs => "quickjs",
            Self::StarlingMonkey => "starlingmonkey",
        }
    }

    fn toolchain(self) -> Toolchain {
        match self {
            Self::QuickJs => toolchain::QUICKJS,
            Self::StarlingMonkey => toolchain::STARLINGMONKEY,
        }
    }
}

/// The engine that the package names. Without one, JavaScript gets QuickJS and TypeScript gets StarlingMonkey.
fn engine(package: &Value, language: Language) -> Result<Engine, Failed> {
    match package["toolgate"]["engine"].as_str() {
        Some("quickjs") => Ok(Engine::QuickJs),
        Some("starlingmonkey") => Ok(Engine::StarlingMonkey),
        None if package["toolgate"]["engine"].is_null() => {
            Ok(if language == Language::TypeScript { Engine::StarlingMonkey } else { Engine::QuickJs })
        }
        _ => Err(Failed::project(
            format!("package.json names an unknown engine: {}", package["toolgate"]["engine"]),
            "write \"toolgate\": {\"engine\": \"quickjs\"}, or \"starlingmonkey\"",
        )),
    }
}

/// Installs the plugin's packages, unless they are installed and current.
fn packages(kit: &Kit<'_>, folder: &Path, package: &Value) -> Result<(), Failed> {
    if !has_packages(package) {
        return Ok(());
    }
    let modified = |path: &str| folder.join(path).metadata().and_then(|found| found.modified()).ok();
    let installed = modified("node_modules/.package-lock.json");
    let is_current =
        |file: &str| modified(file).is_none_or(|changed| installed.is_some_and(|installed| installed >= changed));
    if is_current("package.json") && is_current("package-lock.json") {
        return Ok(());
    }
    (kit.say)("installing the packages of package.json");
    let how = if folder.join("package-lock.json").is_file() { "ci" } else { "install" };
    npm_command(kit, folder)?.arg(how).run("installing the plugin's packages").map(drop)
}

/// Whether the component needs packages other than the SDK. Authors install packages for tests themselves.
fn has_packages(package: &Value) -> bool {
    package["dependencies"].as_object().is_some_and(|needed| needed.keys().any(|name| name != SDK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Invocation;
    use crate::toolchain::left_out;
    use serde_json::json;

    #[test]
    fn language_chooses_the_engine_unless_the_package_does() {
        let chosen = |package| engine(&package, Language::JavaScript).map_err(|error| error.to_string());
        assert_eq!(chosen(json!({})), Ok(Engine::QuickJs));
        assert_eq!(engine(&json!({}), Language::TypeScript).unwrap(), Engine::StarlingMonkey);
        for engine in [Engine::QuickJs, Engine::StarlingMonkey] {
            assert_eq!(chosen(json!({"toolgate": {"engine": engine.as_str()}})), Ok(engine));
        }
        for wrong in [json!("v8"), json!(1), json!({})] {
            let error = chosen(json!({"toolgate": {"engine": wrong}})).unwrap_err();
            assert!(error.starts_with("package.json names an unknown engine"), "{error}");
        }
    }

    #[test]
    fn npmrc_and_git_config_of_a_plugin_run_no_program() {
        if left_out() {
            return;
        }
        let world = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = world.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let ran = world.path().join("ran");
        let script = format!("#!/bin/sh\necho \"$0 $*\" >> {}\n", ran.display());
        write("plugin/evil.sh", &script);
        let evil = world.path().join("plugin/evil.sh");
        fs::set_permissions(&evil, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let evil = evil.display();
        write("plugin/.npmrc", &format!("ignore-scripts=false\nscript-shell={evil}\ngit={evil}\nshell={evil}\n"));
        // An archive can contain this. git obeys the configuration of the repository in which it starts.
        for (file, text) in [("HEAD", "ref: refs/heads/main\n"), ("objects/a", ""), ("refs/a", "")] {
            write(&format!("plugin/.git/{file}"), text);
        }
        let core = ["sshCommand", "fsmonitor", "askPass", "gitProxy"].map(|key| format!("{key} = {evil}\n")).concat();
        let url = format!("[url \"ext::{evil} \"]\ninsteadOf = file://\n[protocol \"ext\"]\nallow = always\n");
        write("plugin/.git/config", &format!("[core]\n{core}{url}"));
        write("plugin/dep/package.json", r#"{"name":"dep","version":"1.0.0","scripts":{"postinstall":"./evil.sh"}}"#);
        let install = |dependency: &str| {
            let package = json!({"name": "plugin", "dependencies": {"dep": dependency},
                "scripts": {"preinstall": "./evil.sh", "postinstall": "./evil.sh", "prepare": "./evil.sh"}});
            write("plugin/package.json", &package.to_string());
            let cache = crate::Cache::at(&world.path().join("cache")).unwrap();
            let kit = Kit { carried: &[], cache, offline: false, say: &|_| {}, printed: &|_| {} };
            packages(&kit, &world.path().join("plugin"), &package)
        };
        install("file:dep").unwrap();
        assert!(world.path().join("plugin/node_modules/dep/package.json").is_file(), "it is installed");
        // Nothing is there.
        install(&format!("git+file://{}/nothing.git", world.path().display())).unwrap_err();
        let ran = fs::read_to_string(ran).unwrap_or_default();
        assert_eq!(ran, "", "no program of the plugin ran");
    }

    /// A repository with these files, which are all executable.
    fn repository(folder: &Path, files: &[(&str, &str)]) -> String {
        fs::create_dir_all(folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
            fs::set_permissions(folder.join(name), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        for words in ["init --quiet", "add .", "-c user.name=a -c user.email=a@b commit --quiet --message=all"] {
            Invocation::new("git").args(words.split(' ')).in_folder(folder).run("making a repository").unwrap();
        }
        format!("git+file://{}", folder.display())
    }

    #[test]
    fn npmrc_of_a_git_dependency_runs_no_program() {
        if left_out() {
            return;
        }
        let world = tempfile::tempdir().unwrap();
        let (ran, plugin) = (world.path().join("ran"), world.path().join("plugin"));
        let shell = format!("#!/bin/sh\necho \"$0 $*\" >> {}\n", ran.display());
        let module = format!("require('fs').appendFileSync('{}', 'by Node.js\\n')", ran.display());
        let required = world.path().join("evil.cjs");
        fs::write(&required, &module).unwrap();
        // For the script `prepare` of such a package, npm installs its dependencies with a second npm inside it.
        let npmrc = format!(
            "global=true\nlocation=global\nignore-scripts=false\nscript-shell=./evil.sh\nnode-options=--require={}\n\
             git=./evil.sh\n",
            required.display()
        );
        let package = |name: &str, needed: Value| {
            let scripts = json!({"prepare": "./evil.sh", "postinstall": "./evil.sh"});
            json!({"name": name, "version": "1.0.0", "scripts": scripts, "dependencies": needed})
        };
        let repository = |name: &str, needed: Value| {
            let package = package(name, needed).to_string();
            let files = [("package.json", &*package), (".npmrc", &*npmrc), ("evil.sh", &*shell)];
            repository(&world.path().join(name), &files)
        };
        let inner = repository("inner", json!({}));
        let outer = repository("outer", json!({"inner": inner}));
        let package = package("plugin", json!({"outer": outer}));
        fs::create_dir(&plugin).unwrap();
        fs::write(plugin.join("package.json"), package.to_string()).unwrap();
        fs::write(plugin.join(".npmrc"), npmrc.replace("git=./evil.sh\n", "")).unwrap();
        let cache = crate::Cache::at(&world.path().join("cache")).unwrap();
        let kit = Kit { carried: &[], cache, offline: false, say: &|_| {}, printed: &|_| {} };
        let installed = packages(&kit, &plugin, &package);
        let ran = fs::read_to_string(ran).unwrap_or_default();
        assert_eq!(ran, "", "no program of the packages ran");
        installed.unwrap();
        for name in ["outer", "inner"] {
            assert!(plugin.join("node_modules").join(name).join("package.json").is_file(), "{name} is installed");
        }
    }

    #[test]
    fn npm_runs_only_for_packages_of_others() {
        for (package, expected) in [
            (json!({}), false),
            (json!({"dependencies": {"@toolgate/sdk": "file:toolgate/sdk/js"}}), false),
            (json!({"devDependencies": {"typescript": "*"}}), false),
            (json!({"dependencies": {"@toolgate/sdk": "file:toolgate/sdk/js", "zod": "^4.2.0"}}), true),
        ] {
            assert_eq!(has_packages(&package), expected, "{package}");
        }
    }
}
