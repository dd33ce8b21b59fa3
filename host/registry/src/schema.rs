//! Holding values against the schemas of one tool, in words that a model can act on.

use std::sync::OnceLock;

use dispatch::ports::Checks;
use domain::{Json, Tool, Violation};
use jsonschema::error::{ValidationError, ValidationErrorKind};
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::json;

mod cost;
mod graph;

pub(crate) use graph::{Graph, children, key};

/// Violations that are told of one value.
const MAX_VIOLATIONS: usize = 16;

/// Characters of one message. A value that a message quotes is left out of it beyond half of that.
const MAX_MESSAGE: usize = 400;

/// Steps that matching one pattern may take, and the size of what a pattern is compiled to. Patterns come from plugins and
/// the values from models, so neither may be trusted with the host's time.
const MAX_BACKTRACKING: usize = 100_000;
const MAX_PATTERN: usize = 1 << 20;

/// The stack on which schemas are compiled: only what is used of it takes memory.
const COMPILER_STACK: usize = 64 << 20;

/// Compiles a schema of draft 2020-12. Nothing is ever fetched: a reference to elsewhere is an error.
///
/// # Errors
/// What is wrong with it, and where.
pub(crate) fn compile(schema: &Value) -> Result<Validator, Violation> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(MAX_BACKTRACKING)
        .size_limit(MAX_PATTERN)
        .dfa_size_limit(MAX_PATTERN);
    let options = jsonschema::draft202012::options().offline().with_pattern_options(patterns);
    let told = |error: ValidationError<'_>| Violation {
        pointer: error.schema_path().as_str().to_owned(),
        message: cut(error.to_string()),
    };
    let compile = || options.build(schema).map_err(told);
    // The compiler recurses along references, and a stack that overflows ends the process.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(COMPILER_STACK).spawn_scoped(scope, compile);
        let thread = thread.map_err(|error| whole(format!("the host cannot compile it now: {error}")))?;
        thread.join().map_err(|_| whole("compiling it panicked"))?
    })
}

/// The schemas of one tool, each compiled when it is first needed.
pub(crate) struct Schemas {
    parameters: Schema,
    result: Option<Schema>,
    response: Option<Schema>,
}

struct Schema {
    text: Json,
    /// `None` inside where it cannot be compiled, which the rules have excluded.
    validator: OnceLock<Option<Validator>>,
}

impl Schemas {
    pub(crate) fn of(tool: &Tool) -> Self {
        let schema = |text: &Json| Schema { text: text.clone(), validator: OnceLock::new() };
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

/// What is wrong with a text for which there is no schema: that it is not JSON.
fn form(value: &Json) -> Vec<Violation> {
    if json::is_json(value.as_str()) { Vec::new() } else { vec![whole("not valid JSON, or nested too deeply")] }
}

/// A violation of the value as a whole.
fn whole(message: impl Into<String>) -> Violation {
    Violation { pointer: String::new(), message: message.into() }
}

impl Schema {
    fn validator(&self) -> Option<&Validator> {
        let compile = || compile(&serde_json::from_str(self.text.as_str()).ok()?).ok();
        self.validator.get_or_init(compile).as_ref()
    }

    /// How a value breaks the schema.
    fn violations(&self, value: &Json) -> Vec<Violation> {
        let value: Value = match serde_json::from_str(value.as_str()) {
            Ok(value) => value,
            Err(error) => return vec![whole(format!("not valid JSON: {error}"))],
        };
        let Some(validator) = self.validator() else {
            return vec![whole("the tool's schema cannot be used, so nothing fits it")];
        };
        if validator.is_valid(&value) {
            return Vec::new();
        }
        let schema: Value = serde_json::from_str(self.text.as_str()).unwrap_or_default();
        explain(&schema, validator, &value)
    }
}

/// How a value that does not fit breaks its schema.
pub(crate) fn explain(schema: &Value, validator: &Validator, value: &Value) -> Vec<Violation> {
    if !cost::is_bounded(schema, value) {
        let message = "it does not fit the schema; with its depth and size it would take too long to find out where";
        return vec![whole(message)];
    }
    validator.iter_errors(value).take(MAX_VIOLATIONS).map(|error| violation(&error)).collect()
}

fn violation(error: &ValidationError<'_>) -> Violation {
    let mut message = told(error);
    if let Some(near) = nearest(error.kind()) {
        let pointer = near.instance_path().as_str();
        let place = if pointer.is_empty() { String::new() } else { format!("at {pointer}: ") };
        message = format!("{message}; the nearest of them would need this changed: {place}{}", told(near));
    }
    Violation { pointer: error.instance_path().as_str().to_owned(), message: cut(message) }
}

/// The library's sentence, without the value where that is long: whoever reads it has the value.
fn told(error: &ValidationError<'_>) -> String {
    let text = error.to_string();
    if text.len() <= MAX_MESSAGE / 2 { text } else { cut(error.masked().to_string()) }
}

/// The first fault of the alternative that has the fewest, where a value fits none of several.
fn nearest(kind: &ValidationErrorKind) -> Option<&ValidationError<'static>> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) = kind else {
        return None;
    };
    context.iter().filter(|faults| !faults.is_empty()).min_by_key(|faults| faults.len())?.first()
}

