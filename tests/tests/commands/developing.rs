//! `toolgate dev` builds a changed plugin, loads it, and reports the results of its examples. `languages/developing.rs`
//! has the other languages than Rust.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use toolgate_tests::dev::{Dev, change, has};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::terminal::{CTRL_C, Session};

use crate::making::plugins;

/// The folders of a build.
fn folders(host: &Host) -> [(&'static str, PathBuf); 2] {
    [("CARGO_TARGET_DIR", plugins().join("target/new")), ("TOOLGATE_CACHE", host.folder().join("cache"))]
}

/// Starts it on the folder `watched`. No other test may use this package name, because packages in a shared target
/// folder must have different names.
fn start(host: &Host, words: &[&str]) -> Dev {
    Dev::start(host, "watched", &[&["--offline"], words].concat(), &folders(host))
}

#[test]
fn changed_source_is_built_loaded_and_called() {
    let host = Setup::default().prepare();
    assert_eq!(host.cli(None, &["new", "watched"]).code, 0);
    fs::copy(plugins().join("Cargo.lock"), host.folder().join("watched/Cargo.lock")).unwrap();
    let examples = r#"[{"tool":"watched_count","arguments":{"text":"a b"},"result":2},
        {"name":"nothing","tool":"watched_count","arguments":{},"failure":"invalid-arguments"}]"#;
    fs::write(host.folder().join("watched/examples.json"), examples).unwrap();
    let source = host.folder().join("watched/src/lib.rs");
    let text = fs::read_to_string(&source).unwrap();

    let mut dev = start(&host, &["--plugins", "plugins"]);
    let said = dev.round();
    has(&said, "built watched/build/watched.wasm: watched_count");
    has(&said, "loaded watched, live ");
    has(&said, "ok watched_count  (");
    has(&said, "ok watched_count: nothing  (");
    let first = fs::read(host.plugin_file("watched")).unwrap();

    change(&source, (".count()", ".count() + 1"));
    let said = dev.round();
    has(&said, "differs watched_count  (");
    has(&said, "  expected 2, got 3");
    let second = fs::read(host.plugin_file("watched")).unwrap();
    assert_ne!(first, second, "the running host gets the new component");

    fs::write(&source, "nonsense").unwrap();
    assert_eq!(dev.round(), ["not loaded: the previous component stays loaded"]);
    let errors = dev.errors();
    assert!(errors.contains("error: compiling the plugin failed") && errors.contains("src/lib.rs:1:1"), "{errors}");
    assert_eq!(fs::read(host.plugin_file("watched")).unwrap(), second);

    fs::write(&source, &text).unwrap();
    has(&dev.round(), "ok watched_count  (");
    assert_eq!(dev.interrupt(), 0, "Ctrl-C ends it");

    let said = host.cli(None, &["dev", "watched", "--call", "watched_count", "@absent.json"]);
    assert_eq!((said.code, said.err.contains("cannot read absent.json")), (2, true), "{said:?}");

    let mut dev = start(&host, &["--json"]);
    let events: Vec<Value> = dev.round().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["built", "loaded", "example", "example"]);
    assert!(events[1]["millis"].is_f64() && events[2]["ok"] == true, "{events:?}");
    fs::write(&source, "nonsense").unwrap();
    let [failed] = &dev.round()[..] else { panic!("one event") };
    let failed: Value = serde_json::from_str(failed).unwrap();
    assert_eq!(
        (&failed["event"], &failed["loaded"], &failed["fault"]),
        (&json!("failed"), &json!(false), &json!("plugin"))
    );
}

#[test]
fn durable_call_asks_the_user_of_a_terminal() {
    let host = Setup::default().prepare();
    assert_eq!(host.cli(None, &["new", "asking", "--durable"]).code, 0);
    fs::copy(plugins().join("Cargo.lock"), host.folder().join("asking/Cargo.lock")).unwrap();
    let words = ["dev", "asking", "--offline", "--call", "asking_roll_out", r#"{"version":"1.4.2"}"#];
    let mut dev = Session::start(host.command(None, &words).envs(folders(&host)));
    let asked = dev.until("answer>");
    assert!(asked.contains("To which environment does 1.4.2 go?"), "{asked}");
    dev.type_in("nowhere\n");
    let refused = dev.until("answer>");
    assert!(refused.contains("the answer is not valid"), "{refused}");
    dev.type_in("{\"environment\":\"live\"}\n");
    let asked = dev.until("answer>");
    assert!(asked.contains("Roll 1.4.2 out to live?") && asked.contains(r#""instances":3"#), "{asked}");
    dev.type_in("deny not on a Friday\n");
    let said = dev.until("waiting for changes in asking");
    assert!(said.contains(r#"asking_roll_out  {"state":"rejected","comment":"not on a Friday"}"#), "{said}");
    dev.type_in(CTRL_C);
    assert_eq!(dev.end().0, 0, "Ctrl-C ends it");

    let mut dev = Session::start(host.command(None, &words).envs(folders(&host)));
    dev.until("answer>");
    dev.type_in(CTRL_C);
    assert_eq!(dev.end().0, 0, "Ctrl-C ends it while it asks");
}
