//! Calls whose component loses its grants while they wait: recorded results stay, and each new access is denied for good.

use serde_json::{Value, json};
use toolgate_tests::effects::Server;

use crate::place::{Death, Place};
use crate::{changes, result};

fn trying(operation: &Value) -> Value {
    json!({"do": "try", "operation": operation})
}

/// Every kind of access, before and after a wait.
fn program(server: &Server) -> Value {
    let send = |method: &str, path: &str, body: Option<&str>| json!({"do": "send", "method": method, "url": server.url(path), "body": body});
    let count = json!({"do": "increment", "key": "n", "by": 1});
    let get = json!({"do": "get", "key": "log"});
    let append = json!({"do": "append", "key": "log", "text": "a"});
    json!([
        {"do": "config", "name": "region"}, count, append, get, {"do": "keys"}, send("GET", "/count", None),
        send("POST", "/add", Some("x")), {"do": "ask", "prompt": "Go on?"}, {"do": "config", "name": "region"},
        trying(&get), trying(&count), trying(&append), send("GET", "/count", None), send("POST", "/add", Some("y")),
        {"do": "ask", "prompt": "And now?"}, trying(&count), send("POST", "/add", Some("z")),
    ])
}

/// Its outcome if the run between the two waits is denied everything.
fn denied_in_between() -> Value {
    let sent = |text: &str| json!({"status": 200, "text": text});
    let denied = json!({"error": "the key-value bucket may not be used by this plugin"});
    let why = "no grant allows it; the call's log names the missing grant (toolgate logs)";
    let unsent = json!({"error": format!("the host does not allow the request: {why}")});
    json!([
        "eu-0",
        1,
        "a",
        "a",
        ["log", "n"],
        sent("0"),
        sent("x: 1"),
        "yes",
        "eu-0",
        denied,
        denied,
        denied,
        unsent,
        unsent,
        "yes",
        2,
        sent("z: 2"),
    ])
}

#[test]
fn recorded_results_outlast_the_grants_and_denials_too() {
    let server = Server::start();
    let mut place = Place::new(&server, false);
    place.without_grants = 2..3;
    assert_eq!(result(&place.call(&program(&server), &[])), denied_in_between());
    let bodies: Vec<_> = changes(&server).into_iter().map(|(body, _)| body).collect();
    assert_eq!(bodies, ["x", "z"]);
    assert_eq!(place.values(), [("log".to_owned(), "\"a\"".to_owned()), ("n".to_owned(), "2".to_owned())]);
}

#[test]
fn call_without_its_grants_can_be_killed_too() {
    let server = Server::start();
    let mut place = Place::new(&server, false);
    // The second run, which is denied everything, dies at its only write. The third one is denied it too.
    place.without_grants = 2..4;
    let ended = place.call(&program(&server), &[(usize::MAX, Death::Before), (0, Death::Before)]);
    assert_eq!(result(&ended), denied_in_between());
}

#[test]
fn denied_requests_are_recorded_without_secrets() {
    let server = Server::start();
    let mut place = Place::new(&server, false);
    place.has_secret = true;
    place.without_grants = 2..3;
    let send = json!({"do": "send", "method": "GET", "url": server.url("/token-of-run-2"), "body": null});
    let ask = json!({"do": "ask", "prompt": "Go on?"});
    let ended = place.call(&json!([{"do": "set", "key": "k", "value": "v"}, ask, send, ask]), &[]);
    assert!(result(&ended)[2]["error"].is_string(), "{ended:?}");
    let functions = place.functions();
    assert!(functions.iter().any(|function| function.starts_with("http GET")), "{functions:?}");
    assert!(!functions.concat().contains("token-of-run-2"), "{functions:?}");
}
