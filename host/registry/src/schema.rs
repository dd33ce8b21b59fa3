//! Validates values against the schemas of one tool. The messages tell a model how to correct a value.

use std::sync::{Arc, OnceLock};

use dispatch::ports::Checks;
use domain::{Json, Tool, Violation};
use jsonschema::error::{ValidationError, ValidationErrorKind};
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::json;

mod cost;
mod draft;
mod graph;
mod pattern;

use cost::{Costs, Extent};
pub(crate) use draft::Draft;
pub(crate) use graph::{Graph, REFERENCES, children, key};

/// The largest number of violations that are reported for one value.
const MAX_VIOLATIONS: usize = 16;

/// Messages are cut at this many bytes. If a description is longer than half of this, it does not quote the value.
const MAX_MESSAGE: usize = 400;

/// The largest number of backtracking steps for one match, and the largest size of a compiled pattern. Plugins write
/// the patterns and models write the values, so the host must bound the time and the memory that a match takes.
const MAX_BACKTRACKING: usize = 5_000;
const MAX_PATTERN: usize = 1 << 20;

/// The stack size of the thread that compiles a schema. Only the used part of the stack takes memory.
const COMPILER_STACK: usize = 64 << 20;

/// A compiled schema. The cost of validating a value is known before the validation.
pub(crate) struct Compiled {
    validator: Validator,
    costs: Costs,
}

/// Compiles a schema by the rules of its draft. Never fetches anything: a reference to another document is an error.
///
/// # Errors
/// The fault in the schema, and its location.
pub(crate) fn compile(schema: &Value) -> Result<Compiled, Violation> {
    let draft = Draft::of(schema).ok_or_else(|| whole("it is of a draft that this host does not know"))?;
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(MAX_BACKTRACKING)
        .size_limit(MAX_PATTERN)
        .dfa_size_limit(MAX_PATTERN);
    let options = draft.options().offline().with_pattern_options(patterns);
    let violation_of_schema = |error: ValidationError<'_>| Violation {
        pointer: error.schema_path().as_str().to_owned(),
        message: cut(error.to_string()),
    };
    let compile = || {
        let validator = options.build(&unnamed(schema, draft)).map_err(violation_of_schema)?;
        Ok(Compiled { validator, costs: Costs::of(schema) })
    };
    // The compiler recurses along references, and a stack overflow ends the process. So it runs on a large stack.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(COMPILER_STACK).spawn_scoped(scope, compile);
        let thread = thread.map_err(|error| whole(format!("the host cannot compile it now: {error}")))?;
        thread.join().map_err(|_| whole("compiling it panicked"))?
    })
}

/// The schema without its own address. All references in it begin with `#`, so nothing refers to the address. With it,
/// the library would resolve them in its own copy of a published schema that has the same address.
fn unnamed(schema: &Value, draft: Draft) -> Value {
    let mut schema = schema.clone();
    if let Value::Object(members) = &mut schema {
        members.retain(|keyword, value| match keyword.as_str() {
            "$id" => value.as_str().is_some_and(|id| draft.is_anchor(id)),
            keyword => keyword != "$schema",
        });
    }
    schema
}

impl Compiled {
    /// Lists how a value breaks the schema. A value that costs too much is not validated; the one violation says so.
    pub(crate) fn violations(&self, value: &Value) -> Vec<Violation> {
        let extent = Extent::of(value);
        let cost = self.costs.total(&extent);
        if cost > cost::MAX_COST {
            let message = "it is too large to check against the schema: make it smaller, or split it";
            return vec![whole(message)];
        }
        if self.validator.is_valid(value) {
            return Vec::new();
        }
        let is_large = cost > cost::MAX_DETAIL_COST || self.costs.copies(&extent) > cost::MAX_COPIES;
        if is_large || extent.depth() > cost::MAX_DETAIL_DEPTH {
            let message =
                "it does not fit the schema; with its depth and size it would take too long to find out where";
            return vec![whole(message)];
        }
        self.validator.iter_errors(value).take(MAX_VIOLATIONS).map(|error| violation(&error)).collect()
    }
}

/// The schemas of one tool. Each is compiled at its first use.
pub(crate) struct Schemas {
    parameters: Schema,
    result: Option<Schema>,
    response: Option<Schema>,
}

struct Schema {
    text: Json,
    /// Contains `None` if the schema cannot be compiled. A tool that passed the rules has no such schema.
    compiled: OnceLock<Option<Compiled>>,
}

