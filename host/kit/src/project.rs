//! A plugin's folder: what it is called, what it wants, and where the SDK and the interface are that belong to it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Failed, Language};

/// What a plugin wants to use, as far as that decides what its component imports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wants {
    /// wasi:keyvalue.
    pub keyvalue: bool,
    /// wasi:http.
    pub http: bool,
    /// wasi:config, for values and for secrets.
    pub config: bool,
}

/// A plugin's folder.
#[derive(Debug, Clone)]
pub struct Project {
    language: Language,
    folder: PathBuf,
    name: String,
    wants: Wants,
}

impl Project {
    /// Reads a folder; its files say which language it is, unless the caller does.
    ///
    /// # Errors
    /// When it is no plugin's folder, or its name cannot be one of a component.
    pub fn open(folder: &Path, language: Option<Language>) -> Result<Self, Failed> {
        let language = language.map_or_else(|| Language::of(folder), Ok)?;
        let folder = fs::canonicalize(folder).map_err(Failed::reading(folder))?;
        let name = name(language, &folder)?;
        let wants = wants(&folder)?;
        Ok(Self { language, folder, name, wants })
    }

    /// What it is written in.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }

    /// Where it is, from the root.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it is called: 1 to 64 of the characters `a-z A-Z 0-9 _ -`, so it may be the name of a file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it wants.
    #[must_use]
    pub fn wants(&self) -> Wants {
        self.wants
    }

    /// The file that says what it wants, if there is one.
    #[must_use]
    pub fn manifest(&self) -> Option<PathBuf> {
        let file = self.folder.join(MANIFEST);
        file.is_file().then_some(file)
    }

    /// Where everything goes that a build makes.
    #[must_use]
    pub fn output(&self) -> PathBuf {
        self.folder.join("build")
    }

    /// The folder for what a build makes, made if it is not there.
    pub(crate) fn made_output(&self) -> Result<PathBuf, Failed> {
        let output = self.output();
        for folder in [output.clone(), output.join("js"), output.join("python"), output.join("wit")] {
            if folder.symlink_metadata().is_ok_and(|found| found.file_type().is_symlink()) {
                return Err(Failed::project(
                    format!("{} is a link, and would lead what a build writes and removes elsewhere", folder.display()),
                    "remove it: the build makes a folder there",
                ));
            }
        }
        fs::create_dir_all(&output).map_err(Failed::writing(&output))?;
        Ok(output)
    }

    /// The SDK that it is written with: the nearest `toolgate/sdk/LANGUAGE` or `sdk/LANGUAGE` in its folder or above it.
    pub(crate) fn sdk(&self) -> Result<PathBuf, Failed> {
        let sdk = Path::new("sdk").join(self.language.sdk());
        self.above(&sdk, &sdk.join("README.md"))
    }

    /// The interface: the nearest `toolgate/wit` or `wit` in its folder or above it, of the version that is built against.
    pub(crate) fn interface(&self) -> Result<PathBuf, Failed> {
        self.above(Path::new("wit/v0.1"), Path::new("wit/v0.1/plugin.wit"))
    }

    /// What lies at this path in a folder `toolgate` or here, in this folder or one above it, if it has this file.
    ///
    /// A folder of somebody else's is not taken: above a plugin may be one that everybody writes to, as `/tmp` is.
    fn above(&self, path: &Path, file: &Path) -> Result<PathBuf, Failed> {
        let places = self.folder.ancestors().flat_map(|above| [above.join("toolgate"), above.to_owned()]);
        let Some(found) = places.into_iter().find(|place| place.join(file).is_file()) else {
            return Err(Failed::project(
                format!("{} has no {}, nor has a folder above it", self.folder.display(), path.display()),
                format!("copy the folder `toolgate` from what `toolgate new --lang {}` writes", self.language),
            ));
        };
        let found = found.join(path);
        if !is_trusted(&self.folder, &found).map_err(Failed::reading(&found))? {
            return Err(Failed::project(
                format!("{} belongs to somebody else than {}", found.display(), self.folder.display()),
                "copy it into the plugin's folder, as `toolgate/sdk` and `toolgate/wit`, if it is to be trusted",
            ));
        }
        Ok(found)
    }
}

