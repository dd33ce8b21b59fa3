//! The hostile suite on the real host, one test per class. It checks the outcome, that a neighbour is served during and
//! after the attack, and that the host's memory stays within its limit. `cargo xtask isolation` measures the same for
//! longer.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use toolgate_tests::hostile::{self, CLASSES, Case, Effort, Field};

/// Runs every case of a class and reports all failures. Cases with equal settings share a host.
fn class(name: &str) {
    let class = CLASSES.iter().find(|class| class.name == name).unwrap();
    let mut groups = BTreeMap::<String, Vec<Case>>::new();
    for case in hostile::cases(class).unwrap() {
        groups.entry(case.settings.clone()).or_default().push(case);
    }
    assert!(!groups.is_empty(), "{name} has no cases");
    let mut failures = Vec::new();
    for cases in groups.into_values() {
        let mut field = Field::new(&cases).unwrap();
        for case in cases {
            let named = format!("{name}/{}", case.name);
            if let Err(error) = field.run(case, Effort::TEST) {
                failures.push(format!("{named}: {error:#}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A test for each class, and a list that is compared with the classes on disk.
macro_rules! classes {
    ($($name:ident),+ $(,)?) => {
        $(#[test] fn $name() { class(stringify!($name)); })+
        const TESTED: &[&str] = &[$(stringify!($name)),+];
    };
}

classes!(cpu, memory, allocation, amplification, network, text, contract, gate, structural, principal, durable);

#[test]
fn every_hostile_file_is_used() {
    let known: Vec<_> = CLASSES.iter().map(|class| class.name).collect();
    assert_eq!(known, TESTED);
    assert_eq!(hostile::strays().unwrap(), Vec::<String>::new(), "these files belong to no class");
    for class in &CLASSES {
        assert!(!hostile::cases(class).unwrap().is_empty(), "{}", class.name);
    }
}

/// Whether a file of the repository has this test, or this law, which `main.rs` beside it lists.
fn has_test(file: &str, function: &str) -> bool {
    let path = hostile::folder().join("../..").join(file);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let Some(at) = text.find(&format!("fn {function}(")) else { return false };
    let before = &text[text[..at].trim_end().rfind("\n\n").unwrap_or(0)..at];
    let list = || fs::read_to_string(path.with_file_name("main.rs")).unwrap_or_default();
    let is_law = || list().split_whitespace().any(|word| word.trim_end_matches(';') == function);
    before.contains("test]") || before.contains("test(") || is_law()
}

#[test]
fn cited_tests_exist() {
    for case in CLASSES.iter().flat_map(|class| hostile::cases(class).unwrap()) {
        for (file, function) in &case.proven_by {
            assert!(has_test(file, function), "{}: there is no test {function} in {file}", case.name);
        }
    }
}

/// The tests and cases that a page names in backticks.
fn citations(page: &str) -> impl Iterator<Item = &str> {
    let is_case =
        |name: &str| name.split_once('/').is_some_and(|(class, _)| CLASSES.iter().any(|known| known.name == class));
    let quoted = page.split('`').skip(1).step_by(2);
    quoted.filter(move |words| words.contains(".rs::") || (!words.contains("::") && is_case(words)))
}

#[test]
fn pages_cite_existing_tests_and_cases() {
    let root = hostile::folder().join("../..");
    let capabilities = fs::read_dir(root.join("docs/capabilities")).unwrap().map(|entry| entry.unwrap().path());
    let (mut missing, mut count) = (Vec::new(), 0);
    for path in capabilities.chain([root.join("SECURITY.md")]) {
        for cited in citations(&fs::read_to_string(&path).unwrap()) {
            count += 1;
            let is_file = |ending| hostile::folder().join(format!("{cited}.{ending}")).is_file();
            let exists = match cited.split_once("::") {
                // The pages about capabilities name files of their crate.
                Some((file, function)) => {
                    has_test(file, function) || has_test(&format!("host/capabilities/src/{file}"), function)
                }
                None => is_file("wat") || is_file("toml"),
            };
            if !exists {
                missing.push(format!("{}: {cited}", path.display()));
            }
        }
    }
    assert!(count > 250, "the pages were not parsed: only {count} citations");
    assert!(missing.is_empty(), "there are no such tests or cases:\n{}", missing.join("\n"));
}

#[test]
fn coverage_list_names_existing_cases() {
    let list = fs::read_to_string(hostile::folder().join("COVERAGE.md")).unwrap();
    let named =
        list.split('`').skip(1).step_by(2).filter(|word| {
            word.split_once('/').is_some_and(|(class, _)| CLASSES.iter().any(|known| known.name == class))
        });
    let missing: Vec<_> = named.filter(|name| !hostile::folder().join(name).is_file()).collect();
    assert!(missing.is_empty(), "there are no cases {missing:?}");
}

#[test]
fn every_case_has_a_row_in_the_published_table() {
    let page = fs::read_to_string(hostile::folder().join("../../docs/isolation.md")).unwrap();
    let (_, table) = page.split_once("<!-- the table begins").unwrap();
    let (mut published, mut class) = (BTreeSet::new(), "");
    for line in table.lines() {
        if let Some(name) = line.strip_prefix("### ") {
            class = name;
        } else if let Some((name, _)) = line.strip_prefix("| `").and_then(|row| row.split_once('`')) {
            published.insert(format!("{class}/{name}"));
        }
    }
    let cases = CLASSES.iter().flat_map(|class| hostile::cases(class).unwrap());
    let cases: BTreeSet<_> = cases.map(|case| format!("{}/{}", case.class.name, case.name)).collect();
    let missing: Vec<_> = cases.difference(&published).collect();
    let stale: Vec<_> = published.difference(&cases).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "run `cargo xtask isolation --write` on a quiet machine; without a row: {missing:?}; rows without a case: {stale:?}"
    );
}
