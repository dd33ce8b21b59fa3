//! The rules engine as tables: the configuration, the call, and the decision.

#![expect(clippy::expect_used, reason = "what a test is made of fails by panicking")]

use std::path::Path;

use domain::{Json, gate::RuleEffect, principal::Channel};
use policy::{Arguments, Moment, OperatorRule, OperatorRules, Subject};
use toolgate::config::Config;

/// The rules of a configuration.
fn rules(text: &str) -> OperatorRules {
    match Config::parse(text, Path::new("toolgate.toml")) {
        Ok(config) => config.operator_rules(),
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// A call: `plugin.tool by caller`.
fn subject<'a>(call: &'a str, arguments: &str) -> Subject<'a> {
    let (name, caller) = call.split_once(" by ").expect("a caller");
    let (plugin, tool) = name.split_once('.').expect("a plugin");
    let arguments = Arguments::new(Json::unchecked(arguments));
    let moment = Some(Moment::Call);
    Subject { plugin: Some(plugin), tool: Some(tool), caller: Some(caller), moment, arguments }
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Yes,
    No,
    /// Unknown: rules that ask or deny match, and rules that allow do not.
    Strict,
}
use Holds::{No, Strict, Yes};

/// A condition on `/x`, the arguments, and whether it holds.
const CONDITIONS: &[(&str, &str, Holds)] = &[
    // Numbers between inclusive bounds, compared by value.
    ("min = 1000", r#"{"x":1000}"#, Yes),
    ("min = 1000", r#"{"x":999}"#, No),
    ("min = 1000", r#"{"x":999.999999999999999999999}"#, No),
    ("min = 1000", r#"{"x":1e3}"#, Yes),
    ("min = 1000", r#"{"x":1.0E+3}"#, Yes),
    ("min = 1000", r#"{"x":10000e-1}"#, Yes),
    ("min = 1000", r#"{"x":1000.0000000000000000000001}"#, Yes),
    ("min = 1000", r#"{"x":1e400}"#, Yes),
    ("min = 1000", r#"{"x":-5000}"#, No),
    ("min = 1000", r#"{"x":-0}"#, No),
    ("min = -10", r#"{"x":-10.0}"#, Yes),
    ("min = -10", r#"{"x":-10.01}"#, No),
    ("max = 1000", r#"{"x":1000}"#, Yes),
    ("max = 1000", r#"{"x":1000.01}"#, No),
    ("max = 1000", r#"{"x":-1e99}"#, Yes),
    ("max = 0.1", r#"{"x":0.1}"#, Yes),
    ("max = 0.1", r#"{"x":0.10000000000000000555}"#, No),
    ("max = 0.3", r#"{"x":0.30000000000000004}"#, No),
    ("min = 1, max = 5", r#"{"x":1}"#, Yes),
    ("min = 1, max = 5", r#"{"x":5}"#, Yes),
    ("min = 1, max = 5", r#"{"x":5.1}"#, No),
    ("min = 1, max = 5", r#"{"x":0.9}"#, No),
    ("min = 5, max = 5", r#"{"x":5.00}"#, Yes),
    ("min = \"9007199254740993\"", r#"{"x":9007199254740992}"#, No),
    ("min = \"9007199254740993\"", r#"{"x":9007199254740993}"#, Yes),
    ("min = \"12345678901234567890.124\"", r#"{"x":12345678901234567890.123}"#, No),
    ("min = \"12345678901234567890.124\"", r#"{"x":12345678901234567890.124}"#, Yes),
    // A tool may read a text as a number.
    ("min = 1000", r#"{"x":"5000"}"#, Strict),
    ("min = 1000", r#"{"x":"1"}"#, Strict),
    ("min = 1000", r#"{"x":null}"#, Strict),
    ("min = 1000", r#"{"x":true}"#, Strict),
    ("min = 1000", r#"{"x":[5000]}"#, Strict),
    ("min = 1000", r#"{"x":{"value":5000}}"#, Strict),
    ("min = 1000", r#"{"x":1e99999999999999999999}"#, Strict),
    // A condition on an absent value does not hold.
    ("min = 1000", "{}", No),
    ("min = 1000", r#"{"X":5000}"#, No),
    ("min = 1000", r#"{"y":5000}"#, No),
    ("min = 1000", r#"{"\u0078":5000}"#, Yes),
    // Equal values.
    ("equals = \"prod\"", r#"{"x":"prod"}"#, Yes),
    ("equals = \"prod\"", r#"{"x":"\u0070rod"}"#, Yes),
    ("equals = \"prod\"", r#"{"x":"Prod"}"#, No),
    ("equals = \"prod\"", r#"{"x":"prod "}"#, No),
    ("equals = \"prod\"", r#"{"x":"production"}"#, No),
    ("equals = \"prod\"", r#"{"x":["prod"]}"#, Strict),
    ("equals = \"prod\"", r#"{"x":null}"#, Strict),
    ("equals = \"prod\"", "{}", No),
    ("equals = \"ü\"", "{\"x\":\"u\u{308}\"}", No),
    ("equals = 1000", r#"{"x":1e3}"#, Yes),
    ("equals = 1000", r#"{"x":1000.00}"#, Yes),
    ("equals = 1000", r#"{"x":1000.01}"#, No),
    ("equals = 1000", r#"{"x":"1000"}"#, Strict),
    ("equals = 1000", r#"{"x":false}"#, Strict),
    ("equals = 0", r#"{"x":-0.0}"#, Yes),
    ("equals = true", r#"{"x":true}"#, Yes),
    ("equals = true", r#"{"x":false}"#, No),
    ("equals = true", r#"{"x":"true"}"#, Strict),
    ("equals = true", r#"{"x":1}"#, Strict),
    ("equals = [1, 2]", r#"{"x":[1.0, 2]}"#, Yes),
    ("equals = [1, 2]", r#"{"x":[2, 1]}"#, No),
    ("equals = [1, 2]", r#"{"x":[1]}"#, No),
    ("equals = [1, 2]", r#"{"x":[1, "2"]}"#, Strict),
    ("equals = { a = 1, b = 2 }", r#"{"x":{"b":2,"a":1}}"#, Yes),
    ("equals = { a = 1, b = 2 }", r#"{"x":{"a":1}}"#, No),
    ("equals = { a = 1, b = 2 }", r#"{"x":{"a":"1","b":3}}"#, No),
    // Texts by prefix and by pattern.
    ("prefix = \"/etc/\"", r#"{"x":"/etc/passwd"}"#, Yes),
    ("prefix = \"/etc/\"", r#"{"x":"/etc"}"#, No),
    ("prefix = \"/etc/\"", r#"{"x":"/ETC/passwd"}"#, No),
    ("prefix = \"/etc/\"", r#"{"x":5}"#, Strict),
    ("prefix = \"/etc/\"", "{}", No),
    ("glob = \"*@example.com\"", r#"{"x":"ann@example.com"}"#, Yes),
    ("glob = \"*@example.com\"", r#"{"x":"ann@example.com.evil"}"#, No),
    ("glob = \"*@example.com\"", r#"{"x":"ann@example.com\n"}"#, No),
    ("glob = \"*@example.com\"", r#"{"x":"@example.com"}"#, Yes),
    ("glob = \"*@example.com\"", r#"{"x":["ann@example.com"]}"#, Strict),
    ("glob = \"a?c\"", r#"{"x":"abc"}"#, Yes),
    ("glob = \"a?c\"", r#"{"x":"ac"}"#, No),
    ("glob = \"DE*\"", r#"{"x":"DE89370400440532013000"}"#, Yes),
    // Absent and present values.
    ("absent = true", "{}", Yes),
    ("absent = true", r#"{"x":null}"#, No),
    ("absent = true", r#"{"x":0}"#, No),
    ("absent = true, not = true", r#"{"x":0}"#, Yes),
    ("absent = true, not = true", "{}", No),
    // The opposite. Leaving out a value does not satisfy "anything but this".
    ("equals = \"staging\", not = true", r#"{"x":"production"}"#, Yes),
    ("equals = \"staging\", not = true", r#"{"x":"staging"}"#, No),
    ("equals = \"staging\", not = true", "{}", Strict),
    ("equals = \"staging\", not = true", r#"{"x":7}"#, Strict),
    ("glob = \"*@example.com\", not = true", r#"{"x":"eve@evil.example"}"#, Yes),
    ("glob = \"*@example.com\", not = true", r#"{"x":"ann@example.com"}"#, No),
    ("min = 10, max = 20, not = true", r#"{"x":9}"#, Yes),
    ("min = 10, max = 20, not = true", r#"{"x":15}"#, No),
    ("min = 10, max = 20, not = true", r#"{"x":"15"}"#, Strict),
    // Unreadable arguments.
    ("min = 1000", r#"{"x":1,"x":5000}"#, Strict),
    ("absent = true", r#"{"y":1,"y":2}"#, Strict),
];

/// A pointer whose value must equal 1, the arguments, and whether it holds.
const POINTERS: &[(&str, &str, Holds)] = &[
    ("/a/b", r#"{"a":{"b":1}}"#, Yes),
    ("/a/b", r#"{"a":{}}"#, No),
    ("/a/b", "{}", No),
    ("/a/b", r#"{"a":[{"b":1}]}"#, Strict),
    ("/a/b", r#"{"a":"{\"b\":1}"}"#, Strict),
    ("/a/b", r#"{"a":null}"#, Strict),
    ("/a/0", r#"{"a":[1]}"#, Yes),
    ("/a/0", r#"{"a":{"0":1}}"#, Yes),
    ("/a/1", r#"{"a":[1]}"#, No),
    ("/a/01", r#"{"a":[1,1]}"#, Strict),
    ("/a~1b", r#"{"a/b":1}"#, Yes),
    ("/m~0n", r#"{"m~n":1}"#, Yes),
    ("/~01", r#"{"~1":1}"#, Yes),
    ("/", r#"{"":1}"#, Yes),
    ("", r#"{"a":1}"#, Strict),
];

/// The scope of a rule, a call, and whether the rule covers it.
const SCOPES: &[(&str, &str, bool)] = &[
    ("", "bank.pay by agent", true),
    ("tools = \"*\"", "bank.pay by agent", true),
    ("tools = \"pay\"", "bank.pay by agent", true),
    ("tools = \"pay\"", "bank.pay_all by agent", false),
    ("tools = \"pay\"", "bank.Pay by agent", false),
    ("tools = \"pay*\"", "bank.pay_all by agent", true),
    ("tools = \"*pay\"", "bank.repay by agent", true),
    ("tools = \"p?y\"", "bank.pay by agent", true),
    ("tools = \"p?y\"", "bank.play by agent", false),
    ("plugin = \"bank\"", "bank.pay by agent", true),
    ("plugin = \"bank\"", "bank2.pay by agent", false),
    ("plugin = \"bank*\"", "bank2.pay by agent", true),
    ("plugin = \"pay\"", "bank.pay by agent", false),
    ("tools = \"pay\", plugin = \"b*\"", "bank.pay by agent", true),
    ("tools = \"get\", plugin = \"b*\"", "bank.pay by agent", false),
    ("caller = \"agent\"", "bank.pay by agent", true),
    ("caller = \"agent\"", "bank.pay by agent-7", false),
    ("caller = \"agent-*\"", "bank.pay by agent-7", true),
    ("caller = \"*@example.com\"", "bank.pay by ci@example.com", true),
    ("caller = \"*@example.com\"", "bank.pay by ci@example.org", false),
    ("tools = \"pay\", plugin = \"bank\", caller = \"ci\"", "bank.pay by ci", true),
    ("tools = \"pay\", plugin = \"bank\", caller = \"ci\"", "bank.pay by cd", false),
];

/// Rules, a call, its arguments, and the decision.
const VERDICTS: &[(&str, &str, &str, &str)] = &[
    ("", "b.pay by a", "{}", "allow"),
    ("{ rule = 'allow', name = 'a' }", "b.pay by a", "{}", "allow"),
    ("{ rule = 'ask', name = 'a' }", "b.pay by a", "{}", "ask by a"),
    ("{ rule = 'ask' }", "b.pay by a", "{}", "ask by policy[0]"),
    ("{ rule = 'ask', name = 'a' }, { rule = 'deny', name = 'd' }", "b.pay by a", "{}", "deny by d"),
    ("{ rule = 'deny', name = 'd' }, { rule = 'ask', name = 'a' }", "b.pay by a", "{}", "deny by d"),
    ("{ rule = 'deny', name = 'd' }, { rule = 'allow', name = 'x' }", "b.pay by a", "{}", "deny by d"),
    ("{ rule = 'ask', name = 'z' }, { rule = 'ask', name = 'a' }", "b.pay by a", "{}", "ask by a, z"),
    (
        "{ rule = 'ask', name = 'a', risk = 'low', reason = 'A' }, { rule = 'ask', name = 'z', risk = 'high', reason = 'Z' }",
        "b.pay by a",
        "{}",
        "ask by a, z because Z; A at risk high",
    ),
    (
        "{ rule = 'ask', name = 'a', reason = 'same' }, { rule = 'ask', name = 'z', reason = 'same' }",
        "b.pay by a",
        "{}",
        "ask by a, z because same",
    ),
    (
        "{ rule = 'ask', name = 'a', reason = 'A', risk = 'critical' }, { rule = 'deny', name = 'd', reason = 'D' }",
        "b.pay by a",
        "{}",
        "deny by d because D at risk critical",
    ),
    (
        "{ tools = 'pay', rule = 'ask', name = 'a' }, { tools = 'get', rule = 'deny', name = 'd' }",
        "b.pay by a",
        "{}",
        "ask by a",
    ),
    ("{ rule = 'ask', name = 'a', arguments = [{ pointer = '/x', min = 5 }] }", "b.pay by a", r#"{"x":4}"#, "allow"),
    (
        "{ rule = 'ask', name = 'a', arguments = [{ pointer = '/x', min = 5 }, { pointer = '/y', equals = 1 }] }",
        "b.pay by a",
        r#"{"x":6,"y":2}"#,
        "allow",
    ),
    (
        "{ rule = 'ask', name = 'a', arguments = [{ pointer = '/x', min = 5 }, { pointer = '/y', equals = 1 }] }",
        "b.pay by a",
        r#"{"x":6,"y":1}"#,
        "ask by a",
    ),
    (
        "{ rule = 'ask', name = 'a', arguments = [{ pointer = '/x', min = 5 }, { pointer = '/y', equals = 1 }] }",
        "b.pay by a",
        r#"{"x":"6","y":2}"#,
        "allow",
    ),
    (
        "{ rule = 'ask', name = 'a', needs = [{ who = ['group:f'], quorum = 2 }] }, { rule = 'ask', name = 'b', needs = [{ who = ['role:admin'] }] }",
        "b.pay by a",
        "{}",
        "ask by a, b needs 2 of group:f, 1 of role:admin",
    ),
    (
        "{ rule = 'ask', name = 'a', needs = [{ who = ['group:f'] }] }, { rule = 'ask', name = 'b', needs = [{ who = ['group:f'] }] }",
        "b.pay by a",
        "{}",
        "ask by a, b needs 1 of group:f",
    ),
    (
        "{ rule = 'ask', name = 'a', needs = [{ who = ['group:f'] }] }, { rule = 'deny', name = 'd' }",
        "b.pay by a",
        "{}",
        "deny by d",
    ),
    (
        "{ rule = 'allow', name = 'who', needs = [{ who = ['principal:ann'] }] }",
        "b.question by a",
        "{}",
        "allow needs 1 of principal:ann",
    ),
    (
        "{ rule = 'ask', name = 'a', needs = [{ via = ['link', 'console', 'link'] }] }, { rule = 'ask', name = 'b', needs = [{}] }",
        "b.pay by a",
        "{}",
        "ask by a, b needs 1 of anybody via console link, 1 of anybody",
    ),
    (
        "{ rule = 'allow', name = 'who', needs = [{ via = ['mcp-form'] }] }",
        "b.question by a",
        "{}",
        "allow needs 1 of anybody via mcp-form",
    ),
    ("{ rule = 'ask', name = 'a', needs = [{ quorum = 2 }] }", "b.pay by a", "{}", "ask by a needs 2 of anybody"),
    (
        "{ tools = 'pay', plugin = 'b', rule = 'allow', ungate = true, name = 'u', reason = 'R' }",
        "b.pay by a",
        "{}",
        "allow ungated by u because R",
    ),
    ("{ tools = 'pay', plugin = 'b', rule = 'allow', ungate = true, name = 'u' }", "c.pay by a", "{}", "allow"),
    (
        "{ tools = 'pay', plugin = 'b', rule = 'allow', ungate = true, name = 'u' }, { rule = 'ask', name = 'a' }",
        "b.pay by a",
        "{}",
        "ask by a",
    ),
    (
        "{ tools = 'pay', plugin = 'b', rule = 'allow', ungate = true, name = 'u' }, { rule = 'deny', name = 'd' }",
        "b.pay by a",
        "{}",
        "deny by d",
    ),
    (
        "{ tools = 'pay', plugin = 'b', rule = 'allow', ungate = true, name = 'u', arguments = [{ pointer = '/x', max = 10 }] }",
        "b.pay by a",
        r#"{"x":"5"}"#,
        "allow",
    ),
    (
        "{ tools = 'pay', plugin = 'b', rule = 'allow', ungate = true, name = 'u', arguments = [{ pointer = '/x', max = 10 }] }",
        "b.pay by a",
        r#"{"x":5}"#,
        "allow ungated by u",
    ),
];

fn holds(pointer: &str, condition: &str, arguments: &str) -> Holds {
    let fits = |rule: &str| {
        let text = format!("policy = [{{ rule = '{rule}', arguments = [{{ pointer = '{pointer}', {condition} }}] }}]");
        let rules = rules(&text);
        let rule: &OperatorRule = rules.iter().next().expect("a rule");
        let (fits, fit) = (rule.fits(&subject("b.t by c", arguments)), rule.fit(&subject("b.t by c", arguments)));
        assert_eq!(fits, fit.fits, "the explanation of a rule matches its effect: {text} {arguments} {}", fit.why);
        assert!(!fit.why.is_empty() && !fit.why.contains('\n'), "{}", fit.why);
        fits
    };
    let (allow, ask, deny) = (fits("allow"), fits("ask"), fits("deny"));
    assert_eq!(ask, deny, "{condition} {arguments}");
    match (allow, ask) {
        (true, true) => Yes,
        (false, false) => No,
        (false, true) => Strict,
        (true, false) => panic!("{condition} {arguments}: a rule that allows matches, but one that asks does not"),
    }
}

#[test]
fn conditions() {
    for (condition, arguments, expected) in CONDITIONS {
        assert_eq!(holds("/x", condition, arguments), *expected, "{condition} {arguments}");
    }
    for (pointer, arguments, expected) in POINTERS {
        assert_eq!(holds(pointer, "equals = 1", arguments), *expected, "{pointer} {arguments}");
    }
}

#[test]
fn scopes() {
    for (scope, call, expected) in SCOPES {
        let comma = if scope.is_empty() { "" } else { ", " };
        for rule in ["allow", "ask", "deny"] {
            let rules = rules(&format!("policy = [{{ rule = '{rule}'{comma}{scope} }}]"));
            let fits = rules.iter().all(|rule| rule.fits(&subject(call, "{}")));
            assert_eq!(fits, *expected, "{scope} {call}");
        }
    }
}

#[test]
fn verdicts() {
    for (written, call, arguments, expected) in VERDICTS {
        let verdict = rules(&format!("policy = [{written}]")).verdict(&subject(call, arguments));
        let mut said = verdict.rule.as_str().to_owned();
        said.push_str(if verdict.ungated { " ungated" } else { "" });
        said.extend(verdict.by.iter().map(|by| format!(" by {by}")));
        said.extend(verdict.reason.iter().map(|reason| format!(" because {reason}")));
        said.extend(verdict.risk.iter().map(|risk| format!(" at risk {}", risk.as_str())));
        let needs: Vec<_> = verdict.needs.iter().map(need).collect();
        if !needs.is_empty() {
            said.push_str(&format!(" needs {}", needs.join(", ")));
        }
        assert_eq!(said, *expected, "{written} {call} {arguments}");
    }
}

fn need(need: &domain::approvers::Need) -> String {
    let who: Vec<_> = need.who.iter().map(ToString::to_string).collect();
    let via: Vec<_> = need.via.iter().map(Channel::as_str).collect();
    let via = if via.is_empty() { String::new() } else { format!(" via {}", via.join(" ")) };
    format!("{} of {}{via}", need.quorum, if who.is_empty() { "anybody".to_owned() } else { who.join(" or ") })
}

#[test]
fn table_has_more_than_a_hundred_rows() {
    assert!(CONDITIONS.len() + POINTERS.len() + SCOPES.len() + VERDICTS.len() > 140);
}

#[test]
fn explanation_names_each_rule_and_escapes_quotes() {
    let written = "policy = [
        { rule = 'ask', name = 'big', tools = 'pay', arguments = [{ pointer = '/x', min = 5 }, { pointer = '/to', glob = '*@a', not = true }] },
        { rule = 'deny', name = 'other', plugin = 'c' },
        { rule = 'deny', name = 'mine', caller = 'me' },
        { rule = 'allow', name = 'doubt', arguments = [{ pointer = '/x', equals = 'six' }] },
        { rule = 'ask', name = 'gone', arguments = [{ pointer = '/y/z', equals = 1 }] },
    ]";
    let steps = rules(written).explain(&subject("b.pay by a", "{\"x\":6,\"to\":\"eve\u{202e}\\u001b[2K\"}"));
    let said: String = steps.iter().map(|step| format!("{} {} {}\n", step.matched, step.name, step.why)).collect();
    expect_test::expect![[r#"
        true big at /x: 6 is at least 5; at /to: "eve\u{202e}\u{1b}[2K" is not a text like "*@a"
        false other the plugin b is not `c`
        false mine the caller a is not `me`
        false doubt at /x: 6 is a number, so the host cannot tell whether it is equal to "six"; in doubt, a rule that allows does not fit
        false gone at /y/z: there is no value that could be equal to 1
    "#]]
    .assert_eq(&said);
    assert!(steps.iter().all(|step| step.rule != RuleEffect::Allow || !step.matched));
}
