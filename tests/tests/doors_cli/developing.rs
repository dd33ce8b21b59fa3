//! `toolgate dev` builds what was changed, loads it, and tells what the examples come to.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use toolgate_tests::host::{Host, Setup};

use crate::making::plugins;

/// `toolgate dev` on the folder `watched`, killed when it is dropped. No other test has a package of this name: cargo tells those
/// that share a target folder apart by their names alone, and one would be taken for another.
struct Dev {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Dev {
    fn start(host: &Host, words: &[&str]) -> Self {
        let mut command = host.command(None, &[&["dev", "watched", "--offline"], words].concat());
        command
            .env("CARGO_TARGET_DIR", plugins().join("target/new"))
            .env("TOOLGATE_CACHE", host.folder().join("cache"));
        let errors = fs::File::create(host.folder().join("dev.log")).unwrap();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// What it says until it waits for a change.
    fn round(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it ended: {said:#?}");
            let line = line.trim_end().to_owned();
            if line == "waiting for changes in watched" {
                return said;
            }
            said.push(line);
        }
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // If it has ended already there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a line begins so.
#[track_caller]
fn has(said: &[String], beginning: &str) {
    assert!(said.iter().any(|line| line.starts_with(beginning)), "{beginning}: {said:#?}");
}

#[test]
fn what_is_changed_is_built_loaded_and_called() {
    let host = Setup::default().prepare();
    assert_eq!(host.cli(None, &["new", "watched"]).code, 0);
    fs::copy(plugins().join("Cargo.lock"), host.folder().join("watched/Cargo.lock")).unwrap();
    let examples = r#"[{"tool":"watched_count","arguments":{"text":"a b"},"result":2},
        {"name":"nothing","tool":"watched_count","arguments":{},"failure":"invalid-arguments"}]"#;
    fs::write(host.folder().join("watched/examples.json"), examples).unwrap();
    let source = host.folder().join("watched/src/lib.rs");
    let text = fs::read_to_string(&source).unwrap();

    let mut dev = Dev::start(&host, &["--plugins", "plugins"]);
    let said = dev.round();
    has(&said, "built watched/build/watched.wasm: watched_count");
    has(&said, "loaded watched");
    has(&said, "ok watched_count  (");
    has(&said, "ok watched_count: nothing  (");
    let first = fs::read(host.plugin_file("watched")).unwrap();

    fs::write(&source, text.replace(".count()", ".count() + 1")).unwrap();
    let said = dev.round();
    has(&said, "differs watched_count  (");
    has(&said, "  expected 2, got 3");
    let second = fs::read(host.plugin_file("watched")).unwrap();
    assert_ne!(first, second, "what the running host is given is what was built");

    fs::write(&source, "nonsense").unwrap();
    assert_eq!(dev.round(), ["not loaded: what was loaded before stays"]);
    let errors = fs::read_to_string(host.folder().join("dev.log")).unwrap();
    assert!(errors.contains("error: compiling the plugin failed"), "{errors}");
    assert_eq!(fs::read(host.plugin_file("watched")).unwrap(), second);

    fs::write(&source, &text).unwrap();
    has(&dev.round(), "ok watched_count  (");

    let id = dev.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(dev.child.wait().unwrap().code(), Some(0), "Ctrl-C is how it ends");
}
