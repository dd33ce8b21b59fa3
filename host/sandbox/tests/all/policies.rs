//! Policies: their questions and answers. A policy that misbehaves gives no answer and is contained.

use std::sync::{Arc, mpsc};

use capabilities::Capabilities;
use domain::{
    Digest, Json, Span,
    tool::{Approval, Executor, Risk},
};
use toolgate_sandbox::{
    LoadError, LoadedPolicy, NoAnswer, PolicyAnswer, PolicyError, PolicyQuestion, Sandbox, SandboxSettings,
};
use toolgate_tests::binary::replaced;
use toolgate_tests::wat::{Wat, guest, policy};

use crate::world::{Began, Heard, RUNTIME, job, run, sandbox, tight, value};

const PROCEED: &str = "(call $proceed)";

fn load(component: &[u8]) -> LoadedPolicy {
    sandbox().load_policy(Digest::of(component), component).expect("it loads")
}

fn question() -> PolicyQuestion {
    PolicyQuestion {
        tool: "pay".into(),
        plugin: "bank".into(),
        caller: "agent".into(),
        conversation: "c1".into(),
        arguments: Json::unchecked(r#"{"amount":5}"#),
        context: Some(Json::unchecked(r#"{"environment":"production"}"#)),
        executor: Executor::Client,
        approval: Approval::RequiresApproval,
        facts: Json::unchecked(r#"{"settings":{}}"#),
    }
}

fn decide(component: &[u8]) -> Result<PolicyAnswer, NoAnswer> {
    RUNTIME.block_on(load(component).decide(&question(), Span::from_millis(2_000), Arc::new(())))
}

/// Appends the text at this offset of the question, and a slash.
fn copied(at: u32) -> String {
    format!(
        "(memory.copy (local.get $to) (i32.load offset={at} (local.get $q)) (i32.load offset={} (local.get $q)))
         (local.set $to (i32.add (local.get $to) (i32.load offset={} (local.get $q))))
         (i32.store8 (local.get $to) (i32.const 124)) (local.set $to (i32.add (local.get $to) (i32.const 1)))",
        at + 4,
        at + 4
    )
}

#[test]
fn policy_gets_the_whole_call_and_its_answer_applies() {
    let texts: String = [0, 8, 16, 24, 32, 44, 56].map(copied).concat();
    let letters = "(i32.store8 (local.get $to) (i32.add (i32.const 97) (i32.load8_u offset=52 (local.get $q))))
      (i32.store8 offset=1 (local.get $to) (i32.add (i32.const 97) (i32.load8_u offset=53 (local.get $q))))";
    let body = format!(
        "(local $to i32) (local.set $to (i32.const 4096)) {texts} {letters}
         (call $ask_high (i32.const 4096) (i32.sub (i32.add (local.get $to) (i32.const 2)) (i32.const 4096)))"
    );
    let reason = r#"pay|bank|agent|c1|{"amount":5}|{"environment":"production"}|{"settings":{}}|cb"#.to_owned();
    let expected = PolicyAnswer::RequireApproval { reason: Some(reason), risk: Some(Risk::High) };
    assert_eq!(decide(&policy(&body)), Ok(expected));
    assert_eq!(decide(&policy(PROCEED)), Ok(PolicyAnswer::Proceed));
    let denied = Wat {
        body: "(call $deny (i32.const 4096) (i32.const 2))",
        items: r#"(data (i32.const 4096) "no")"#,
        ..Wat::default()
    };
    assert_eq!(decide(&denied.build_policy()), Ok(PolicyAnswer::Deny { reason: Some("no".into()) }));
}

#[test]
fn log_of_a_policy_is_limited() {
    let item = r#"(data (i32.const 4096) "looked")"#;
    let body = "(local $n i32)
      (loop $again
        (call $log (i32.const 2) (i32.const 4096) (i32.const 6))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $n) (i32.const 2000))))
      (call $proceed)";
    let component = Wat { body, items: item, ..Wat::default() }.build_policy();
    let heard = Arc::new(Heard::default());
    let answer = RUNTIME.block_on(load(&component).decide(&question(), Span::from_secs(5), heard.clone()));
    assert_eq!(answer, Ok(PolicyAnswer::Proceed));
    let log = heard.log();
    assert_eq!(log[0], "warn: looked");
    assert!(log.len() < 700 && log.iter().any(|line| line.contains("bytes of this log; the limit")));
    assert_eq!(log.last().map(String::as_str), Some("warn: looked"), "the last lines follow");
}

/// None of these policies gives an answer. The host explains the failure, and the next policy answers.
#[test]
fn misbehaving_policy_gives_no_answer_and_is_contained() {
    let answer = |first: u32| format!("(i32.store8 (i32.const 16) (i32.const {first})) (i32.const 16)");
    let long = "(memory.fill (i32.const 4096) (i32.const 120) (i32.const 100000))";
    let grow =
        "(loop $again (if (i32.ne (memory.grow (i32.const 64)) (i32.const -1)) (then (br $again)))) (unreachable)";
    let rows: [(&str, String, &str); 16] = [
        ("spins", "(loop $again (br $again)) (unreachable)".into(), "did not answer within 2000 ms"),
        ("traps", "(unreachable)".into(), "it crashed"),
        ("grows", grow.into(), "64 MiB"),
        ("an unknown answer", answer(3), "it crashed"),
        (
            "an unknown risk",
            format!(
                "{long} (drop (call $ask_high (i32.const 4096) (i32.const 1))) (i32.store8 (i32.const 29) (i32.const 9)) (i32.const 16)"
            ),
            "it crashed",
        ),
        (
            "an option with an unknown risk",
            "(drop (call $ask_high (i32.const 512) (i32.const 2))) (i32.store8 (i32.const 28) (i32.const 7)) (i32.const 16)"
                .into(),
            "it crashed",
        ),
        (
            "a reason that is too long",
            format!("{long} (call $ask_high (i32.const 4096) (i32.const 4097))"),
            "its reason has 4097 bytes",
        ),
        ("a reason out of range", "(call $ask_high (i32.const 131000) (i32.const 4000))".into(), "it crashed"),
        ("a reason that wraps", "(call $ask_high (i32.const -8) (i32.const 100))".into(), "it crashed"),
        ("a gigabyte of reason", "(call $ask_high (i32.const 0) (i32.const 1073741824))".into(), "it crashed"),
        (
            "two megabytes of reason",
            "(drop (memory.grow (i32.const 64))) (call $ask_high (i32.const 0) (i32.const 2097152))".into(),
            "more than a policy may use",
        ),
        (
            "a reason that is not UTF-8",
            "(i32.store8 (i32.const 4096) (i32.const 255)) (call $ask_high (i32.const 4096) (i32.const 1))".into(),
            "it crashed",
        ),
        (
            "no options",
            "(drop (call $ask_high (i32.const 512) (i32.const 2))) (i32.store (i32.const 36) (i32.const 0)) (i32.const 16)"
                .into(),
            "not a JSON object",
        ),
        ("an answer out of range", "(i32.const 131072)".into(), "it crashed"),
        ("an answer that is not aligned", "(i32.const 17)".into(), "it crashed"),
        (
            "calls the host forever",
            "(loop $again (call $log (i32.const 0) (i32.const 0) (i32.const 0)) (br $again)) (unreachable)".into(),
            "more than a policy may use",
        ),
    ];
    let neighbour = policy(PROCEED);
    for (what, body, expected) in rows {
        let said = decide(&policy(&body)).expect_err(what);
        assert!(said.why.contains(expected), "{what}: {said:?}");
        assert_eq!(decide(&neighbour), Ok(PolicyAnswer::Proceed), "after {what}");
    }
    let options = Wat {
        body: "(drop (call $ask_high (i32.const 512) (i32.const 2))) (i32.store (i32.const 32) (i32.const 4096))
          (i32.store (i32.const 36) (i32.const 16)) (i32.const 16)",
        items: r#"(data (i32.const 4096) "{\22approve\22:true}")"#,
        ..Wat::default()
    };
    let said = decide(&options.build_policy()).expect_err("an option");
    assert_eq!(said.why, "its answer has an option that this host does not know");
    assert_eq!(said.detail.as_deref(), Some("the option \"approve\""));
}

#[test]
fn a_policy_that_sleeps_or_recurses_gives_no_answer() {
    let sleeps = Wat {
        imports: r#"(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $wait (param i64) (result i32)))
          (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))"#,
        body: "(call $block (call $wait (i64.const 9000000000000000000))) (unreachable)",
        world: "import wasi:clocks/monotonic-clock@0.2.0;",
        packages: r"package wasi:io@0.2.0 { interface poll { resource pollable { block: func(); } } }
          package wasi:clocks@0.2.0 { interface monotonic-clock {
            use wasi:io/poll@0.2.0.{pollable}; subscribe-duration: func(when: u64) -> pollable; } }",
        ..Wat::default()
    };
    assert!(decide(&sleeps.build_policy()).expect_err("asleep").why.contains("did not answer within 2000 ms"));
    let deep = Wat {
        items: "(func $deep (param i64) (result i64)
          (i64.add (call $deep (i64.add (local.get 0) (i64.const 1))) (local.get 0)))",
        body: "(drop (call $deep (i64.const 0))) (call $proceed)",
        ..Wat::default()
    };
    assert!(decide(&deep.build_policy()).expect_err("too deep").why.contains("more than a policy may use"));
}

