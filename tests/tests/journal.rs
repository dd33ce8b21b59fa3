//! The journal of a durable call, with a real guest, a store on disk and a server that records its requests. The run is
//! interrupted before and after each write to the journal, the folder is opened again, and the next run continues. The
//! result, the data and what the server saw are those of a call that nothing interrupted.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "journal/buckets.rs"]
mod buckets;
#[path = "journal/bytes.rs"]
mod bytes;
#[path = "journal/doubts.rs"]
mod doubts;
#[path = "journal/limited.rs"]
mod limited;
#[path = "journal/place.rs"]
mod place;
#[path = "journal/together.rs"]
mod together;
#[path = "journal/withdrawn.rs"]
mod withdrawn;

use domain::{Outcome, outcome::FailureCode};
use serde_json::{Value, json};

use place::{Death, Ended, Place};
use toolgate_tests::effects::Server;

/// Every kind of entry, with steps in between.
fn program(server: &Server) -> Value {
    let send = |method: &str, path: &str, body: Option<&str>| json!({"do": "send", "method": method, "url": server.url(path), "body": body});
    json!([
        {"do": "config", "name": "region"},
        {"do": "increment", "key": "n", "by": 1},
        {"do": "append", "key": "log", "text": "a"},
        send("GET", "/count", None),
        send("POST", "/add", Some("x")),
        {"do": "get", "key": "log"},
        {"do": "set", "key": "k", "value": "v"},
        {"do": "ask", "prompt": "Go on?"},
        {"do": "increment", "key": "n", "by": 10},
        send("PUT", "/add", Some("y")),
        {"do": "append", "key": "log", "text": "b"},
        {"do": "sleep", "ms": 5_000},
        {"do": "keys"},
        {"do": "delete", "key": "k"},
        send("POST", "/add", Some("z")),
        send("GET", "/count", None),
        {"do": "increment", "key": "n", "by": 100},
        {"do": "config", "name": "region"},
    ])
}

/// The outcome of a call that nothing interrupts.
fn expected() -> Value {
    with_region("eu-0")
}

/// The outcome of a call with this configuration.
fn with_region(region: &str) -> Value {
    json!([
        region, 1, "a", {"status": 200, "text": "0"}, {"status": 200, "text": "x: 1"}, "a", null, "yes", 11,
        {"status": 200, "text": "y: 2"}, "ab", null, ["k", "log", "n"], null, {"status": 200, "text": "z: 3"},
        {"status": 200, "text": "3"}, 111, region,
    ])
}

fn result(ended: &Ended) -> Value {
    assert!(ended.repeated.is_empty(), "{:?}", ended.repeated);
    value(ended)
}

fn value(ended: &Ended) -> Value {
    match &ended.outcome {
        Outcome::Ok { value, .. } => serde_json::from_str(value.as_str()).unwrap(),
        other => panic!("the call failed: {other:?}, {:#?}", ended.log),
    }
}

/// The requests that change something: each body with its key, in order.
fn changes(server: &Server) -> Vec<(String, String)> {
    server.requests().into_iter().filter(|request| request.method != "GET").map(|r| (r.body, r.key)).collect()
}

fn distinct(mut changes: Vec<(String, String)>) -> Vec<(String, String)> {
    changes.dedup();
    changes
}

#[test]
fn uninterrupted_call_has_its_effects_once() {
    let server = Server::start();
    let mut place = Place::new(&server, false);
    let ended = place.call(&program(&server), &[]);
    assert_eq!(result(&ended), expected());
    let keys: Vec<_> = changes(&server).into_iter().map(|(body, _)| body).collect();
    assert_eq!(keys, ["x", "y", "z"]);
    assert_eq!(place.values(), [("log".to_owned(), "\"ab\"".to_owned()), ("n".to_owned(), "111".to_owned())]);
}

#[test]
fn overtaken_writes_happen_and_are_recorded_once() {
    let call = |is_overtaken| {
        let server = Server::start();
        let mut place = Place::new(&server, false);
        place.is_overtaken = is_overtaken;
        let ended = place.call(&program(&server), &[]);
        (result(&ended), place.values(), place.functions().len(), place.writes())
    };
    assert_eq!(call(true), call(false));
}

#[test]
fn effect_costs_at_most_two_commits() {
    let server = Server::start();
    let send = |method: &str| json!({"do": "send", "method": method, "url": server.url("/add"), "body": "x"});
    let commits = |operation: Value| {
        let mut place = Place::new(&server, false);
        let ended = place.call(&json!(vec![operation; 10]), &[]);
        assert!(matches!(ended.outcome, Outcome::Ok { .. }), "{ended:?}");
        place.writes()
    };
    assert_eq!(commits(json!({"do": "get", "key": "k"})), 0, "what is read has no effect");
    assert_eq!(commits(json!({"do": "send", "method": "GET", "url": server.url("/count"), "body": null})), 0);
    assert_eq!(commits(json!({"do": "increment", "key": "n", "by": 1})), 10);
    assert_eq!(commits(send("POST")), 20);
}