/// Whether one folder belongs to the owner of another, or to the machine's.
#[cfg(unix)]
fn is_trusted(ours: &Path, found: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let (ours, found) = (fs::metadata(ours)?.uid(), fs::metadata(found)?.uid());
    Ok(found == ours || found == 0)
}

#[cfg(not(unix))]
fn is_trusted(_ours: &Path, _found: &Path) -> std::io::Result<bool> {
    Ok(true)
}

/// The file that says what a plugin wants.
const MANIFEST: &str = "toolgate-plugin.toml";

/// The name that its files give a plugin.
fn name(language: Language, folder: &Path) -> Result<String, Failed> {
    let file = folder.join(language.marker());
    let missing = |what: &str| Failed::project(format!("{} does not say {what}", file.display()), "add it");
    let name = match language {
        Language::Rust => {
            let name = toml(&file)?.get("package").and_then(|package| package.get("name")).cloned();
            name.and_then(|name| name.as_str().map(str::to_owned)).ok_or_else(|| {
                Failed::project(
                    format!("{} is no package's: it has no `[package]` with a name", file.display()),
                    "name the folder of one package of the workspace",
                )
            })?
        }
        Language::Python => {
            let name = toml(&file)?.get("project").and_then(|project| project.get("name")).cloned();
            name.and_then(|name| name.as_str().map(str::to_owned)).ok_or_else(|| missing("`name` in `[project]`"))?
        }
        Language::JavaScript | Language::TypeScript => {
            let package = json(&file)?;
            let name = package["name"].as_str().ok_or_else(|| missing("`name`"))?;
            // A package may be in a scope, as in `@scope/name`.
            name.rsplit('/').next().unwrap_or_default().to_owned()
        }
        Language::Go => {
            let text = fs::read_to_string(&file).map_err(Failed::reading(&file))?;
            let module = text.lines().find_map(|line| line.trim().strip_prefix("module ")).map(str::trim);
            let module = module.ok_or_else(|| missing("`module`"))?.trim_matches('"');
            module.rsplit('/').next().unwrap_or_default().to_owned()
        }
        Language::C => folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    };
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if (1..=64).contains(&name.len()) && name.bytes().all(fits) {
        return Ok(name);
    }
    let whose = if language == Language::C { folder.display() } else { file.display() };
    Err(Failed::project(
        format!("{name:?}, as {whose} says, cannot be the name of a plugin"),
        "a name has 1 to 64 of the characters a-z A-Z 0-9 _ -",
    ))
}

/// What the manifest wants. That it is right in every part is seen when the component is packed.
fn wants(folder: &Path) -> Result<Wants, Failed> {
    let file = folder.join(MANIFEST);
    if !file.is_file() {
        return Ok(Wants::default());
    }
    let manifest = toml(&file)?;
    let wants = |kind: &str| manifest.get("wants").and_then(|wants| wants.get(kind)).is_some();
    Ok(Wants { keyvalue: wants("keyvalue"), http: wants("http"), config: wants("config") || wants("secrets") })
}

/// A file of TOML.
pub(crate) fn toml(file: &Path) -> Result<toml::Table, Failed> {
    let text = fs::read_to_string(file).map_err(Failed::reading(file))?;
    text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        Failed::project(format!("{}:{line}: {}", file.display(), error.message()), "see https://toml.io")
    })
}