#[test]
fn spinning_policy_delays_no_plugin_or_other_policy() {
    let spins = load(&policy("(loop $again (br $again)) (unreachable)"));
    let echo = crate::world::load(&guest("(call $ok (local.get $args) (local.get $args_len))"));
    let spinning: Vec<_> = (0..8)
        .map(|_| {
            let spins = spins.clone();
            RUNTIME.spawn(async move { spins.decide(&question(), Span::from_secs(600), Arc::new(())).await })
        })
        .collect();
    assert_eq!(value(run(&echo, &tight()).ended), "{}");
    assert_eq!(decide(&policy(PROCEED)), Ok(PolicyAnswer::Proceed));
    assert!(spinning.iter().all(|task| !task.is_finished()), "they still spin");
    spinning.iter().for_each(tokio::task::JoinHandle::abort);
}

#[test]
fn policy_state_does_not_survive_a_decision() {
    let remembers = Wat {
        body: "(global.set $seen (i32.add (global.get $seen) (i32.const 1)))
          (if (result i32) (i32.eq (global.get $seen) (i32.const 1))
            (then (call $proceed)) (else (call $deny (i32.const 0) (i32.const 0))))",
        items: "(global $seen (mut i32) (i32.const 0))",
        ..Wat::default()
    };
    let policy = load(&remembers.build_policy());
    for _ in 0..3 {
        let answer = RUNTIME.block_on(policy.decide(&question(), Span::from_secs(5), Arc::new(())));
        assert_eq!(answer, Ok(PolicyAnswer::Proceed));
    }
}

