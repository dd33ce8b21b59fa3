//! A table of every rule about declarations: a declaration, and its exact findings.

use domain::{approvers::Need, gate::RuleEffect, principal::Channels};
use policy::OperatorRule;
use serde_json::{Value, json};

use super::Subject;
use crate::finding::Findings;
use crate::testing::{declared, plugin, rules};
use crate::{Finding, RegistrySettings};

mod options;
mod schemas;

/// The settings of these tests: a timeout may approve one tool, and two patterns gate.
fn settings() -> RegistrySettings {
    let mut settings = RegistrySettings::new("unused");
    settings.approve_on_expiry.insert(domain::ToolName::new("patient").expect("a name"));
    let rules = rules(&[("strict_*", RuleEffect::Ask), ("denied_*", RuleEffect::Deny)]);
    // Where a tool requires approval by itself, two must approve. These rules do not ask for an approval themselves.
    let two = |(n, tools): (usize, &str)| OperatorRule {
        place: Some(format!("toolgate.toml:{n}:1").into()),
        needs: vec![Need { who: [].into(), quorum: 2, escalate: None, via: Channels::ANY }],
        ..OperatorRule::new(&format!("two-{n}"), policy::Pattern::new(tools).expect("a pattern"), RuleEffect::Allow)
    };
    let two = ["panel", "jury*"].into_iter().enumerate().map(two);
    settings.rules = policy::OperatorRules::new(rules.iter().cloned().chain(two).collect());
    settings
}

fn findings(tools: &[Value], has_server: bool) -> Vec<Finding> {
    let declared: Vec<_> = tools.iter().map(declared).collect();
    let name = plugin("checked");
    let component = domain::Digest::of("bytes");
    let settings = settings();
    let subject = Subject { plugin: &name, component, has_server, declared: &declared, limits: &settings.catalog };
    let owner = |tool: &str| (tool == "taken").then(|| plugin("other"));
    let mut findings = Findings::default();
    super::check(&subject, &settings, &owner, &mut findings);
    findings.into_vec()
}

/// The findings about one tool, each as `id: what is wrong; what to change`.
fn about(tool: &Value) -> Vec<String> {
    findings(std::slice::from_ref(tool), true)
        .iter()
        .map(|finding| format!("{}: {}; {}", finding.rule.as_str(), finding.message, finding.remedy))
        .collect()
}

/// Compares the findings of each row's tool with the expected ones.
fn check(rows: &[(Value, &[&str])]) {
    for (tool, expected) in rows {
        assert_eq!(about(tool), *expected, "{tool}");
    }
}

#[test]
fn a_legal_tool_of_every_cell_has_no_finding() {
    check(&[
        (json!({}), &[]),
        (json!({"gated": true, "streaming": true}), &[]),
        (json!({"executor": "client", "streaming": true}), &[]),
        (json!({"executor": "client", "gated": true}), &[]),
        (json!({"executor": "human"}), &[]),
        (json!({"executor": "provider"}), &[]),
        (json!({"name": "denied_question", "executor": "human"}), &[]),
        (json!({"name": "strict_pay"}), &[]),
        (json!({"name": "panel", "gated": true}), &[]),
        (json!({"name": "panel"}), &[]),
        (json!({"name": "jury", "executor": "human"}), &[]),
    ]);
}

