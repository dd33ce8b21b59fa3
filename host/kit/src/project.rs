//! A plugin's folder: its name, what it requests, and the SDK and the interface that it is built with.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::parsed::{json, toml};
use crate::{Failed, Language};

/// A plugin's folder.
#[derive(Debug, Clone)]
pub struct Project {
    language: Language,
    folder: PathBuf,
    name: String,
    requested: BTreeSet<String>,
    durable: bool,
    target: Option<PathBuf>,
}

impl Project {
    /// Reads a folder. Its files show the language if the caller names none.
    ///
    /// # Errors
    /// When it is not the folder of a plugin, or its name cannot be the name of a component.
    pub fn open(folder: &Path, language: Option<Language>) -> Result<Self, Failed> {
        if !folder.is_dir() {
            let message = format!("there is no folder {}", folder.display());
            let hint = "name the plugin's folder, or create one with `toolgate new`".to_owned();
            return Err(Failed::Folder { message, hint });
        }
        let language = language.map_or_else(|| Language::of(folder), Ok)?;
        let folder = fs::canonicalize(folder).map_err(Failed::reading(folder))?;
        let name = name(language, &folder)?;
        let requested = requested(&folder)?;
        let durable = is_durable(language, &folder)?;
        Ok(Self { language, folder, name, requested, durable, target: None })
    }

    /// Sets the folder in which cargo keeps the results of compilations. An empty one makes it compile everything.
    #[must_use]
    pub fn with_target(self, folder: &Path) -> Self {
        Self { target: Some(folder.to_owned()), ..self }
    }

    /// The folder for cargo's results, if it is not cargo's own choice.
    pub(crate) fn target(&self) -> Option<&Path> {
        self.target.as_deref()
    }

    /// The language of the plugin.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }

    /// The absolute path of the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The name: 1 to 64 of the characters `a-z A-Z 0-9 _ -`, so that it can be the name of a file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The requested capabilities, as the names of the interface's worlds `plugin-with-NAME`.
    #[must_use]
    pub fn requested(&self) -> &BTreeSet<String> {
        &self.requested
    }

    /// Whether the plugin's files say that it has durable tools. Python, JavaScript and TypeScript need this.
    pub(crate) fn is_durable(&self) -> bool {
        self.durable
    }

    /// The manifest, if there is one.
    #[must_use]
    pub fn manifest(&self) -> Option<PathBuf> {
        let file = self.folder.join(MANIFEST);
        file.is_file().then_some(file)
    }

    /// The folder for the output of a build.
    #[must_use]
    pub fn output(&self) -> PathBuf {
        self.folder.join("build")
    }

    /// Creates the folder for the output of a build.
    ///
    /// A build writes and removes whole folders, so it refuses links that lead elsewhere.
    pub(crate) fn made_output(&self) -> Result<PathBuf, Failed> {
        let output = self.output();
        for folder in ["", "c", "go", "js", "python", "wit"].map(|folder| output.join(folder)) {
            if folder.symlink_metadata().is_ok_and(|found| found.file_type().is_symlink()) {
                return Err(Failed::project(
                    format!("{} is a link; a build would write and remove files where it leads", folder.display()),
                    "remove the link: the build creates a folder there",
                ));
            }
        }
        fs::create_dir_all(&output).map_err(Failed::writing(&output))?;
        Ok(output)
    }

    /// Creates an empty folder for one part of the output. Links of an old one would lead writes elsewhere.
    pub(crate) fn emptied_output(&self, part: &str) -> Result<PathBuf, Failed> {
        let folder = self.made_output()?.join(part);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(Failed::writing(&folder))?;
        }
        fs::create_dir(&folder).map_err(Failed::writing(&folder))?;
        Ok(folder)
    }

    /// The SDK of the plugin: the nearest `toolgate/sdk/LANGUAGE` or `sdk/LANGUAGE` in its folder or above it.
    pub(crate) fn sdk(&self) -> Result<PathBuf, Failed> {
        let sdk = Path::new("sdk").join(self.language.sdk());
        self.above(&sdk, &sdk.join("README.md"))
    }

    /// The interface: the nearest `toolgate/wit/v0.1` or `wit/v0.1` in its folder or above it.
    pub(crate) fn interface(&self) -> Result<PathBuf, Failed> {
        self.above(Path::new("wit/v0.1"), Path::new("wit/v0.1/plugin.wit"))
    }

    /// Finds this path, in this folder or one above it, each with and without `toolgate` before it. `file` must exist
    /// there.
    ///
    /// A folder that another user owns is refused: everybody can write to a folder such as `/tmp`, which may be above a
    /// plugin.
    fn above(&self, path: &Path, file: &Path) -> Result<PathBuf, Failed> {
        let places = self.folder.ancestors().flat_map(|above| [above.join("toolgate"), above.to_owned()]);
        let Some(found) = places.into_iter().find(|place| place.join(file).is_file()) else {
            return Err(Failed::project(
                format!("there is no {} in {} or above it", path.display(), self.folder.display()),
                format!("run `toolgate new --lang {}` elsewhere, and copy its folder `toolgate`", self.language),
            ));
        };
        let found = found.join(path);
        if !is_trusted(&self.folder, &found).map_err(Failed::reading(&found))? {
            return Err(Failed::project(
                format!("{} and {} have different owners", found.display(), self.folder.display()),
                "if you trust it, copy it into the plugin's folder, as `toolgate/sdk` and `toolgate/wit`",
            ));
        }
        Ok(found)
    }
}

/// Whether `found` belongs to the owner of `ours`, or to root.
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