#[test]
fn policy_is_not_asked_about_a_providers_call() {
    let asked = PolicyQuestion { executor: Executor::Provider, ..question() };
    let answer = RUNTIME.block_on(load(&policy(PROCEED)).decide(&asked, Span::from_secs(5), Arc::new(())));
    assert!(answer.is_err());
}

fn refusal(component: &[u8]) -> String {
    sandbox().load_policy(Digest::of(component), component).expect_err("refused").to_string()
}

#[test]
fn a_policy_with_other_imports_is_refused_before_compiling() {
    let greedy = Wat {
        body: PROCEED,
        imports: r#"(import "wasi:http/outgoing-handler@0.2.3" "handle" (func))
          (import "wasi:keyvalue/store@0.2.0-draft2" "open" (func (param i32 i32 i32)))
          (import "toolgate:plugin/host@0.1.0" "log" (func (param i32 i32 i32)))"#,
        world: "import wasi:http/outgoing-handler@0.2.3; import wasi:keyvalue/store@0.2.0-draft2;
          import toolgate:plugin/host@0.1.0;",
        packages: "package wasi:http@0.2.3 { interface outgoing-handler { handle: func(); } }
          package wasi:keyvalue@0.2.0-draft2 { interface store { open: func(name: string) -> result<u32, string>; } }
          package toolgate:plugin@0.1.0 { interface host { log: func(level: u32, message: string); } }",
        ..Wat::default()
    };
    let component = greedy.build_policy();
    let PolicyError::Imports(mut found) = Sandbox::inspect_policy(&component).expect_err("refused") else {
        panic!("another refusal")
    };
    found.sort();
    let expected =
        ["`toolgate:plugin/host@0.1.0`", "`wasi:http/outgoing-handler@0.2.3`", "`wasi:keyvalue/store@0.2.0-draft2`"];
    assert_eq!(found, expected);
    assert!(refusal(&component).starts_with("a policy cannot use capabilities, and this one imports `"));
}

