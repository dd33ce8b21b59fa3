//! Pages whose commands are not run. A host accepts their configurations.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use super::{Block, Page, StandIns, WRITE_TOOLS, blocks, how_to, plugins, root};

/// The pages that have commands, and why these are not run.
const NOT_RUN: [(&str, &str); 10] = [
    ("CONTRIBUTING.md", "they set up a checkout and run CI"),
    ("docs/conformance.md", "the tests of `toolgate conform` run them"),
    ("docs/console.md", "they run until they are stopped, or make pictures"),
    ("docs/isolation.md", "the suite takes minutes, and CI runs it in a night"),
    ("plugins/README.md", "CI runs them"),
    ("plugins/forge/README.md", "they call a forge on the internet"),
    ("sdk/c/README.md", "docs/write-tools/c.md has them, without Debian's compiler"),
    ("sdk/go/README.md", "docs/write-tools/go.md has them"),
    ("sdk/rust/README.md", "docs/write-tools/rust.md has them"),
    ("sdk/web/README.md", "CI runs them"),
];

/// Folders that contain what others wrote, or what was built.
const FOREIGN: [&str; 5] = ["build", "dist", "node_modules", "target", "toolchains"];

/// The pages of the root and of `docs`, `plugins` and `sdk`, by their paths from the root.
fn documents() -> BTreeSet<String> {
    let (mut found, mut folders) = (BTreeSet::new(), ["", "docs", "plugins", "sdk"].map(PathBuf::from).to_vec());
    while let Some(folder) = folders.pop() {
        for entry in root().join(&folder).read_dir().unwrap().map(Result::unwrap) {
            let (name, path) = (entry.file_name().into_string().unwrap(), folder.join(entry.file_name()));
            let is_folder = entry.file_type().unwrap().is_dir();
            if is_folder && !folder.as_os_str().is_empty() && !FOREIGN.contains(&name.as_str()) {
                folders.push(path);
            } else if !is_folder && name.ends_with(".md") {
                found.insert(path.into_os_string().into_string().unwrap());
            }
        }
    }
    found
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

fn followed() -> BTreeSet<String> {
    let lists: [&[&str]; 4] = [&["README.md"], WRITE_TOOLS, how_to::FOLLOWED, plugins::FOLLOWED];
    lists.into_iter().flatten().map(|&name| name.to_owned()).collect()
}

/// The languages of the blocks of a page.
fn languages(page: &str) -> BTreeSet<&str> {
    let infos = page.lines().filter_map(|line| line.trim_start().strip_prefix("```"));
    infos.filter_map(|info| info.split_whitespace().next()).collect()
}

#[test]
fn every_page_with_commands_is_followed_or_says_why_not() {
    let (mut with_commands, mut unknown) = (BTreeSet::new(), BTreeSet::new());
    for name in documents() {
        let text = read(&name);
        let languages = languages(&text);
        if languages.contains("sh") {
            with_commands.insert(name.clone());
        }
        if ["bash", "console", "shell"].iter().any(|other| languages.contains(other)) {
            unknown.insert(name);
        }
    }
    assert_eq!(unknown, BTreeSet::new(), "blocks of commands are ```sh");
    let not_run = BTreeSet::from(NOT_RUN.map(|(name, _)| name.to_owned()));
    let followed = followed();
    assert_eq!(not_run.intersection(&followed).count(), 0);
    let listed: BTreeSet<_> = followed.union(&not_run).cloned().collect();
    assert_eq!(with_commands, listed, "the pages with commands, and the lists of this test");
}

#[test]
fn configurations_of_reference_pages_are_accepted() {
    let mut checked = 0;
    for name in documents().difference(&followed()) {
        let text = read(name);
        if !blocks(&text).iter().any(|block| matches!(block, Block::Configure(_))) {
            continue;
        }
        let stand_ins: StandIns = match name.as_str() {
            "docs/capabilities/filesystem.md" => {
                &[("sha256:7d0c…", "sha256:$(printf %064d 0)"), ("/srv/reports", "reports")]
            }
            _ if text.contains("sha256:7d0c…") => &[("sha256:7d0c…", "sha256:$(printf %064d 0)")],
            _ => &[],
        };
        let before = "mkdir reports".to_owned();
        Page { name: name.clone(), before, stand_ins, is_reference: true, ..Page::default() }.follow();
        checked += 1;
    }
    assert!(checked >= 9, "{checked} pages have a configuration");
}

#[test]
fn pages_that_start_a_host_wait_until_it_answers() {
    let (mut starts, mut hasty) = (0, BTreeSet::new());
    for name in documents() {
        let text = read(&name);
        for (line, next) in text.lines().zip(text.lines().skip(1)) {
            if line.starts_with("toolgate serve") && line.ends_with('&') {
                starts += 1;
                if !next.starts_with("until toolgate ") {
                    hasty.insert(name.clone());
                }
            }
        }
    }
    assert_eq!(hasty, BTreeSet::new());
    assert!(starts >= 12, "{starts} pages start a host");
}
