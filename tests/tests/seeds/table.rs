//! `docs/seeds.md` names only existing tests, and every scenario of this folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The citations `path::name` in backticks in a line.
fn named(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter_map(|words| words.split_once("::")).filter(|(path, _)| path.contains('/'))
}

/// The tests of a Rust file: functions after `#[test]` or a similar attribute.
fn tests(text: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim_start) {
        match line.split_once("fn ").and_then(|(_, rest)| rest.split_once('(')) {
            Some((name, _)) => {
                if std::mem::take(&mut is_test) {
                    found.insert(name);
                }
            }
            None => is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test"),
        }
    }
    found
}

/// The tests of a TypeScript file: titles on the same line as `it` or `test`.
fn titles(text: &str) -> BTreeSet<&str> {
    let called = text.lines().map(str::trim_start).filter_map(|line| {
        let rest = line.strip_prefix("it").or_else(|| line.strip_prefix("test"))?;
        rest.strip_prefix("(\"")
    });
    called.filter_map(|rest| rest.split_once('"')).map(|(title, _)| title).collect()
}

#[test]
fn every_named_test_exists() {
    let mut findings = Vec::new();
    let mut count = 0;
    for (line, number) in read("docs/seeds.md").lines().zip(1..) {
        for (path, name) in named(line) {
            count += 1;
            let text = read(path);
            let found = if path.ends_with(".rs") { tests(&text) } else { titles(&text) };
            let exists = found.contains(name);
            if !exists {
                findings.push(format!("docs/seeds.md:{number}: {path} has no test {name}"));
            }
        }
    }
    assert!(count > 50, "the table was not parsed: only {count} names");
    assert!(findings.is_empty(), "name the test that proves it:\n  {}", findings.join("\n  "));
}

#[test]
fn every_row_has_a_test_or_a_reason() {
    let silent = |line: &&str| {
        let cells = line.split(" | ").count();
        let last = line.rsplit(" | ").next().unwrap_or_default();
        cells != 4 || !(named(last).next().is_some() || last.starts_with("not here, because "))
    };
    let table = read("docs/seeds.md");
    let rows = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| seed"));
    let silent: Vec<_> = rows.filter(silent).collect();
    assert!(silent.is_empty(), "name a test, or begin with \"not here, because\":\n  {}", silent.join("\n  "));
}

#[test]
fn every_scenario_is_in_the_table() {
    let table = read("docs/seeds.md");
    let files = ["agentix", "agentkit", "art", "asking", "jido"].map(|name| format!("tests/tests/seeds/{name}.rs"));
    let mut missing = Vec::new();
    for path in files {
        let text = read(&path);
        let absent = tests(&text).into_iter().filter(|name| !table.contains(&format!("{path}::{name}")));
        missing.extend(absent.map(|name| format!("{path}::{name}")));
    }
    assert!(missing.is_empty(), "give each a row of docs/seeds.md:\n  {}", missing.join("\n  "));
}

#[test]
fn tests_and_names_are_parsed() {
    let text =
        "fn no() {}\n#[test]\n#[cfg(unix)]\nfn yes() {}\n    #[tokio::test(x)]\n    async fn later() {}\nfn last() {}";
    assert_eq!(tests(text), BTreeSet::from(["later", "yes"]));
    let text = "it(\"is so\", () => {\n  test(\"and so\", async () => {});\n// it is said\ntell(\"it\");\nit.skip(\"is not\", f);\n";
    assert_eq!(titles(text), BTreeSet::from(["and so", "is so"]));
    assert_eq!(named("| a | `x/y.rs::z`, `no::path`, `a/b` |").collect::<Vec<_>>(), [("x/y.rs", "z")]);
}
