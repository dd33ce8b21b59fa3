//! Validates values against the schemas of one tool. The messages tell a model how to correct a value.

use std::sync::{Arc, OnceLock};

use dispatch::ports::Checks;
use domain::{Json, Tool, Violation};
use jsonschema::error::ValidationError;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::json;

mod cost;
mod draft;
mod graph;
mod pattern;
mod violation;

use cost::{Costs, Extent};
pub(crate) use draft::Draft;
pub(crate) use graph::{Graph, REFERENCES, children, key};
use pattern::{Pattern, Work};
use violation::{cut, violation};

/// The largest number of violations that are reported for one value.
const MAX_VIOLATIONS: usize = 16;

/// The stack size of a thread that compiles a schema, or explains a deep value. Only the used part takes memory.
const LARGE_STACK: usize = 64 << 20;

/// A compiled schema. The cost of validating a value is known before the validation, except the work of the patterns,
/// which has a bound.
pub(crate) struct Compiled {
    validator: Validator,
    costs: Costs,
    /// The patterns for names of members.
    names: Vec<Pattern>,
}

/// Compiles a schema by the rules of its draft. Never fetches anything: a reference to another document is an error.
///
/// # Errors
/// The fault in the schema, and its location.
pub(crate) fn compile(schema: &Value) -> Result<Compiled, Violation> {
    let draft = Draft::of(schema).ok_or_else(|| whole("it uses a draft that this host does not know"))?;
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(pattern::NAME_STEPS)
        .size_limit(pattern::MAX_PATTERN)
        .dfa_size_limit(pattern::MAX_PATTERN);
    let options = draft.options().offline().with_pattern_options(patterns);
    let options = options.with_keyword("pattern", Pattern::keyword);
    let violation_of_schema = |error: ValidationError<'_>| Violation {
        pointer: error.schema_path().as_str().to_owned(),
        message: cut(error.to_string()),
    };
    let compile = || {
        let validator = options.build(&unnamed(schema, draft)).map_err(violation_of_schema)?;
        let names = Graph::of(schema).schemas.iter().flat_map(|(schema, _)| names(schema)).collect();
        Ok(Compiled { validator, costs: Costs::of(schema), names })
    };
    // The compiler recurses along references, and a stack overflow ends the process.
    on_large_stack(compile)?
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
    /// Lists how a value breaks the schema. If a value costs too much, the one violation says so.
    pub(crate) fn violations(&self, value: &Value) -> Vec<Violation> {
        let extent = Extent::of(value);
        let cost = self.costs.total(&extent);
        let Some(left) = cost::MAX_COST.checked_sub(cost) else { return vec![whole(COSTLY)] };
        let (is_valid, work) = Work::within(left, || self.names_are_cheap(value) && self.validator.is_valid(value));
        if is_valid && !work.is_incomplete {
            return Vec::new();
        }
        let cost = cost::MAX_COST - work.left;
        let all = self.costs.copies(&extent) <= cost::MAX_COPIES && cost <= cost::MAX_DETAIL_COST;
        let is_listed = all || self.costs.may_find_first(&extent, cost);
        if work.left == 0 || !is_listed {
            return vec![whole(if work.is_incomplete { COSTLY } else { VAGUE })];
        }
        let list = || -> Vec<Violation> {
            if all {
                self.validator.iter_errors(value).take(MAX_VIOLATIONS).map(|error| violation(&error)).collect()
            } else {
                self.validator.validate(value).err().iter().map(violation).collect()
            }
        };
        let listed = move || Work::within(work.left, list).0;
        let found = if extent.depth() > cost::MAX_DETAIL_DEPTH { on_large_stack(listed) } else { Ok(listed()) };
        found.ok().filter(|found| !found.is_empty()).unwrap_or_else(|| vec![whole(COSTLY)])
    }

    /// Whether each match of a name of a member finishes.
    fn names_are_cheap(&self, value: &Value) -> bool {
        let each = |value| self.names_are_cheap(value);
        match value {
            _ if self.names.is_empty() => true,
            Value::Array(items) => items.iter().all(each),
            Value::Object(members) => members
                .iter()
                .all(|(name, value)| self.names.iter().all(|pattern| pattern.matches(name).is_some()) && each(value)),
            _ => true,
        }
    }
}

/// The patterns of `patternProperties`.
fn names(schema: &Value) -> Vec<Pattern> {
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    patterns.into_iter().flat_map(serde_json::Map::keys).filter_map(|name| Pattern::of_names(name)).collect()
}

/// Runs work that recurses deeply.
///
/// # Errors
/// Why it did not run to its end.
fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Violation> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(LARGE_STACK).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| whole(format!("the host cannot use it now: {error}")))?;
        thread.join().map_err(|_| whole("the host failed while it used it"))
    })
}

const COSTLY: &str = "it is too large to check against the schema: make it smaller, or split it";

