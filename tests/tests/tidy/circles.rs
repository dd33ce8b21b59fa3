//! Circles between the modules of a crate: at its top level, and between the files of each folder. Two modules that need each
//! other cannot be read, moved or tested alone.
//!
//! Edges come from the text: `crate::…` and `super::…` paths outside of comments and tests, resolved through the
//! re-exports of the module above.

use std::collections::{BTreeMap, BTreeSet};

use super::{files, paths, read, report};

/// Modules with the modules that they name.
type Edges = BTreeMap<String, BTreeSet<String>>;

#[test]
fn no_crate_has_a_circle_of_modules() {
    let mut findings = Vec::new();
    for root in paths() {
        let Some(folder) = folder_of(&root) else { continue };
        let edges = edges(&root, &folder);
        for circle in circles(&edges) {
            let arrows = circle.iter().flat_map(|from| {
                edges[from].iter().filter(|to| circle.contains(*to)).map(move |to| format!("{from} -> {to}"))
            });
            findings.push(format!("{folder}: {}", arrows.collect::<Vec<_>>().join(", ")));
        }
    }
    report("give one of them the narrow thing it needs, or move what both need into a module of its own", findings);
}

/// The folder of the modules that a file of a crate declares. Crates of tests are exempt.
fn folder_of(path: &str) -> Option<String> {
    let (of_crate, file) = path.split_once("/src/").filter(|_| !path.starts_with("tests/"))?;
    match file {
        "lib.rs" | "main.rs" => Some(format!("{of_crate}/src")),
        _ => path.strip_suffix(".rs").map(str::to_owned),
    }
}

fn edges(root: &str, folder: &str) -> Edges {
    let text = read(root);
    let modules: BTreeSet<String> = statements(&text, "mod ").into_iter().collect();
    let exported = exported(&text, &modules);
    let mut edges: Edges = modules.iter().map(|module| (module.clone(), BTreeSet::new())).collect();
    for (path, text) in files("rs") {
        let Some(inner) = path.strip_prefix(&format!("{folder}/")) else { continue };
        let Some(module) = inner.split(['/', '.']).next().filter(|module| modules.contains(*module)) else { continue };
        if inner.split(['/', '.']).any(|part| part == "tests" || part == "testing" || part == "fuzzing") {
            continue;
        }
        let code = product(&text);
        let code = from_folder(&code, folder, inner.matches('/').count() + 1);
        for name in crate_names(&code) {
            let target = if modules.contains(&name) { Some(&name) } else { exported.get(&name) };
            if let Some(target) = target.filter(|target| *target != module) {
                edges.entry(module.to_owned()).or_default().insert(target.clone());
            }
        }
    }
    edges
}

/// A text of this depth below a folder, where `crate::` is before the modules of the folder, and only there.
fn from_folder(code: &str, folder: &str, depth: usize) -> String {
    let inside = folder.split_once("/src/").map(|(_, path)| format!("crate::{}::", path.replace('/', "::")));
    let code = match inside {
        Some(inside) => code.replace(&inside, "here::").replace("crate::", "outside::"),
        None => code.replace("crate::", "here::"),
    };
    let code = code.replace(&"super::".repeat(depth + 1), "outside::");
    code.replace(&"super::".repeat(depth), "here::").replace("here::", "crate::")
}

/// The names that a root file declares after a keyword: `mod a;` and `pub mod a;` give `a`.
fn statements(text: &str, keyword: &str) -> Vec<String> {
    let plain = text.lines().filter_map(|line| {
        let line = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub ")).unwrap_or(line);
        line.strip_prefix(keyword)?.strip_suffix(';')
    });
    plain.map(str::to_owned).collect()
}

/// The items that a root file re-exports, each with the module it comes from.
fn exported(text: &str, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for statement in text.split("use ").skip(1).filter_map(|rest| rest.split(';').next()) {
        let statement = statement.strip_prefix("self::").unwrap_or(statement);
        let Some((module, items)) = statement.split_once("::") else { continue };
        if modules.contains(module) {
            let names = items.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|name| !name.is_empty());
            found.extend(names.map(|name| (name.to_owned(), module.to_owned())));
        }
    }
    found
}

/// A file without its comments and without everything after the `#[cfg(test)]` of its test module.
fn product(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    let code = text.lines().map(|line| line.split("//").next().unwrap_or(line));
    code.collect::<Vec<_>>().join("\n")
}

/// The first names of all paths that begin with `crate::`, including those in braces.
fn crate_names(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let Some(list) = rest.strip_prefix('{') else {
            names.insert(rest.chars().take_while(|c| is_name(*c)).collect());
            continue;
        };
        let (mut depth, mut name, mut is_first) = (1, String::new(), true);
        for c in list.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 1 && is_first && is_name(c) {
                name.push(c);
            } else if !name.is_empty() {
                names.insert(std::mem::take(&mut name));
                is_first = false;
            }
            if depth == 1 && c == ',' {
                is_first = true;
            }
            if depth == 0 {
                break;
            }
        }
    }
    names
}

/// Groups of modules that all reach each other.
fn circles(edges: &Edges) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = edges.keys().map(|from| (from, reach(edges, from))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for from in edges.keys() {
        let both = reached[from].iter().filter(|to| reached[*to].contains(from)).map(|to| (*to).clone());
        let circle: BTreeSet<String> = both.collect();
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

/// All modules that one reaches through at least one edge.
fn reach<'a>(edges: &'a Edges, from: &'a String) -> BTreeSet<&'a String> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(module) = next.pop() {
        next.extend(edges.get(module).into_iter().flatten().filter(|to| reached.insert(*to)));
    }
    reached
}

#[test]
fn edges_are_read_from_every_form_of_a_path() {
    let code = product(concat!(
        "use crate::a::{B, C};\nuse crate::{d, e::F, g::{h, i}};\n// crate::no\nlet x = crate::j::k();\n",
        "#[cfg(test)]\nmod tests { use crate::tested; }"
    ));
    let expected = ["a", "d", "e", "g", "j"].map(str::to_owned);
    assert_eq!(crate_names(&code), BTreeSet::from(expected));
    let modules = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
    assert_eq!(statements("mod a;\npub mod b;\nmod c {\n", "mod "), ["a", "b"]);
    let exported = exported("pub use a::{One, Two};\nuse other::Three;\npub use self::b::{\n    Four,\n};", &modules);
    assert_eq!(exported.keys().collect::<Vec<_>>(), ["Four", "One", "Two"]);
}

#[test]
fn edges_between_files_of_a_folder_are_read() {
    let code = "use super::a::B;\nuse super::super::b::C;\nuse crate::x::c::D;\nuse crate::d::E;";
    let names = crate_names(&from_folder(code, "host/y/src/x", 1));
    assert_eq!(names, BTreeSet::from(["a", "c"].map(str::to_owned)));
    let of_root = crate_names(&from_folder(code, "host/y/src", 1));
    assert_eq!(of_root, BTreeSet::from(["a", "x", "d"].map(str::to_owned)));
}

#[test]
fn a_circle_of_three_is_found_and_a_chain_is_not() {
    let graph = |arrows: &[(&str, &str)]| -> Edges {
        let mut edges = Edges::new();
        for (from, to) in arrows {
            edges.entry((*from).to_owned()).or_default().insert((*to).to_owned());
            edges.entry((*to).to_owned()).or_default();
        }
        edges
    };
    assert!(circles(&graph(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    let found = circles(&graph(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]));
    assert_eq!(found, [BTreeSet::from(["a", "b", "c"].map(str::to_owned))]);
}
