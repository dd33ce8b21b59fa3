//! The rules about schemas.

use serde_json::{Value, json};

use super::{about, check};

/// The findings about one schema of arguments.
fn schema(text: impl Into<String>) -> Vec<String> {
    about(&json!({ "parameters": text.into() }))
}

/// A schema with this many nested objects.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!({"type": "object"}), |inner, _| json!({"type": "object", "items": inner}))
}

#[test]
fn schemas_that_are_fine() {
    check(&[
        (json!({"parameters": {"type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema"}}), &[]),
        (json!({"parameters": {"type": "object", "properties": {"$ref": {"type": "string"}, "const": {}}}}), &[]),
        (
            json!({"parameters": {"type": "object", "properties": {"a": {"const": {"$ref": "https://example.com"}}}}}),
            &[],
        ),
        (json!({"parameters": {"type": "object", "properties": {"child": {"$ref": "#"}}}}), &[]),
        (
            json!({"parameters": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a~1%20b"}, "t": {"$ref": "#t"}},
                "$defs": {"a/ b": {"$ref": "#t"}, "t": {"$anchor": "t", "items": {"$ref": "#/$defs/t"}}}}}),
            &[],
        ),
        (json!({"parameters": nested(32)}), &[]),
        (
            json!({"parameters": {"type": "object", "$schema": "http://json-schema.org/draft-07/schema#",
                "$id": "https://example.com/tool.json", "properties": {"a": {"$ref": "#a"}, "b": {"$ref": "#/definitions/a"}},
                "definitions": {"a": {"$id": "#a", "type": "string"}}}}),
            &[],
        ),
        (
            json!({"parameters": {"type": "object", "$schema": "https://json-schema.org/draft/2019-09/schema",
                "properties": {"child": {"$recursiveRef": "#"}}}}),
            &[],
        ),
        (json!({"parameters": {"type": "object", "$id": "https://json-schema.org/draft/2020-12/schema"}}), &[]),
        (
            json!({"parameters": {"type": "object", "$id": "https://x.example/s#", "$defs": {"a": {"$anchor": "n"}}, "properties": {
                "a": {"$ref": "https://x.example/s#/$defs/a"}, "b": {"$ref": "https://x.example/s"}, "c": {"$ref": "https://x.example/s#n"}}}}),
            &[],
        ),
    ]);
}

#[test]
fn schemas_that_are_not() {
    check(&[
        (
            json!({"parameters": {"type": "object", "properties": {"a": {"type": "array", "items": [{}, {}]}}}}),
            &[
                "schema-invalid: `parameters` is not a schema at /properties/a/items: [{},{}] is not of types \"boolean\", \"object\"; a list of `items` is of draft-07: say `\"$schema\": \"http://json-schema.org/draft-07/schema#\"` at the root, or write `prefixItems`",
            ],
        ),
        (
            json!({"parameters": "{"}),
            &[
                "schema-invalid: `parameters` is not JSON: the text ends inside an object at line 1 column 1; write a JSON Schema",
            ],
        ),
        (
            json!({"parameters": "{\"type\":\"object\",\"type\":\"object\"}"}),
            &["schema-invalid: `parameters` has the member \"/type\" twice; remove one of the two"],
        ),
        (
            json!({"parameters": {}}),
            &[
                "schema-not-object: `parameters` does not say `\"type\": \"object\"` at its root; make the arguments an object, one member for each",
            ],
        ),
        (
            json!({"parameters": {"type": ["object", "null"]}}),
            &[
                "schema-not-object: `parameters` does not say `\"type\": \"object\"` at its root; make the arguments an object, one member for each",
            ],
        ),
        (
            json!({"parameters": {"type": "object", "$schema": "http://json-schema.org/draft-04/schema#"}}),
            &[
                "schema-invalid: `parameters` uses a draft that this host does not know: \"http://json-schema.org/draft-04/schema#\"; write it in draft 2020-12, 2019-09 or draft-07",
            ],
        ),
        (
            json!({"parameters": {"type": "object", "$schema": "http://json-schema.org/draft-07/schema#",
                "properties": {"a": {"required": "a"}}}}),
            &[
                "schema-invalid: `parameters` is not a schema at /properties/a/required: \"a\" is not of type \"array\"; write a JSON Schema of draft-07",
            ],
        ),
        (
            json!({"parameters": {"type": "object", "properties": {"a": {"minimum": "x"}}}}),
            &[
                "schema-invalid: `parameters` is not a schema at /properties/a/minimum: \"x\" is not of type \"number\"; write a JSON Schema of draft 2020-12",
            ],
        ),
        (
            json!({"parameters": {"type": "object", "properties": {"a": {"pattern": "("}}}}),
            &[
                "schema-invalid: `parameters` cannot be used at /properties/a/pattern: \"(\" is not a \"regex\"; write a JSON Schema of draft 2020-12",
            ],
        ),
        (
            json!({"parameters": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}}),
            &[
                "schema-invalid: `parameters` refers at \"/properties/a/$ref\" to \"#/$defs/a\", which does not exist; correct the reference",
            ],
        ),
    ]);
}

