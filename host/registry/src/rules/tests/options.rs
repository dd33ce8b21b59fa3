//! The rules about options: one row for each key's form, its scope, and each contradiction.

use serde_json::{Value, json};

use super::check;

/// A gated server tool with these options.
fn gated(options: Value) -> Value {
    json!({"gated": true, "options": options})
}

/// A tool of this executor that is not gated, with these options.
fn plain(executor: &str, options: Value) -> Value {
    json!({"executor": executor, "options": options})
}

#[test]
fn options_that_are_fine() {
    let every = json!({"name": "patient", "gated": true, "options": {
        "title": "Pay", "result": {"type": "string"}, "timeout_ms": 1, "expires_ms": 31_536_000_000_u64,
        "on_expiry": "approve", "prompt": "Pay {a} to {/b/0}? {{ }}", "editable": ["a", "b"], "recovery": "ask",
        "retention": {"max_age_turns": 1, "max_count": 2},
        "hints": {"read_only": true, "destructive": false, "idempotent": true, "open_world": true},
    }});
    check(&[
        (every, &[]),
        (
            plain(
                "human",
                json!({"responses": ["send", "leave it"], "response": {"type": "boolean"}, "on_expiry": {"answer": true}}),
            ),
            &[],
        ),
        (plain("human", json!({"on_expiry": {"answer": null}, "retention": {"never_evict": true}})), &[]),
        (plain("client", json!({"result": true, "expires_ms": 1, "prompt": "{a}"})), &[]),
        (gated(json!({"on_expiry": "deny", "editable": "all"})), &[]),
        (gated(json!({"on_expiry": "error", "editable": "none"})), &[]),
    ]);
}

#[test]
fn options_that_are_not_one_object() {
    let remedy = "write a JSON object; `{}` says nothing";
    check(&[
        (
            json!({"options": "nothing"}),
            &[&format!("options-form: the options are not JSON: expected ident at line 1 column 2; {remedy}")],
        ),
        (json!({"options": []}), &[&format!("options-form: the options are not a JSON object; {remedy}")]),
        (
            json!({"options": "{\"title\":\"a\",\"title\":\"b\"}"}),
            &["options-form: the options have the member \"/title\" twice; remove one of the two"],
        ),
        (
            json!({"options": format!("{{\"title\":\"{}\"}}", "x".repeat(200_000))}),
            &["options-form: the options have 200012 bytes, at most 196608 are taken; say less"],
        ),
    ]);
}

#[test]
fn options_that_do_not_exist() {
    check(&[
        (
            json!({"options": {"timeout": 5}}),
            &[
                "option-unknown: there is no option \"timeout\"; remove it, or write `timeout_ms` if that is what you mean",
            ],
        ),
        (
            json!({"options": {"colour": 5}}),
            &[
                "option-unknown: there is no option \"colour\"; remove it; there are title, result, timeout_ms, expires_ms, on_expiry, prompt, responses, response, editable, recovery, retention, hints",
            ],
        ),
        (
            json!({"options": {"hints": {"readonly": true}}}),
            &[
                "option-unknown: there is no member of the option `hints` called \"readonly\"; remove it, or write `read_only` if that is what you mean",
            ],
        ),
        (
            json!({"options": {"retention": {"turns": 1}}}),
            &[
                "option-unknown: there is no member of the option `retention` called \"turns\"; remove it; there are max_age_turns, max_count, never_evict",
            ],
        ),
    ]);
}