/// A file of JSON.
pub(crate) fn json(file: &Path) -> Result<Value, Failed> {
    let text = fs::read_to_string(file).map_err(Failed::reading(file))?;
    serde_json::from_str(&text)
        .map_err(|error| Failed::project(format!("{} is not JSON: {error}", file.display()), "mend it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    #[track_caller]
    fn named(file: &str, content: &str, expected: &str) {
        let folder = folder(&[(file, content)]);
        let found = Project::open(folder.path(), None);
        let found = found.map_or_else(|error| error.to_string(), |project| project.name().to_owned());
        let here = fs::canonicalize(folder.path()).unwrap().display().to_string();
        assert_eq!(found.replace(&here, "DIR"), expected);
    }

    #[test]
    fn a_plugin_is_named_by_its_files() {
        named("Cargo.toml", "[package]\nname = \"search\"", "search");
        named("pyproject.toml", "[project]\nname = \"stats\"", "stats");
        named("package.json", r#"{"name":"@a/dates"}"#, "dates");
        named("go.mod", "// about\nmodule example.org/x/differ\n\ngo 1.24\n", "differ");
    }

    #[test]
    fn a_name_that_would_lead_elsewhere_is_refused() {
        for name in ["..", "a.b", "a b", "", "a\\\\b", "é"] {
            let file = format!("[project]\nname = \"{name}\"");
            let folder = folder(&[("pyproject.toml", &file)]);
            let error = Project::open(folder.path(), None).unwrap_err();
            assert!(error.to_string().ends_with("cannot be the name of a plugin"), "{error}");
        }
        named("go.mod", "module a/..", r#""..", as DIR/go.mod says, cannot be the name of a plugin"#);
        named("package.json", r#"{"name":"a/"}"#, r#""", as DIR/package.json says, cannot be the name of a plugin"#);
    }

    #[test]
    fn what_is_missing_is_said() {
        named("Cargo.toml", "[workspace]", "DIR/Cargo.toml is no package's: it has no `[package]` with a name");
        named("pyproject.toml", "", "DIR/pyproject.toml does not say `name` in `[project]`");
        named(
            "pyproject.toml",
            "[project]\nname = ",
            "DIR/pyproject.toml:2: string values must be quoted, expected literal string",
        );
        named("package.json", "{}", "DIR/package.json does not say `name`");
        named("go.mod", "go 1.24", "DIR/go.mod does not say `module`");
    }

    #[test]
    fn wants_are_read_from_the_manifest() {
        let project = |manifest: &str| {
            let folder = folder(&[("go.mod", "module x"), (MANIFEST, manifest)]);
            Project::open(folder.path(), None).unwrap().wants()
        };
        assert_eq!(project(""), Wants::default());
        assert_eq!(project("[wants.keyvalue]\nwhy = \"\""), Wants { keyvalue: true, ..Wants::default() });
        assert_eq!(project("[[wants.http]]\nurl = \"\""), Wants { http: true, ..Wants::default() });
        assert_eq!(project("[[wants.secrets]]\nname = \"\""), Wants { config: true, ..Wants::default() });
    }

    #[test]
    fn the_nearest_sdk_is_taken() {
        let world = folder(&[
            ("sdk/go/README.md", ""),
            ("wit/v0.1/plugin.wit", ""),
            ("plugins/a/go.mod", "module a"),
            ("plugins/b/go.mod", "module b"),
            ("plugins/b/toolgate/sdk/go/README.md", ""),
            ("plugins/b/toolgate/wit/v0.1/plugin.wit", ""),
        ]);
        let root = fs::canonicalize(world.path()).unwrap();
        let open = |name: &str| Project::open(&root.join("plugins").join(name), None).unwrap();
        assert_eq!(open("a").sdk().unwrap(), root.join("sdk/go"));
        assert_eq!(open("a").interface().unwrap(), root.join("wit/v0.1"));
        assert_eq!(open("b").sdk().unwrap(), root.join("plugins/b/toolgate/sdk/go"));
        assert_eq!(open("b").interface().unwrap(), root.join("plugins/b/toolgate/wit/v0.1"));
    }

    #[test]
    fn without_an_sdk_it_is_said_where_to_have_one() {
        let folder = folder(&[("go.mod", "module a")]);
        let error = Project::open(folder.path(), None).unwrap().sdk().unwrap_err();
        assert!(error.to_string().ends_with("has no sdk/go, nor has a folder above it"), "{error}");
        assert!(error.hint().unwrap().contains("toolgate new --lang go"));
    }
}
