//! The rules of this repository that a machine can check. Each test reports all findings with the remedy.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/english.rs"]
mod english;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/nightly.rs"]
mod nightly;
#[path = "tidy/parsing.rs"]
mod parsing;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// The maximum number of lines of a source file. A longer file probably does several things.
const MAX_LINES: usize = 500;

/// Files that are longer, with their lines. This list may only shrink.
const LONGER: [(&str, usize); 0] = [];

/// Words that do not describe the purpose of a file.
const EMPTY_WORDS: [&str; 11] =
    ["manager", "service", "util", "utils", "common", "helper", "helpers", "data", "info", "misc", "process"];

/// Texts that a source file must not contain. They are split, so that this file does not contain them.
const UNFINISHED: [&str; 6] = [
    concat!("FIX", "ME"),
    concat!("TO", "DO"),
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("dbg", "!("),
    concat!("#[ig", "nore"),
];

/// Beginnings of paths that exist on one machine only, split for the same reason.
const MACHINES: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

#[test]
fn every_source_file_has_a_description() {
    let silent = |text: &String| !text.starts_with("//!");
    report("begin the file with `//!` and one to five lines on what it is for", sources(silent));
}

#[test]
fn no_source_file_is_too_long() {
    let known = BTreeMap::from(LONGER);
    let mut findings = Vec::new();
    for (path, text) in files("rs") {
        let (lines, allowed) = (text.lines().count(), known.get(path.as_str()).copied());
        match allowed {
            None if lines > MAX_LINES => {
                findings.push(format!("{path}: {lines} lines, at most {MAX_LINES}: divide it"))
            }
            Some(allowed) if lines > allowed => findings.push(format!("{path}: grew from {allowed} to {lines} lines")),
            Some(allowed) if lines < allowed => {
                findings.push(format!("{path}: shrank to {lines} lines; write that into the list of exceptions"));
            }
            _ => {}
        }
    }
    report("files of 100 to 300 lines are read with pleasure", findings);
}

#[test]
fn modules_have_one_style() {
    let old = paths().into_iter().filter(|path| path.ends_with("/mod.rs")).collect();
    report("name it `name.rs`, beside the folder `name/`", old);
}

#[test]
fn file_names_are_meaningful() {
    let empty = |path: &String| {
        let words = path.split('/').map(|part| part.split('.').next().unwrap_or(part));
        words.into_iter().any(|word| EMPTY_WORDS.contains(&word))
    };
    let in_sources = |path: &String| path.ends_with(".rs");
    report("name the thing, not its kind", paths().into_iter().filter(in_sources).filter(empty).collect());
}

#[test]
fn nothing_is_left_unfinished() {
    let mut findings = Vec::new();
    for (path, text) in files("rs") {
        for word in UNFINISHED {
            findings.extend(places(&path, &text, word));
        }
    }
    report("finish it, or take it out", findings);
}

#[test]
fn no_path_of_a_machine_is_committed() {
    let mut findings = Vec::new();
    for path in paths() {
        let Ok(text) = fs::read_to_string(root().join(&path)) else { continue };
        for machine in MACHINES {
            findings.extend(places(&path, &text, machine));
        }
    }
    report("use a relative path", findings);
}

#[test]
fn released_interfaces_have_their_digests() {
    let readme = read("wit/README.md");
    let written: BTreeMap<&str, &str> = readme.lines().filter_map(digest_row).collect();
    let mut found = BTreeMap::new();
    for path in paths() {
        let name = path
            .strip_prefix("wit/v0.1/")
            .or_else(|| path.strip_prefix("wit/").filter(|name| name.starts_with("policy/")));
        if let Some(name) = name.filter(|name| name.ends_with(".wit")) {
            let digest = Sha256::digest(read(&path));
            found.insert(name.to_owned(), digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        }
    }
    let mut findings: Vec<String> = Vec::new();
    for (name, digest) in &found {
        if written.get(name.as_str()) != Some(&digest.as_str()) {
            findings.push(format!("{name} has the digest {digest}"));
        }
    }
    let gone = |name: &&&str| !found.contains_key(**name);
    findings.extend(written.keys().filter(gone).map(|name| format!("{name} is written down and does not exist")));
    report("a released interface never changes; before its release, write the new digest into wit/README.md", findings);
}

#[test]
fn each_capability_has_one_name() {
    // Secrets have no interface of their own: guests get placeholders in their configuration. The journal has none either:
    // the host records a durable call's requests. Calls of other tools are a function of the interface `durable`.
    const NO_CAPABILITIES: [&str; 3] = ["calls", "journal", "secrets"];
    // Rust's standard library is the SDK for files.
    const NO_SDK: [&str; 1] = ["filesystem"];
    let words = paths().into_iter().filter_map(|path| {
        let word = path.strip_prefix("host/capabilities/src/")?.split_once('/')?.0;
        (!NO_CAPABILITIES.contains(&word)).then(|| word.to_owned())
    });
    let words: BTreeSet<_> = words.collect();
    let mut findings = Vec::new();
    for word in words {
        let sdk = (!NO_SDK.contains(&word.as_str())).then(|| format!("sdk/rust/src/{word}.rs"));
        let places = [format!("wit/v0.1/deps/{word}"), format!("docs/capabilities/{word}.md")];
        findings.extend(places.into_iter().chain(sdk).filter(|place| !root().join(place).exists()));
    }
    report("see docs/how-to/add-a-capability.md", findings);
}

#[test]
fn sandbox_names_no_capability() {
    let words: Vec<_> = paths()
        .iter()
        .filter_map(|path| path.strip_prefix("host/capabilities/src/")?.strip_suffix("/grant.rs"))
        .flat_map(|word| [format!("capabilities::{word}"), format!("grants.{word}")])
        .collect();
    assert!(words.contains(&"capabilities::http".to_owned()), "{words:?}");
    let sandbox = files("rs").filter(|(path, _)| path.starts_with("host/sandbox/src/"));
    let found = sandbox
        .flat_map(|(path, text)| words.iter().flat_map(move |word| places(&path, &text, word)).collect::<Vec<_>>());
    report("add it to a trait of `host/capabilities`, which its list calls", found.collect());
}

#[test]
fn links_between_documents_resolve() {
    let mut findings = Vec::new();
    for (path, text) in files("md") {
        for target in links(&text) {
            let folder = Path::new(&path).parent().unwrap_or(Path::new(""));
            if !root().join(folder).join(target).exists() {
                findings.push(format!("{path}: {target}"));
            }
        }
    }
    report("a link leads to a file that exists", findings);
}

#[test]
fn documents_name_files_that_exist() {
    // How-tos name files that the reader will make.
    let documents = files("md").filter(|(path, _)| !path.starts_with("docs/how-to/"));
    let mut findings = Vec::new();
    for (path, text) in documents {
        let folder = Path::new(&path).parent().unwrap_or(Path::new(""));
        let named = text.split('`').skip(1).step_by(2).filter(|words| words.contains('/'));
        let plain = named.filter(|words| words.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b)));
        findings.extend(plain.filter(|named| !is_known(folder, named)).map(|named| format!("{path}: {named}")));
    }
    report("the file was moved, or never was there", findings);
}

