//! Rules and dynamic policies together: the result of each combination, and which policies are asked.

#![expect(clippy::unwrap_used, reason = "a failed setup step fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use dispatch::ports::{Policy, PolicyQuery};
use domain::{
    Json,
    approvers::Need,
    gate::{RuleEffect, Verdict},
    principal::Channels,
    step::StepKind,
    tool::Risk,
};
use futures::FutureExt as _;
use toolgate_policy::{CallEffect, Combined, Dynamic, OperatorRule, OperatorRules, Pattern};
use toolgate_tests::requests::conversation;
use toolgate_tests::tools::live;

/// A policy whose name states its verdict. It counts how often it is asked.
struct Says(&'static str, AtomicUsize);

#[async_trait]
impl Dynamic for Says {
    fn name(&self) -> &str {
        self.0
    }

    fn concerns(&self, _question: &PolicyQuery) -> bool {
        self.0 != "elsewhere"
    }

    async fn decide(&self, _question: &PolicyQuery) -> Verdict {
        self.1.fetch_add(1, Ordering::Relaxed);
        let says = |rule| Verdict { rule, reason: Some(format!("{} said so", self.0).into()), ..Verdict::default() };
        match self.0 {
            "asks" => Verdict { risk: Some(Risk::High), ..says(RuleEffect::Ask) },
            "needs" => Verdict { needs: Arc::new([need("group:board")]), ..says(RuleEffect::Ask) },
            "denies" => Verdict { needs: Arc::new([need("group:board")]), ..says(RuleEffect::Deny) },
            "fails" => Verdict { policy_failed: true, ..says(RuleEffect::Ask) },
            // Verdicts that a dynamic policy must not give.
            "lifts" => Verdict { ungated: true, risk: Some(Risk::Low), ..says(RuleEffect::Allow) },
            "asks and lifts" => Verdict { ungated: true, ..says(RuleEffect::Ask) },
            _ => Verdict::default(),
        }
    }
}

fn need(who: &str) -> Need {
    Need { who: Arc::new([who.parse().unwrap()]), quorum: 1, escalate: None, via: Channels::ANY }
}

fn rule(words: &'static str) -> OperatorRule {
    let (rule, ungate) = match words {
        "allow" => (RuleEffect::Allow, false),
        "ungate" => (RuleEffect::Allow, true),
        "ask" => (RuleEffect::Ask, false),
        _ => (RuleEffect::Deny, false),
    };
    OperatorRule { ungate, needs: Vec::new(), ..OperatorRule::new(words, Pattern::new("pay").unwrap(), rule) }
}

/// A call of a tool from a text: its executor, with a `!` if it declares an approval.
fn call(words: &str) -> PolicyQuery {
    PolicyQuery {
        known: Arc::new(live("pay", words)),
        caller: "agent".parse().unwrap(),
        conversation: conversation("talk"),
        via: None,
        context: None,
        arguments: Json::unchecked("{}"),
        step: None,
    }
}

/// The result of rules and policies for a call of a tool, and how many policies were asked.
fn verdict_on(words: &str, rules: &str, policies: &'static [&'static str]) -> (String, usize) {
    let each = |name: &&'static str| Arc::new(Says(name, AtomicUsize::new(0)));
    let says: Vec<_> = policies.iter().map(each).collect();
    let dynamic = says.iter().map(|says| says.clone() as Arc<dyn Dynamic>).collect();
    let names =
        ["allow", "ungate", "ask", "deny"].into_iter().filter(|name| rules.split(' ').any(|word| word == *name));
    let combined = Combined::new(OperatorRules::new(names.map(rule).collect()), dynamic);
    let question = call(words);
    let verdict = combined.decide(question.clone()).now_or_never().unwrap();
    let asked = says.iter().map(|says| says.1.load(Ordering::Relaxed)).sum();
    let explained = combined.explain(&question).now_or_never().unwrap();
    assert_eq!(explained.verdict, verdict, "the explanation shows the real verdict");
    assert_eq!(explained.steps.len(), rules.split_whitespace().count() + policies.len());
    let mut said = CallEffect::of(&verdict, &question.known.tool, None).as_str().to_owned();
    said.extend(verdict.by.map(|by| format!(" by {by}")));
    said.extend(verdict.reason.map(|reason| format!(" because {reason}")));
    said.extend(verdict.risk.map(|risk| format!(" at {}", risk.as_str())));
    said.extend(verdict.needs.iter().map(|need| format!(" needs {}", need.who[0])));
    said.extend(verdict.policy_failed.then_some(" (failed)"));
    assert!(!verdict.ungated || verdict.rule == RuleEffect::Allow, "only an allowing verdict lifts a gate");
    (said, asked)
}

