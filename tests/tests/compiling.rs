//! Components that exceed the compile limits. Each is refused by name, and the host answers meanwhile.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::process::Command;
use std::thread;

use serde_json::{Value, json};
use toolgate_tests::binary::with_section;
use toolgate_tests::guests::{fixture, plugin};
use toolgate_tests::host::{Host, Setup};

/// A legal component with this core module inside.
fn with_module(text: &str) -> Vec<u8> {
    let module = wat::parse_str(text).unwrap();
    with_section(fixture(&json!([{"name": "bomb"}])), 1, &module)
}

/// Functions that take long to compile: straight lines with many dependencies.
fn bomb(functions: usize) -> Vec<u8> {
    let line = "(local.set 0 (i64.rotl (i64.add (local.get 0) (local.get 1)) (local.get 2)))
      (local.set 1 (i64.xor (local.get 1) (local.get 0))) (local.set 2 (i64.mul (local.get 2) (local.get 1)))";
    let function = format!("(func (param i64 i64 i64) {})", line.repeat(20_000));
    with_module(&format!("(module {})", function.repeat(functions)))
}

/// The first finding about a refused component.
fn finding(host: &Host, name: &str, component: &[u8]) -> Value {
    host.admin.put(&format!("/v1/plugins/{name}"), component).problem(422, "plugin-refused")["findings"][0].clone()
}

#[test]
fn compile_bomb_is_refused_while_the_host_answers() {
    // So that processor time is the limit that ends it, even on a busy machine.
    let host = Setup::with(&["lab"]).tables("[compile]\ntime_ms = 2000\nwall_ms = 600000").start();
    let (bomb, flood) = (bomb(60), with_module(&format!("(module {})", "(func)".repeat(100_000))));
    let answered = thread::scope(|scope| {
        let refused = scope.spawn(|| finding(&host, "bomb", &bomb));
        let mut answered = 0;
        while !refused.is_finished() {
            let id = format!("call-{answered}");
            let calls = json!([{"id": id, "tool": "echo", "arguments": {"value": answered}}]);
            let turn = host.agent.submit("meanwhile", calls);
            assert_eq!(turn["calls"][0]["outcome"], "ok", "{turn:#}");
            answered += 1;
        }
        let refused = refused.join().unwrap();
        assert_eq!(refused["rule"], "compile-cost", "{refused:#}");
        assert!(
            refused["message"].as_str().unwrap().contains("takes more than 2000 ms of processor time"),
            "{refused:#}"
        );
        assert!(refused["remedy"].as_str().unwrap().contains("[compile]"), "{refused:#}");
        answered
    });
    assert!(answered > 0, "calls ended while the bomb was compiled");
    let refused = finding(&host, "flood", &flood);
    assert_eq!(refused["rule"], "component-structure", "{refused:#}");
    assert!(refused["message"].as_str().unwrap().contains("functions"), "{refused:#}");
}

#[test]
fn refusal_names_too_much_compile_memory_or_code() {
    let host = Setup::default().tables("[compile]\nmemory_bytes = 40_000_000").start();
    let refused = finding(&host, "bomb", &bomb(30));
    assert_eq!(refused["rule"], "compile-cost", "{refused:#}");
    assert!(refused["message"].as_str().unwrap().contains("memory_bytes"), "{refused:#}");

    let host = Setup::default().tables("[compile]\noutput_bytes = 20_000\ncomponent_bytes = 1_000_000").start();
    let refused = finding(&host, "lab", &plugin("lab"));
    assert!(refused["message"].as_str().unwrap().contains("output_bytes"), "{refused:#}");
    let large = with_module(&format!("(module (memory 20) (data (i32.const 0) \"{}\"))", "x".repeat(1_000_000)));
    assert_eq!(finding(&host, "large", &large)["rule"], "component-file");
}

