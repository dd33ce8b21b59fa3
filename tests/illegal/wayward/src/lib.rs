//! A plugin that any host loads and whose calls go wrong. Each tool breaks only the requirement of the conformance kit
//! that it is named after. Its declarations are in its slot, as in `fixture`. A tool with any other name is correct.

#[path = "../../fixture/src/slot.rs"]
mod slot;

mod bindings {
    wit_bindgen::generate!({ path: "../../../wit/v0.1", world: "toolgate:plugin/plugin-with-keyvalue", generate_all });
}

use std::hash::{BuildHasher as _, RandomState};
use std::hint::black_box;
use std::time::Duration;

use bindings::exports::toolgate::plugin::{catalog, server};
use bindings::toolgate::plugin::host::{self, Update};
use bindings::toolgate::plugin::tool_types::{Approval, Call, Executor, Failure, Tool};
use bindings::wasi::keyvalue::store;
use serde::Deserialize;
use serde_json::json;

struct Wayward;

/// The arguments of every tool.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    text: String,
    n: f64,
}

impl catalog::Guest for Wayward {
    fn tools() -> Vec<Tool> {
        slot::entries().iter().map(tool).collect()
    }
}

impl server::Guest for Wayward {
    fn run(call: Call) -> Result<String, Failure> {
        let names: Vec<String> = slot::entries().into_iter().map(|entry| entry.name).collect();
        if names.iter().any(|name| name == "start") {
            std::thread::sleep(Duration::from_millis(80));
        }
        if !names.contains(&call.tool) {
            assert!(!names.iter().any(|name| name == "unknown-tool"), "no tool {}", call.tool);
            return Err(Failure::Failed(format!("there is no tool {}", call.tool)));
        }
        if call.tool == "determinism" {
            return Ok(json!({"size": patience()}).to_string());
        }
        let arguments: Arguments = match serde_json::from_str(&call.arguments) {
            Ok(arguments) => arguments,
            Err(error) => {
                assert!(call.tool != "invalid-arguments", "{error}");
                let words = if call.tool == "failures" { String::new() } else { error.to_string() };
                return Err(Failure::InvalidArguments(words));
            }
        };
        if call.tool == "unicode" && arguments.n == 13.0 {
            return Err(Failure::Unavailable("not with this number".into()));
        }
        let mut size = arguments.text.len() as u64;
        match call.tool.as_str() {
            "answers" => panic!("it never answers"),
            "results" => return Ok(json!({"size": "large"}).to_string()),
            "unicode" => assert!(arguments.text.is_ascii(), "beyond ASCII"),
            "empty" => assert!(!arguments.text.is_empty(), "no text"),
            "largest" => assert!(arguments.text.len() < 10_000 && arguments.text.len() != 40, "too long"),
            "numbers" => assert!(arguments.n.abs() < 1e9, "out of range"),
            "progress" => report([0.5, 0.25].into_iter(), false),
            "streams" => report((1..=20).map(|n| f64::from(n) / 20.0), true),
            "stop" => report((1..=20).map(|n| f64::from(n) / 20.0), false),
            "memory" => size = vec![1_u8; 24 << 20].iter().filter(|byte| **byte == 1).count() as u64,
            "time" => _ = patience(),
            "idempotency" => count(&call.idempotency_key),
            _ => {}
        }
        Ok(json!({"size": size}).to_string())
    }
}

fn report(fractions: impl Iterator<Item = f64>, listens: bool) {
    for fraction in fractions {
        host::progress(&Update { message: "a step".into(), fraction: Some(fraction), data: None });
        if listens && host::stop_requested() {
            return;
        }
    }
}

/// The number of checks before the request to stop, which differs in nearly every call.
fn patience() -> u64 {
    let mut asked = 0;
    while !host::stop_requested() {
        // Some work between the checks, because calls of the host are limited.
        asked += u64::from((0..10_000_u32).fold(0, |sum, n| black_box(sum ^ n)) < u32::MAX);
    }
    asked
}

/// Repeats its effect for a key that it has seen before.
fn count(key: &str) {
    if let Ok(bucket) = store::open("default") {
        let before = bucket.get(key).ok().flatten().unwrap_or_default();
        let _ = bucket.set(key, &[before.as_slice(), b"again "].concat());
    }
}

fn tool(entry: &slot::Entry) -> Tool {
    let mut description = entry.description.clone();
    if entry.name == "constant" {
        description.push_str(&format!(" ({:x})", RandomState::new().hash_one("tools")));
    }
    Tool {
        name: entry.name.clone(),
        description,
        parameters: slot::text(&entry.parameters),
        executor: if entry.executor == "human" { Executor::Human } else { Executor::Server },
        approval: if entry.approval == "auto" { Approval::Auto } else { Approval::RequiresApproval },
        streaming: entry.streaming,
        options: slot::text(&entry.options),
    }
}

bindings::export!(Wayward with_types_in bindings);