#[test]
fn values_of_another_form() {
    let answer = "write an array of 1 to 16 distinct strings of 1 to 64 characters";
    check(&[
        (
            json!({"options": {"title": ""}}),
            &["option-form: the option `title` is \"\"; write a string of 1 to 128 characters on one line"],
        ),
        (
            json!({"options": {"title": "a\nb"}}),
            &["option-form: the option `title` is \"a\\nb\"; write a string of 1 to 128 characters on one line"],
        ),
        (
            json!({"options": {"result": "string"}}),
            &["option-form: the option `result` is \"string\"; write a JSON Schema"],
        ),
        (
            json!({"options": {"result": {"type": "strin"}}}),
            &[
                "schema-invalid: the option `result` is not a schema at /type: \"strin\" is not valid under any of the schemas listed in the 'anyOf' keyword; write a JSON Schema of draft 2020-12",
            ],
        ),
        (
            plain("human", json!({"response": {"$ref": "https://example.com"}})),
            &[
                "schema-remote: the option `response` refers at \"/$ref\" to \"https://example.com\", outside of itself; put what it refers to under `$defs` and refer to it as `#/$defs/NAME`",
            ],
        ),
        (
            json!({"options": {"timeout_ms": 0}}),
            &["option-form: the option `timeout_ms` is 0; write an integer from 1 to 86400000"],
        ),
        (
            json!({"options": {"timeout_ms": 86_400_001}}),
            &["option-form: the option `timeout_ms` is 86400001; write an integer from 1 to 86400000"],
        ),
        (
            gated(json!({"expires_ms": 1.5})),
            &["option-form: the option `expires_ms` is 1.5; write an integer from 1 to 31536000000"],
        ),
        (
            gated(json!({"on_expiry": "ok"})),
            &[
                "option-form: the option `on_expiry` is \"ok\"; write \"error\", \"deny\", \"approve\" or {\"answer\": value}",
            ],
        ),
        (
            gated(json!({"on_expiry": {"value": 1}})),
            &[
                "option-form: the option `on_expiry` is an object of another form; write \"error\", \"deny\", \"approve\" or {\"answer\": value}",
            ],
        ),
        (
            gated(json!({"prompt": ""})),
            &["option-form: the option `prompt` is \"\"; write a template of 1 to 4096 bytes"],
        ),
        (
            plain("human", json!({"responses": []})),
            &[&format!("option-form: the option `responses` is an array of another form; {answer}")],
        ),
        (
            plain("human", json!({"responses": ["yes", 1]})),
            &[&format!("option-form: the option `responses` is an array of another form; {answer}")],
        ),
        (
            plain("human", json!({"responses": [""]})),
            &[&format!("option-form: the option `responses` is an array of another form; {answer}")],
        ),
        (
            plain("human", json!({"responses": ["answer", "answer"]})),
            &[&format!("option-form: the option `responses` is an array of another form; {answer}")],
        ),
        (
            gated(json!({"editable": []})),
            &[
                "option-form: the option `editable` is an array of another form; write \"none\", \"all\" or a non-empty array of distinct argument names",
            ],
        ),
        (
            gated(json!({"editable": ["a", "a"]})),
            &[
                "option-form: the option `editable` is an array of another form; write \"none\", \"all\" or a non-empty array of distinct argument names",
            ],
        ),
        (
            json!({"options": {"recovery": "never"}}),
            &["option-form: the option `recovery` is \"never\"; write \"retry\", \"ask\" or \"fail\""],
        ),
        (
            json!({"options": {"retention": {}}}),
            &[
                "option-form: the option `retention` is an object of another form; write {\"never_evict\": true}, or one or both of `max_age_turns` and `max_count`",
            ],
        ),
        (
            json!({"options": {"retention": {"max_count": 0}}}),
            &["option-form: `max_count` in the option `retention` is 0; write an integer from 1 to 4294967295"],
        ),
        (
            json!({"options": {"retention": {"never_evict": false}}}),
            &["option-form: `never_evict` in the option `retention` is false; write `true`, or leave it away"],
        ),
        (
            json!({"options": {"hints": {"read_only": "yes"}}}),
            &["option-form: `read_only` in the option `hints` is \"yes\"; write true or false"],
        ),
        (
            json!({"options": {"hints": []}}),
            &["option-form: the option `hints` is an array of another form; write an object"],
        ),
    ]);
}

