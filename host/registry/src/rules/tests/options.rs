//! A table of the rules about options. Each row is a line with a tool and its options, then an indented line for every
//! finding. A tool has the arguments `a` and `b`. `gated` is a server tool that requires approval. `patient` is one
//! that a timeout may approve.

use serde_json::{Value, json};

use super::about;

/// Compares the findings of every row with the expected ones.
fn check(table: &str) {
    let mut lines = table.lines().filter(|line| !line.is_empty()).peekable();
    let mut rows = 0;
    while let Some(row) = lines.next() {
        let (whose, options) = row.split_once(' ').expect("whose options, and the options");
        let mut expected = Vec::new();
        while let Some(finding) = lines.next_if(|line| line.starts_with(' ')) {
            expected.push(finding.trim_start());
        }
        assert_eq!(about(&tool(whose, options.trim_start())), expected, "{row}");
        rows += 1;
    }
    assert!(rows > 0, "a table without rows");
}

fn tool(whose: &str, options: &str) -> Value {
    match whose {
        "gated" => json!({"gated": true, "options": options}),
        "patient" => json!({"name": "patient", "gated": true, "options": options}),
        executor => json!({"executor": executor, "options": options}),
    }
}

#[test]
fn options_that_are_fine() {
    check(
        r##"
patient  {"title": "Pay", "result": {"type": "string"}, "timeout_ms": 1, "expires_ms": 31536000000, "on_expiry": "approve"}
patient  {"prompt": "Pay {a} to {/b/0}? {{ }}", "editable": ["a", "b"], "recovery": "ask"}
server   {"retention": {"max_age_turns": 1, "max_count": 2, "max_age_days": 3}, "timeout_ms": 86400000}
server   {"hints": {"read_only": true, "destructive": false, "idempotent": true, "open_world": true}}
human    {"responses": ["send", "leave it"], "response": {"type": "boolean"}, "on_expiry": {"answer": true}}
human    {"on_expiry": {"answer": null}, "retention": {"never_evict": true, "max_age_days": 1}}
client   {"result": true, "expires_ms": 1}
provider {"result": {"type": "array", "items": {"$ref": "#"}}, "title": "Search"}
gated    {"on_expiry": "deny", "editable": "all"}
gated    {"on_expiry": "error", "editable": "none"}
gated    {"risk": "critical", "context_keys": ["page", "user"]}
human    {"risk": "low", "context_keys": []}
client   {"context_keys": ["page"]}
server   {"risk": "medium"}
server   {"durable": true, "expires_ms": 1, "context_keys": []}
gated    {"durable": true}
server   {"durable": false}
provider {"risk": "high"}
"##,
    );
}

#[test]
fn options_that_are_not_one_object() {
    check(
        r#"
server nothing
    options-form: the options are not JSON: no JSON value begins like this at line 1 column 1; write a JSON object; `{}` says nothing
server []
    options-form: the options are not a JSON object; write a JSON object; `{}` says nothing
server {"title": "a", "hints": {"read_only": true, "read_only": false}, "title": "b"}
    options-form: the options have the member "/hints/read_only" twice; remove one of the two
    options-form: the options have the member "/title" twice; remove one of the two
"#,
    );
    let long = json!({"title": "x".repeat(200_000)}).to_string();
    let expected = "options-form: the options have 200012 bytes; the maximum is 196608 (limit `catalog.options_bytes`); shorten the options";
    assert_eq!(about(&tool("server", &long)), [expected]);
}

#[test]
fn options_that_do_not_exist() {
    check(
        r#"
server {"timeout": 5}
    option-unknown: there is no option "timeout"; remove it, or write `timeout_ms` if that is what you mean
server {"colour": 5}
    option-unknown: there is no option "colour"; remove it; there are title, result, timeout_ms, expires_ms, on_expiry, prompt, responses, response, editable, risk, context_keys, durable, recovery, retention, hints
server {"hints": {"readonly": true}}
    option-unknown: there is no member of the option `hints` called "readonly"; remove it, or write `read_only` if that is what you mean
server {"retention": {"turns": 1}}
    option-unknown: there is no member of the option `retention` called "turns"; remove it; there are max_age_turns, max_count, never_evict, max_age_days
"#,
    );
}

