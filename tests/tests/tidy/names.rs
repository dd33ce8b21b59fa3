//! Variables that share the name of a crate. `store.load(…)` and `store::load(…)` look alike and mean different things.

use super::{files, report, root};

#[test]
fn no_variable_is_named_like_a_crate() {
    let mut findings = Vec::new();
    for (manifest, text) in files("toml").filter(|(path, _)| path.starts_with("host/")) {
        let folder = manifest.trim_end_matches("Cargo.toml");
        let crates: Vec<&str> = text.lines().filter_map(|line| line.strip_suffix(".workspace = true")).collect();
        let ours = |name: &&str| crates.contains(name) && root().join("host").join(name).is_dir();
        for (path, text) in files("rs").filter(|(path, _)| path.starts_with(&format!("{folder}src/"))) {
            let found = bound_in(&text).filter(|(_, name)| ours(name));
            findings.extend(found.map(|(number, name)| format!("{path}:{number}: `{name}`")));
        }
    }
    report("name the variable by what it holds", findings);
}

/// The names that a text binds, with the numbers of their lines. A parameter may have a line of its own.
fn bound_in(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_signature = false;
    text.lines().zip(1..).flat_map(move |(line, number)| {
        let parameter = line.trim_start().trim_start_matches("mut ").split_once(": ").map(|(name, _)| name);
        let names: Vec<_> = bound(line).chain(parameter.filter(|_| in_signature)).collect();
        in_signature = match in_signature {
            true => !line.trim_start().starts_with(')'),
            false => line.contains("fn ") && line.ends_with('('),
        };
        names.into_iter().map(move |name| (number, name))
    })
}

/// The names that a line binds, by `let`, `for`, a closure or a parameter.
fn bound(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or_default();
    let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    words.filter(move |word| {
        let at = word.as_ptr() as usize - code.as_ptr() as usize;
        let (before, after) = (&code[..at], &code[at + word.len()..]);
        let is_path = after.starts_with("::") || before.ends_with("::");
        let in_let =
            before.contains("let ") && !before.contains('=') && !(before.contains('{') && after.starts_with(':'));
        let in_signature = before.contains("fn ") && after.starts_with(": ");
        !is_path && (in_let || in_signature || before.ends_with('|') || before.ends_with("for "))
    })
}

#[test]
fn bound_names_are_found() {
    for (line, found) in [
        ("let store = store::open(path)?;", vec!["store"]),
        ("let (mut kit, log) = (kit, 1);", vec!["mut", "kit", "log"]),
        ("let Self { policy: rules, store } = self;", vec!["Self", "rules", "store"]),
        ("fn open(store: &Store) -> Kit {", vec!["store"]),
        ("items.map(|policy| policy.name)", vec!["policy"]),
        ("for policy in self.store.load(store.id) {", vec!["policy"]),
        ("policy: rules, // let policy", vec![]),
    ] {
        assert_eq!(bound(line).collect::<Vec<_>>(), found, "{line}");
    }
    let text = "fn open(\n    mut store: &Store,\n) -> Kit {\n    Kit {\n        log: 1,\n    }";
    assert_eq!(bound_in(text).collect::<Vec<_>>(), [(2, "store")]);
}