#[test]
fn the_strictest_counts_and_policies_only_tighten() {
    for (words, rules, policies, said, asked) in [
        ("server", "", &[][..], "run", 0),
        ("server!", "", &[], "ask", 0),
        ("server!", "ungate", &[], "run by ungate", 0),
        ("server", "", &["proceeds"], "run", 1),
        ("server!", "", &["proceeds"], "ask", 1),
        ("server", "ask", &["proceeds"], "ask by ask", 1),
        ("server", "", &["asks"], "ask by asks because asks said so at high", 1),
        ("server!", "ungate", &["asks"], "ask by asks because asks said so at high", 1),
        ("server", "ask", &["asks"], "ask by ask, asks because asks said so at high", 1),
        (
            "server",
            "allow",
            &["asks", "needs"],
            "ask by asks, needs because asks said so; needs said so at high needs group:board",
            2,
        ),
        // A denial decides alone, so required approvers do not matter.
        ("server", "ask", &["asks", "denies"], "deny by denies because denies said so at high", 2),
        ("server!", "ungate", &["denies"], "deny by denies because denies said so", 1),
        ("server", "deny", &["asks", "proceeds", "denies"], "deny by deny", 0),
        // A verdict that exceeds a policy's rights counts as far as they go.
        ("server!", "", &["lifts"], "ask", 1),
        ("server!", "", &["asks and lifts"], "ask by asks and lifts because asks and lifts said so", 1),
        ("server!", "ungate", &["lifts"], "run by ungate", 1),
        // A policy that does not concern the call is not asked.
        ("server", "", &["elsewhere", "asks"], "ask by asks because asks said so at high", 1),
        // The failed policy is reported although another one asks.
        ("server", "", &["fails"], "ask by fails because fails said so (failed)", 1),
        (
            "server",
            "ask",
            &["asks", "fails"],
            "ask by ask, asks, fails because asks said so; fails said so at high (failed)",
            2,
        ),
        ("client", "", &["asks"], "ask by asks because asks said so at high", 1),
        // For a question only a denial counts. For a provider's call, nothing counts.
        ("human", "", &["asks", "fails", "needs"], "ask", 3),
        ("human", "", &["denies"], "deny by denies because denies said so", 1),
        ("provider", "", &["asks", "denies"], "run", 0),
    ] {
        assert_eq!(verdict_on(words, rules, policies), (said.to_owned(), asked), "{words} {rules} {policies:?}");
    }
}

/// A policy that waits until all policies have started.
struct Meets(Arc<AtomicUsize>);

#[async_trait]
impl Dynamic for Meets {
    fn name(&self) -> &str {
        "meets"
    }

    fn concerns(&self, _question: &PolicyQuery) -> bool {
        true
    }

    async fn decide(&self, _question: &PolicyQuery) -> Verdict {
        self.0.fetch_add(1, Ordering::Relaxed);
        while self.0.load(Ordering::Relaxed) < 3 {
            futures::pending!();
        }
        Verdict::default()
    }
}

#[test]
fn policies_are_asked_concurrently() {
    let begun = Arc::default();
    let meets = || Arc::new(Meets(Arc::clone(&begun))) as Arc<dyn Dynamic>;
    let combined = Combined::new(OperatorRules::default(), vec![meets(), meets(), meets()]);
    let question = call("server");
    let mut verdict = Box::pin(combined.decide(question));
    let waker = futures::task::noop_waker();
    let mut context = std::task::Context::from_waker(&waker);
    assert!((0..3).any(|_| verdict.as_mut().poll(&mut context).is_ready()), "each waits for the others");
}

#[test]
fn rule_about_steps_applies_to_no_call() {
    let decide =
        |rules: &OperatorRules, step| rules.decide(PolicyQuery { step, ..call("server") }).now_or_never().unwrap().rule;
    let asked = [None, Some(StepKind::Ask), Some(StepKind::Approve), Some(StepKind::AwaitExternal)];
    let approve = OperatorRule { step: Some(StepKind::Approve), ..rule("deny") };
    let rules = OperatorRules::new(vec![approve]);
    assert_eq!(
        asked.map(|step| decide(&rules, step)),
        [RuleEffect::Allow, RuleEffect::Allow, RuleEffect::Deny, RuleEffect::Allow]
    );
    assert_eq!(rules.always(Some("p"), "pay"), RuleEffect::Allow, "calls of the tool can run");
    let rules = OperatorRules::new(vec![rule("deny")]);
    assert_eq!(asked.map(|step| decide(&rules, step)), [RuleEffect::Deny; 4]);
}

#[test]
fn rule_about_steps_refuses_no_question_of_a_plugin() {
    let two = Need { quorum: 2, ..need("group:board") };
    let about = |step| OperatorRule { step, needs: vec![two.clone()], ..rule("allow") };
    assert!(OperatorRules::new(vec![about(None)]).requires_several("p", "pay").is_some());
    assert!(OperatorRules::new(vec![about(Some(StepKind::Approve))]).requires_several("p", "pay").is_none());
}