#[test]
fn values_of_another_form() {
    check(
        r#"
server {"title": ""}
    option-form: the option `title` is ""; write a string of 1 to 128 characters on one line
server {"title": "a\nb"}
    option-form: the option `title` is "a\nb"; write a string of 1 to 128 characters on one line
server {"result": "string"}
    option-form: the option `result` is "string"; write a JSON Schema
server {"result": {"type": "strin"}}
    schema-invalid: the option `result` is not a schema at /type: "strin" is not valid under any of the schemas listed in the 'anyOf' keyword; write a JSON Schema of draft 2020-12
human {"response": {"$ref": "https://example.com"}}
    schema-remote: the option `response` refers at "/$ref" to "https://example.com", outside of itself; put what it refers to under `$defs` and refer to it as `#/$defs/NAME`
server {"timeout_ms": 0}
    option-form: the option `timeout_ms` is 0; write an integer from 1 to 86400000
server {"timeout_ms": 86400001}
    option-form: the option `timeout_ms` is 86400001; write an integer from 1 to 86400000
gated {"expires_ms": 1.5}
    option-form: the option `expires_ms` is 1.5; write an integer from 1 to 31536000000
gated {"on_expiry": "ok"}
    option-form: the option `on_expiry` is "ok"; write "error", "deny", "approve" or {"answer": value}
gated {"on_expiry": {"value": 1}}
    option-form: the option `on_expiry` is an object of another form; write "error", "deny", "approve" or {"answer": value}
gated {"prompt": ""}
    option-form: the option `prompt` is ""; write a template of 1 to 4096 bytes
human {"responses": []}
    option-form: the option `responses` is an array of another form; write an array of 1 to 16 distinct strings of 1 to 64 characters, none of them open, expired or withdrawn
human {"responses": ["yes", 1]}
    option-form: the option `responses` is an array of another form; write an array of 1 to 16 distinct strings of 1 to 64 characters, none of them open, expired or withdrawn
human {"responses": ["yes", "yes"]}
    option-form: the option `responses` is an array of another form; write an array of 1 to 16 distinct strings of 1 to 64 characters, none of them open, expired or withdrawn
human {"responses": [""]}
    option-form: the option `responses` is an array of another form; write an array of 1 to 16 distinct strings of 1 to 64 characters, none of them open, expired or withdrawn
gated {"editable": []}
    option-form: the option `editable` is an array of another form; write "none", "all" or a non-empty array of distinct argument names
gated {"editable": ["a", "a"]}
    option-form: the option `editable` is an array of another form; write "none", "all" or a non-empty array of distinct argument names
server {"durable": "yes"}
    option-form: the option `durable` is "yes"; write true or false
server {"recovery": "never"}
    option-form: the option `recovery` is "never"; write "retry", "ask" or "fail"
server {"risk": "none"}
    option-form: the option `risk` is "none"; write "low", "medium", "high" or "critical"
server {"risk": 3}
    option-form: the option `risk` is 3; write "low", "medium", "high" or "critical"
gated {"context_keys": "page"}
    option-form: the option `context_keys` is "page"; write an array of at most 64 distinct strings of 1 to 128 characters
gated {"context_keys": ["page", "page"]}
    option-form: the option `context_keys` is an array of another form; write an array of at most 64 distinct strings of 1 to 128 characters
gated {"context_keys": ["page", ""]}
    option-form: the option `context_keys` is an array of another form; write an array of at most 64 distinct strings of 1 to 128 characters
human {"context_keys": ["page", 1]}
    option-form: the option `context_keys` is an array of another form; write an array of at most 64 distinct strings of 1 to 128 characters
server {"retention": {}}
    option-form: the option `retention` is an object of another form; write {"never_evict": true}, or one or more of `max_age_turns`, `max_count` and `max_age_days`
server {"retention": {"max_count": 0, "never_evict": false}}
    option-form: `max_count` in the option `retention` is 0; write an integer from 1 to 4294967295
    option-form: `never_evict` in the option `retention` is false; write `true`, or leave it out
    option-contradiction: the option `retention` keeps results forever and bounds them as well; keep `never_evict` or the bounds, not both
server {"hints": {"read_only": "yes"}}
    option-form: `read_only` in the option `hints` is "yes"; write true or false
server {"hints": []}
    option-form: the option `hints` is an array of another form; write an object
"#,
    );
}