const VAGUE: &str = "it does not fit the schema; with its depth and size it would take too long to find out where";

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
    fn choices_are_listed() {
        let letters =
            |count: u8| (b'a'..b'a' + count).map(|letter| format!("\"{}\"", letter as char)).collect::<Vec<_>>();
        let ten = letters(10).join(",");
        let expected = format!(r#""z" is not one of {}"#, letters(10).join(", "));
        assert_eq!(violations(&format!(r#"{{"enum":[{ten}]}}"#), r#""z""#), [expected]);
        let many: Vec<String> = (1000..1100).map(|n| n.to_string()).collect();
        let found = violations(&format!(r#"{{"enum":[{}]}}"#, many.join(",")), "1");
        assert!(
            found[0].starts_with("1 is not one of 1000, 1001, ") && found[0].ends_with(" and 67 more"),
            "{found:?}"
        );
    }

    #[test]
    fn a_wrong_discriminator_is_named() {
        let shape = |name: &str, size: &str| {
            format!(
                r#"{{"type":"object","properties":{{"shape":{{"const":"{name}"}},"{size}":{{"type":"number"}}}},"required":["shape","{size}"]}}"#
            )
        };
        let schema = format!(
            r#"{{"properties":{{"a":{{"oneOf":[{},{}]}}}}}}"#,
            shape("circle", "radius"),
            shape("square", "side")
        );
        let found = violations(&schema, r#"{"a":{"shape":"circel","radius":1}}"#);
        assert_eq!(found, [r#"at /a/shape: it is not one of "circle", "square", which choose between alternatives"#]);
        let found = violations(&schema, r#"{"a":{"shape":"circle","radius":"1"}}"#);
        assert!(
            found[0]
                .ends_with(r#"the nearest of them would need this changed: at /a/radius: "1" is not of type "number""#),
            "{found:?}"
        );
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
        // stacks of the threads must be large enough for this.
        let mut defs: serde_json::Map<_, _> = (0..7)
            .map(|n| (format!("d{n}"), serde_json::json!({"allOf": [{"$ref": format!("#/$defs/d{}", n + 1)}]})))
            .collect();
        defs.insert("d7".into(), serde_json::json!({"type": "array", "items": {"$ref": "#/$defs/d0"}}));
        let deep = serde_json::json!({"$ref": "#/$defs/d0", "$defs": defs}).to_string();
        for depth in [30, 126] {
            let place = format!(r#"at {}: 1 is not of type "array""#, "/0".repeat(depth));
            assert_eq!(violations(&deep, &nested(depth)), [place]);
        }
    }

    /// Returns an array of about `bytes` bytes that repeats `item`.
    fn many(item: &str, bytes: usize) -> String {
        format!("[{}]", vec![item; bytes / (item.len() + 1)].join(","))
    }

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

    #[test]
    fn a_check_that_would_take_long_is_a_violation() {
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
    fn a_costly_pattern_costs_only_its_steps() {
        // The pattern for e-mail addresses of a widespread library. It looks ahead, so the engine matches it in steps.
        let email =
            r"^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$";
        let contacts = format!(r#"{{"items":{{"properties":{{"email":{{"pattern":"{email}"}}}}}}}}"#);
        let contact = |n: usize| format!(r#"{{"email":"first.last{n}@mail.example.com"}}"#);
        let list = |bad: usize| {
            let one = |n| if n == bad { r#"{"email":"first..last@example.com"}"#.to_owned() } else { contact(n) };
            format!("[{}]", (0..4_000).map(one).collect::<Vec<_>>().join(","))
        };
        assert_eq!(violations(&contacts, &list(usize::MAX)), Vec::<String>::new());
        let found = violations(&contacts, &list(3_000));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(r#"at /3000/email: "first..last@example.com" does not match "^(?!"#), "{found:?}");
        // A match that takes too many steps ends the search, also where the schema asks that it fails.
        let endless = format!("{:?}", "a".repeat(60));
        let explodes = r#"{"pattern":"^(a|a|aa)+(?!a)b$"}"#;
        let found = violations(explodes, &endless);
        assert!(found[0].starts_with("it would take too long to find out whether \"aaaa"), "{found:?}");
        assert_eq!(violations(&format!(r#"{{"not":{explodes}}}"#), &endless), [COSTLY]);
        // The engine takes steps for a word boundary too.
        let boundary = r#"{"items":{"pattern":"^((a|a|aa)+\\b!|a*)$"}}"#;
        let found = violations(boundary, &many(r#""aaaaaaaaaaaaa""#, 100_000));
        assert!(found[0].starts_with("at /0: it would take too long to find out"), "{found:?}");
        assert_eq!(violations(r#"{"pattern":"^\\bword\\b$"}"#, r#""word""#), Vec::<String>::new());
        // The library does not begin a match of a name that would not finish.
        let names = r#"{"patternProperties":{"^(a|a|aa)+(?!a)b$":{}}}"#;
        assert_eq!(violations(names, &format!("{{{endless}:1}}")), [COSTLY]);
        assert_eq!(violations(names, r#"{"aab":1}"#), Vec::<String>::new());
    }

    #[test]
    fn a_fault_in_a_large_value_has_its_place() {
        let schema =
            r#"{"items":{"properties":{"place":{"anyOf":[{"type":"null"},{"type":"object","required":["lat"]}]}}}}"#;
        let mut items = vec![r#"{"place":{"lat":1.5,"name":"somewhere"}}"#; 10_000];
        items[9_000] = r#"{"place":{"lon":1}}"#;
        let found = violations(schema, &format!("[{}]", items.join(",")));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("at /9000/place: "), "{found:?}");
    }

    #[test]
    fn a_pattern_too_large_for_the_engine_is_refused() {
        assert!(compile(&serde_json::json!({"pattern": "((a{1,1000}){1,1000}){1,1000}"})).is_err());
    }
}
