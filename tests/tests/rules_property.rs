//! The whole loop with random rules, policies, people, edits, clock jumps and restarts with stricter rules. No call
//! runs if the current rules deny it or a required approval is missing. The test computes the expected decision from
//! the random rules, and the approvals from the events.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "../../host/domain/tests/support/approved.rs"]
mod approved;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use approved::{Call, PEOPLE, check, parsed};
use async_trait::async_trait;
use dispatch::ports::{Clock as _, Filter, Log as _, PolicyQuery, Run};
use dispatch::{Answer, Dispatcher, Handle, Parts, TurnRequest};
use domain::{
    Digest, Event, Json, Principal, Span, StandingId, TurnId,
    approvers::{Escalate, Need},
    event::{CallEvent, Rejection},
    gate::{RuleEffect, Verdict},
    principal::{Channels, Named, Role},
    standing::{Pin, StandingTerms},
    tool::{OnExpiry, Recovery},
    turn::TurnSettings,
};
use policy::{Combined, Condition, Dynamic, OperatorRule, Pattern, Test};
use toolgate_tests::domain;
use toolgate_tests::random::Random;
use toolgate_tests::requests::{answer, call, done, principal, turn};
use toolgate_tests::tools::WordTools;
use toolgate_tests::world::{World, rounds};

const TOOLS: [&str; 7] = [
    "server",
    "server!",
    "server!:recovery=ask",
    "client!",
    "server:recovery=ask",
    "client!:expiry=approve",
    "server!:expiry=approve",
];

/// Values of the only argument. For the last three, the dynamic policy asks, denies, and fails.
const VALUES: i64 = 7;
const ASKED: i64 = 4;
const DENIED: i64 = 5;
const FAILED: i64 = 6;

/// The possible approvers.
const WHO: [&[&str]; 5] = [&[], &["group:finance"], &["group:security"], &["principal:ann"], &["role:admin"]];

/// A random rule.
#[derive(Debug, Clone)]
struct Drawn {
    name: String,
    tools: &'static str,
    caller: Option<&'static str>,
    between: Option<(i64, i64)>,
    rule: RuleEffect,
    ungate: bool,
    needs: Vec<Need>,
}

impl Drawn {
    fn draw(name: String, random: &mut Random, rule: RuleEffect) -> Self {
        let tools = *random.pick(&["*", "tool_*", "tool_0", "tool_1", "tool_2", "tool_3", "tool_5", "tool_6"]);
        let low = i64::try_from(random.below(5)).unwrap();
        let need = |random: &mut Random| {
            let wider = random.once_in(3).then(|| Escalate {
                after: Span::from_secs(1 + random.bits() % 600),
                to: parsed(WHO[random.below(WHO.len())]),
            });
            let quorum = if random.once_in(3) { 2 } else { 1 };
            Need {
                who: parsed(WHO[random.below(WHO.len())]),
                quorum,
                escalate: wider.filter(|wider| !wider.to.is_empty()),
                via: Channels::ANY,
            }
        };
        let needs = if rule == RuleEffect::Deny { 0 } else { random.below(2) };
        Self {
            name,
            tools,
            caller: *random.pick(&[None, None, Some("agent"), Some("b*")]),
            between: random.once_in(2).then(|| (low, low + i64::try_from(random.below(4)).unwrap())),
            rule,
            ungate: rule == RuleEffect::Allow && !tools.contains('*') && random.once_in(2),
            needs: (0..needs).map(|_| need(random)).collect(),
        }
    }

    fn rule(&self) -> OperatorRule {
        let number = |n: i64| Some(n.to_string().parse().unwrap());
        let condition = |(min, max)| Condition {
            pointer: "/v".parse().unwrap(),
            test: Test::Range { min: number(min), max: number(max) },
            not: false,
        };
        OperatorRule {
            caller: self.caller.map(|caller| caller.parse().unwrap()),
            conditions: self.between.map(condition).into_iter().collect(),
            ungate: self.ungate,
            needs: if self.ungate { Vec::new() } else { self.needs.clone() },
            ..OperatorRule::new(&self.name, Pattern::new(self.tools).unwrap(), self.rule)
        }
    }

    fn is_about(&self, tool: usize, value: i64) -> bool {
        (self.tools.ends_with('*') || self.tools == format!("tool_{tool}"))
            && self.caller != Some("b*")
            && self.between.is_none_or(|(low, high)| (low..=high).contains(&value))
    }
}

