//! Properties of any set of rules: their order does not matter, a further rule never loosens, and no edit escapes a
//! rule that denies.

#![expect(clippy::expect_used, reason = "a failed setup step fails the test")]

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::{
    Json, Span,
    approvers::{Escalate, Need, Who},
    gate::{RuleEffect, Verdict},
    principal::Channels,
    tool::{Approval, Risk},
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use toolgate_policy::{Arguments, Condition, Decimal, Moment, OperatorRule, OperatorRules, Pattern, Subject, Test};

fn who() -> impl Strategy<Value = Arc<[Who]>> {
    let one = select(vec!["group:finance", "role:admin", "principal:ann"]);
    vec(one.prop_map(|text| text.parse::<Who>().expect("somebody")), 0..3).prop_map(Arc::from)
}

fn need() -> impl Strategy<Value = Need> {
    let escalate = who().prop_map(|to| Escalate { after: Span::from_secs(60), to });
    (who(), 1_u32..4, option::of(escalate)).prop_map(|(who, quorum, escalate)| Need {
        who,
        quorum,
        escalate,
        via: Channels::ANY,
    })
}

fn condition() -> impl Strategy<Value = Condition> {
    let bound = || option::of((-3_i64..3).prop_map(|n| n.to_string().parse::<Decimal>().expect("a number")));
    let test = prop_oneof![
        select(vec!["1", "\"a\"", "true", "[1]"])
            .prop_map(|json| Test::Equals(domain::json::Value::parse(json).expect("JSON"))),
        select(vec!["", "a", "ab"]).prop_map(|prefix| Test::Prefix(prefix.into())),
        select(vec!["*", "a*", "?"]).prop_map(|glob| Test::Glob(glob.parse().expect("a pattern"))),
        (bound(), bound()).prop_map(|(min, max)| Test::Range { min, max }),
        Just(Test::Absent),
    ];
    let pointer = select(vec!["/x", "/y", "/x/0", ""]);
    (pointer, test, any::<bool>()).prop_map(|(pointer, test, not)| Condition {
        pointer: pointer.parse().expect("a pointer"),
        test,
        not,
    })
}

fn rule() -> impl Strategy<Value = OperatorRule> {
    let pattern = || select(vec!["*", "pay", "p*", "get"]);
    let what = (select(vec![RuleEffect::Allow, RuleEffect::Ask, RuleEffect::Deny]), any::<bool>());
    let risk = option::of(select(vec![Risk::Low, Risk::Medium, Risk::High, Risk::Critical]));
    let scope = (pattern(), option::of(pattern()), option::of(select(vec!["ann", "a*", "bob"])));
    let about = (vec(condition(), 0..3), option::of(select(vec!["so", "thus"])), risk, vec(need(), 0..3));
    ("[a-d]{1,6}", scope, what, about).prop_map(|(name, (tools, plugin, caller), (rule, ungate), about)| {
        let (conditions, reason, risk, needs) = about;
        let ungate = ungate && rule == RuleEffect::Allow;
        OperatorRule {
            plugin: plugin.map(|text| Pattern::new(text).expect("a pattern")),
            caller: caller.map(|text| text.parse().expect("a pattern")),
            conditions,
            ungate,
            reason: reason.map(Into::into),
            risk,
            needs,
            ..OperatorRule::new(&name, Pattern::new(tools).expect("a pattern"), rule)
        }
    })
}

/// Rules with unique names, as a configuration has them.
fn rules() -> impl Strategy<Value = Vec<OperatorRule>> {
    vec(rule(), 0..7).prop_map(|mut rules| {
        for (n, rule) in rules.iter_mut().enumerate() {
            rule.name = format!("{}{n}", rule.name).into();
        }
        rules
    })
}

fn arguments() -> impl Strategy<Value = String> {
    let value = || select(vec!["1", "1.0", "-2", "5e0", "\"a\"", "\"ab\"", "true", "null", "[1]", "{\"0\":1}"]);
    prop_oneof![
        9 => (option::of(value()), option::of(value())).prop_map(|(x, y)| {
            let member = |(name, value): (&str, Option<&str>)| value.map(|value| format!("\"{name}\":{value}"));
            let members: Vec<_> = [("x", x), ("y", y)].into_iter().filter_map(member).collect();
            format!("{{{}}}", members.join(","))
        }),
        1 => Just("{\"x\":1,\"x\":2}".to_owned()),
    ]
}

fn verdict_on(rules: &[OperatorRule], arguments: &str) -> Verdict {
    OperatorRules::new(rules.to_vec()).verdict(&subject(arguments))
}

fn subject(arguments: &str) -> Subject<'static> {
    let arguments = Arguments::new(Json::unchecked(arguments));
    Subject { tool: Some("pay"), plugin: Some("pay"), caller: Some("ann"), moment: Some(Moment::Call), arguments }
}