/// Returns the validator for the schemas of a tool that passed the rules.
#[must_use]
pub fn checks(tool: &Tool) -> Arc<dyn Checks> {
    Arc::new(Schemas::of(tool))
}

impl Schemas {
    pub(crate) fn of(tool: &Tool) -> Self {
        let schema = |text: &Json| Schema { text: text.clone(), compiled: OnceLock::new() };
        Self {
            parameters: schema(&tool.parameters),
            result: tool.options.result.as_ref().map(schema),
            response: tool.options.response.as_ref().map(schema),
        }
    }
}

impl Checks for Schemas {
    fn arguments(&self, value: &Json) -> Vec<Violation> {
        self.parameters.violations(value)
    }

    fn result(&self, value: &Json) -> Vec<Violation> {
        self.result.as_ref().map_or_else(|| form(value), |schema| schema.violations(value))
    }

    fn response(&self, value: &Json) -> Vec<Violation> {
        self.response.as_ref().map_or_else(|| form(value), |schema| schema.violations(value))
    }
}

/// Checks a value for which there is no schema: it must be JSON that the host can read.
fn form(value: &Json) -> Vec<Violation> {
    value.check_stored().err().map(Violation::from).into_iter().collect()
}

/// Returns a violation that concerns the whole value.
fn whole(message: impl Into<String>) -> Violation {
    Violation { pointer: String::new(), message: message.into() }
}

impl Schema {
    fn compiled(&self) -> Option<&Compiled> {
        let compile = || compile(&serde_json::from_str(self.text.as_str()).ok()?).ok();
        self.compiled.get_or_init(compile).as_ref()
    }

    fn violations(&self, value: &Json) -> Vec<Violation> {
        let value = match value.value() {
            Ok(value) => json::for_schema(&value),
            Err(malformed) => return vec![malformed.into()],
        };
        match self.compiled() {
            Some(compiled) => compiled.violations(&value),
            None => vec![whole("the tool's schema cannot be used, so nothing fits it")],
        }
    }
}

fn violation(error: &ValidationError<'_>) -> Violation {
    let mut message = described(error);
    if let Some(near) = nearest(error.kind()) {
        let pointer = near.instance_path().as_str();
        let place = if pointer.is_empty() { String::new() } else { format!("at {pointer}: ") };
        message = format!("{message}; the nearest of them would need this changed: {place}{}", described(near));
    }
    Violation { pointer: error.instance_path().as_str().to_owned(), message: cut(message) }
}

/// Returns the library's message. A long message omits the value, because the reader has the value.
fn described(error: &ValidationError<'_>) -> String {
    let text = error.to_string();
    if text.len() <= MAX_MESSAGE / 2 { text } else { cut(error.masked().to_string()) }
}

/// If a value matches none of several alternatives, returns the first fault of the alternative with the fewest faults.
fn nearest(kind: &ValidationErrorKind) -> Option<&ValidationError<'static>> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) = kind else {
        return None;
    };
    context.iter().filter(|faults| !faults.is_empty()).min_by_key(|faults| faults.len())?.first()
}