/// The expected decision of rules and dynamic policy about a call.
#[derive(Debug, Clone, PartialEq, Default)]
struct Decision {
    denied: bool,
    asks: Vec<String>,
    gated: bool,
    needs: Vec<Need>,
}

fn decision(rules: &[Drawn], tool: usize, value: i64) -> Decision {
    let fit: Vec<&Drawn> = rules.iter().filter(|rule| rule.is_about(tool, value)).collect();
    let mut asks: Vec<String> =
        fit.iter().filter(|rule| rule.rule == RuleEffect::Ask).map(|rule| rule.name.clone()).collect();
    if value == ASKED || value == FAILED {
        asks.push("dynamic".into());
    }
    asks.sort();
    let needs = fit.iter().filter(|rule| !rule.ungate).flat_map(|rule| rule.needs.iter().cloned());
    let needs: BTreeSet<Need> = needs.collect();
    let lifted = asks.is_empty() && fit.iter().any(|rule| rule.ungate);
    Decision {
        denied: value == DENIED || fit.iter().any(|rule| rule.rule == RuleEffect::Deny),
        gated: !asks.is_empty() || (TOOLS[tool].contains('!') && !lifted),
        asks,
        needs: needs.into_iter().collect(),
    }
}

struct Dyn;

#[async_trait]
impl Dynamic for Dyn {
    fn name(&self) -> &str {
        "dynamic"
    }

    fn concerns(&self, _question: &PolicyQuery) -> bool {
        true
    }

    async fn decide(&self, question: &PolicyQuery) -> Verdict {
        match value(&question.arguments) {
            ASKED => Verdict { rule: RuleEffect::Ask, ..Verdict::default() },
            DENIED => Verdict { rule: RuleEffect::Deny, ..Verdict::default() },
            FAILED => Verdict { rule: RuleEffect::Ask, policy_failed: true, ..Verdict::default() },
            _ => Verdict::default(),
        }
    }
}

fn written(value: i64) -> String {
    format!("{{\"v\":{value}}}")
}

fn arguments(value: i64) -> Json {
    Json::unchecked(written(value))
}

fn value(arguments: &Json) -> i64 {
    serde_json::from_str::<serde_json::Value>(arguments.as_str()).unwrap()["v"].as_i64().unwrap()
}

fn person(n: usize) -> Principal {
    let (name, groups, roles) = PEOPLE[n];
    let mut principal = Principal::new(name.parse().unwrap(), roles.iter().copied());
    principal.groups = groups.iter().map(|group| group.parse().unwrap()).collect();
    principal
}

/// A submitted call and the decision at submission.
struct Submitted {
    tool: usize,
    decided: Decision,
    call: Call,
}

/// The parts that survive each life of the host.
struct RandomRules {
    seed: u64,
    random: Random,
    rules: Vec<Drawn>,
    lasting: World,
    turns: BTreeMap<TurnId, Vec<Submitted>>,
    /// The runs that were not allowed, in words.
    wrong: Arc<Mutex<Vec<String>>>,
    starts: usize,
    stood: usize,
}

