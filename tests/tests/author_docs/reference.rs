//! Pages whose commands are not run. A host accepts their configurations.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use super::{Block, Page, RUST_SDK, StandIns, WRITE_TOOLS, blocks, how_to, plugins, root};

/// Why the commands of a page are not run.
enum NotRun {
    Because(&'static str),
    /// This page has them too, except those of this program, and is followed.
    OtherPage(&'static str, Option<&'static str>),
}

/// The pages that have commands which are not run.
const NOT_RUN: [(&str, NotRun); 9] = [
    ("CONTRIBUTING.md", NotRun::Because("they set up a checkout and run CI")),
    ("docs/conformance.md", NotRun::Because("the tests of `toolgate conform` run them")),
    ("docs/console.md", NotRun::Because("they run until they are stopped, or make pictures")),
    ("docs/isolation.md", NotRun::Because("the suite takes minutes, and CI runs it in a night")),
    ("plugins/README.md", NotRun::Because("CI runs them")),
    ("plugins/forge/README.md", NotRun::Because("they call a forge on the internet")),
    // The compiler is Debian's.
    ("sdk/c/README.md", NotRun::OtherPage("docs/write-tools/c.md", Some("clang-16"))),
    ("sdk/go/README.md", NotRun::OtherPage("docs/write-tools/go.md", None)),
    ("sdk/web/README.md", NotRun::Because("CI runs them")),
];

/// Commands that always print something.
const PRINTING: [&str; 17] = [
    "approve",
    "answer",
    "audit",
    "call",
    "check",
    "conform",
    "conversations",
    "grants",
    "pack",
    "pending",
    "policy",
    "show",
    "status",
    "submit",
    "tools",
    "turns",
    "verify-build",
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
    let lists: [&[&str]; 4] = [&["README.md", RUST_SDK], WRITE_TOOLS, how_to::FOLLOWED, plugins::FOLLOWED];
    lists.into_iter().flatten().map(|&name| name.to_owned()).collect()
}

/// The languages of the blocks of a page. Each block has two fences.
fn languages(page: &str) -> BTreeSet<&str> {
    let fences = page.lines().filter_map(|line| line.trim_start().strip_prefix("```"));
    fences.step_by(2).map(|info| info.split_whitespace().next().unwrap_or_default()).collect()
}

/// The commands of a page, without comments, each on one line.
fn commands(page: &str) -> Vec<String> {
    let runs = blocks(page).into_iter().filter_map(|block| match block {
        Block::Run(commands) | Block::Stopped(commands) => Some(commands.replace("\\\n", "")),
        _ => None,
    });
    let lines = runs.flat_map(|run| run.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.map(|line| line.split(" #").next().unwrap_or_default().trim().to_owned()).collect()
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
        if ["", "bash", "console", "shell"].iter().any(|other| languages.contains(other)) {
            unknown.insert(name);
        }
    }
    assert_eq!(unknown, BTreeSet::new(), "blocks of commands are ```sh, and their output is ```text");
    let not_run = BTreeSet::from_iter(NOT_RUN.iter().map(|(name, _)| (*name).to_owned()));
    let followed = followed();
    assert_eq!(not_run.intersection(&followed).count(), 0);
    let listed: BTreeSet<_> = followed.union(&not_run).cloned().collect();
    assert_eq!(with_commands, listed, "the pages with commands, and the lists of this test");
}

#[test]
fn page_that_repeats_another_has_only_its_commands() {
    for (name, not_run) in &NOT_RUN {
        match not_run {
            NotRun::Because(why) => assert!(!why.contains(".md"), "{name}: the other page is not compared"),
            NotRun::OtherPage(other, except) => {
                assert!(followed().contains(*other), "{name}: {other} is not followed");
                let run = commands(&read(other)).join("\n");
                let repeated = commands(&read(name));
                let is_run = |command: &String| run.contains(command.as_str());
                let is_exception = |command: &String| except.is_some_and(|program| command.starts_with(program));
                let others: Vec<_> = repeated.iter().filter(|command| !is_run(command)).collect();
                assert!(others.iter().all(|command| is_exception(command)), "{name}: {other} has not {others:?}");
                assert_eq!(others.is_empty(), except.is_none(), "{name}");
            }
        }
    }
}

#[test]
fn output_of_the_last_command_of_a_block_is_compared() {
    let (mut compared, mut missing) = (0, Vec::new());
    for name in followed() {
        let blocks = blocks(&read(&name));
        for (n, block) in blocks.iter().enumerate() {
            let (Block::Run(commands) | Block::Stopped(commands)) = block else { continue };
            let last = commands.lines().last().unwrap_or_default();
            let prints = last.strip_prefix("toolgate ").and_then(|words| words.split(' ').next());
            if prints.is_none_or(|command| !PRINTING.contains(&command)) || last.contains('>') {
                continue;
            }
            match blocks.get(n + 1) {
                Some(Block::Expect(_)) => compared += 1,
                _ => missing.push(format!("{name}: {last}")),
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new(), "a block ```text follows");
    assert!(compared >= 40, "{compared} outputs are compared");
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
