//! The command that repeats a build.

use std::path::Path;

use kit::Language;

use crate::args::{Toolchains, word};

/// The options of a build, as the user typed them.
pub(in crate::commands) struct Typed<'a> {
    pub(in crate::commands) folder: &'a Path,
    pub(in crate::commands) lang: Option<Language>,
    pub(in crate::commands) out: Option<&'a Path>,
    pub(in crate::commands) toolchains: &'a Toolchains,
}

impl Typed<'_> {
    /// The command that builds it again.
    pub(super) fn command(&self) -> String {
        let mut words = vec!["toolgate build".to_owned()];
        if self.folder != Path::new(".") {
            words.push(path(self.folder));
        }
        if let Some(language) = self.lang {
            words.push(format!("--lang {language}"));
        }
        let folders = [("--out", self.out), ("--cache", self.toolchains.cache.typed())];
        words.extend(folders.iter().filter_map(|(option, typed)| Some(format!("{option} {}", path((*typed)?)))));
        if self.toolchains.offline {
            words.push("--offline".to_owned());
        }
        words.join(" ")
    }
}

/// A path as a word for a shell that is no option.
fn path(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.starts_with('-') { word(&format!("./{text}")) } else { word(&text) }
}
