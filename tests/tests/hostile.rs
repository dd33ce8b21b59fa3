//! The hostile suite on the real host, one test per class. It checks the outcome, that a neighbour is served during and
//! after the attack, and that the host's memory stays within its limit. `cargo xtask isolation` measures the same for
//! longer.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use toolgate_tests::hostile::{self, Attack, CLASSES, Case, Effort, Field};

/// Runs every case of a class and reports all failures. Cases with equal settings share a host.
fn class(name: &str) {
    let class = CLASSES.iter().find(|class| class.name == name).unwrap();
    let mut groups = BTreeMap::<String, Vec<Case>>::new();
    for case in hostile::cases(class).unwrap() {
        if !matches!(case.attack, Attack::Alone(_)) {
            groups.entry(case.settings.clone()).or_default().push(case);
        }
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

classes!(cpu, memory, allocation, amplification, network, text, contract, gate, structural, principal);

#[test]
fn every_hostile_file_is_used() {
    let known: Vec<_> = CLASSES.iter().map(|class| class.name).collect();
    assert_eq!(known, TESTED);
    assert_eq!(hostile::strays().unwrap(), Vec::<String>::new(), "these files belong to no class");
    for class in &CLASSES {
        assert!(!hostile::cases(class).unwrap().is_empty(), "{}", class.name);
    }
}

#[test]
fn cited_tests_exist() {
    for case in CLASSES.iter().flat_map(|class| hostile::cases(class).unwrap()) {
        for (file, function) in &case.proven_by {
            let path = hostile::folder().join("../..").join(file);
            let text = fs::read_to_string(&path).unwrap_or_default();
            let declared = text.find(&format!("fn {function}("));
            let before = declared.map(|at| &text[text[..at].trim_end().rfind("\n\n").unwrap_or(0)..at]);
            let is_test = before.is_some_and(|before| before.contains("test]") || before.contains("test("));
            assert!(is_test, "{}: there is no test {function} in {file}", case.name);
        }
    }
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