#[test]
fn plugins_and_policies_are_not_interchangeable() {
    let plugin = guest("(call $ok (local.get $args) (local.get $args_len))");
    assert!(refusal(&plugin).starts_with("not a policy: it does not export `toolgate:policy/judge@0.1.x`"));
    let policy = policy(PROCEED);
    let refused = sandbox().load(Digest::of(&policy), &policy, Capabilities::EVERY);
    assert!(matches!(refused, Err(LoadError::NotAPlugin { .. })), "{refused:?}");
    assert!(refusal(b"\0asm\x01\0\0\0").starts_with("a core module"));
    assert!(refusal(b"").starts_with("this is an empty file and not a WebAssembly component"));
}

#[test]
fn policy_of_another_version_is_refused_with_the_reason() {
    let of = |version: &str| replaced(policy(PROCEED), "@0.1.0", &format!("@{version}"));
    for version in ["0.2.0", "1.0.0"] {
        let said = format!(
            "built against version {version} of toolgate:policy; this host supports 0.1, up to 0.1.0: build it against 0.1.0, or \
             use a host that supports {version}"
        );
        assert_eq!(refusal(&of(version)), said);
    }
    let component = of("0.1.9");
    sandbox().load_policy(Digest::of(&component), &component).expect("it needs no newer host");
    let logs =
        Wat { body: "(call $log (i32.const 1) (i32.const 4096) (i32.const 1)) (call $proceed)", ..Wat::default() };
    let newer = replaced(replaced(logs.build_policy(), "@0.1.0", "@0.1.9"), "log", "lag");
    assert_eq!(
        refusal(&newer),
        "it needs `lag` of the interface `host`, which this host does not have: it was built against version 0.1.9 of \
         toolgate:policy, and this host has 0.1.0: use a newer host, or build it against 0.1.0"
    );
}

#[test]
fn limits_of_components_apply_to_policies() {
    let small =
        Sandbox::new(SandboxSettings { pool: 2, max_component: 100, ..SandboxSettings::default() }).expect("a sandbox");
    let component = policy(PROCEED);
    let refused = small.load_policy(Digest::of(&component), &component);
    assert!(matches!(refused, Err(PolicyError::Load(LoadError::TooLarge { max: 100, .. }))), "{refused:?}");
}

#[test]
fn code_of_a_policy_stays_cached() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = SandboxSettings { cache: Some(folder.path().to_owned()), pool: 2, ..SandboxSettings::default() };
    let sandbox = Sandbox::new(settings).expect("a sandbox");
    let (kept, gone) = (policy(PROCEED), guest("(call $ok (local.get $args) (local.get $args_len))"));
    sandbox.load_policy(Digest::of(&kept), &kept).expect("it loads");
    sandbox.load(Digest::of(&gone), &gone, Capabilities::default()).expect("it loads");
    assert_eq!(sandbox.retain(&std::collections::HashSet::new()).expect("a folder"), 1);
}

#[test]
fn policy_answers_while_plugins_use_all_memory() {
    // A guest has two pages, and so has a policy.
    let settings = SandboxSettings { pool: 16, guest_memory: 16 << 16, ..SandboxSettings::default() };
    let sandbox = Sandbox::new(settings).expect("a sandbox");
    let policy = policy(PROCEED);
    let policy = sandbox.load_policy(Digest::of(&policy), &policy).expect("it loads");
    let component =
        guest("(call $log (i32.const 1) (i32.const 4096) (i32.const 1)) (loop $again (br $again)) (unreachable)");
    let spin = sandbox.load(Digest::of(&component), &component, Capabilities::default()).expect("it loads");
    let (began, has_begun) = mpsc::channel();
    // Nothing is known about this plugin, so its first call takes all memory that plugins may have.
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let (spin, began) = (spin.clone(), Began(began.clone()));
            RUNTIME.spawn(async move { spin.run(&job("large", "{}"), &tight(), Arc::new(began)).await })
        })
        .collect();
    has_begun.recv().expect("it logs a line as it begins");
    for _ in 0..3 {
        let answer = RUNTIME.block_on(policy.decide(&question(), Span::from_millis(2_000), Arc::new(())));
        assert_eq!(answer, Ok(PolicyAnswer::Proceed));
    }
    assert!(calls.iter().all(|call| !call.is_finished()), "one runs and the others wait");
    calls.iter().for_each(tokio::task::JoinHandle::abort);
}
