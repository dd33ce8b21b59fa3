//! The languages, and how a folder shows its own.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::{Failed, parsed};

/// A language that plugins are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    /// Rust, with cargo.
    Rust,
    /// Python, on CPython inside the component.
    Python,
    /// JavaScript, on QuickJS or StarlingMonkey inside the component.
    JavaScript,
    /// TypeScript, on the same engines.
    TypeScript,
    /// Go, with its own compiler.
    Go,
    /// C, with zig's clang.
    C,
}

impl Language {
    pub const ALL: [Self; 6] = [Self::Rust, Self::Python, Self::JavaScript, Self::TypeScript, Self::Go, Self::C];

    /// Its name on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "js",
            Self::TypeScript => "ts",
            Self::Go => "go",
            Self::C => "c",
        }
    }

    /// The folder of its SDK below `sdk/`.
    #[must_use]
    pub fn sdk(self) -> &'static str {
        match self {
            Self::JavaScript | Self::TypeScript => "js",
            other => other.as_str(),
        }
    }

    /// The folder of its template, from the repository's root.
    pub(crate) fn template(self) -> String {
        match self {
            Self::JavaScript | Self::TypeScript => format!("sdk/js/template-{}/", self.as_str()),
            other => format!("sdk/{}/template/", other.as_str()),
        }
    }

    /// The file that marks a folder of this language.
    #[must_use]
    pub fn marker(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.toml",
            Self::Python => "pyproject.toml",
            Self::JavaScript | Self::TypeScript => "package.json",
            Self::Go => "go.mod",
            Self::C => "plugin.c",
        }
    }

    /// Finds the language of a folder by its files.
    ///
    /// # Errors
    /// When the folder has none or several of the marker files, or one of them cannot be read.
    pub fn of(folder: &Path) -> Result<Self, Failed> {
        let markers = [Self::Rust, Self::Go, Self::Python, Self::JavaScript, Self::C];
        let found: Vec<_> = markers.into_iter().filter(|language| folder.join(language.marker()).is_file()).collect();
        match found[..] {
            [Self::JavaScript] => script(folder),
            [only] => Ok(only),
            [] => Err(Failed::Folder {
                message: format!("{} is not a plugin in a language that toolgate builds", folder.display()),
                hint: format!("a plugin has one of the files {}", list(&markers)),
            }),
            _ => Err(Failed::Folder {
                message: format!("the language of {} is unclear: it has {}", folder.display(), list(&found)),
                hint: "choose one with --lang".to_owned(),
            }),
        }
    }
}

/// The language of the main file of a `package.json`.
pub(crate) fn script(folder: &Path) -> Result<Language, Failed> {
    let package = parsed::json(&folder.join("package.json"))?;
    let main = package["main"].as_str().unwrap_or_default();
    let is_typed = [".ts", ".mts"].iter().any(|ending| main.ends_with(ending));
    Ok(if is_typed { Language::TypeScript } else { Language::JavaScript })
}

fn list(languages: &[Language]) -> String {
    languages.iter().map(|language| language.marker()).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Language {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        let found = Self::ALL.into_iter().find(|language| language.as_str() == text);
        found.ok_or_else(|| format!("toolgate does not build the language {text:?}; it builds {}", known()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        let found = Language::of(folder.path()).map_or_else(|error| error.to_string(), |found| found.to_string());
        let here = folder.path().display().to_string();
        assert_eq!(found.replace(&here, "DIR"), expected, "{files:?}");
    }

    #[test]
    fn files_of_a_folder_show_its_language() {
        check(&[("Cargo.toml", "")], "rust");
        check(&[("go.mod", "")], "go");
        check(&[("pyproject.toml", "")], "python");
        check(&[("plugin.c", "")], "c");
        check(&[("package.json", "{}")], "js");
        check(&[("package.json", r#"{"main":"plugin.js"}"#)], "js");
        check(&[("package.json", r#"{"main":"plugin.ts"}"#)], "ts");
        check(&[("main.zig", "")], "DIR is not a plugin in a language that toolgate builds");
        check(
            &[("plugin.c", ""), ("pyproject.toml", "")],
            "the language of DIR is unclear: it has pyproject.toml, plugin.c",
        );
        check(&[("package.json", "[")], "DIR/package.json is not JSON: EOF while parsing a list at line 1 column 1");
    }

    #[test]
    fn every_language_is_found_by_its_name() {
        for language in Language::ALL {
            assert_eq!(language.as_str().parse(), Ok(language));
        }
        assert!("zig".parse::<Language>().unwrap_err().contains("rust, python, js, ts, go, c"));
    }
}
