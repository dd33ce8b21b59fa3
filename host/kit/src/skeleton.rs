//! A plugin to start from, in any language. The folder needs nothing outside it: it contains the SDK and the interface.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::{Carried, Failed, Language, names};

/// The folder for files that are not the author's.
const OURS: &str = "toolgate";

/// A file of a new plugin: its path in the plugin's folder, and its content.
pub type File = (PathBuf, Cow<'static, [u8]>);

/// The tool of a new plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// It computes a result at once.
    Plain,
    /// It waits for people in the middle of a call.
    Durable,
}

/// The files of a new plugin.
///
/// # Errors
/// When the plugin cannot have this name, or the binary embeds no template for the language.
pub fn skeleton(carried: Carried, language: Language, sample: Sample, name: &str) -> Result<Vec<File>, Failed> {
    names::check(language, name)?;
    let (template, sdk) = (language.template(), format!("sdk/{}/", language.sdk()));
    // A durable plugin has these files instead of those of the same name.
    let other = format!("{}-durable/", template.trim_end_matches('/'));
    let other = move |path: &str| {
        let of_other = |(carried, _): &&(&str, &'static [u8])| carried.strip_prefix(other.as_str()) == Some(path);
        (sample == Sample::Durable).then(|| carried.iter().find(of_other)).flatten().map(|(_, content)| *content)
    };
    let mut files = Vec::new();
    let mut has_template = false;
    for (path, content) in carried {
        if let Some(path) = path.strip_prefix(template.as_str()) {
            has_template = true;
            let content = other(path).unwrap_or(content);
            let path = PathBuf::from(path.strip_suffix(".tmpl").unwrap_or(path));
            files.push((path, fill(content, language, name)));
        } else if path.strip_prefix(sdk.as_str()).is_some_and(is_the_sdk) || path.starts_with("wit/") {
            files.push((Path::new(OURS).join(path), Cow::Borrowed(*content)));
        }
    }
    if has_template {
        return Ok(files);
    }
    Err(Failed::project(
        format!("this toolgate was built without a template for {language}"),
        "build it from a whole clone",
    ))
}

/// Whether plugins are built with this file of an SDK's folder.
fn is_the_sdk(path: &str) -> bool {
    !path.starts_with("template") && !path.starts_with("toolchain/")
}

/// Puts the plugin's name into a template. Files that are not text stay as they are.
fn fill(template: &'static [u8], language: Language, name: &str) -> Cow<'static, [u8]> {
    let Ok(text) = str::from_utf8(template) else { return Cow::Borrowed(template) };
    let sdk = format!("{OURS}/sdk/{}", language.sdk());
    Cow::Owned(text.replace("{{name}}", name).replace("{{sdk}}", &sdk).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARRIED: Carried = &[
        ("sdk/js/README.md", b"sdk"),
        ("sdk/js/src/index.ts", b"{{name}}"),
        ("sdk/js/template-js/package.json.tmpl", b"{\"name\":\"{{name}}\",\"sdk\":\"{{sdk}}\"}"),
        ("sdk/js/template-js/plugin.js.tmpl", b"plain"),
        ("sdk/js/template-js-durable/plugin.js.tmpl", b"durable {{name}}"),
        ("sdk/js/template-ts/plugin.ts.tmpl", b"ts"),
        ("sdk/js/toolchain/quickjs/package.json", b"{}"),
        ("sdk/python/README.md", b"other"),
        ("wit/v0.1/plugin.wit", b"package"),
    ];

    #[test]
    fn skeleton_has_template_sdk_and_interface() {
        for (sample, source) in [(Sample::Plain, "plugin.js: plain"), (Sample::Durable, "plugin.js: durable hello")] {
            let files = skeleton(CARRIED, Language::JavaScript, sample, "hello").unwrap();
            let shown: Vec<_> = files
                .iter()
                .map(|(path, content)| format!("{}: {}", path.display(), String::from_utf8_lossy(content)))
                .collect();
            assert_eq!(
                shown,
                [
                    "toolgate/sdk/js/README.md: sdk",
                    "toolgate/sdk/js/src/index.ts: {{name}}",
                    r#"package.json: {"name":"hello","sdk":"toolgate/sdk/js"}"#,
                    source,
                    "toolgate/wit/v0.1/plugin.wit: package",
                ]
            );
        }
        let error = skeleton(CARRIED, Language::Python, Sample::Plain, "hello").unwrap_err();
        assert_eq!(error.to_string(), "this toolgate was built without a template for python");
    }
}