#[test]
fn schemas_that_lead_elsewhere() {
    let remedy = "put what it refers to under `$defs` and refer to it as `#/$defs/NAME`";
    for (keyword, target) in [
        ("$ref", "https://example.com/schema.json"),
        ("$ref", "file:///etc/passwd"),
        ("$ref", "other.json#/a"),
        ("$dynamicRef", "http://169.254.169.254/#a"),
    ] {
        let parameters = json!({"type": "object", "not": {keyword: target}}).to_string();
        let message =
            format!("schema-remote: `parameters` refers at \"/not/{keyword}\" to \"{target}\", outside of itself");
        assert_eq!(schema(parameters), [format!("{message}; {remedy}")]);
    }
    let other =
        json!({"type": "object", "$id": "https://x.example/s", "not": {"$ref": "https://x.example/s2#/$defs/a"}});
    let found = schema(other.to_string());
    assert!(found.len() == 1 && found[0].contains("s2#/$defs/a\", outside of itself"), "{found:?}");
    let with_id = json!({"type": "object", "$defs": {"a": {"$id": "https://example.com/a"}}});
    let expected = "schema-remote: `parameters` has an `$id` at \"/$defs/a\"; remove it: references are within the schema and begin with `#`";
    assert_eq!(schema(with_id.to_string()), [expected]);
    let anchor = json!({"type": "object", "$defs": {"a": {"$id": "#a"}}});
    let found = schema(anchor.to_string());
    assert!(found.contains(&expected.to_owned()), "only in draft-07 is it an anchor: {found:?}");
}

#[test]
fn reference_leads_to_one_schema_that_the_rules_know() {
    let draft07 = "http://json-schema.org/draft-07/schema#";
    let both = json!({"type": "array", "items": {"anyOf": [{"$ref": "#a"}, {"$ref": "#a"}]}});
    let with = |key: &str, value: Value| {
        let mut schema = both.clone();
        schema[key] = value;
        schema
    };
    for (parameters, expected) in [
        (
            json!({"type": "object", "properties": {"a": {"$ref": "#/default"}}, "default": both}),
            "refers at \"/properties/a/$ref\" to \"#/default\", which does not exist",
        ),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs"}}, "$defs": {"type": {"type": "string"}}}),
            "refers at \"/properties/a/$ref\" to \"#/$defs\", which does not exist",
        ),
        (
            json!({"type": "object", "$defs": {"x": with("$anchor", json!("a")), "y": {"$anchor": "a"}}}),
            "has the anchor \"a\" twice",
        ),
        (
            json!({"type": "object", "$defs": {"x": with("$anchor", json!("a"))}, "zz": {"$anchor": "a"}}),
            "has the anchor \"a\" twice",
        ),
        (
            json!({"$schema": draft07, "type": "object", "definitions": {"x": {"$anchor": "a"}}, "not": {"$ref": "#a"}}),
            "refers at \"/not/$ref\" to \"#a\", which does not exist",
        ),
        (
            json!({"$schema": draft07, "type": "object", "not": {"$ref": "#%2Fdefinitions%2Fok"},
                "definitions": {"ok": {}, "x": {"$id": "#%2Fdefinitions%2Fok"}}}),
            "refers at \"/not/$ref\" to \"#%2Fdefinitions%2Fok\", which does not exist",
        ),
        (json!({"type": "object", "not": {"$schema": draft07}}), "has a `$schema` at \"/not\""),
    ] {
        let found = schema(parameters.to_string());
        assert!(found.iter().any(|found| found.contains(expected)), "{parameters}: {found:?}");
    }
}

