//! Calls' JSON is checked and parsed in one place: `domain::json`. The files here read something else, or scan a checked text
//! once more. `RawValue` writes a text as it is, and without `unsafe` only a scan makes one.

use super::{files, report};

/// The crates on the way of a call.
const CRATES: [&str; 11] =
    ["api", "capabilities", "cli", "dispatch", "mcp", "policy", "registry", "sandbox", "server", "toolgate", "webhook"];

/// The calls of other parsers.
const PARSERS: [&str; 4] =
    ["serde_json::Deserializer", "serde_json::from_reader", "serde_json::from_slice", "serde_json::from_str"];

/// Files that use another parser, and what they read with it.
const OTHERS: [(&str, &str); 22] = [
    ("host/api/src/json.rs", "the frame of a checked text; values in it stay texts"),
    ("host/api/src/verbatim.rs", "scans a value when it is written: invalid text would break the body around it"),
    ("host/capabilities/src/config.rs", "the journal of a call: values of the operator"),
    ("host/capabilities/src/http/whole.rs", "the journal of a call: the host's own form of an answer"),
    ("host/capabilities/src/keyvalue/recorded.rs", "the journal of a call: the host's own form of a result"),
    ("host/cli/src/card/arguments.rs", "the members of two values, to show the differences"),
    ("host/cli/src/client.rs", "what a host answers"),
    ("host/cli/src/commands/dev/calls.rs", "a result, to compare it with an example"),
    ("host/cli/src/commands/events.rs", "events that a host sends"),
    ("host/cli/src/commands/hook.rs", "the request of an agent, whose input stays a text"),
    ("host/cli/src/commands/mcp/install.rs", "the configuration of a client"),
    ("host/cli/src/commands/mcp/relay.rs", "the frame of a message, which the host checks"),
    ("host/cli/src/commands/submit.rs", "the frame of a body; values in it stay texts"),
    ("host/mcp/src/frame.rs", "the frame of a checked text; values in it stay texts"),
    ("host/mcp/src/lines.rs", "a checked message, for rmcp"),
    ("host/mcp/src/results.rs", "objects in the form of rmcp, for what it writes"),
    ("host/registry/src/components/record.rs", "the host's own file"),
    ("host/registry/src/declaration.rs", "a packed declaration"),
    ("host/registry/src/rules/options.rs", "cuts the texts of schemas out of a declaration"),
    ("host/toolgate/src/checkpoint.rs", "a checkpoint, whose signature is checked first"),
    ("host/toolgate/src/tokens/file.rs", "the host's own file"),
    ("host/webhook/src/message.rs", "scans arguments when a message is written"),
];

#[test]
fn calls_are_parsed_in_one_place() {
    let is_on_the_way = |path: &str| {
        let inside = CRATES.iter().any(|name| path.starts_with(&format!("host/{name}/src/")));
        inside && !path.contains("/tests") && !path.ends_with("/testing.rs")
    };
    let mut findings = Vec::new();
    for (path, text) in files("rs").filter(|(path, _)| is_on_the_way(path)) {
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        let parses = PARSERS.iter().any(|parser| product.contains(parser));
        let is_known = OTHERS.iter().any(|(known, _)| *known == path);
        match (parses, is_known) {
            (true, false) => findings.push(format!("{path}: use `Json::value`, or say here what else it reads")),
            (false, true) => findings.push(format!("{path}: it parses nothing; take it out of the list")),
            _ => {}
        }
    }
    report("only `domain::json` checks and parses the JSON of a call", findings);
}
