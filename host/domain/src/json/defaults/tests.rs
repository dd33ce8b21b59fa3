//! Tests of the defaults that approvers see.

use super::*;

fn defaults(schema: &str, value: &str) -> String {
    let (schema, value) = (Value::parse(schema).unwrap(), Value::parse(value).unwrap());
    // A pattern is a prefix here.
    match Defaults::of(&schema, &value, &|pattern, name| name.starts_with(pattern)) {
        Ok(defaults) => defaults.to_json().map_or_else(|| "none".to_owned(), |json| json.as_str().to_owned()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn defaults_of_what_is_left_out_are_found() {
    let nested = r##"{"properties": {
        "a/b": {"default": [1, 2.50]},
        "opts": {"$ref": "#/$defs/opts"},
        "whole": {"$ref": "#/$defs/opts", "default": {"depth": 9}},
        "lines": {"items": {"allOf": [{"$ref": "#/$defs/opts"}]}},
        "kind": {"allOf": [{"$ref": "#/$defs/kind"}]},
        "memo": {"default": null}, "free": {}
    }, "$defs": {"opts": {"properties": {"depth": {"default": 3}}}, "kind": {"default": "plain"}}}"##;
    for (schema, value, expected) in [
        (r#"{"properties": {"n": {"default": 5}}}"#, "{}", r#"{"/n":5}"#),
        (r#"{"properties": {"n": {"default": 5}}}"#, r#"{"n": null}"#, "none"),
        (r#"{"properties": {"n": {"default": 5}}}"#, "[]", "none"),
        (nested, "{}", r#"{"/a~1b":[1,2.50],"/kind":"plain","/memo":null,"/whole":{"depth":9}}"#),
        (
            nested,
            r#"{"a/b": 0, "opts": {}, "whole": {"depth": 1}, "kind": "", "lines": [{}, {"depth": 2}, 7]}"#,
            r#"{"/lines/0/depth":3,"/memo":null,"/opts/depth":3}"#,
        ),
        (r##"{"$ref": "#"}"##, "{}", "none"),
        ("true", "{}", "none"),
    ] {
        assert_eq!(defaults(schema, value), expected, "{schema} {value}");
    }
}

#[test]
fn defaults_of_the_only_alternative_for_a_type_are_found() {
    // The Python SDK makes this of `options: Options | None = None`.
    let python = r##"{"type": "object", "properties": {"options": {"anyOf": [{"type": "object", "properties": {"notify": {"type": "boolean", "default": true}}, "additionalProperties": false}, {"type": "null"}]}}, "additionalProperties": false}"##;
    let n = r#"{"properties": {"n": {"default": 5}}}"#;
    let typed = r#"{"type": "object", "properties": {"n": {"default": 5}}}"#;
    for (schema, value, expected) in [
        (python.to_owned(), "{}", "none"),
        (python.to_owned(), r#"{"options": null}"#, "none"),
        (python.to_owned(), r#"{"options": {}}"#, r#"{"/options/notify":true}"#),
        (python.to_owned(), r#"{"options": {"notify": false}}"#, "none"),
        (format!(r#"{{"anyOf": [{n}]}}"#), "{}", r#"{"/n":5}"#),
        (format!(r#"{{"oneOf": [{typed}, false, {{"const": null}}]}}"#), "{}", r#"{"/n":5}"#),
        (format!(r#"{{"oneOf": [{{"type": ["null", "string"]}}, {{"enum": [1, []]}}, {n}]}}"#), "{}", r#"{"/n":5}"#),
        (
            format!(r#"{{"items": {{"anyOf": [{{"type": "array"}}, {{"anyOf": [{typed}, {{"type": "null"}}]}}]}}}}"#),
            "[{}, []]",
            r#"{"/0/n":5}"#,
        ),
        // Either of them may be meant.
        (format!(r#"{{"anyOf": [{n}, {{}}]}}"#), "{}", "none"),
        (format!(r#"{{"anyOf": [{typed}, {{"type": ["array", "object"]}}]}}"#), "{}", "none"),
        (format!(r#"{{"anyOf": [{typed}, true]}}"#), "{}", "none"),
        (format!(r##"{{"anyOf": [{typed}, {{"$ref": "#"}}]}}"##), "{}", "none"),
    ] {
        assert_eq!(defaults(&schema, value), expected, "{schema} {value}");
    }
}

#[test]
fn encoded_references_lead_to_defaults() {
    let schema = |target: &str| {
        format!(
            r##"{{"properties": {{"n": {{"$ref": "#/$defs/{target}"}}}}, "$defs": {{"a b|ü": {{"default": 5}}}}}}"##
        )
    };
    assert_eq!(defaults(&schema("a%20b%7C%C3%BC"), "{}"), r#"{"/n":5}"#);
    assert_eq!(defaults(&schema("a b|ü"), "{}"), r#"{"/n":5}"#);
    assert_eq!(defaults(&schema("a%2"), "{}"), "none");
}

#[test]
fn references_with_the_address_of_the_schema_lead_to_defaults() {
    let schema = |id: &str, reference: &str| {
        format!(
            r#"{{"$id": "{id}", "properties": {{"n": {{"$ref": "{reference}"}}}}, "$defs": {{"a": {{"default": 5}}}}, "default": 6}}"#
        )
    };
    for (id, reference, expected) in [
        ("https://x.example/s", "https://x.example/s#/$defs/a", r#"{"/n":5}"#),
        ("https://x.example/s#", "https://x.example/s#/$defs/a", r#"{"/n":5}"#),
        ("https://x.example/s", "https://x.example/s", r#"{"/n":6}"#),
        ("https://x.example/s", "#/$defs/a", r#"{"/n":5}"#),
        ("https://x.example/s", "https://x.example/s2#/$defs/a", "none"),
        ("https://x.example/s", "https://x.example/#/$defs/a", "none"),
        ("", "/$defs/a", "none"),
        ("#", "", "none"),
    ] {
        assert_eq!(defaults(&schema(id, reference), "{}"), expected, "{id} {reference}");
    }
}

#[test]
fn each_draft_has_its_own_ways_to_defaults() {
    let n = r#"{"properties": {"n": {"default": 1}}}"#;
    let m = r#"{"properties": {"m": {"default": 2}}}"#;
    let [first, both, last] = [r#"{"/0/n":1}"#, r#"{"/0/n":1,"/1/m":2}"#, r#"{"/0/m":2,"/1/m":2}"#];
    let anchored = r##""properties": {"a": {"$ref": "#it"}}, "definitions": "##;
    for (keywords, value, expected) in [
        (format!(r#""prefixItems": [{n}], "items": {m}"#), "[{}, {}]", [last, last, both]),
        (format!(r#""items": [{n}], "additionalItems": {m}"#), "[{}, {}]", [both, both, "none"]),
        (format!(r#""items": [{n}]"#), "[{}, {}]", [first, first, "none"]),
        (
            format!(r#""properties": {{"a": {{}}}}, "patternProperties": {{"b": {n}}}, "additionalProperties": {m}"#),
            r#"{"a": {}, "b1": {}, "c/d": {}, "b2": 1}"#,
            [r#"{"/b1/n":1,"/c~1d/m":2}"#; 3],
        ),
        (
            format!(r##"{anchored}{{"x": {{"$anchor": "it", "default": 3}}, "y": {{"const": {{"$anchor": "it"}}}}}}"##),
            "{}",
            ["none", r#"{"/a":3}"#, r#"{"/a":3}"#],
        ),
        (format!(r##"{anchored}{{"x": {{"$id": "#it", "default": 3}}}}"##), "{}", [r#"{"/a":3}"#, "none", "none"]),
        (
            r##""properties": {"a": {"$ref": "#/definitions/x", "default": 4}}, "definitions": {"x": {"default": 3}}"##
                .to_owned(),
            "{}",
            [r#"{"/a":3}"#, r#"{"/a":4}"#, r#"{"/a":4}"#],
        ),
    ] {
        let names = ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"];
        let drafts = [names[0], names[1], "https://json-schema.org/draft/2020-12/schema"];
        for (draft, expected) in drafts.iter().zip(expected) {
            let schema = format!(r#"{{"$schema": "{draft}", {keywords}}}"#);
            assert_eq!(defaults(&schema, value), expected, "{schema} {value}");
        }
    }
}

#[test]
fn defaults_are_limited_in_bytes_and_steps() {
    let long = format!(r#"{{"items": {{"properties": {{"n": {{"default": "{}"}}}}}}}}"#, "x".repeat(1_000));
    let items = |count: usize| format!("[{}]", vec!["{}"; count].join(","));
    assert!(defaults(&long, &items(60)).starts_with(r#"{"/0/n":"#));
    assert_eq!(defaults(&long, &items(70)), TooManyDefaults.to_string());
    // Each level refers to the next one twice.
    let level = |n: usize| format!(r##""l{n}": {{"allOf": [{{"$ref": "#/l{0}"}}, {{"$ref": "#/l{0}"}}]}}"##, n + 1);
    let levels: Vec<_> = (0..4).map(level).collect();
    let wide = format!(r##"{{"items": {{"$ref": "#/l0"}}, {}, "l4": {{}}}}"##, levels.join(","));
    assert_eq!(defaults(&wide, &items(10_000)), "none");
    assert_eq!(defaults(&wide, &items(40_000)), TooManyDefaults.to_string());
    let either = format!(
        r##"{{"items": {{"anyOf": [{{"$ref": "#/l0"}}, {{"$ref": "#/l0"}}]}}, {}, "l4": {{}}}}"##,
        levels.join(",")
    );
    assert_eq!(defaults(&either, &items(10_000)), "none");
    assert_eq!(defaults(&either, &items(40_000)), TooManyDefaults.to_string());
    let absent =
        format!(r##"{{"items": {{"properties": {{"n": {{"$ref": "#/l0"}}}}}}, {}, "l4": {{}}}}"##, levels.join(","));
    assert_eq!(defaults(&absent, &items(10_000)), "none");
    assert_eq!(defaults(&absent, &items(40_000)), TooManyDefaults.to_string());
    // Each level of the value leads through four references.
    let chain = r##"{"$ref": "#/a", "a": {"$ref": "#/b"}, "b": {"$ref": "#/c"}, "c": {"items": {"$ref": "#"}}}"##;
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(defaults(chain, &deep(50)), "none");
    assert_eq!(defaults(chain, &deep(100)), TooManyDefaults.to_string());
}

#[test]
fn values_inside_a_default_are_found() {
    let schema = Value::parse(r#"{"properties": {"o": {"default": {"depth": [7]}}}}"#).unwrap();
    let value = Value::parse("{}").unwrap();
    let defaults = Defaults::of(&schema, &value, &|_, _| false).unwrap();
    let at = |pointer: &str| defaults.get(pointer).map(Value::to_json);
    assert_eq!(at("/o/depth/0").as_deref(), Some("7"));
    assert_eq!(at("/o").as_deref(), Some(r#"{"depth":[7]}"#));
    assert_eq!((at("/other"), at("/o/none"), at("/o2")), (None, None, None));
}
