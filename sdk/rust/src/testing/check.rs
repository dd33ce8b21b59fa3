//! Checks the rules for declarations that the types do not enforce and that need no JSON Schema validator. The host's
//! own check, `toolgate check FILE`, needs the built component.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::{AnyTool, Tools};

/// The host's limits, as the interface states them.
const MAX_SCHEMA_DEPTH: usize = 32;
const MAX_TITLE: usize = 128;
const MAX_PROMPT_BYTES: usize = 4 * 1024;
const MAX_TIMEOUT_MS: u64 = 86_400_000;
const MAX_EXPIRES_MS: u64 = 31_536_000_000;

/// The mistakes in a plugin's declarations, one line each.
#[derive(Clone, PartialEq, Eq)]
pub struct Findings(Vec<String>);

impl Findings {
    /// The lines. Each names the tool and the mistake.
    pub fn lines(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl fmt::Debug for Findings {
    /// The same text as `Display`, so that `check(&tools()).unwrap()` is readable.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the host would refuse this plugin:\n{self}")
    }
}

/// Checks all declarations of a plugin.
///
/// # Errors
/// All findings.
pub fn check(tools: &Tools) -> Result<(), Findings> {
    let mut findings = Vec::new();
    let mut names = BTreeSet::new();
    for tool in tools.iter() {
        let mut found = |what: String| findings.push(format!("{}: {what}", tool.name()));
        if !names.insert(tool.name()) {
            found("another tool of this plugin has the same name".to_owned());
        }
        check_tool(tool, &mut found);
    }
    if findings.is_empty() { Ok(()) } else { Err(Findings(findings)) }
}

fn check_tool(tool: &AnyTool, found: &mut impl FnMut(String)) {
    let name = tool.name();
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(legal) {
        found("a name is 1 to 64 letters, digits, `_` or `-`".to_owned());
    }
    if tool.description().trim().is_empty() {
        found("the description is empty, so no model will know when to use it".to_owned());
    }
    let parameters = tool.parameters();
    if parameters["type"] != "object" {
        found("`parameters` must be of type object: use a struct with named fields for the arguments".to_owned());
    }
    let options = tool.options();
    check_schema("parameters", &parameters, found);
    for key in ["result", "response"] {
        if let Some(schema) = options.get(key) {
            check_schema(key, schema, found);
        }
    }
    check_options(&options, &parameters, found);
}

fn check_schema(what: &str, schema: &Value, found: &mut impl FnMut(String)) {
    if depth(schema) > MAX_SCHEMA_DEPTH {
        found(format!("`{what}` is nested deeper than {MAX_SCHEMA_DEPTH}"));
    }
    // A reference may name the address of its own schema.
    let address = schema["$id"].as_str().unwrap_or_default().trim_end_matches('#');
    let is_inside = |target: &str| {
        let rest = if address.is_empty() { None } else { target.strip_prefix(address) };
        target.starts_with('#') || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
    };
    visit(schema, &mut |object| {
        if let Some(Value::String(target)) = object.get("$ref")
            && !is_inside(target)
        {
            found(format!("`{what}` refers to `{target}`, which is outside of it"));
        }
    });
}

fn check_options(options: &Value, parameters: &Value, found: &mut impl FnMut(String)) {
    if let Some(title) = options["title"].as_str()
        && !(1..=MAX_TITLE).contains(&title.chars().count())
    {
        found(format!("`title` has 1 to {MAX_TITLE} characters"));
    }
    for (key, most) in [("timeout_ms", MAX_TIMEOUT_MS), ("expires_ms", MAX_EXPIRES_MS)] {
        if let Some(value) = options[key].as_u64()
            && !(1..=most).contains(&value)
        {
            found(format!("`{key}` is 1 to {most}"));
        }
    }
    if let Some(names) = options["editable"].as_array() {
        if names.is_empty() {
            found("`editable` names no argument".to_owned());
        }
        for name in names.iter().filter_map(Value::as_str).filter(|name| !has_property(parameters, name)) {
            found(format!("`editable` names `{name}`, which is not an argument"));
        }
    }
    if let Some(keys) = options["context_keys"].as_array() {
        let sized = |key: &Value| key.as_str().is_some_and(|key| (1..=128).contains(&key.chars().count()));
        let distinct = keys.iter().enumerate().all(|(index, key)| !keys[..index].contains(key));
        if keys.len() > 64 || !keys.iter().all(sized) || !distinct {
            found("`context_keys` are at most 64 distinct names of 1 to 128 characters".to_owned());
        }
    }
    if let Some(template) = options["prompt"].as_str() {
        if template.len() > MAX_PROMPT_BYTES {
            found(format!("`prompt` is over {MAX_PROMPT_BYTES} bytes"));
        }
        match placeholders(template) {
            Ok(steps) => {
                for step in steps.iter().filter(|step| !has_property(parameters, step)) {
                    found(format!("`prompt` shows `{step}`, which is not an argument"));
                }
            }
            Err(what) => found(format!("`prompt` {what}")),
        }
    }
    if options["hints"]["read_only"] == true && options["hints"]["destructive"] == true {
        found("a tool cannot be both read-only and destructive".to_owned());
    }
    let retention = &options["retention"];
    if retention["never_evict"] == true && retention.as_object().is_some_and(|members| members.len() > 1) {
        found("`never_evict` contradicts the other bounds on retention".to_owned());
    }
    if retention["max_age_turns"] == 0 || retention["max_count"] == 0 {
        found("bounds on retention are at least 1".to_owned());
    }
}

fn has_property(parameters: &Value, name: &str) -> bool {
    parameters["properties"].get(name).is_some()
}

/// The top-level arguments that a prompt's template uses, or the mistake in the template.
fn placeholders(template: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let tail = &rest[at..];
        if tail.starts_with("{{") || tail.starts_with("}}") {
            rest = &tail[2..];
            continue;
        }
        if tail.starts_with('}') {
            return Err("has a `}` without a `{`; write `}}` for a brace".to_owned());
        }
        let Some(end) = tail.find('}') else {
            return Err("has a `{` without a `}`; write `{{` for a brace".to_owned());
        };
        let inside = &tail[1..end];
        if let Some(pointer) = inside.strip_prefix('/') {
            let step = pointer.split('/').next().unwrap_or_default();
            names.push(step.replace("~1", "/").replace("~0", "~"));
        } else if !inside.is_empty() && inside.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
            names.push(inside.to_owned());
        } else {
            return Err(format!("has `{{{inside}}}`, which is neither an argument's name nor a JSON Pointer"));
        }
        rest = &tail[end + 1..];
    }
    Ok(names)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn visit(value: &Value, see: &mut impl FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| visit(item, see)),
        Value::Object(members) => {
            see(members);
            members.values().for_each(|member| visit(member, see));
        }
        _ => {}
    }
}