fn cut(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        let kept = message.floor_char_boundary(MAX_MESSAGE);
        let rest = message.len() - kept;
        message.truncate(kept);
        message.push_str(&format!(" … and {rest} bytes more"));
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(schema: &str, value: &str) -> Vec<String> {
        let schema = Schema { text: Json::new(schema), compiled: OnceLock::new() };
        schema.violations(&Json::new(value)).iter().map(Violation::to_string).collect()
    }

    #[test]
    fn a_violation_says_where_and_what() {
        let schema = r##"{"type":"object","properties":{"n":{"type":"integer"},"tree":{"$ref":"#/$defs/tree"}},
            "required":["n"],"additionalProperties":false,
            "$defs":{"tree":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}"##;
        for (value, expected) in [
            (r#"{"n":1,"tree":[[],[[]]]}"#, vec![]),
            (r#"{"n":"x"}"#, vec![r#"at /n: "x" is not of type "integer""#]),
            (r#"{"n":1,"tree":[[],[1]]}"#, vec![r#"at /tree/1/0: 1 is not of type "array""#]),
            (r"{}", vec![r#""n" is a required property"#]),
            (r#"{"n":1,"m":2}"#, vec!["Additional properties are not allowed ('m' was unexpected)"]),
            ("{", vec!["not valid JSON: EOF while parsing an object at line 1 column 1"]),
        ] {
            assert_eq!(violations(schema, value), expected, "{value}");
        }
    }

    #[test]
    fn each_draft_has_its_own_rules() {
        let drafts = ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"];
        let drafts = [drafts[0], drafts[1], "https://json-schema.org/draft/2020-12/schema"];
        for (schema, value, valid) in [
            (
                r##""$ref":"#/definitions/n","maximum":1,"definitions":{"n":{"type":"number"}}"##,
                "5",
                [true, false, false],
            ),
            (r#""items":[{"type":"string"}],"additionalItems":false"#, r#"["a"]"#, [true, true, false]),
            (r#""prefixItems":[{"type":"string"}]"#, "[1]", [true, true, false]),
            (r#""dependencies":{"a":["b"]}"#, r#"{"a":1}"#, [false, false, false]),
            // No draft looks into a string.
            (r#""format":"email""#, r#""no""#, [true; 3]),
            (r#""contentEncoding":"base64","contentMediaType":"application/json""#, r#""%""#, [true; 3]),
            // References are within the document, also if its address is that of a published schema.
            (
                r##""$id":"http://json-schema.org/draft-07/schema","$ref":"#/definitions/nonNegativeInteger","definitions":{"nonNegativeInteger":{"type":"string"}}"##,
                "1",
                [false; 3],
            ),
        ] {
            for (draft, valid) in drafts.iter().zip(valid) {
                let found = violations(&format!(r#"{{"$schema":"{draft}",{schema}}}"#), value);
                assert_eq!(found.is_empty(), valid, "{draft} {schema}: {found:?}");
            }
        }
    }

    #[test]
    fn of_several_alternatives_the_nearest_is_explained() {
        let schema = r#"{"anyOf":[{"type":"object","required":["a","b"]},{"type":"object","required":["c"]}]}"#;
        let expected = r#"{} is not valid under any of the schemas listed in the 'anyOf' keyword; the nearest of them would need this changed: "c" is a required property"#;
        assert_eq!(violations(schema, "{}"), [expected]);
    }

    #[test]
    fn reported_violations_are_bounded() {
        let all = violations(r#"{"items":{"type":"string"}}"#, &format!("[{}]", ["1"; 100].join(",")));
        assert_eq!(all.len(), MAX_VIOLATIONS);
        let long = violations(r#"{"type":"integer"}"#, &format!("{:?}", "x".repeat(100_000)));
        assert_eq!(long, [r#"value is not of type "integer""#]);
    }

    #[test]
    fn a_costly_schema_and_value_are_a_violation_soon() {
        let nested = |depth| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let twice = r##"{"type":"array","items":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}}"##;
        for depth in [24, 126] {
            assert_eq!(violations(twice, &nested(depth)), [COSTLY]);
        }
        assert!(violations(twice, &nested(3))[0].starts_with("at /0: [[1]] is not valid under any"));
        // The value is as deep as the host can read, and each level has as many nested schemas as the rules allow. The
        // stack of a thread must be large enough for this.
        let mut defs: serde_json::Map<_, _> = (0..7)
            .map(|n| (format!("d{n}"), serde_json::json!({"allOf": [{"$ref": format!("#/$defs/d{}", n + 1)}]})))
            .collect();
        defs.insert("d7".into(), serde_json::json!({"type": "array", "items": {"$ref": "#/$defs/d0"}}));
        let deep = serde_json::json!({"$ref": "#/$defs/d0", "$defs": defs}).to_string();
        assert_eq!(violations(&deep, &nested(126)), [VAGUE]);
        assert_eq!(violations(&deep, &nested(30)).len(), 1);
    }

    /// Returns an array of about `bytes` bytes that repeats `item`.
    fn many(item: &str, bytes: usize) -> String {
        format!("[{}]", vec![item; bytes / (item.len() + 1)].join(","))
    }

    const VAGUE: &str = "it does not fit the schema; with its depth and size it would take too long to find out where";

    #[test]
    fn large_value_is_not_copied_for_each_alternative() {
        let string = |bytes: usize| format!("{:?}", "x".repeat(bytes));
        let integers = vec![r#"{"type":"integer"}"#; 100].join(",");
        let alternatives = format!(r#"{{"anyOf":[{integers}]}}"#);
        assert_eq!(violations(&alternatives, &string(1 << 20)), [VAGUE]);
        assert!(violations(&alternatives, &string(1 << 10))[0].contains("is not of type \"integer\""));
        let twice = r##"{"type":"array","items":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}}"##;
        assert_eq!(violations(twice, &format!("[[[[[[{}]]]]]]", string(1 << 20))), [VAGUE]);
        let file = r#"{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"text":{"type":"string"},
            "mode":{"anyOf":[{"type":"null"},{"type":"integer"}]}}}"#;
        let text = format!(r#"{{"text":{}}}"#, string(1 << 20));
        assert_eq!(violations(file, &text), [r#""path" is a required property"#]);
    }

    const COSTLY: &str = "it is too large to check against the schema: make it smaller, or split it";

    #[test]
    fn what_would_take_long_is_a_violation_and_is_not_begun() {
        let all =
            |count: usize, schema: &str| format!(r#"{{"items":{{"allOf":[{}]}}}}"#, vec![schema; count].join(","));
        let megabyte = 1 << 20;
        let mut conditions = r#"{"type":"integer"}"#.to_owned();
        for _ in 0..8 {
            conditions = format!(r#"{{"if":{conditions},"then":{{}},"unevaluatedProperties":false}}"#);
        }
        let numbers = (0..20_000).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        for (schema, value) in [
            (all(1000, r#"{"minimum":0}"#), many("1", megabyte)),
            (format!(r#"{{"items":{conditions}}}"#), many("{}", megabyte / 4)),
            (format!(r#"{{"items":{{"enum":[{numbers}]}}}}"#), many("1", megabyte)),
            (
                r#"{"items":{"not":{"pattern":"^(a|a|aa)+(?!a)b$"}}}"#.into(),
                many(&format!("{:?}", "a".repeat(60)), megabyte),
            ),
            (r#"{"pattern":"[a-q][^u-z]{1000}x"}"#.into(), format!("{:?}", "a".repeat(megabyte))),
            (r#"{"pattern":"(?:(?=a*b)a)*"}"#.into(), format!("{:?}", "a".repeat(megabyte))),
            (r#"{"patternProperties":{"x{500}y":{}}}"#.into(), format!("{{\"{}\":1}}", "x".repeat(megabyte))),
        ] {
            assert_eq!(violations(&schema, &value), [COSTLY], "{}", crate::json::quoted(&schema));
        }
    }

    #[test]
    fn large_ordinary_values_are_checked_against_ordinary_schemas() {
        let record = r##"{"type":"object","properties":{
            "id":{"type":"integer","minimum":0},"name":{"type":"string","minLength":1,"maxLength":200},
            "date":{"type":"string","pattern":"^\\d{4}-\\d{2}-\\d{2}$"},"tags":{"type":"array","items":{"type":"string"},"uniqueItems":true},
            "state":{"enum":["open","closed","unknown"]},"place":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/place"}]}},
            "required":["id","name"],"additionalProperties":false}"##;
        let place = r#"{"type":"object","properties":{"lat":{"type":"number","minimum":-90,"maximum":90},
            "lon":{"type":"number","minimum":-180,"maximum":180}},"required":["lat","lon"]}"#;
        let records = format!(r#"{{"type":"array","items":{record},"$defs":{{"place":{place}}}}}"#);
        let item = r#"{"id":1,"name":"a name","date":"2026-01-01","tags":["a","b"],"state":"open","place":{"lat":1.5,"lon":2}}"#;
        for (schema, value) in [
            (records.as_str(), many(item, 1 << 20)),
            (r#"{"type":"array","items":{"type":"number","minimum":0,"maximum":9}}"#, many("1", 1 << 20)),
            (r#"{"type":"string","minLength":1,"maxLength":2000000}"#, format!("{:?}", "x".repeat(1 << 20))),
            (r#"{"type":"string","pattern":"^(?!\\s*$).+"}"#, format!("{:?}", "some words ".repeat(400))),
        ] {
            assert_eq!(violations(schema, &value), Vec::<String>::new(), "{}", crate::json::quoted(schema));
        }
    }

    #[test]
    fn a_pattern_that_explodes_is_a_violation_and_soon() {
        let value = format!("{:?}", "a".repeat(60));
        let all = violations(r#"{"pattern":"^(a|a|aa)+(?!a)b$"}"#, &value);
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(compile(&serde_json::json!({"pattern": "((a{1,1000}){1,1000}){1,1000}"})).is_err());
    }
}