#[test]
fn check_compiles_under_the_same_limits() {
    let host = Setup::default().tables("[compile]\noutput_bytes = 20_000").prepare();
    fs::write(host.folder().join("lab.wasm"), plugin("lab")).unwrap();
    let said = host.cli(None, &["check", "lab.wasm", "--config", "toolgate.toml"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("[compile-cost]"), "{said:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn serve_runs_code_that_check_compiled() {
    let mut host = Setup::with(&["lab"]).without_compiler().prepare();
    let said = host.cli(None, &["check", "plugins/lab.wasm"]);
    assert_eq!(said.code, 0, "{said:?}");
    host.start();
    let echo = json!([{"id": "a", "tool": "echo", "arguments": {"value": 1}}]);
    assert_eq!(host.agent.submit("c", echo)["calls"][0]["outcome"], "ok");
    let other = fixture(&json!([{"name": "never_compiled"}]));
    // The proof that this host cannot compile.
    host.admin.put("/v1/plugins/other", &other).problem(500, "fault");
}

/// The signal STOP keeps the compiler from its end until the test continues it.
#[test]
#[cfg(target_os = "linux")]
fn host_answers_while_a_plugin_loads() {
    let signal = |name: &str, process: u32| {
        let sent = Command::new("kill").args([name, &process.to_string()]).status().unwrap();
        assert!(sent.success(), "{name}");
    };
    let mut host = Setup::with(&["lab"]).start();
    host.kill();
    fs::write(host.plugin_file("slow"), bomb(40)).unwrap();
    host.start_loading();
    // The first answer comes after the host has tried its compiler. Its only other child compiles the slow plugin, because the
    // code of `lab` is in the data folder.
    let healthy = host.stranger().get("/healthz");
    let compiler = loop {
        if let [compiler] = children(host.process())[..] {
            break compiler;
        }
        assert_eq!(host.stranger().get("/readyz").status, 503, "the slow plugin is compiled already");
    };
    signal("-STOP", compiler);
    assert_eq!(healthy.status, 200, "{}", healthy.text);
    let _ = host.stranger().get("/readyz").problem(503, "loading");
    let plugins = || host.admin.get("/v1/status").ok(200)["plugins"].clone();
    assert_eq!(plugins(), json!({"live": ["lab"], "loading": ["slow"], "rejected": []}));
    let said = host.cli(None, &["status"]);
    assert!(said.code == 0 && said.out.contains("  loading   slow\n"), "{said:?}");
    assert_eq!(host.agent.call("c", "echo", json!({"value": 1}))["calls"][0]["outcome"], "ok");
    let unknown = json!({"calls": [{"id": "a", "tool": "bomb", "arguments": {}}]});
    let _ = host.agent.post("/v1/conversations/c/turns", &unknown).problem(503, "loading");
    signal("-CONT", compiler);
    host.admin.until("/v1/status", |status| (status.json()["plugins"]["loading"] == json!([])).then_some(()));
    assert_eq!(plugins(), json!({"live": ["lab", "slow"], "loading": [], "rejected": []}));
    assert_eq!(host.stranger().get("/readyz").status, 200);
    assert_eq!(host.agent.call("c", "bomb", json!({}))["calls"][0]["outcome"], "ok");
}

#[test]
#[cfg(target_os = "linux")]
fn a_compiler_does_not_outlive_its_host() {
    let mut host = Setup::default().start();
    let parent = host.process();
    host.drop_in("bomb", &bomb(30));
    let compilers = loop {
        let children = children(parent);
        if !children.is_empty() {
            break children;
        }
        thread::yield_now();
    };
    host.kill();
    for compiler in compilers {
        while is_alive(compiler) {
            thread::yield_now();
        }
    }
}

#[test]
fn status_names_plugins_and_the_confinement_of_the_compiler() {
    let mut host = Setup::with(&["lab"]).start();
    host.admin.put("/v1/plugins/broken", b"no component").problem(422, "plugin-refused");
    let status = host.admin.get("/v1/status").ok(200);
    assert_eq!(status["plugins"], json!({"live": ["lab"], "loading": [], "rejected": ["broken"]}), "{status:#}");
    assert_eq!((&status["store"], &status["compiler"]["own_process"]), (&json!("ok"), &json!(true)), "{status:#}");
    let is_known = cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")));
    assert_eq!(status["compiler"]["seccomp"], is_known, "{status:#}");
    let counts = json!({"live": 1, "loading": 0, "rejected": 1});
    assert_eq!(status["plugin_counts"], counts, "{status:#}");
    // Others learn nothing that lists of tools do not say.
    let version = &status["version"];
    let shown = json!({"version": version, "store": "ok", "plugin_counts": counts, "plugins": {"live": ["lab"]}});
    for by in [&host.agent, &host.approver, &host.page] {
        assert_eq!(by.get("/v1/status").ok(200), shown);
    }
    let said = host.cli(Some(&host.agent), &["status"]);
    let expected = format!(
        "toolgate {}\n  store     ok\n  live      lab\n  loading   none\n  refused   1\n",
        version.as_str().unwrap()
    );
    assert_eq!((said.code, said.out.as_str()), (0, expected.as_str()), "{said:?}");

    let said = host.cli(None, &["status"]);
    for line in [
        "  store     ok",
        "  live      lab",
        "  loading   none",
        "  refused   broken",
        "  compiler  in its own process",
    ] {
        assert!(said.out.contains(line), "{line}: {said:?}");
    }
    let json: Value = serde_json::from_str(&host.cli(None, &["status", "--json"]).out).unwrap();
    assert_eq!(json, status);
    host.kill();
    // The killed host has left its address. Nobody gets the token there.
    assert_eq!(host.cli(None, &["status"]).code, 3);
}

/// The children of a process.
fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    entries.filter(|id| status(*id).is_some_and(|(_, of)| of == parent)).collect()
}

/// Whether a process runs. A zombie does not.
fn is_alive(id: u32) -> bool {
    status(id).is_some_and(|(state, _)| state != 'Z' && state != 'X')
}

/// The state of a process and its parent: the two words after its name.
fn status(id: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut words = text.rsplit_once(')')?.1.split_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}