impl RandomRules {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let rules = (0..random.below(5)).map(|n| {
            let rule = *random.pick(&[
                RuleEffect::Allow,
                RuleEffect::Allow,
                RuleEffect::Ask,
                RuleEffect::Ask,
                RuleEffect::Deny,
            ]);
            Drawn::draw(format!("rule-{n}"), &mut random, rule)
        });
        let rules = rules.collect();
        Self {
            seed,
            random,
            rules,
            lasting: World::default(),
            turns: BTreeMap::new(),
            wrong: Arc::default(),
            starts: 0,
            stood: 0,
        }
    }

    fn start(&mut self) -> Dispatcher {
        let (clock, wrong) = (self.lasting.clock.clone(), self.wrong.clone());
        let (rules, delays) = (self.rules.clone(), Mutex::new(Random::new(self.random.bits())));
        let run = move |run: Run| {
            let tool = run.tool.strip_prefix("tool_").unwrap().parse().unwrap();
            if decision(&rules, tool, value(&run.arguments)).denied {
                wrong.lock().unwrap().push(format!("{} ran with {}", run.tool, run.arguments));
            }
            let (clock, delay) = (clock.clone(), Span::from_millis(delays.lock().unwrap().bits() % 20_000));
            async move {
                clock.sleep(delay).await;
                done()
            }
        };
        // The order of rules does not matter.
        let mut rules: Vec<_> = self.rules.iter().map(Drawn::rule).collect();
        let turned = self.random.below(rules.len().max(1));
        rules.rotate_left(turned);
        Dispatcher::start(Parts {
            policy: Arc::new(Combined::new(policy::OperatorRules::new(rules), vec![Arc::new(Dyn)])),
            settings: TurnSettings { denied_again: Span::from_secs(60), ..TurnSettings::default() },
            ..self.lasting.parts(Arc::new(WordTools::new(&TOOLS, run)))
        })
    }

    async fn submit(&mut self, handle: &Handle) {
        let n = self.turns.len();
        let alike = self.random.once_in(3);
        let mut drawn: Vec<(usize, i64)> = Vec::new();
        for _ in 0..=self.random.below(3) {
            let value = i64::try_from(self.random.below(usize::try_from(VALUES).unwrap())).unwrap();
            let one = (self.random.below(TOOLS.len()), value);
            drawn.push(if alike { *drawn.first().unwrap_or(&one) } else { one });
        }
        let calls = drawn
            .iter()
            .enumerate()
            .map(|(index, (tool, value))| call(&format!("c{n}_{index}"), &format!("tool_{tool}"), written(*value)));
        let calls: Vec<_> = calls.collect();
        let rejection = Rejection::ALL[self.random.below(3)];
        let request = TurnRequest { rejection, ..turn("talk", calls) };
        let agent = principal(PEOPLE[0].0, Role::Caller);
        let turn = handle.submit(&agent, request).await.unwrap().turn;
        let submitted = drawn.into_iter().map(|(tool, value)| self.submitted(tool, value)).collect();
        self.turns.insert(turn.id, submitted);
    }

    fn submitted(&self, tool: usize, value: i64) -> Submitted {
        let now = decision(&self.rules, tool, value);
        let edited = |value| {
            let decided = decision(&self.rules, tool, value);
            (written(value), (!decided.denied).then_some(decided.needs))
        };
        let recovery = if TOOLS[tool].contains("ask") { Recovery::Ask } else { Recovery::Retry };
        let failed = value == FAILED;
        let call = Call {
            arguments: arguments(value),
            declaration: Digest::of(TOOLS[tool]),
            verdicts: (0..VALUES).map(edited).collect(),
            needs: if now.gated { now.needs.clone() } else { Vec::new() },
            by_rule: !now.asks.is_empty(),
            policy_failed: failed,
            gated: now.gated,
            beforehand: true,
            on_expiry: if TOOLS[tool].contains("approve") { OnExpiry::Approve } else { OnExpiry::Error },
            recovery,
        };
        Submitted { tool, decided: now, call }
    }

    async fn answer(&mut self, handle: &Handle) {
        let open = Filter { open: Some(true), ..Filter::default() };
        let items = handle.suspensions(&person(6), open, None, 50).await.unwrap().items;
        if items.is_empty() {
            return;
        }
        // Complete a few, so that some approvals by several people end.
        let item = items[self.random.below(items.len().min(3))].clone();
        let by = person(self.random.below(PEOPLE.len()));
        let suspension = item.suspension.id;
        if self.random.once_in(6) {
            let to = self.random.below(PEOPLE.len() + 1);
            let nobody = || Named::Nobody("nobody".parse().unwrap());
            let to = if to < PEOPLE.len() { Named::Somebody(person(to)) } else { nobody() };
            let _ = handle.delegate(&by, suspension, to, None).await;
            return;
        }
        let approve = !self.random.once_in(10);
        let edit = i64::try_from(self.random.below(7)).unwrap();
        let terms = StandingTerms { time: Span::from_secs(300), uses: 2, pin: Pin::All };
        let _ = handle
            .resolve(
                &by,
                Answer {
                    arguments: (approve && self.random.once_in(6)).then(|| arguments(edit)),
                    standing: (approve && self.random.once_in(2)).then_some(terms),
                    ..answer(suspension, if approve { "approve" } else { "deny" })
                },
            )
            .await;
    }

    /// One life of the host. Running calls are killed at its end.
    async fn live(&mut self) {
        let host = self.start();
        let handle = host.handle();
        for _ in 0..30 + self.random.below(30) {
            match self.random.below(10) {
                0..2 => self.submit(&handle).await,
                2..9 => self.answer(&handle).await,
                // Sometimes nobody answers until the suspension expires.
                _ => {
                    let longest = if self.random.once_in(10) { 7_200_000 } else { 120_000 };
                    self.lasting.clock.advance(Span::from_millis(self.random.bits() % longest));
                }
            }
            rounds(100).await;
        }
    }

    async fn check(&mut self) {
        let wrong = self.wrong.lock().unwrap().clone();
        assert!(wrong.is_empty(), "seed {}: {wrong:?} under {:#?}", self.seed, self.rules);
        let mut given: HashMap<StandingId, (usize, i64, Decision, u32)> = HashMap::new();
        let mut used: Vec<(StandingId, usize, i64, Decision)> = Vec::new();
        for (turn, submitted) in &self.turns {
            let facts = self.lasting.store.load(*turn).await.unwrap().found().unwrap().events;
            let calls: Vec<Call> = submitted.iter().map(|submitted| submitted.call.clone()).collect();
            check(&facts, &calls);
            for fact in &facts {
                match fact {
                    Event::Call { event: CallEvent::Started { .. }, .. } => self.starts += 1,
                    Event::Call { call, event: CallEvent::Covered { standing, .. } } => {
                        let Submitted { tool, decided, call } = &submitted[call.get()];
                        used.push((standing.id, *tool, value(&call.arguments), decided.clone()));
                    }
                    Event::Call { call, event: CallEvent::Resolved { resolution, .. } } => {
                        let Submitted { tool, decided, call } = &submitted[call.get()];
                        let approved = value(resolution.arguments.as_ref().unwrap_or(&call.arguments));
                        let standing = resolution.standing.as_ref();
                        let row = |uses| (*tool, approved, decided.clone(), uses);
                        given.extend(standing.map(|standing| (standing.id, row(standing.uses))));
                    }
                    _ => {}
                }
            }
        }
        for (id, tool, value, decided) in &used {
            let (of, approved, asked, uses) = &given[id];
            assert_eq!((of, approved, asked), (tool, value, decided), "seed {}", self.seed);
            let times = used.iter().filter(|(other, ..)| other == id).count();
            assert!(times <= *uses as usize, "seed {}: used {times} times", self.seed);
        }
        self.stood += used.len();
    }
}