#[test]
fn call_killed_at_each_write_has_its_effects_once() {
    let server = Server::start();
    let mut place = Place::new(&server, true);
    place.call(&program(&server), &[]);
    let (writes, values, once) = (place.writes(), place.values(), changes(&server));
    assert!(writes > 10, "{writes}");
    for write in 0..writes {
        for death in [Death::Before, Death::After] {
            let server = Server::start();
            let mut place = Place::new(&server, true);
            let ended = place.call(&program(&server), &[(write, death)]);
            let when = format!("{death:?} write {write} of {writes}");
            // The first write also has the configuration. Without it, nothing of the first run is left, and the second run
            // reads its own.
            let region = if (write, death) == (0, Death::Before) { "eu-1" } else { "eu-0" };
            assert_eq!(result(&ended), with_region(region), "{when}");
            assert_eq!(place.values(), values, "{when}");
            let (bodies, keys): (Vec<_>, Vec<_>) = distinct(changes(&server)).into_iter().unzip();
            assert_eq!(bodies, ["x", "y", "z"], "{when}");
            // Each key ends with the number of its entry, which a kill does not change.
            let numbers: Vec<_> = keys.iter().map(|key| key.rsplit('/').next().unwrap().to_owned()).collect();
            let of_once: Vec<_> = once.iter().map(|(_, key)| key.rsplit('/').next().unwrap().to_owned()).collect();
            assert_eq!(numbers, of_once, "{when}");
            assert_eq!(ended.log.iter().filter(|line| line.contains("error")).count(), 0, "{:#?}", ended.log);
        }
    }
}

#[test]
fn call_killed_after_every_write_comes_to_its_end() {
    let server = Server::start();
    let mut place = Place::new(&server, true);
    // After a kill, the first write of the next run is the next one of the journal.
    let kills: Vec<_> = (0..100).map(|_| (0, Death::After)).collect();
    let ended = place.call(&program(&server), &kills);
    assert_eq!(result(&ended), expected());
    assert_eq!(distinct(changes(&server)).len(), 3);
}

#[test]
fn request_that_cannot_be_repeated_now_is_repeated_later() {
    let server = Server::start();
    let mut place = Place::new(&server, true);
    // The first run is killed before it has recorded the answer. The second one gets no answer.
    server.close(1);
    let program = json!([{"do": "send", "method": "POST", "url": server.url("/add"), "body": "x"}]);
    let ended = place.call(&program, &[(1, Death::Before)]);
    assert_eq!(value(&ended), json!([{"status": 200, "text": "x: 1"}]));
    let [why] = &*ended.repeated else { panic!("{:?}", ended.repeated) };
    assert!(why.contains("POST http://127.0.0.1") && why.contains("/add could not be sent again"), "{why}");
    let changes = changes(&server);
    assert_eq!((changes.len(), distinct(changes).len()), (2, 1), "the key is the same");
}

#[test]
fn rotated_secret_is_no_divergence() {
    // The first run is killed after it has recorded the answer, or before. Then the request is sent again.
    for (kill, sent) in [(2, &["token-of-run-1"][..]), (1, &["token-of-run-1", "token-of-run-2"][..])] {
        let server = Server::start();
        let mut place = Place::new(&server, true);
        place.has_secret = true;
        let program = json!([
            {"do": "send", "method": "POST", "url": server.url("/add"), "body": "x", "secret": "token"},
            {"do": "set", "key": "k", "value": "v"},
        ]);
        let ended = place.call(&program, &[(kill, Death::Before)]);
        assert_eq!(result(&ended), json!([{"status": 200, "text": "x: 1"}, null]));
        let tokens: Vec<_> = server.requests().into_iter().map(|request| request.authorization).collect();
        assert_eq!(tokens, sent);
        assert_eq!(distinct(changes(&server)).len(), 1, "the key is the same");
    }
}

#[test]
fn superseded_run_changes_nothing() {
    let server = Server::start();
    let mut place = Place::new(&server, false);
    let program = json!([{"do": "increment", "key": "n", "by": 1}, {"do": "increment", "key": "n", "by": 1}]);
    place.supersede_after(1);
    let ended = place.call(&program, &[]);
    assert_eq!(result(&ended), json!([1, 2]), "the run that superseded it goes on");
    assert_eq!(place.values(), [("n".to_owned(), "2".to_owned())]);
}

#[test]
fn journal_has_bounds() {
    let server = Server::start();
    let mut place = Place::new(&server, false);
    place.bounds.entries = 3;
    let counts: Vec<_> = (0..5).map(|_| json!({"do": "increment", "key": "n", "by": 1})).collect();
    let failed = |ended: Ended| match ended.outcome {
        Outcome::Failed(failure) => (failure.code, failure.message),
        other => panic!("it did not fail: {other:?}"),
    };
    let (code, message) = failed(place.call(&json!(counts), &[]));
    assert_eq!(code, FailureCode::LimitExceeded);
    assert!(message.contains("more than 3 host functions") && message.contains("`journal_entries`"), "{message}");
    // One entry is the configuration.
    assert_eq!(place.values(), [("n".to_owned(), "2".to_owned())], "the write that is not recorded does not happen");

    let mut place = Place::new(&server, false);
    place.bounds.bytes = 8 << 10;
    let large = json!([{"do": "send", "method": "GET", "url": server.url("/large"), "body": null}]);
    let (code, message) = failed(place.call(&large, &[]));
    assert_eq!(code, FailureCode::LimitExceeded);
    assert!(message.contains("`journal_bytes`"), "{message}");

    // A body has at most 1 MiB.
    let send =
        |bytes: usize| json!([{"do": "send", "method": "POST", "url": server.url("/size"), "body": "x".repeat(bytes)}]);
    let mut place = Place::new(&server, false);
    assert_eq!(result(&place.call(&send(1 << 20), &[])), json!([{"status": 200, "text": "1048576"}]));
    let before = server.requests().len();
    let mut place = Place::new(&server, false);
    let (code, message) = failed(place.call(&send((1 << 20) + 1), &[]));
    assert_eq!(code, FailureCode::LimitExceeded);
    assert!(message.contains("more than 1 MiB to the body of a request"), "{message}");
    assert_eq!(server.requests().len(), before, "nothing is sent");
}
