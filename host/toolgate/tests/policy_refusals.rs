//! Invalid rules, and the message about each.

use std::path::Path;

use toolgate::config::Config;

/// The messages about invalid rules.
#[test]
#[expect(clippy::too_many_lines, reason = "one row for each invalid rule")]
fn invalid_rules_are_refused() {
    let rows = [
        "rule = 'ask', ungate = true",
        "rule = 'allow', ungate = true, tools = 'pay*', plugin = 'bank'",
        "rule = 'allow', ungate = true, tools = 'pay'",
        "rule = 'allow', ungate = true, tools = 'pay', plugin = 'b?nk'",
        "rule = 'allow', ungate = true, tools = 'pay', plugin = 'bank', needs = [{ quorum = 2 }]",
        "rule = 'deny', needs = [{ quorum = 2 }]",
        "rule = 'ask', name = 'a b'",
        "rule = 'ask', reason = ' '",
        "rule = 'ask', risk = 'huge'",
        "rule = 'ask', plugin = 'a.b'",
        "rule = 'ask', caller = 'a b'",
        "rule = 'ask', arguments = [{ pointer = 'x', equals = 1 }]",
        "rule = 'ask', arguments = [{ pointer = '/x' }]",
        "rule = 'ask', arguments = [{ pointer = '/x', prefix = 'a', glob = 'a*' }]",
        "rule = 'ask', arguments = [{ pointer = '/x', min = 5, max = 4 }]",
        "rule = 'ask', arguments = [{ pointer = '/x', min = 'five' }]",
        "rule = 'ask', arguments = [{ pointer = '/x', min = true }]",
        "rule = 'ask', arguments = [{ pointer = '/x', min = 0.12345678901234567 }]",
        "rule = 'ask', arguments = [{ pointer = '/x', equals = 2026-01-01 }]",
        "rule = 'ask', arguments = [{ pointer = '/x', glob = '' }]",
        "rule = 'ask', arguments = [{ pointer = '/x', equal = 1 }]",
        "rule = 'ask', needs = [{ who = ['alice'] }]",
        "rule = 'ask', needs = [{ who = ['principal:ann', 'principal:ann'], quorum = 2 }]",
        "rule = 'ask', needs = [{ quorum = 0 }]",
        "rule = 'ask', needs = [{ escalate = { after_ms = 5, to = [] } }]",
        "rule = 'ask', needs = [{ via = ['console', 'phone'] }]",
        "rule = 'ask', needs = [{ via = [] }]",
        "rule = 'ask', needs = [{ via = ['mcp-form'] }]",
        "rule = 'allow', step = 'approve', needs = [{ quorum = 2 }, { via = ['mcp-form'] }]",
        "rule = 'ask', tools = 'pay', match = [{ tool = 'get' }]",
        "rule = 'ask', arguments = [{ pointer = '/x', min = 5 }], match = [{ arguments = { x = 6 } }, { arguments = { x = 4 } }]",
        "rule = 'ask', arguments = [{ pointer = '/x', min = 5 }], not_match = [{ arguments = { x = '4' } }]",
        "rule = 'ask', match = [{ arguments = '[1]' }]",
        "rule = 'ask', match = [{ arguments = 5 }]",
        "rule = 'ask', name = 'a' }, { rule = 'deny', name = 'a'",
        "rule = 'ask', step = 'approve'",
        "rule = 'allow', step = 'ask', needs = [{ quorum = 2 }]",
        "rule = 'allow', step = 'approve', ungate = true, tools = 'pay', plugin = 'bank'",
        "rule = 'deny', step = 'ask', match = [{ tool = 'pay' }, { tool = 'pay', step = 'approve' }]",
        "rule = 'deny', step = 'ask', not_match = [{ tool = 'pay', step = 'approve' }, { tool = 'pay', step = 'ask' }]",
    ];
    let mut said = String::new();
    for row in rows {
        let text = format!("policy = [\n{{ {row} }}\n]");
        match Config::parse(&text, Path::new("t")) {
            Ok(_) => panic!("it is accepted: {row}"),
            Err(error) => said.push_str(&format!("{row}\n  {error}\n  {}\n", error.hint().unwrap_or("-"))),
        }
    }
    expect_test::expect![[r#"
        rule = 'ask', ungate = true
          t:2:17: only a rule that allows can remove a tool's own approval
          write `rule = "allow"`
        rule = 'allow', ungate = true, tools = 'pay*', plugin = 'bank'
          t:2:19: `ungate` needs the full name of one tool
          write `tools = "NAME"`, without `*` and `?`
        rule = 'allow', ungate = true, tools = 'pay'
          t:2:19: `ungate` needs the full name of one plugin
          write `plugin = "NAME"`, so that a tool of another plugin keeps its approval
        rule = 'allow', ungate = true, tools = 'pay', plugin = 'b?nk'
          t:2:19: `ungate` needs the full name of one plugin
          write `plugin = "NAME"`, so that a tool of another plugin keeps its approval
        rule = 'allow', ungate = true, tools = 'pay', plugin = 'bank', needs = [{ quorum = 2 }]
          t:2:19: a rule with `ungate` requires no approval, so it cannot have `needs`
          remove `ungate` or `needs`
        rule = 'deny', needs = [{ quorum = 2 }]
          t:2:18: a rule that denies needs no approval, so it cannot have `needs`
          remove `needs`, or write `rule = "ask"`
        rule = 'ask', name = 'a b'
          t:2:17: "a b" is not a name for a rule: expected 1 to 64 of the characters a-z A-Z 0-9 _ - . / : [ ]
          choose another name
        rule = 'ask', reason = ' '
          t:2:17: a reason must have 1 to 500 characters
          write the reason in one sentence
        rule = 'ask', risk = 'huge'
          t:2:24: `risk` is "huge", and it must be one of `low`, `medium`, `high`, `critical`
          did you mean `high`?
        rule = 'ask', plugin = 'a.b'
          t:2:26: not a pattern of names: expected 1 to 64 of the characters a-z A-Z 0-9 _ - * ?
          -
        rule = 'ask', caller = 'a b'
          t:2:26: not a pattern of callers: expected 1 to 128 of the characters a-z A-Z 0-9 _ . : - @ / * ?
          -
        rule = 'ask', arguments = [{ pointer = 'x', equals = 1 }]
          t:2:42: not a JSON Pointer (RFC 6901): expected a text such as /amount or /lines/0/sku, with ~1 for / and ~0 for ~ in a name
          -
        rule = 'ask', arguments = [{ pointer = '/x' }]
          t:2:30: the condition has no test
          write exactly one of `equals`, `prefix`, `glob`, `min` and `max`, `absent = true`
        rule = 'ask', arguments = [{ pointer = '/x', prefix = 'a', glob = 'a*' }]
          t:2:30: the condition has several tests
          write exactly one of `equals`, `prefix`, `glob`, `min` and `max`, `absent = true`
        rule = 'ask', arguments = [{ pointer = '/x', min = 5, max = 4 }]
          t:2:48: no number is at least 5 and at most 4
          exchange the two
        rule = 'ask', arguments = [{ pointer = '/x', min = 'five' }]
          t:2:54: not a decimal number in JSON's form, such as 1000, -0.25 or 1e6
          -
        rule = 'ask', arguments = [{ pointer = '/x', min = true }]
          t:2:54: expected a number, or a string with a number, not a boolean
          -
        rule = 'ask', arguments = [{ pointer = '/x', min = 0.12345678901234567 }]
          t:2:54: a decimal of more than 15 digits does not keep its value in TOML; write it as a string: "0.1234…"
          -
        rule = 'ask', arguments = [{ pointer = '/x', equals = 2026-01-01 }]
          t:2:48: JSON has no dates; write it as a string
          compare with something else
        rule = 'ask', arguments = [{ pointer = '/x', glob = '' }]
          t:2:55: not a pattern of texts: expected 1 to 256 characters
          -
        rule = 'ask', arguments = [{ pointer = '/x', equal = 1 }]
          t:2:48: there is no key `equal` here; the keys are `pointer`, `equals`, `prefix`, `glob`, `min`, `max`, `absent`, `not`
          did you mean `equals`?
        rule = 'ask', needs = [{ who = ['alice'] }]
          t:2:34: "alice" is not a approver: expected principal:NAME, group:NAME or role:NAME
          -
        rule = 'ask', needs = [{ who = ['principal:ann', 'principal:ann'], quorum = 2 }]
          t:2:70: 2 principals must approve, and only 1 are named
          name more principals, or lower the quorum
        rule = 'ask', needs = [{ quorum = 0 }]
          t:2:37: `quorum` is 0, and it must be a whole number above 0
          -
        rule = 'ask', needs = [{ escalate = { after_ms = 5, to = [] } }]
          t:2:55: the escalation names nobody
          write `to = ["role:admin"]`
        rule = 'ask', needs = [{ via = ['console', 'phone'] }]
          t:2:46: `via` is "phone", and it must be one of `console`, `api`, `link`, `mcp-form`
          -
        rule = 'ask', needs = [{ via = [] }]
          t:2:28: `via` names no channel
          name a channel, or remove `via` to count all
        rule = 'ask', needs = [{ via = ['mcp-form'] }]
          t:2:28: no approval comes through `mcp-form`, so nobody could approve
          name another channel, such as `console`
        rule = 'allow', step = 'approve', needs = [{ quorum = 2 }, { via = ['mcp-form'] }]
          t:2:64: no approval comes through `mcp-form`, so nobody could approve
          name another channel, such as `console`
        rule = 'ask', tools = 'pay', match = [{ tool = 'get' }]
          t:2:41: the rule policy[0] does not match this call and should: the tool get is not `pay`
          correct the rule or the example; `toolgate policy explain` explains the rules for a call
        rule = 'ask', arguments = [{ pointer = '/x', min = 5 }], match = [{ arguments = { x = 6 } }, { arguments = { x = 4 } }]
          t:2:96: the rule policy[0] does not match this call and should: at /x: 4 is not at least 5
          correct the rule or the example; `toolgate policy explain` explains the rules for a call
        rule = 'ask', arguments = [{ pointer = '/x', min = 5 }], not_match = [{ arguments = { x = '4' } }]
          t:2:73: the rule policy[0] matches this call and should not: at /x: "4" is a text, so the host cannot tell whether it is at least 5; in doubt, a rule that asks fits
          correct the rule or the example; `toolgate policy explain` explains the rules for a call
        rule = 'ask', match = [{ arguments = '[1]' }]
          t:2:26: the arguments are not a JSON object
          write a table, or JSON text
        rule = 'ask', match = [{ arguments = 5 }]
          t:2:26: the arguments must be an object, and this has the type integer
          write a table, or JSON text
        rule = 'ask', name = 'a' }, { rule = 'deny', name = 'a'
          t:2:48: two rules have the name a
          rename one of them; approvers and the audit log show the names
        rule = 'ask', step = 'approve'
          t:2:3: a step waits for its own answer, so no rule asks for it
          write `rule = "deny"`, or `rule = "allow"` with `needs`
        rule = 'allow', step = 'ask', needs = [{ quorum = 2 }]
          t:2:33: nobody approves a step of the kind `ask`
          remove `needs`, or write `step = "approve"`
        rule = 'allow', step = 'approve', ungate = true, tools = 'pay', plugin = 'bank'
          t:2:37: a step has no approval of its own that a rule can remove
          remove `ungate`
        rule = 'deny', step = 'ask', match = [{ tool = 'pay' }, { tool = 'pay', step = 'approve' }]
          t:2:59: the rule policy[0] does not match this call and should: it is only about steps of the kind `ask`
          correct the rule or the example; `toolgate policy explain` explains the rules for a call
        rule = 'deny', step = 'ask', not_match = [{ tool = 'pay', step = 'approve' }, { tool = 'pay', step = 'ask' }]
          t:2:81: the rule policy[0] matches this call and should not: the tool is `*`; the step is `ask`
          correct the rule or the example; `toolgate policy explain` explains the rules for a call
    "#]].assert_eq(&said);
    let missing = Config::parse("[policies]\nfiles = ['a.toml', 'no/such.toml']", Path::new("t"));
    expect_test::expect!["t:2:10: cannot read the rules in a.toml: No such file or directory (os error 2)"]
        .assert_eq(&missing.map_or_else(|error| error.to_string(), |_| String::new()));
}