/// How strictly a call is gated: for a tool without a declared approval, and for one with it.
fn gates(verdict: &Verdict) -> [u8; 2] {
    [Approval::Auto, Approval::RequiresApproval].map(|declared| match verdict.rule {
        RuleEffect::Deny => 2,
        RuleEffect::Allow if verdict.ungated => 0,
        rule => u8::from(rule.tighten(declared) == Approval::RequiresApproval),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn order_of_rules_does_not_matter(rules in rules(), arguments in arguments(), seed in any::<u64>()) {
        let mut shuffled = rules.clone();
        shuffled.sort_by_key(|rule| {
            rule.name.bytes().fold(seed, |hash, byte| hash.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte))
        });
        prop_assert_eq!(verdict_on(&rules, &arguments), verdict_on(&shuffled, &arguments));
    }

    #[test]
    fn one_more_rule_never_loosens(rules in rules(), more in rule(), arguments in arguments()) {
        let before = verdict_on(&rules, &arguments);
        let after = verdict_on(&[rules, vec![more.clone()]].concat(), &arguments);
        prop_assert!(after.rule >= before.rule && after.risk >= before.risk);
        // `ungate` lifts only the declared approval, never the decision of another rule.
        if !more.ungate || before.rule != RuleEffect::Allow {
            let stricter = gates(&before).iter().zip(gates(&after)).all(|(before, after)| *before <= after);
            prop_assert!(stricter, "{before:?} {after:?}");
        }
        if after.rule != RuleEffect::Deny {
            prop_assert!(before.needs.iter().all(|need| after.needs.contains(need)));
        }
        prop_assert!(!after.ungated || after.rule == RuleEffect::Allow);
    }

    #[test]
    fn no_edit_gets_past_a_rule_that_denies(rules in rules(), edited in arguments()) {
        let some = |what: RuleEffect| rules.iter().any(|rule| rule.rule == what && rule.fits(&subject(&edited)));
        let (denies, asks) = (some(RuleEffect::Deny), some(RuleEffect::Ask));
        let verdict = verdict_on(&rules, &edited);
        prop_assert_eq!(verdict.rule == RuleEffect::Deny, denies);
        prop_assert_eq!(verdict.rule == RuleEffect::Ask, asks && !denies);
    }

    #[test]
    fn explanations_match_verdicts(rules in rules(), arguments in arguments()) {
        let all = OperatorRules::new(rules.clone());
        let steps = all.explain(&subject(&arguments));
        let verdict = all.verdict(&subject(&arguments));
        for (rule, step) in rules.iter().zip(&steps) {
            prop_assert_eq!(rule.fits(&subject(&arguments)), step.matched, "{}", step.why);
        }
        let strictest = steps.iter().filter(|step| step.matched).map(|step| step.rule).max().unwrap_or_default();
        prop_assert_eq!(verdict.rule, strictest);
        if verdict.rule != RuleEffect::Allow {
            let by = verdict.by.expect("somebody decided");
            let named: BTreeSet<&str> = by.split(", ").collect();
            let decided = steps.iter().filter(|step| step.matched && step.rule == verdict.rule);
            prop_assert_eq!(named, decided.map(|step| &*step.name).collect::<BTreeSet<_>>());
        }
    }
}
