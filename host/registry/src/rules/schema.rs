//! Checks that a text is a JSON Schema, and that this host can validate values against it at a bounded cost.

use std::collections::BTreeSet;

use domain::CatalogLimits;
use serde_json::Value;

use super::references;
use crate::LoadRule;
use crate::finding::Findings;
use crate::json;
use crate::schema::Draft;

/// The maximum nesting of a schema's text.
pub const MAX_SCHEMA_DEPTH: usize = 32;

/// The maximum number of faults that are reported for one schema. The first ones usually explain the others.
const MAX_FAULTS: usize = 4;

/// Whether a schema is small enough. `what` names it in findings, in backticks.
pub(crate) fn is_of_size(what: &str, text: &str, limits: &CatalogLimits, findings: &mut Findings) -> bool {
    let (size, max) = (text.len(), limits.schema);
    if size > max {
        findings.add(
            LoadRule::SchemaSize,
            format!("{what} has {size} bytes; the maximum is {max} (limit `catalog.schema_bytes`)"),
            "describe less of it: models read it at every turn",
        );
    }
    size <= max
}

/// Checks the rules about one schema, and returns whether it is usable.
pub(crate) fn check(what: &str, schema: &Value, findings: &mut Findings) -> bool {
    let before = findings.len();
    let depth = json::depth(schema);
    if depth > MAX_SCHEMA_DEPTH {
        findings.add(
            LoadRule::SchemaDepth,
            format!("{what} is nested {depth} levels deep; the maximum is {MAX_SCHEMA_DEPTH}"),
            "flatten it, or move parts to `$defs` and refer to them",
        );
        return false;
    }
    let Some(draft) = Draft::of(schema) else {
        let named = schema.get("$schema").map(Value::to_string).unwrap_or_default();
        let message = format!("{what} uses a draft that this host does not know: {}", excerpt(&named));
        findings.add(LoadRule::SchemaInvalid, message, "write it in draft 2020-12, 2019-09 or draft-07");
        return false;
    };
    check_form(what, schema, draft, findings);
    references::check(what, schema, draft, findings);
    // A faulty schema is not compiled, because the compiler would report the same faults again.
    if findings.len() == before
        && let Err(error) = crate::schema::compile(schema)
    {
        let message = format!("{what} cannot be used{}: {}", at(&error.pointer), excerpt(&error.message));
        findings.add(LoadRule::SchemaInvalid, message, format!("write a JSON Schema of {draft}"));
    }
    findings.len() == before
}

fn check_form(what: &str, schema: &Value, draft: Draft, findings: &mut Findings) {
    // One value can break several rules of the draft that say the same.
    let mut reported = BTreeSet::new();
    for error in draft.meta().iter_errors(schema).take(MAX_FAULTS) {
        let (fault, path) = (excerpt(&error.to_string()), error.instance_path().as_str());
        let message = format!("{what} is not a schema{}: {fault}", at(path));
        // TypeBox and others write draft-07 without saying so.
        let is_old = path.ends_with("/items") && error.instance().is_array() && schema.get("$schema").is_none();
        let remedy = if is_old {
            "a list of `items` is of draft-07: say `\"$schema\": \"http://json-schema.org/draft-07/schema#\"` at the root, or write \
             `prefixItems`"
                .to_owned()
        } else {
            format!("write a JSON Schema of {draft}")
        };
        if reported.insert(message.clone()) {
            findings.add(LoadRule::SchemaInvalid, message, remedy);
        }
    }
}

fn at(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!(" at {}", excerpt(pointer)) }
}

/// The beginning of a text that may quote a plugin, safe to print.
fn excerpt(text: &str) -> String {
    escape::excerpt(text, 200).into_owned()
}
