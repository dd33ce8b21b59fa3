//! The pages for authors, from nothing to an approved call: their code blocks are run, in order, as a reader would type them.
//!
//! A block of `sh` is run by one bash from the first to the last; a block with `file=NAME` is written to that file; a block of
//! `text` says which lines the block of `sh` before it prints, among others, where `…` stands for anything.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use toolgate_tests::host::binary;

use super::{left_out, root};

/// The pages in `docs/write-tools`.
const PAGES: [&str; 2] = ["go", "python"];

/// A block of code.
#[derive(Debug, PartialEq)]
enum Block<'a> {
    Run(&'a str),
    File { name: &'a str, content: &'a str },
    Printed(&'a str),
}

/// The blocks of a page that mean something here.
fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((_, begun)) = rest.split_once("\n```") {
        let (kind, begun) = begun.split_once('\n').unwrap();
        // A block may be empty, and then ends where it begins.
        let end = if begun.starts_with("```") { 0 } else { begun.find("\n```").unwrap() + 1 };
        let content = &begun[..end];
        rest = &begun[end.saturating_sub(1)..];
        rest = rest.strip_prefix("\n```").or_else(|| rest.strip_prefix("```")).unwrap();
        let mut words = kind.split(' ');
        let language = words.next().unwrap();
        match (language, words.find_map(|word| word.strip_prefix("file="))) {
            (_, Some(name)) => blocks.push(Block::File { name, content }),
            ("sh", None) => blocks.push(Block::Run(content)),
            ("text", None) => blocks.push(Block::Printed(content)),
            _ => {}
        }
    }
    blocks
}

/// A script that does what the page says, with what each block prints in a file of its own.
fn script(blocks: &[Block<'_>], printed: &Path) -> String {
    let mut script = String::from("set -euo pipefail\ntrap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n");
    for (number, block) in blocks.iter().enumerate() {
        let _ = match block {
            Block::Run(lines) => writeln!(script, "{{\n{lines}\n}} > '{}/{number}'", printed.display()),
            Block::File { name, content } => writeln!(script, "cat > '{name}' << 'END OF FILE'\n{content}END OF FILE"),
            Block::Printed(_) => Ok(()),
        };
    }
    script
}

/// The first line that should have been printed, in this order, and was not.
fn missing<'a>(expected: &'a str, printed: &str) -> Option<&'a str> {
    let mut lines = printed.lines();
    expected.lines().find(|expected| !lines.any(|line| fits(line.trim_end(), expected.trim_end())))
}

/// Whether a line is what is expected, where `…` stands for anything.
fn fits(line: &str, expected: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

#[track_caller]
fn check(page: &str) {
    if left_out() {
        return;
    }
    let text = fs::read_to_string(root().join("docs/write-tools").join(format!("{page}.md"))).unwrap();
    let blocks = blocks(&text);
    let (folder, printed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let script = script(&blocks, printed.path());
    let programs = binary().parent().unwrap().display().to_string();
    let path = std::env::join_paths([programs].into_iter().chain(search_path())).unwrap();
    let mut bash = Command::new("bash");
    for name in ["URL", "TOKEN", "DATA", "CONFIG", "CONVERSATION", "LOG"] {
        bash.env_remove(format!("TOOLGATE_{name}"));
    }
    bash.args(["-c", &script]).current_dir(folder.path()).env("PATH", path).env("NO_COLOR", "1");
    bash.env("TOOLGATE_CACHE", root().join("target/toolchains"))
        .env("CARGO_TARGET_DIR", root().join("plugins/target/new"));
    let output = bash.stdin(Stdio::null()).output().unwrap();
    for (number, block) in blocks.iter().enumerate().filter(|(_, block)| matches!(block, Block::Run(_))) {
        let Ok(said) = fs::read_to_string(printed.path().join(number.to_string())) else {
            panic!(
                "docs/write-tools/{page}.md: this was not reached: {block:?}\n{}",
                String::from_utf8_lossy(&output.stderr)
            );
        };
        if let Some(Block::Printed(expected)) = blocks.get(number + 1) {
            let missing = missing(expected, &said);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(missing, None, "docs/write-tools/{page}.md: {block:?} printed\n{said}\n{errors}");
        }
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "docs/write-tools/{page}.md ends with {}: {errors}", output.status);
}

#[expect(clippy::disallowed_methods, reason = "a page is run as a reader would, with the programs of the machine")]
fn search_path() -> Vec<String> {
    let path = std::env::var("PATH").unwrap();
    std::env::split_paths(&path).map(|folder| folder.display().to_string()).collect()
}

#[test]
fn no_page_is_forgotten() {
    let entries = root().join("docs/write-tools").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<_> = entries.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(names, PAGES);
}

#[test]
fn go() {
    check("go");
}

#[test]
fn python() {
    check("python");
}

#[test]
fn a_page_is_read_as_its_reader_reads_it() {
    let page =
        "# T\n\n```sh\na\nb\n```\n\ntext\n\n```text\nout …\n```\n```py file=x.py\nx = 1\n```\n```json\n{}\n```\n";
    let expected = [Block::Run("a\nb\n"), Block::Printed("out …\n"), Block::File { name: "x.py", content: "x = 1\n" }];
    assert_eq!(blocks(page), expected);
    let lines = |expected, printed| missing(expected, printed);
    assert_eq!(lines("a\nc …\n", "a\nb\nc d\n"), None);
    assert_eq!(lines("c\na\n", "a\nb\nc\n"), Some("a"), "in this order");
    assert_eq!(lines("a\n", "ab\n"), Some("a"), "whole lines");
    assert!(fits("x 1 y 2 z", "x … y …") && fits("abc", "…b…") && fits("", "…") && fits("ab", "ab…"));
    assert!(!fits("x 1 z", "x … y …") && !fits("ab", "…a") && !fits("ab", "b…") && !fits("a", "a…a"));
}
