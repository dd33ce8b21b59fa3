//! Values against schemas: the messages, and the bounds of the work.

use super::*;

fn violations(schema: &str, value: &str) -> Vec<String> {
    let schema = Schema { text: Json::unchecked(schema), compiled: OnceLock::new() };
    schema.violations(&Json::unchecked(value)).iter().map(Violation::to_string).collect()
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
        ("{", vec!["not valid JSON: the text ends inside an object at line 1 column 1"]),
    ] {
        assert_eq!(violations(schema, value), expected, "{value}");
    }
}

#[test]
fn each_draft_has_its_own_rules() {
    let drafts = ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"];
    let drafts = [drafts[0], drafts[1], "https://json-schema.org/draft/2020-12/schema"];
    for (schema, value, valid) in [
        (r##""$ref":"#/definitions/n","maximum":1,"definitions":{"n":{"type":"number"}}"##, "5", [true, false, false]),
        (r#""items":[{"type":"string"}],"additionalItems":false"#, r#"["a"]"#, [true, true, false]),
        (r#""prefixItems":[{"type":"string"}]"#, "[1]", [true, true, false]),
        (r#""dependencies":{"a":["b"]}"#, r#"{"a":1}"#, [false, false, false]),
        // No draft looks into a string.
        (r#""format":"email""#, r#""no""#, [true; 3]),
        (r#""contentEncoding":"base64","contentMediaType":"application/json""#, r#""%""#, [true; 3]),
        (
            r##""$id":"https://x.example/s","$ref":"https://x.example/s#/definitions/n","definitions":{"n":{"type":"string"}}"##,
            "1",
            [false; 3],
        ),
        (r##""$id":"https://x.example/s","items":{"$ref":"https://x.example/s"},"type":"array""##, "[1]", [false; 3]),
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
    let expected = r#"{} is not valid under any of the schemas listed in the 'anyOf' keyword; for the closest alternative, change: "c" is a required property"#;
    assert_eq!(violations(schema, "{}"), [expected]);
}

#[test]
fn choices_are_listed() {
    let letters = |count: u8| (b'a'..b'a' + count).map(|letter| format!("\"{}\"", letter as char)).collect::<Vec<_>>();
    let ten = letters(10).join(",");
    let expected = format!(r#""z" is not one of {}"#, letters(10).join(", "));
    assert_eq!(violations(&format!(r#"{{"enum":[{ten}]}}"#), r#""z""#), [expected]);
    let many: Vec<String> = (1000..1100).map(|n| n.to_string()).collect();
    let found = violations(&format!(r#"{{"enum":[{}]}}"#, many.join(",")), "1");
    assert!(found[0].starts_with("1 is not one of 1000, 1001, ") && found[0].ends_with(" and 67 more"), "{found:?}");
}

#[test]
fn a_wrong_discriminator_is_named() {
    let shape = |name: &str, size: &str| {
        format!(
            r#"{{"type":"object","properties":{{"shape":{{"const":"{name}"}},"{size}":{{"type":"number"}}}},"required":["shape","{size}"]}}"#
        )
    };
    let schema =
        format!(r#"{{"properties":{{"a":{{"oneOf":[{},{}]}}}}}}"#, shape("circle", "radius"), shape("square", "side"));
    let found = violations(&schema, r#"{"a":{"shape":"circel","radius":1}}"#);
    assert_eq!(found, [r#"at /a/shape: it is not one of "circle", "square", which choose between alternatives"#]);
    let found = violations(&schema, r#"{"a":{"shape":"circle","radius":"1"}}"#);
    assert!(
        found[0].ends_with(r#"for the closest alternative, change: at /a/radius: "1" is not of type "number""#),
        "{found:?}"
    );
}

#[test]
fn a_wrong_discriminator_of_an_optional_union_is_named() {
    let shape = |name: &str| format!(r#"{{"type":"object","properties":{{"shape":{{"const":"{name}"}}}}}}"#);
    let shapes = format!("{},{}", shape("circle"), shape("square"));
    for schema in [
        format!(r#"{{"anyOf":[{shapes},{{"type":"null"}}]}}"#),
        format!(r#"{{"anyOf":[{{"oneOf":[{shapes}]}},{{"type":"null"}}]}}"#),
    ] {
        let found = violations(&schema, r#"{"shape":"circel"}"#);
        assert_eq!(found, [r#"at /shape: it is not one of "circle", "square", which choose between alternatives"#]);
    }
    // Inside of another alternative, the nearest fault is explained.
    let schema =
        r#"{"anyOf":[{"type":"object","properties":{"a":{"anyOf":[{"minimum":3},{"type":"null"}]}}},{"type":"null"}]}"#;
    let found = violations(schema, r#"{"a":1}"#);
    assert!(found[0].ends_with("change: at /a: 1 is less than the minimum of 3"), "{found:?}");
}

#[test]
fn a_long_choice_is_cut_and_not_left_out() {
    let schema = format!(r#"{{"enum":["{}","b"]}}"#, "a".repeat(250));
    assert_eq!(
        violations(&schema, r#""x""#),
        [format!(r#""x" is not one of "{} … (cut), and 1 more"#, "a".repeat(99))]
    );
}

#[test]
fn the_alternative_that_a_discriminator_chooses_is_explained() {
    // The other alternatives have fewer faults.
    let schema = r#"{"oneOf":[{"type":"null"},{"properties":{"kind":{"enum":["note","memo"]}}},{"type":"object","properties":
        {"kind":{"const":"point"},"x":{"type":"integer"},"y":{"type":"integer"}},"required":["x","y","z"]}]}"#;
    let found = violations(schema, r#"{"kind":"point","x":"1","y":"2"}"#);
    assert!(found[0].ends_with(r#"for the closest alternative, change: "z" is a required property"#), "{found:?}");
    // No alternative is chosen.
    let found = violations(schema, r#"{"kind":"pt","x":"1","y":"2"}"#);
    assert_eq!(found, [r#"at /kind: it is not one of "note", "memo", "point", which choose between alternatives"#]);
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
        // The estimate counts each way through the references, and the library checks each place once.
        assert_eq!(violations(twice, &nested(depth)), ["at /0: it does not fit any of the alternatives of `anyOf`"]);
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
    assert_eq!(violations(&alternatives, &string(1 << 20)), ["it does not fit any of the alternatives of `anyOf`"]);
    assert!(violations(&alternatives, &string(1 << 10))[0].contains("is not of type \"integer\""));
    let twice = r##"{"type":"array","items":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}}"##;
    let found = violations(twice, &format!("[[[[[[{}]]]]]]", string(1 << 20)));
    assert_eq!(found, ["at /0: it does not fit any of the alternatives of `anyOf`"]);
    let file = r#"{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"text":{"type":"string"},
        "mode":{"anyOf":[{"type":"null"},{"type":"integer"}]}}}"#;
    let text = format!(r#"{{"text":{}}}"#, string(1 << 20));
    assert_eq!(violations(file, &text), [r#""path" is a required property"#]);
}

#[test]
fn a_check_that_would_take_long_is_a_violation() {
    let all = |count: usize, schema: &str| format!(r#"{{"items":{{"allOf":[{}]}}}}"#, vec![schema; count].join(","));
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
fn only_the_work_that_is_done_counts() {
    // The estimate includes all alternatives, and the first one fits.
    let record = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"]}"#;
    let mut alternatives = vec![r#"{"type":"integer"}"#];
    alternatives.extend([record; 200]);
    let schema = format!(r#"{{"items":{{"anyOf":[{}]}}}}"#, alternatives.join(","));
    let value = many("1", 1 << 19);
    assert_eq!(violations(&schema, &value), Vec::<String>::new());
    let wrong = format!("[{},true]", &value[1..value.len() - 1]);
    let place = (1 << 19) / 2;
    assert_eq!(
        violations(&schema, &wrong),
        [format!("at /{place}: it does not fit any of the alternatives of `anyOf`")]
    );
    // A schema cannot use the keyword that charges.
    let own = format!(r#"{{"{}":[[0,0,0,0],[0,0,0,0],false]}}"#, charge::KEYWORD);
    assert_eq!(violations(&own, "1"), Vec::<String>::new());
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
    let item =
        r#"{"id":1,"name":"a name","date":"2026-01-01","tags":["a","b"],"state":"open","place":{"lat":1.5,"lon":2}}"#;
    for (schema, value) in [
        (records.as_str(), many(item, 1 << 20)),
        (r#"{"type":"array","items":{"type":"number","minimum":0,"maximum":9}}"#, many("1", 1 << 20)),
        (r#"{"type":"string","minLength":1,"maxLength":2000000}"#, format!("{:?}", "x".repeat(1 << 20))),
        (r#"{"type":"string","pattern":"^(?!\\s*$).+"}"#, format!("{:?}", "some words ".repeat(400))),
    ] {
        assert_eq!(violations(schema, &value), Vec::<String>::new(), "{}", crate::json::quoted(schema));
    }
}

/// The pattern for e-mail addresses of a widespread library. It looks ahead, so the engine matches it in steps.
const EMAIL: &str =
    r"^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$";

#[test]
fn a_megabyte_of_addresses_is_checked_to_its_end() {
    let addresses = format!(r#"{{"properties":{{"addresses":{{"items":{{"pattern":"{EMAIL}"}}}}}}}}"#);
    let list = |bad: usize| {
        let address = |n: usize| format!(r#""first.last{n:05}@mail.example.com""#);
        let one = |n| if n == bad { r#""first..last@example.com""#.to_owned() } else { address(n) };
        let list = (0..).map(one).take((1 << 20) / (address(0).len() + 1)).collect::<Vec<_>>();
        (list.len() - 1, format!(r#"{{"addresses":[{}]}}"#, list.join(",")))
    };
    let (last, all) = list(usize::MAX);
    assert_eq!(violations(&addresses, &all), Vec::<String>::new());
    let found = violations(&addresses, &list(last).1);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(&format!(r#"at /addresses/{last}: "first..last@example.com" does not"#)), "{found:?}");
    for bad in [last / 7, last / 2] {
        let found = violations(&addresses, &list(bad).1);
        assert!(found[0].starts_with(&format!("at /addresses/{bad}: ")), "{found:?}");
    }
    // `docs/limits.md` has these numbers.
    let shortest = |count| format!(r#"{{"addresses":[{}]}}"#, vec![r#""a@b.co""#; count].join(","));
    assert_eq!(violations(&addresses, &shortest(80_000)), Vec::<String>::new());
    assert_eq!(violations(&addresses, &shortest(100_000)), [format!("at /addresses: {COSTLY}")]);
}

#[test]
fn a_costly_pattern_costs_only_its_steps() {
    let contacts = format!(r#"{{"items":{{"properties":{{"email":{{"pattern":"{EMAIL}"}}}}}}}}"#);
    let contact = |n: usize| format!(r#"{{"email":"first.last{n}@mail.example.com"}}"#);
    let list = |bad: usize| {
        let one = |n| if n == bad { r#"{"email":"first..last@example.com"}"#.to_owned() } else { contact(n) };
        format!("[{}]", (0..4_000).map(one).collect::<Vec<_>>().join(","))
    };
    assert_eq!(violations(&contacts, &list(usize::MAX)), Vec::<String>::new());
    let found = violations(&contacts, &list(3_000));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(r#"at /3000/email: "first..last@example.com" does not match "^(?!"#), "{found:?}");
    // A match may take thousands of steps: here, some for each letter.
    let many_steps = r#"{"pattern":"^((?=a)a)*b$|^a+$"}"#;
    assert_eq!(violations(many_steps, &format!("{:?}", "a".repeat(1_000))), Vec::<String>::new());
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
    let unmatched = r#"its name takes too long to match with "^(a|a|aa)+(?!a)b$""#;
    let name = endless.trim_matches('"');
    assert_eq!(violations(names, &format!("{{{endless}:1}}")), [format!("at /{name}: {unmatched}")]);
    assert_eq!(
        violations(names, &format!("{{\"a/b\":[0,{{{endless}:1}}]}}")),
        [format!("at /a~1b/1/{name}: {unmatched}")]
    );
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
fn a_fault_in_the_only_alternative_has_its_place() {
    let person = r#"{"type":"object","properties":{"email":{"type":"string","pattern":"^[^@ ]+@[^@ ]+$"}}}"#;
    let list = format!(r#"{{"type":"array","items":{person}}}"#);
    let of_kind = |kind: &str, email: &str| {
        format!(r#"{{"properties":{{"kind":{{"enum":["{kind}"]}},"email":{{"type":"{email}"}}}},"required":["kind"]}}"#)
    };
    let (mail, call) = (of_kind("mail", "string"), of_kind("call", "integer"));
    let draft07 = r#""$schema":"http://json-schema.org/draft-07/schema#""#;
    for (of_c, more) in [
        (format!(r#"{{"anyOf":[{list},{{"type":"null"}}]}}"#), String::new()),
        (format!(r#"{{"oneOf":[{{"type":["null","string"]}},{list}]}}"#), String::new()),
        (
            r##"{"anyOf":[{"$ref":"#/$defs/list"},{"type":"null"}]}"##.to_owned(),
            format!(r#","$defs":{{"list":{list}}}"#),
        ),
        (r#"{"anyOf":[{"allOf":[LIST]},{"type":"null"}]}"#.replace("LIST", &list), String::new()),
        (
            r##"{"anyOf":[{"$ref":"#/definitions/list","type":"null"},{"type":"null"}]}"##.to_owned(),
            format!(r#",{draft07},"definitions":{{"list":{list}}}"#),
        ),
        (
            format!(r#"{{"anyOf":[{{"items":{{"oneOf":[{call},{mail}]}},"type":"array"}},{{"type":"null"}}]}}"#),
            String::new(),
        ),
    ] {
        let schema = format!(r#"{{"properties":{{"c":{of_c}}}{more}}}"#);
        let mut items = vec![r#"{"kind":"mail","email":"somebody@example.com"}"#; 10_000];
        let value = |items: &[&str]| format!(r#"{{"c":[{}]}}"#, items.join(","));
        assert_eq!(violations(&schema, &value(&items)), Vec::<String>::new(), "{schema}");
        items[500] = r#"{"kind":"mail","email":5}"#;
        assert_eq!(violations(&schema, &value(&items)), [r#"at /c/500/email: 5 is not of type "string""#], "{schema}");
    }
}

#[test]
fn a_fault_beside_a_large_value_has_its_place() {
    let schema = format!(
        r##"{{"properties":{{"items":{{"items":{{"oneOf":[{{"type":"null"}},{},{{"type":"string"}},{{"type":"object",
        "properties":{{"size":{{"anyOf":[{{"type":"integer"}},{{"$ref":"#/properties/items/items/oneOf/0"}}]}}}}}}]}}}}}}}}"##,
        vec![r#"{"type":"integer"}"#; 60].join(",")
    );
    let value = |item: &str| format!(r#"{{"items":["{}",{{"size":1}},{item}]}}"#, "x".repeat(1 << 20));
    let found = violations(&schema, &value(r#"{"size":"1"}"#));
    assert_eq!(found, ["at /items/2/size: it does not fit any of the alternatives of `anyOf`"]);
    assert_eq!(violations(&schema, &value(r#"{"size":null}"#)), Vec::<String>::new());
    // A value that is too large is named, and not the whole that contains it.
    let all = vec![r#"{"minimum":0}"#; 1000].join(",");
    let costly = format!(r#"{{"properties":{{"list":{{"items":{{"allOf":[{all}]}}}}}}}}"#);
    let value = format!(r#"{{"name":"a","list":{}}}"#, many("1", 1 << 20));
    assert_eq!(violations(&costly, &value), [format!("at /list: {COSTLY}")]);
}

#[test]
fn dependent_members_of_a_large_value_are_checked() {
    let integers = vec![r#"{"type":"integer"}"#; 100].join(",");
    let schema = format!(
        r#"{{"properties":{{"text":{{"anyOf":[{integers},{{"type":"string"}}]}}}},"dependentRequired":{{"a":["b"]}}}}"#
    );
    let value = |more: &str| format!(r#"{{"text":"{}"{more}}}"#, "x".repeat(1 << 20));
    assert_eq!(violations(&schema, &value(r#","a":1"#)), [r#""b" is a required property"#]);
    assert_eq!(violations(&schema, &value(r#","a":1,"b":1"#)), Vec::<String>::new());
}

#[test]
fn faults_beside_unevaluated_members_have_their_place() {
    let kind = |name: &str| format!(r#"{{"properties":{{"{name}":{{"type":"integer"}}}},"required":["{name}"]}}"#);
    let schema = |more: &str| {
        format!(
            r#"{{"anyOf":[{},{}],"properties":{{"text":{{"type":"string"}},"n":{{"minimum":1}}}}{more},"unevaluatedProperties":false}}"#,
            kind("a"),
            kind("b")
        )
    };
    let value = |more: &str| format!(r#"{{"text":"{}"{more}}}"#, "x".repeat(1 << 20));
    let not = r#","not":{"properties":{"n":{"unevaluatedItems":false}},"required":["n"]}"#;
    for (keywords, more, expected) in [
        ("", r#","a":1"#, None),
        ("", r#","a":1,"n":0"#, Some("at /n: 0 is less than the minimum of 1")),
        ("", r#","n":1"#, Some("it does not fit any of the alternatives of `anyOf`")),
        ("", r#","a":1,"other":1"#, Some("at /other: it does not fit the keyword `unevaluatedProperties`")),
        (not, r#","a":1"#, None),
        (not, r#","a":1,"n":1"#, Some("at /n: it does not fit one of the keywords `not`, `unevaluatedProperties`")),
    ] {
        let found = violations(&schema(keywords), &value(more));
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{keywords} {more}");
    }
}

#[test]
fn a_pattern_too_large_for_the_engine_is_refused() {
    assert!(compile(&serde_json::json!({"pattern": "((a{1,1000}){1,1000}){1,1000}"})).is_err());
}
