//! `toolgate dev` in every language but Rust, which `doors_cli/developing.rs` has: from what `toolgate new` writes.

use std::fs;

use serde_json::json;
use toolgate_tests::dev::{Dev, change, has};
use toolgate_tests::host::{Host, Setup};

use super::{done, left_out, root};

/// What is done to the template of a language.
struct Trial {
    language: &'static str,
    /// The source, in the plugin's folder.
    source: &'static str,
    /// Makes the first example's result greater by one.
    changed: (&'static str, &'static str),
    /// What the first example says then.
    differs: &'static str,
    /// Makes it what the language's compiler does not take.
    broken: (&'static str, &'static str),
    /// Where that is, in the compiler's own words.
    place: &'static str,
}

fn start(host: &Host, words: &[&str]) -> Dev {
    Dev::start(host, "hello", words, &[("TOOLGATE_CACHE", root().join("target/toolchains"))])
}

#[track_caller]
fn check(trial: &Trial) {
    if left_out() {
        return;
    }
    let host = Setup::default().prepare();
    done(&host, &["new", "hello", "--lang", trial.language]);
    let source = host.folder().join("hello").join(trial.source);
    let mut dev = start(&host, &["--plugins", "plugins"]);
    let said = dev.round();
    has(&said, "built hello/build/hello.wasm: hello_count");
    has(&said, "loaded hello");
    has(&said, "ok hello_count");

    change(&source, trial.changed);
    let said = dev.round();
    has(&said, "loaded hello");
    has(&said, "differs hello_count");
    has(&said, trial.differs);
    let (good, live) = (fs::read_to_string(&source).unwrap(), fs::read(host.plugin_file("hello")).unwrap());

    let _ = dev.errors();
    change(&source, trial.broken);
    assert_eq!(dev.round(), ["not loaded: what was loaded before stays"]);
    let errors = dev.errors();
    assert!(errors.contains(trial.place), "{} is not in: {errors}", trial.place);
    assert!(fs::read(host.plugin_file("hello")).unwrap() == live, "what a host has is what was built before");

    fs::write(&source, good).unwrap();
    has(&dev.round(), "loaded hello");
    assert_eq!(dev.interrupt(), 0);
}

#[test]
fn python() {
    check(&Trial {
        language: "python",
        source: "plugin.py",
        changed: ("len(text.split())", "len(text.split()) + 1"),
        differs: "  expected 4, got 5",
        broken: ("return len", "return = len"),
        place: "plugin.py\", line 11",
    });
}

#[test]
fn javascript() {
    check(&Trial {
        language: "js",
        source: "plugin.js",
        changed: ("return words.length;", "return words.length + 1;"),
        differs: "  expected 3, got 4",
        broken: ("return words.length", "return = words.length"),
        place: "plugin.js:21:",
    });
}

#[test]
fn typescript() {
    check(&Trial {
        language: "ts",
        source: "plugin.ts",
        changed: ("return words.length;", "return words.length + 1;"),
        differs: "  expected 3, got 4",
        broken: ("return words.length", "return words.size"),
        place: "plugin.ts(17,",
    });
}

#[test]
fn go() {
    check(&Trial {
        language: "go",
        source: "plugin.go",
        changed: ("len(strings.Fields(args.Text))", "len(strings.Fields(args.Text)) + 1"),
        differs: "  expected 4, got 5",
        broken: ("return len", "return := len"),
        place: "plugin.go:16:",
    });
}

#[test]
fn c() {
    check(&Trial {
        language: "c",
        source: "plugin.c",
        changed: ("uint64_t words = 0;", "uint64_t words = 1;"),
        differs: "  expected 4, got 5",
        broken: ("uint64_t words = 1;", "uint64_t words = ;"),
        place: "plugin.c:8:",
    });
}

/// As its `--help` says: the call that is named, in the place of the examples.
#[test]
fn the_call_that_is_named_is_made_after_each_build() {
    if left_out() {
        return;
    }
    let host = Setup::default().prepare();
    done(&host, &["new", "hello", "--lang", "c"]);
    let source = host.folder().join("hello/plugin.c");
    let mut dev = start(&host, &["--call", "hello_count", r#"{"text":"a b c"}"#]);
    let said = dev.round();
    has(&said, "hello_count  3  (");
    assert!(!said.iter().any(|line| line.starts_with("ok ")), "the examples are not called: {said:#?}");
    change(&source, ("uint64_t words = 0;", "uint64_t words = 7;"));
    has(&dev.round(), "hello_count  10  (");
    // A tool that is gone is said to be gone, and what was built is loaded.
    change(&source, ("hello_count", "hello_counts"));
    let said = dev.round();
    has(&said, "loaded hello");
    assert!(!said.iter().any(|line| line.starts_with("not loaded")), "{said:#?}");
    let errors = dev.errors();
    assert!(errors.contains("there is no tool \"hello_count\"") && errors.contains("hello_counts"), "{errors}");
    assert_eq!(dev.interrupt(), 0);

    let mut dev = start(&host, &["--call", "hello_counts", r#"{"text":4}"#]);
    has(&dev.round(), "hello_counts  invalid_arguments: ");
    drop(dev);
    let said = host.cli(None, &["dev", "hello", "--call", "hello_counts", "{nonsense"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""), "nothing is built for it: {said:?}");
    assert!(said.err.contains("the arguments are not JSON"), "{said:?}");
}

/// With `--plugins`, a host that runs has each build, and keeps what it had when one fails.
#[test]
fn a_host_that_runs_is_given_what_is_built() {
    if left_out() {
        return;
    }
    let host = Setup::default().start();
    let mut events = host.admin.events("/v1/events?after=now");
    let mut loaded = || {
        let event = events.until(|event| event.data["plugin"] == "hello").pop().unwrap();
        assert_eq!(event.name, "plugin.loaded", "{:#}", event.data);
    };
    let count =
        || host.agent.call("c", "hello_count", json!({"text": "a b c"}))["calls"][0]["content"]["result"].clone();
    done(&host, &["new", "hello", "--lang", "c"]);
    let source = host.folder().join("hello/plugin.c");
    let mut dev = start(&host, &["--plugins", "plugins"]);
    has(&dev.round(), "copied to plugins/hello.wasm");
    loaded();
    assert_eq!(count(), 3);
    change(&source, ("uint64_t words = 0;", "uint64_t words = 7;"));
    has(&dev.round(), "copied to plugins/hello.wasm");
    loaded();
    assert_eq!(count(), 10);
    change(&source, ("uint64_t words = 7;", "uint64_t words = ;"));
    assert_eq!(dev.round(), ["not loaded: what was loaded before stays"]);
    assert_eq!(count(), 10);
    // Where there is no such folder nothing is lost but the copy.
    fs::rename(host.folder().join("plugins"), host.folder().join("elsewhere")).unwrap();
    change(&source, ("uint64_t words = ;", "uint64_t words = 1;"));
    let said = dev.round();
    has(&said, "loaded hello");
    assert!(dev.errors().contains("there is no folder of plugins at plugins"), "{said:#?}");
}