#[test]
fn nested_unevaluated_keywords_multiply_the_cost() {
    let nested = |levels: usize| {
        let inner = json!({"type": "object"});
        (0..levels)
            .fold(inner, |inner, _| json!({"type": "object", "if": inner, "then": {}, "unevaluatedProperties": false}))
    };
    assert_eq!(schema(nested(5).to_string()), [""; 0]);
    let found = schema(nested(12).to_string());
    assert!(found[0].contains("applies more than 10000 schemas to one place of a value"), "{found:?}");
}

#[test]
fn schemas_that_have_no_end() {
    let circle = "refers to itself without a step into the value, so it never ends; let it refer to itself from inside \
                  `properties` or `items` only";
    for parameters in [
        json!({"type": "object", "$ref": "#"}),
        json!({"type": "object", "allOf": [{"anyOf": [{"$ref": "#"}]}]}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
        json!({"type": "object", "$dynamicAnchor": "self", "if": {"$dynamicRef": "#self"}}),
        json!({"type": "object", "dependencies": {"a": {"$ref": "#"}}}),
        json!({"type": "object", "not": {"$recursiveRef": "#"}}),
        json!({"type": "object", "not": {"$recursiveRef": "#"}, "$schema": "https://json-schema.org/draft/2019-09/schema"}),
    ] {
        let found = schema(parameters.to_string());
        assert!(found.len() == 1 && found[0].starts_with("schema-cycle: ") && found[0].ends_with(circle), "{found:?}");
    }
    // Each definition refers several times to the next one. Both orders are tested, because a schema that was already
    // checked is not checked again.
    let fan = |links: usize, width: usize, reversed: bool| {
        let next = |n: usize| json!({"allOf": vec![json!({"$ref": format!("#/$defs/d{n}")}); width]});
        let mut defs: Vec<_> = (0..links).map(|n| (format!("d{n}"), next(n + 1))).collect();
        defs.push((format!("d{links}"), json!({})));
        if reversed {
            defs.reverse();
        }
        json!({"type": "object", "$defs": serde_json::Map::from_iter(defs)}).to_string()
    };
    for reversed in [false, true] {
        assert_eq!(schema(fan(5, 2, reversed)), [""; 0]);
        let found = schema(fan(6, 5, reversed));
        assert!(found[0].contains("applies more than 10000 schemas to one place of a value"), "{found:?}");
        let found = schema(fan(300, 1, reversed));
        assert!(found[0].contains("leads through more than 16 schemas for one place of a value"), "{found:?}");
    }
}

#[test]
fn schemas_beyond_the_limits() {
    let long = json!({"type": "object", "description": "x".repeat(70_000)}).to_string();
    let size = long.len();
    let expected = format!(
        "schema-size: `parameters` has {size} bytes; the maximum is 65536 (limit `catalog.schema_bytes`); describe less of it: \
         models read it at every turn"
    );
    assert_eq!(schema(long), [expected]);
    let expected = "schema-depth: `parameters` is nested 33 levels deep; the maximum is 32; flatten it, or move parts to `$defs` and refer to them";
    assert_eq!(schema(nested(33).to_string()), [expected]);
    let expected = "schema-invalid: `parameters` is not JSON: nested deeper than 100 levels at line 1 column 101; write a JSON Schema";
    assert_eq!(schema("[".repeat(60_000)), [expected]);
    let expected =
        "schema-depth: `parameters` has a chain of more than 128 nested or referenced schemas; shorten the chain";
    for reversed in [false, true] {
        let link = |n: usize| (format!("d{n}"), json!({"items": {"$ref": format!("#/$defs/d{}", n + 1)}}));
        let mut defs: Vec<_> = (0..200).map(link).chain([("d200".to_owned(), json!({}))]).collect();
        if reversed {
            defs.reverse();
        }
        let chain =
            json!({"type": "object", "$defs": serde_json::Map::from_iter(defs), "items": {"$ref": "#/$defs/d0"}});
        assert_eq!(schema(chain.to_string()), [expected]);
    }
}
