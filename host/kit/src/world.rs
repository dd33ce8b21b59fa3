//! Writes `build/wit`, a copy of the interface with one generated world that the component is built against.
//!
//! Some toolchains import everything that their world names. So the world names only what the plugin requests, and durable
//! calls only if its files say that it has durable tools.

use std::fs;
use std::path::{Path, PathBuf};

use wit_parser::Resolve;

use crate::{Failed, Project};

/// The name of the generated world. componentize-py creates a Python module of this name, so no author may use it.
pub(crate) const WORLD: &str = "toolgate-world";

/// The interface's world for durable tools.
const DURABLE: &str = "plugin-durable";

/// The part of the interface that the world has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything, for toolchains that import only what is used.
    Everything,
    /// The requested capabilities, and durable calls if the plugin has durable tools.
    Requested,
}

/// Writes `build/wit` and returns its path. Its package `toolgate:build` has the world [`WORLD`] with this part.
pub(crate) fn write(project: &Project, part: Part) -> Result<PathBuf, Failed> {
    let interface = project.interface()?;
    let folder = project.emptied_output("wit")?;
    let deps = folder.join("deps");
    copy(&interface.join("deps"), &deps)?;
    let own = deps.join("toolgate");
    fs::create_dir_all(&own).map_err(Failed::writing(&own))?;
    let plugin = own.join("plugin.wit");
    fs::copy(interface.join("plugin.wit"), &plugin).map_err(Failed::writing(&plugin))?;
    let world = folder.join("world.wit");
    fs::write(&world, text(&interface, |world| part == Part::Everything || is_requested(project, world))?)
        .map_err(Failed::writing(&world))?;
    Ok(folder)
}

/// Whether the plugin needs this world of the interface.
fn is_requested(project: &Project, world: &str) -> bool {
    match world.strip_prefix("plugin-with-") {
        Some(capability) => project.requested().contains(capability),
        None => project.is_durable(),
    }
}

fn text(interface: &Path, has: impl Fn(&str) -> bool) -> Result<String, Failed> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(interface).map_err(Failed::Component)?;
    let package = &resolve.packages[package];
    let Some(version) = &package.name.version else {
        return Err(Failed::project(
            format!("the interface in {} has no version", interface.display()),
            "use the interface that comes with toolgate",
        ));
    };
    let mut text = format!(
        "// `toolgate build` wrote this world, which the plugin is built against.\npackage toolgate:build;\n\nworld {WORLD} {{\n  \
         include toolgate:plugin/plugin@{version};\n"
    );
    for world in package.worlds.keys() {
        if (world.starts_with("plugin-with-") || world == DURABLE) && has(world) {
            text.push_str(&format!("  include toolgate:plugin/{world}@{version};\n"));
        }
    }
    text.push_str("}\n");
    Ok(text)
}

/// Copies the `.wit` files. Links are left out.
fn copy(from: &Path, to: &Path) -> Result<(), Failed> {
    fs::create_dir_all(to).map_err(Failed::writing(to))?;
    for entry in from.read_dir().map_err(Failed::reading(from))? {
        let entry = entry.map_err(Failed::reading(from))?;
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(Failed::reading(&path))?;
        if kind.is_dir() {
            copy(&path, &to)?;
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "wit") {
            fs::copy(&path, &to).map_err(Failed::writing(&to))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn project(requested: &[&str], keys: &str) -> (tempfile::TempDir, Project) {
        let folder = tempfile::tempdir().unwrap();
        let package = format!(r#"{{"name": "x", "toolgate": {{{keys}}}}}"#);
        fs::write(folder.path().join("package.json"), package).unwrap();
        let wants: String = requested.iter().map(|name| format!("[wants.{name}]\n")).collect();
        fs::write(folder.path().join("toolgate-plugin.toml"), wants).unwrap();
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit/v0.1");
        copy(&ours, &folder.path().join("toolgate/wit/v0.1")).unwrap();
        let project = Project::open(folder.path(), None).unwrap();
        (folder, project)
    }

    fn imports(part: Part, requested: &[&str], keys: &str) -> BTreeSet<String> {
        let (_folder, project) = project(requested, keys);
        let wit = write(&project, part).unwrap();
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(&wit).unwrap();
        let world = resolve.select_world(&[package], Some(WORLD)).unwrap();
        let names = resolve.worlds[world].imports.keys().map(|key| resolve.name_world_key(key));
        names.map(|name| name.split('@').next().unwrap().to_owned()).collect()
    }

    const DURABLE_CALLS: &str = "toolgate:plugin/durable";

    #[test]
    fn world_imports_only_what_is_requested() {
        let plain = imports(Part::Requested, &[], "");
        assert_eq!(plain, ["toolgate:plugin/host", "toolgate:plugin/tool-types"].map(str::to_owned).into());
        let more = |name| &imports(Part::Requested, &[name], "") - &plain;
        assert!(more("http").contains("wasi:http/outgoing-handler"));
        assert!(more("config").iter().all(|name| name.starts_with("wasi:config/")));
        assert!(more("keyvalue").iter().all(|name| name.starts_with("wasi:keyvalue/")));
        assert_eq!(&imports(Part::Requested, &[], r#""durable": true"#) - &plain, [DURABLE_CALLS.to_owned()].into());
        let everything = imports(Part::Everything, &[], "");
        assert!(everything.len() > plain.len() + 8 && everything.contains(DURABLE_CALLS));
    }

    #[test]
    fn each_build_writes_the_world_again() {
        let (_folder, project) = project(&[], "");
        let wit = write(&project, Part::Everything).unwrap();
        fs::write(wit.join("old.wit"), "nonsense").unwrap();
        write(&project, Part::Requested).unwrap();
        assert!(!wit.join("old.wit").exists());
        assert!(!fs::read_to_string(wit.join("world.wit")).unwrap().contains("http"));
    }
}
