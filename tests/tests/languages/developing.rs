//! A plugin in every language except Rust, which `commands/developing.rs` and `skeletons.rs` cover. Each starts from
//! `toolgate new`, is changed with `toolgate dev`, uses its grants, and is stopped by the host. One build is used for
//! many checks, because it takes many seconds in some languages.

use std::fs;

use serde_json::json;
use toolgate_tests::dev::{Dev, change, has};
use toolgate_tests::host::{Host, Setup};

use super::reaching::{self, Server};
use super::{done, left_out, root, skeletons, stopping, toolgate};

/// The changes to the template of a language.
struct Trial {
    language: &'static str,
    /// The build tool, in the words of the build.
    tool: &'static str,
    /// The source, in the plugin's folder.
    source: &'static str,
    /// A change that does not compile.
    broken: (&'static str, &'static str),
    /// The place of the error, in the words of the compiler.
    place: &'static str,
    /// The message of the first example when the result is greater by one.
    differs: &'static str,
}

fn start(host: &Host, words: &[&str]) -> Dev {
    Dev::start(host, "hello", words, &[("TOOLGATE_CACHE", root().join("target/toolchains"))])
}

#[track_caller]
fn check(trial: &Trial) {
    if left_out() {
        return;
    }
    let (host, server) = (Setup::default().prepare(), Server::start());
    done(&host, &["new", "hello", "--lang", trial.language]);
    let plugin = host.folder().join("hello");
    fs::write(host.folder().join("grants.toml"), server.grants("hello")).unwrap();
    let mut dev = start(&host, &["--plugins", "plugins", "--config", "grants.toml"]);
    let said = dev.round();
    has(&said, "built hello/build/hello.wasm: hello_count");
    assert!(said.iter().any(|line| line.contains(trial.tool)), "{said:#?}");
    has(&said, "loaded hello, live ");
    has(&said, "ok hello_count");
    skeletons::check(&host);

    let live = fs::read(host.plugin_file("hello")).unwrap();
    let _ = dev.errors();
    change(&plugin.join(trial.source), trial.broken);
    let refused = ["not loaded: the previous component stays loaded"];
    assert_eq!(dev.round(), refused);
    let errors = dev.errors();
    assert!(errors.contains(trial.place), "{} is not in: {errors}", trial.place);
    assert!(fs::read(host.plugin_file("hello")).unwrap() == live, "the host keeps the previous component");
    let failed = toolgate(&host, &["build", "hello"]);
    assert_eq!(failed.status.code(), Some(1), "it is the author's mistake: {failed:?}");

    // The plugin of the following tests. Its source is written last.
    fs::write(plugin.join("toolgate-plugin.toml"), server.wants(trial.language)).unwrap();
    fs::copy(root().join("tests/languages/outside").join(trial.source), plugin.join(trial.source)).unwrap();
    let mut said = dev.round();
    // If the build began before the second file was written.
    if said == refused {
        said = dev.round();
    }
    has(&said, "loaded hello, live ");
    has(&said, "differs hello_count");
    has(&said, trial.differs);
    assert_eq!(dev.interrupt(), 0);
    skeletons::only_its_own_folder_is_written(&host, &["dev.log", "grants.toml"]);
    let host = stopping::check(fs::read(host.plugin_file("hello")).unwrap(), &server);
    reaching::check(&host, &server, trial.language);
}

#[test]
fn python() {
    check(&Trial {
        language: "python",
        tool: "componentize-py 0.",
        source: "plugin.py",
        broken: ("return len", "return = len"),
        place: "plugin.py\", line 11",
        differs: "  expected 4, got 5",
    });
}

#[test]
fn javascript() {
    check(&Trial {
        language: "js",
        tool: "componentize-qjs",
        source: "plugin.js",
        broken: ("return words.length", "return = words.length"),
        place: "plugin.js:21:",
        differs: "  expected 3, got 4",
    });
}

#[test]
fn typescript() {
    check(&Trial {
        language: "ts",
        tool: "componentize-js",
        source: "plugin.ts",
        broken: ("return words.length", "return words.size"),
        place: "plugin.ts(17,",
        differs: "  expected 3, got 4",
    });
}

#[test]
fn go() {
    check(&Trial {
        language: "go",
        tool: "go1.",
        source: "plugin.go",
        broken: ("return len", "return := len"),
        place: "plugin.go:16:",
        differs: "  expected 4, got 5",
    });
}

#[test]
fn c() {
    check(&Trial {
        language: "c",
        tool: "zig 0.",
        source: "plugin.c",
        broken: ("uint64_t words = 0;", "uint64_t words = ;"),
        place: "plugin.c:8:",
        differs: "  expected 4, got 5",
    });
}

/// As in its `--help`: it makes the named call instead of the examples.
#[test]
fn named_call_is_made_after_each_build() {
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
    // A missing tool is reported, and the build is loaded.
    change(&source, ("hello_count", "hello_counts"));
    let said = dev.round();
    has(&said, "loaded hello, live ");
    assert!(!said.iter().any(|line| line.starts_with("not loaded")), "{said:#?}");
    let errors = dev.errors();
    assert!(errors.contains("there is no tool \"hello_count\"") && errors.contains("hello_counts"), "{errors}");
    assert_eq!(dev.interrupt(), 0);

    let mut dev = start(&host, &["--call", "hello_counts", r#"{"text":4}"#]);
    has(&dev.round(), "hello_counts  invalid_arguments: ");
    drop(dev);
    let said = host.cli(None, &["dev", "hello", "--call", "hello_counts", "{nonsense"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""), "it builds nothing: {said:?}");
    assert!(said.err.contains("the arguments are not valid JSON"), "{said:?}");
}

/// With `--plugins`, a running host gets each build, and keeps the previous one when a build fails.
#[test]
fn running_host_gets_each_build() {
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
    assert_eq!(dev.round(), ["not loaded: the previous component stays loaded"]);
    assert_eq!(count(), 10);
    // If the folder is missing, only the copy is missing.
    fs::rename(host.folder().join("plugins"), host.folder().join("elsewhere")).unwrap();
    change(&source, ("uint64_t words = ;", "uint64_t words = 1;"));
    let said = dev.round();
    has(&said, "loaded hello, live ");
    assert!(dev.errors().contains("there is no plugin folder at plugins"), "{said:#?}");
}