#[test]
fn rules_about_the_tool_itself() {
    let long = "x".repeat(9000);
    check(&[
        (
            json!({"executor": "human", "gated": true}),
            &["gated-human: a human tool cannot be requires-approval: approving a question is circular; declare its \
               approval `auto`, and let people decline with one of its `responses`"],
        ),
        (
            json!({"executor": "provider", "gated": true}),
            &[
                "gated-provider: a provider tool cannot be requires-approval: the provider executes inside its own stream, \
               so there is no moment before execution to stop at; declare its approval `auto`, or make it a server or \
               client tool, which the host can stop",
            ],
        ),
        (
            json!({"name": "no spaces"}),
            &["tool-name: a tool's name must be 1 to 64 of the characters a-z A-Z 0-9 _ -; rename the tool"],
        ),
        (
            json!({"name": "taken"}),
            &[
                "tool-name-taken: the live plugin other has a tool of this name; rename the tool, or unload that plugin \
               first",
            ],
        ),
        (
            json!({"description": " \n"}),
            &["description: the description is empty; say what the tool does and when to use it"],
        ),
        (
            json!({"description": long}),
            &[
                "description: the description has 9000 bytes; the maximum is 8192 (limit `catalog.description_bytes`); shorten it: every model reads it at \
               every turn",
            ],
        ),
        (
            json!({"executor": "human", "streaming": true}),
            &["streaming: a human tool reports no progress and cannot be streaming; declare it without `streaming`"],
        ),
        (
            json!({"executor": "provider", "streaming": true}),
            &["streaming: a provider tool reports no progress and cannot be streaming; declare it without `streaming`"],
        ),
    ]);
}

#[test]
fn rules_of_the_operator_about_what_cannot_be_gated() {
    check(&[
        (
            json!({"name": "strict_question", "executor": "human"}),
            &[
                "policy-human: the operator's rule rule-0, for `strict_*`, asks for an approval, and a human tool cannot be \
               requires-approval: approving a question is circular; narrow the rule in the configuration, or deny the tool \
               with it",
            ],
        ),
        (
            json!({"name": "panel", "executor": "human"}),
            &[
                "policy-human: the operator's rule two-0 (toolgate.toml:0:1), for `panel`, requires several approvers (`quorum`), \
               and the first answer to a question is its result; remove `quorum` from the rule, or name another tool",
            ],
        ),
        (
            json!({"name": "panel", "executor": "provider"}),
            &[
                "policy-provider: the operator's rule two-0 (toolgate.toml:0:1), for `panel`, requires several approvers \
               (`quorum`), and calls of provider tools are never approved; remove `quorum` from the rule, or name another \
               tool",
            ],
        ),
        (
            json!({"name": "strict_search", "executor": "provider"}),
            &[
                "policy-provider: the operator's rule rule-0, for `strict_*`, asks for an approval, and a provider tool cannot be \
               requires-approval: the provider executes inside its own stream, so there is no moment before execution to \
               stop at; narrow the rule in the configuration, or deny the tool with it",
            ],
        ),
    ]);
}

#[test]
fn rules_about_the_plugin_as_a_whole() {
    let texts = |tools: &[Value], has_server| -> Vec<String> {
        findings(tools, has_server).iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        texts(&[json!({"name": "run"}), json!({"name": "ask", "executor": "human"})], false),
        [
            "tool run: a server tool needs a function to run, and the component does not export `server`; build against the \
          world `plugin`, or choose the executor that carries it out"
        ]
    );
    assert_eq!(
        texts(&[json!({"name": "a"}), json!({"name": "a"})], true),
        ["tool a: the plugin has two tools of this name; rename one of them"]
    );
    let many: Vec<Value> = (0..300).map(|n| json!({"name": format!("t{n}")})).collect();
    assert_eq!(
        texts(&many, true),
        ["the plugin has 300 tools; the maximum is 256 (limit `catalog.tools`); split it into several plugins"]
    );
}

#[test]
fn everything_that_is_wrong_is_found_at_once() {
    let tools = [
        json!({"name": "ask", "executor": "human", "gated": true, "streaming": true, "options": {"recovery": "ask"}}),
        json!({"name": "a b", "description": "", "parameters": {"type": "array"}, "options": []}),
    ];
    let found: Vec<_> =
        findings(&tools, false).into_iter().map(|finding| (finding.tool, finding.rule.as_str())).collect();
    let (first, second) = (Some("ask".to_owned()), Some("number 2 \"a b\"".to_owned()));
    let expected = [
        (first.clone(), "gated-human"),
        (first.clone(), "streaming"),
        (first, "option-scope"),
        (second.clone(), "tool-name"),
        (second.clone(), "no-server"),
        (second.clone(), "description"),
        (second.clone(), "schema-not-object"),
        (second, "options-form"),
    ];
    assert_eq!(found, expected);
}