#[test]
fn denied_or_unapproved_call_never_runs() {
    let (mut starts, mut stood) = (0, 0);
    for seed in 0..120 {
        let mut world = RandomRules::new(seed);
        for life in 0..3 {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(world.live());
            drop(runtime);
            // The operator adds a stricter rule and restarts the host.
            if world.random.once_in(2) {
                let more = Drawn::draw(format!("later-{life}"), &mut world.random, RuleEffect::Deny);
                world.rules.push(more);
            }
        }
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(world.check());
        (starts, stood) = (starts + world.starts, stood + world.stood);
    }
    assert!(
        starts > 800 && stood > 15,
        "too few events to prove anything: {starts} starts, {stood} standing approvals"
    );
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A server tool is checked once more before it runs. For a client tool, the approval is the last moment to check.
#[test]
fn client_call_that_is_denied_now_cannot_be_approved() {
    let mut world = RandomRules::new(0);
    world.rules.clear();
    let request = turn("talk", [call("c", "tool_3", written(1))]);
    let suspension = block_on(async {
        let agent = principal(PEOPLE[0].0, Role::Caller);
        let turn = world.start().handle().submit(&agent, request).await.unwrap().turn;
        turn.pending().next().unwrap().2.id
    });
    let forbids = Drawn {
        tools: "tool_3",
        caller: None,
        between: None,
        ..Drawn::draw("later".into(), &mut world.random, RuleEffect::Deny)
    };
    world.rules.push(forbids);
    block_on(async {
        let handle = world.start().handle();
        let refused = handle.resolve(&person(4), answer(suspension, "approve")).await.unwrap_err().to_string();
        assert_eq!(refused, "the policy denies the call with these arguments");
        assert_eq!(handle.resolve(&person(4), answer(suspension, "deny")).await.unwrap().state.as_str(), "deny");
    });
}