/// The manifest: what a plugin requests.
const MANIFEST: &str = "toolgate-plugin.toml";

/// Reads the name of a plugin from its files.
fn name(language: Language, folder: &Path) -> Result<String, Failed> {
    let file = folder.join(language.marker());
    let missing = |what: &str| Failed::project(format!("{} has no {what}", file.display()), "add it");
    let name = match language {
        Language::Rust => {
            let name = toml(&file)?.get("package").and_then(|package| package.get("name")).cloned();
            name.and_then(|name| name.as_str().map(str::to_owned)).ok_or_else(|| {
                Failed::project(
                    format!("{} has no `[package]` with a name", file.display()),
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
            // A package can have a scope, as in `@scope/name`.
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
        format!("the name {name:?} in {whose} cannot be the name of a plugin"),
        "a name has 1 to 64 of the characters a-z A-Z 0-9 _ -",
    ))
}

/// Reads the key `durable`. The other languages import the interface if a tool uses it.
fn is_durable(language: Language, folder: &Path) -> Result<bool, Failed> {
    let file = folder.join(language.marker());
    let (value, example) = match language {
        Language::Python => {
            let table = toml(&file)?.get("tool").and_then(|tool| tool.get("toolgate")).cloned();
            let value = table.and_then(|table| table.get("durable").cloned());
            (value.map(|value| value.as_bool()), "durable = true, in the table [tool.toolgate]")
        }
        Language::JavaScript | Language::TypeScript => {
            let value = json(&file)?["toolgate"].get("durable").map(serde_json::Value::as_bool);
            (value, "\"toolgate\": {\"durable\": true}")
        }
        Language::Rust | Language::Go | Language::C => return Ok(false),
    };
    value.unwrap_or(Some(false)).ok_or_else(|| {
        Failed::project(format!("`durable` in {} is not true or false", file.display()), format!("write {example}"))
    })
}

/// Reads the manifest. Packing the component checks it in full.
fn requested(folder: &Path) -> Result<BTreeSet<String>, Failed> {
    let file = folder.join(MANIFEST);
    if !file.is_file() {
        return Ok(BTreeSet::new());
    }
    let manifest = toml(&file)?;
    let requested = manifest.get("wants").and_then(|wants| wants.as_table()).into_iter().flat_map(|wants| wants.keys());
    // A plugin reads the placeholders of its secrets from wasi:config, and calls tools with the interface of durable tools.
    Ok(requested
        .filter(|key| *key != "calls")
        .map(|key| if key == "secrets" { "config".to_owned() } else { key.clone() })
        .collect())
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
        named("go.mod", "module a/..", r#"the name ".." in DIR/go.mod cannot be the name of a plugin"#);
        named("package.json", r#"{"name":"a/"}"#, r#"the name "" in DIR/package.json cannot be the name of a plugin"#);
    }

    #[test]
    fn missing_name_is_reported() {
        named("Cargo.toml", "[workspace]", "DIR/Cargo.toml has no `[package]` with a name");
        named("pyproject.toml", "", "DIR/pyproject.toml has no `name` in `[project]`");
        named(
            "pyproject.toml",
            "[project]\nname = ",
            "DIR/pyproject.toml:2: string values must be quoted, expected literal string",
        );
        named("package.json", "{}", "DIR/package.json has no `name`");
        named("go.mod", "go 1.24", "DIR/go.mod has no `module`");
    }

    #[test]
    fn requests_are_read_from_the_manifest() {
        let project = |manifest: &str| {
            let folder = folder(&[("go.mod", "module x"), (MANIFEST, manifest)]);
            Project::open(folder.path(), None).unwrap().requested().clone()
        };
        assert_eq!(project(""), BTreeSet::new());
        assert_eq!(project("[wants.keyvalue]\nwhy = \"\""), BTreeSet::from(["keyvalue".to_owned()]));
        assert_eq!(project("[[wants.http]]\nurl = \"\""), BTreeSet::from(["http".to_owned()]));
        assert_eq!(project("[[wants.secrets]]\nname = \"\""), BTreeSet::from(["config".to_owned()]));
    }

    #[test]
    fn durable_plugins_are_marked_in_their_files() {
        let durable = |file: &str, content: &str| {
            let folder = folder(&[(file, content)]);
            Project::open(folder.path(), None).map(|project| project.is_durable()).map_err(|error| error.to_string())
        };
        let python = |table: &str| durable("pyproject.toml", &format!("[project]\nname = \"a\"\n{table}"));
        let js = |members: &str| durable("package.json", &format!(r#"{{"name": "a"{members}}}"#));
        assert_eq!((python(""), js("")), (Ok(false), Ok(false)));
        assert_eq!(python("[tool.toolgate]\ndurable = true"), Ok(true));
        assert_eq!(js(r#", "toolgate": {"durable": true}"#), Ok(true));
        assert_eq!(js(r#", "toolgate": {"engine": "quickjs", "durable": false}"#), Ok(false));
        for wrong in [python("[tool.toolgate]\ndurable = 1"), js(r#", "toolgate": {"durable": "yes"}"#)] {
            assert!(wrong.unwrap_err().ends_with("is not true or false"));
        }
    }

    #[test]
    fn nearest_sdk_is_used() {
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
    fn missing_sdk_is_reported_with_a_remedy() {
        let folder = folder(&[("go.mod", "module a")]);
        let error = Project::open(folder.path(), None).unwrap().sdk().unwrap_err();
        assert!(error.to_string().starts_with("there is no sdk/go in "), "{error}");
        assert!(error.hint().unwrap().contains("toolgate new --lang go"));
    }
}