fn cut(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE));
        message.push_str(" …");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(schema: &str, value: &str) -> Vec<String> {
        let schema = Schema { text: Json::new(schema), validator: OnceLock::new() };
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
    fn of_several_alternatives_the_nearest_is_explained() {
        let schema = r#"{"anyOf":[{"type":"object","required":["a","b"]},{"type":"object","required":["c"]}]}"#;
        let expected = r#"{} is not valid under any of the schemas listed in the 'anyOf' keyword; the nearest of them would need this changed: "c" is a required property"#;
        assert_eq!(violations(schema, "{}"), [expected]);
    }

    #[test]
    fn what_is_told_is_bounded() {
        let all = violations(r#"{"items":{"type":"string"}}"#, &format!("[{}]", ["1"; 100].join(",")));
        assert_eq!(all.len(), MAX_VIOLATIONS);
        let long = violations(r#"{"type":"integer"}"#, &format!("{:?}", "x".repeat(100_000)));
        assert_eq!(long, [r#"value is not of type "integer""#]);
    }

    #[test]
    fn a_schema_and_a_value_that_explode_together_are_a_violation_and_soon() {
        let nested = |depth| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let twice = r##"{"type":"array","items":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}}"##;
        let vague = "it does not fit the schema; with its depth and size it would take too long to find out where";
        for depth in [24, 126] {
            assert_eq!(violations(twice, &nested(depth)), [vague]);
        }
        assert!(violations(twice, &nested(3))[0].starts_with("at /0: [[1]] is not valid under any"));
        // As many schemas inside each other as the rules allow, at every level of a value as deep as can be read: the
        // stack of a thread has to hold that.
        let mut defs: serde_json::Map<_, _> = (0..7)
            .map(|n| (format!("d{n}"), serde_json::json!({"allOf": [{"$ref": format!("#/$defs/d{}", n + 1)}]})))
            .collect();
        defs.insert("d7".into(), serde_json::json!({"type": "array", "items": {"$ref": "#/$defs/d0"}}));
        let deep = serde_json::json!({"$ref": "#/$defs/d0", "$defs": defs}).to_string();
        assert_eq!(violations(&deep, &nested(126)), [vague]);
        assert_eq!(violations(&deep, &nested(30)).len(), 1);
    }

    #[test]
    fn a_pattern_that_explodes_is_a_violation_and_soon() {
        let value = format!("{:?}", "a".repeat(60));
        let all = violations(r#"{"pattern":"^(a|a|aa)+(?!a)b$"}"#, &value);
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(compile(&serde_json::json!({"pattern": "((a{1,1000}){1,1000}){1,1000}"})).is_err());
    }
}
