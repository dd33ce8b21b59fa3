//! The JSON-Schema-Test-Suite: the host accepts and refuses values as the suite says, for each draft that it knows.
//!
//! `cargo xtask test` downloads the suite (`tests/published/suite`).

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_tests::domain::Json;
use toolgate_tests::host::say;
use toolgate_tests::parts::Part;

/// A draft: its folder in the suite, its address, and the number of its required and optional cases that the host can be asked.
struct Draft {
    folder: &'static str,
    address: &'static str,
    required: usize,
    optional: usize,
}

const DRAFTS: [Draft; 3] = [
    Draft { folder: "draft7", address: "http://json-schema.org/draft-07/schema#", required: 856, optional: 100 },
    Draft {
        folder: "draft2019-09",
        address: "https://json-schema.org/draft/2019-09/schema",
        required: 1115,
        optional: 145,
    },
    Draft {
        folder: "draft2020-12",
        address: "https://json-schema.org/draft/2020-12/schema",
        required: 1143,
        optional: 145,
    },
];

/// A file of a draft about what the host does not do: it looks into no string. Its folder `format` is left out for the same reason.
const NOT_ASSERTED: (&str, &str) = ("draft7", "content.json");

/// Keywords whose value is no schema.
const VALUES: [&str; 4] = ["const", "enum", "default", "examples"];

/// Keywords whose value has a schema for each name.
const MAPS: [&str; 6] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Cases with the same schema. The texts are those of the suite, so that no number loses digits.
#[derive(Deserialize)]
struct Group {
    description: String,
    schema: Box<RawValue>,
    tests: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    description: String,
    data: Box<RawValue>,
    valid: bool,
}

/// The folder with the cases.
fn suite() -> PathBuf {
    let suite = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/tools/schema-suite/suite"));
    let packages = suite.read_dir().into_iter().flatten().map(|entry| entry.unwrap().path().join("json/tests"));
    let found = packages.into_iter().find(|tests| tests.is_dir());
    found.unwrap_or_else(|| panic!("the suite is missing: run `cargo xtask test`, or its part `web` alone"))
}

/// The groups of each file in a folder.
fn groups(folder: &Path) -> BTreeMap<String, Vec<Group>> {
    let files = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap())
    };
    files.map(read).collect()
}

/// The schemas that a schema contains directly.
fn children(schema: &Value) -> Vec<&Value> {
    let mut all = Vec::new();
    for (name, value) in schema.as_object().into_iter().flatten() {
        match value {
            _ if VALUES.contains(&name.as_str()) => {}
            Value::Object(map) if MAPS.contains(&name.as_str()) => all.extend(map.values()),
            Value::Array(list) => all.extend(list),
            value => all.push(value),
        }
    }
    all.into_iter().filter(|child| child.is_object()).collect()
}

/// Whether the host refuses a schema because of an address: a reference to another document, a part with an address of its own, or
/// another draft.
fn has_addresses(schema: &Value, draft: &Draft, is_root: bool) -> bool {
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    let refers =
        ["$ref", "$dynamicRef", "$recursiveRef"].iter().any(|name| text(name).is_some_and(|to| !to.starts_with('#')));
    let is_of_other = text("$schema")
        .is_some_and(|named| !is_root || named.trim_end_matches('#') != draft.address.trim_end_matches('#'));
    let is_anchor = draft.folder == "draft7" && text("$id").is_some_and(|id| id.starts_with('#'));
    let is_named = !is_root && schema.get("$id").is_some() && !is_anchor;
    refers || is_of_other || is_named || children(schema).into_iter().any(|child| has_addresses(child, draft, false))
}

/// The text of a schema that names its draft. A schema without the name would be of the newest draft.
fn named(text: &str, draft: &Draft) -> String {
    let schema: Value = serde_json::from_str(text).unwrap();
    let Some(members) = schema.as_object().filter(|members| !members.contains_key("$schema")) else {
        return text.to_owned();
    };
    let rest = text.trim_start().strip_prefix('{').unwrap();
    format!("{{\"$schema\":\"{}\"{}{rest}", draft.address, if members.is_empty() { "" } else { "," })
}

/// Asks the host about each case. Returns the number of cases, and those that differ.
fn compared(draft: &Draft, folder: &Path) -> (usize, Vec<String>) {
    let (mut count, mut different) = (0, Vec::new());
    for (file, groups) in groups(folder) {
        if (draft.folder, file.as_str()) == NOT_ASSERTED {
            continue;
        }
        for Group { description, schema, tests } in groups {
            if has_addresses(&serde_json::from_str(schema.get()).unwrap(), draft, true) {
                continue;
            }
            let schema = Json::unchecked(named(schema.get(), draft));
            for case in tests {
                count += 1;
                let found = registry::violations(&schema, &Json::unchecked(case.data.get()));
                if found.is_empty() != case.valid {
                    different.push(format!("{file}: {description}: {}: {found:?}", case.description));
                }
            }
        }
    }
    (count, different)
}

#[test]
fn host_accepts_the_values_that_the_suite_accepts() {
    if Part::Web.is_left_out() {
        return;
    }
    for draft in &DRAFTS {
        let folder = suite().join(draft.folder);
        let (required, different) = compared(draft, &folder);
        assert!(different.is_empty(), "{}: {different:#?}", draft.folder);
        let (optional, different) = compared(draft, &folder.join("optional"));
        assert!(different.is_empty(), "{}, optional: {different:#?}", draft.folder);
        say(&format!("{}: {required} required and {optional} optional cases", draft.folder));
        let floors = required >= draft.required && optional >= draft.optional;
        assert!(floors, "{}: {required} required and {optional} optional cases", draft.folder);
    }
}