#[test]
fn options_that_say_nothing_about_the_tool() {
    let remove = |scope: &str| format!("remove it: it is for {scope}");
    let waits = remove("human and client tools and tools that require approval");
    check(&[
        (
            plain("human", json!({"result": {}})),
            &[&format!(
                "option-scope: the option `result` says nothing about a human tool; {}",
                remove("server, client and provider tools")
            )],
        ),
        (
            plain("client", json!({"timeout_ms": 1})),
            &[&format!(
                "option-scope: the option `timeout_ms` says nothing about a client tool; {}",
                remove("server tools")
            )],
        ),
        (
            plain("human", json!({"recovery": "ask"})),
            &[&format!(
                "option-scope: the option `recovery` says nothing about a human tool; {}",
                remove("server tools")
            )],
        ),
        (
            plain("server", json!({"expires_ms": 1})),
            &[&format!("option-scope: the option `expires_ms` says nothing about a server tool; {waits}")],
        ),
        (
            plain("provider", json!({"prompt": "x"})),
            &[&format!("option-scope: the option `prompt` says nothing about a provider tool; {waits}")],
        ),
        (
            plain("client", json!({"on_expiry": "deny"})),
            &[&format!(
                "option-scope: the option `on_expiry` says nothing about a client tool; {}",
                remove("human tools and tools that require approval")
            )],
        ),
        (
            gated(json!({"responses": ["answer"]})),
            &[&format!(
                "option-scope: the option `responses` says nothing about a server tool that requires approval; {}",
                remove("human tools")
            )],
        ),
        (
            gated(json!({"response": {}})),
            &[&format!(
                "option-scope: the option `response` says nothing about a server tool that requires approval; {}",
                remove("human tools")
            )],
        ),
        (
            plain("server", json!({"editable": "all"})),
            &[&format!(
                "option-scope: the option `editable` says nothing about a server tool; {}",
                remove("tools that require approval")
            )],
        ),
    ]);
}

#[test]
fn options_that_contradict() {
    let unlisted = "which `parameters` does not list; correct the name, or list it under `properties`";
    check(&[
        (
            gated(json!({"editable": ["a", "c"]})),
            &[&format!("option-contradiction: the option `editable` names the argument \"c\", {unlisted}")],
        ),
        (
            gated(json!({"prompt": "{c} {/d/0}"})),
            &[
                &format!("prompt: the option `prompt` names the argument \"c\", {unlisted}"),
                &format!("prompt: the option `prompt` names the argument \"d\", {unlisted}"),
            ],
        ),
        (
            gated(json!({"prompt": "pay }"})),
            &[
                "prompt: the option `prompt` is not a template: a brace at byte 4 has no partner; write {{ or }} for a brace in the text; write `{name}` or `{/json/pointer}` for an argument, `{{` and `}}` for braces",
            ],
        ),
        (
            plain("human", json!({"on_expiry": "deny"})),
            &[
                "option-contradiction: the option `on_expiry` is \"deny\", and there is no approval that could expire; write \"error\", or {\"answer\": value} with what is then taken as the answer",
            ],
        ),
        (
            plain("human", json!({"on_expiry": "approve"})),
            &[
                "option-contradiction: the option `on_expiry` is \"approve\", and there is no approval that could expire; write \"error\", or {\"answer\": value} with what is then taken as the answer",
            ],
        ),
        (
            gated(json!({"on_expiry": {"answer": 1}})),
            &[
                "option-contradiction: the option `on_expiry` answers a question, and the tool asks none; write \"error\", \"deny\" or \"approve\"",
            ],
        ),
        (
            plain("human", json!({"on_expiry": {"answer": 1}, "response": {"type": "string"}})),
            &[
                "option-contradiction: the answer in `on_expiry` does not fit `response`: \"1 is not of type \\\"string\\\"\"; write an answer that a person could give",
            ],
        ),
        (
            gated(json!({"on_expiry": "approve"})),
            &[
                "approve-on-expiry: the option `on_expiry` approves calls that nobody answered, and the operator does not allow that; write \"error\" or \"deny\", or name the tool under `approve_on_expiry` in the host's configuration",
            ],
        ),
        (
            json!({"options": {"retention": {"never_evict": true, "max_count": 1}}}),
            &[
                "option-contradiction: the option `retention` keeps results for ever and bounds them as well; keep `never_evict` or the bounds, not both",
            ],
        ),
        (
            json!({"options": {"hints": {"read_only": true, "destructive": true}}}),
            &[
                "option-contradiction: the option `hints` says that the tool changes nothing and that it destroys; let `read_only` or `destructive` be false",
            ],
        ),
    ]);
}