#[test]
fn options_that_say_nothing_about_the_tool() {
    check(
        r#"
human {"result": {}}
    option-scope: the option `result` does not apply to a human tool; remove it; it applies only to server, client and provider tools
client {"timeout_ms": 1}
    option-scope: the option `timeout_ms` does not apply to a client tool; remove it; it applies only to server tools
client {"durable": true}
    option-scope: the option `durable` does not apply to a client tool; remove it; it applies only to server tools
server {"durable": false, "context_keys": []}
    option-scope: the option `context_keys` does not apply to a server tool; remove it; it applies only to human, client and durable tools and tools that require approval
human {"recovery": "ask"}
    option-scope: the option `recovery` does not apply to a human tool; remove it; it applies only to server tools
server {"expires_ms": 1}
    option-scope: the option `expires_ms` does not apply to a server tool; remove it; it applies only to human, client and durable tools and tools that require approval
provider {"prompt": "x"}
    option-scope: the option `prompt` does not apply to a provider tool; remove it; it applies only to human tools and tools that require approval
client {"prompt": "x"}
    option-scope: the option `prompt` does not apply to a client tool; remove it; it applies only to human tools and tools that require approval
client {"on_expiry": "deny"}
    option-scope: the option `on_expiry` does not apply to a client tool; remove it; it applies only to human tools and tools that require approval
gated {"responses": ["yes"], "response": {}}
    option-scope: the option `responses` does not apply to a server tool that requires approval; remove it; it applies only to human tools
    option-scope: the option `response` does not apply to a server tool that requires approval; remove it; it applies only to human tools
server {"editable": "all"}
    option-scope: the option `editable` does not apply to a server tool; remove it; it applies only to tools that require approval
server {"context_keys": ["page"]}
    option-scope: the option `context_keys` does not apply to a server tool; remove it; it applies only to human, client and durable tools and tools that require approval
provider {"context_keys": ["page"]}
    option-scope: the option `context_keys` does not apply to a provider tool; remove it; it applies only to human, client and durable tools and tools that require approval
"#,
    );
}

#[test]
fn options_that_contradict() {
    check(
        r#"
gated {"editable": ["a", "c"]}
    option-contradiction: the option `editable` names the argument "c", which `parameters` does not list; correct the name, or list it under `properties`
gated {"prompt": "{c} {/d/0}"}
    prompt: the option `prompt` names the argument "c", which `parameters` does not list; correct the name, or list it under `properties`
    prompt: the option `prompt` names the argument "d", which `parameters` does not list; correct the name, or list it under `properties`
gated {"prompt": "pay }"}
    prompt: the option `prompt` is not a template: a brace at byte 4 has no partner; write {{ or }} for a brace in the text; write `{name}` or `{/json/pointer}` for an argument, `{{` and `}}` for braces
human {"on_expiry": "deny"}
    option-contradiction: the option `on_expiry` is "deny", and there is no approval that could expire; write "error", or {"answer": value} with the answer to assume
human {"on_expiry": "approve"}
    option-contradiction: the option `on_expiry` is "approve", and there is no approval that could expire; write "error", or {"answer": value} with the answer to assume
gated {"on_expiry": {"answer": 1}}
    option-contradiction: the option `on_expiry` answers a question, and the tool asks none; write "error", "deny" or "approve"
human {"on_expiry": {"answer": 1}, "response": {"type": "string"}}
    option-contradiction: the answer in `on_expiry` does not fit `response`: 1; write an answer that a person could give
gated {"on_expiry": "approve"}
    approve-on-expiry: the option `on_expiry` approves calls that nobody answered, and the operator does not allow that; write "error" or "deny", or name the tool under `approve_on_expiry` in the host's configuration
server {"retention": {"never_evict": true, "max_count": 1}}
    option-contradiction: the option `retention` keeps results forever and bounds them as well; keep `never_evict` or the bounds, not both
server {"hints": {"read_only": true, "destructive": true}}
    option-contradiction: the option `hints` says that the tool changes nothing and that it destroys; let `read_only` or `destructive` be false
"#,
    );
}

#[test]
fn a_tool_names_only_so_many_members_of_the_context() {
    let keys = |count: usize, length: usize| -> Vec<String> {
        (0..count).map(|number| format!("{number:0>length$}")).collect()
    };
    let about = |keys: Vec<String>| about(&tool("human", &json!({"context_keys": keys}).to_string())).len();
    assert_eq!((about(keys(64, 128)), about(keys(65, 3)), about(keys(1, 129))), (0, 1, 1));
}