#[test]
fn ci_runs_the_commands_of_the_readme() {
    let command = "cargo xtask test";
    assert_eq!(commands(".ci/run"), [command], ".ci/run runs the one command and nothing else");
    assert!(read("README.md").contains(command), "README.md names the command that CI runs");
}

fn commands(script: &str) -> Vec<String> {
    read(script).lines().filter(|line| line.starts_with("cargo ")).map(str::to_owned).collect()
}

/// Fails with all findings and the remedy.
#[track_caller]
fn report(remedy: &str, findings: Vec<String>) {
    assert!(findings.is_empty(), "{remedy}:\n  {}", findings.join("\n  "));
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every file that belongs to the repository, by its path from the root with `/` between the parts.
fn paths() -> BTreeSet<String> {
    const FOREIGN: [&str; 6] = [".git", "target", ".toolgate", "node_modules", "dist", "__pycache__"];
    let (mut found, mut folders) = (BTreeSet::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        for entry in root().join(&folder).read_dir().unwrap().map(Result::unwrap) {
            let path = folder.join(entry.file_name());
            let is_built = entry.file_name() == "build" && folder.starts_with("plugins");
            if is_built || FOREIGN.iter().any(|foreign| entry.file_name() == *foreign) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else {
                let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
                found.insert(parts.join("/"));
            }
        }
    }
    found
}

/// The path and text of each file with this extension.
fn files(extension: &str) -> impl Iterator<Item = (String, String)> {
    let ending = format!(".{extension}");
    paths().into_iter().filter(move |path| path.ends_with(&ending)).map(|path| {
        let text = read(&path);
        (path, text)
    })
}

fn sources(wrong: impl Fn(&String) -> bool) -> Vec<String> {
    files("rs").filter(|(_, text)| wrong(text)).map(|(path, _)| path).collect()
}

fn places(path: &str, text: &str, word: &str) -> Vec<String> {
    let numbered = text.lines().zip(1..).filter(|(line, _)| line.contains(word));
    numbered.map(|(line, number)| format!("{path}:{number}: {}", line.trim())).collect()
}

/// Whether a path in a document names an existing file: from the root, from `host/`, or, without `src` and `.rs`, in a
/// crate. A path that begins with no folder of this repository is ignored.
fn is_known(folder: &Path, named: &str) -> bool {
    let (first, rest) = named.split_once('/').unwrap_or((named, ""));
    let (ours, ours_in_host) = (root().join(first).is_dir(), root().join("host").join(first).is_dir());
    if first.is_empty() || first == "target" || !(ours || ours_in_host) {
        return true;
    }
    let module = format!("host/{first}/src/{rest}");
    let places = [format!("host/{named}"), format!("{module}.rs"), module, named.to_owned()];
    places.iter().any(|place| root().join(place).exists()) || root().join(folder).join(named).exists()
}

/// A row like ``| `plugin.wit` | `c6dd…` |``.
fn digest_row(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.strip_prefix("| `")?.split_once("` | `")?;
    let digest = rest.strip_suffix("` |")?;
    (digest.len() == 64).then_some((name, digest))
}

/// The targets of the links in a Markdown text. Only links within the repository and outside of code blocks.
fn links(text: &str) -> Vec<&str> {
    let mut in_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let targets = line.match_indices("](").filter_map(|(at, _)| line[at + 2..].split(')').next());
        let local = targets.filter(|target| !target.contains("://") && !target.starts_with(['#', '<']));
        found.extend(local.map(|target| target.split('#').next().unwrap_or(target)));
    }
    found
}

#[test]
fn digests_and_links_are_parsed() {
    let digest = "a".repeat(64);
    assert_eq!(digest_row(&format!("| `plugin.wit` | `{digest}` |")), Some(("plugin.wit", digest.as_str())));
    assert_eq!(digest_row("| file in `v0.1/` | SHA-256 |"), None);
    let text = "[a](b.md#c) [d](https://e.f)\n```\n[g](h)\n```\n[i](#j) ![k](l.svg)";
    assert_eq!(links(text), ["b.md", "l.svg"]);
}
