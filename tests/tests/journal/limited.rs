//! Servers that refuse a request for now, and calls that see that they should stop.

use domain::{Outcome, Span};
use serde_json::{Value, json};
use toolgate_tests::effects::Server;

use crate::place::{Death, Place};
use crate::{changes, distinct, result, value};

fn send(server: &Server, method: &str, body: &str) -> Value {
    json!({"do": "send", "method": method, "url": server.url("/add"), "body": (method != "GET").then_some(body)})
}

fn answered(status: u16, text: &str) -> Value {
    json!({"status": status, "text": text})
}

fn waiting(server: &Server, idempotent: bool, seconds: u64) -> Place {
    let mut place = Place::new(server, idempotent);
    place.retry = Some(Span::from_secs(seconds));
    place
}

#[test]
fn refused_request_is_sent_again_after_a_wait() {
    let server = Server::start();
    let mut place = waiting(&server, false, 60);
    server.refuse([(429, "7"), (429, "Fri, 27 Nov 2020 00:00:00 GMT")]);
    let count = json!({"do": "increment", "key": "n", "by": 1});
    let ended = place.call(&json!([count, send(&server, "POST", "x"), count, send(&server, "POST", "y")]), &[]);
    assert_eq!(result(&ended), json!([1, answered(200, "x: 1"), 2, answered(200, "y: 2")]));
    assert_eq!(ended.limits, 2);
    let sent = changes(&server);
    let bodies: Vec<_> = sent.iter().map(|(body, _)| body.as_str()).collect();
    assert_eq!(bodies, ["x", "x", "x", "y"]);
    assert_eq!(distinct(sent).len(), 2, "the key of x is the same each time");
    assert_eq!(place.values(), [("n".to_owned(), "2".to_owned())]);

    server.refuse([(503, "soon")]);
    let mut place = waiting(&server, false, 60);
    let ended = place.call(&json!([send(&server, "GET", "")]), &[]);
    assert_eq!((result(&ended), ended.limits), (json!([answered(200, "2")]), 1));
}

#[test]
fn kill_at_each_write_around_a_refusal_repeats_nothing() {
    let refused = || {
        let server = Server::start();
        server.refuse([(429, "7"), (429, "1")]);
        server
    };
    let program = |server: &Server| json!([send(server, "POST", "x"), {"do": "set", "key": "k", "value": "v"}]);
    let server = refused();
    let mut place = waiting(&server, true, 60);
    place.call(&program(&server), &[]);
    // Two runs begin the request and record a refusal. The third one also stores a value.
    assert_eq!(place.writes(), 7);
    for (run, writes) in [2, 2, 3].into_iter().enumerate() {
        for write in 0..writes {
            for death in [Death::Before, Death::After] {
                let server = refused();
                let mut place = waiting(&server, true, 60);
                // The runs before this one are not killed.
                let kills: Vec<_> = (0..run).map(|_| (usize::MAX, death)).chain([(write, death)]).collect();
                let ended = place.call(&program(&server), &kills);
                let when = format!("{death:?} write {write} of run {run}");
                assert_eq!(result(&ended), json!([answered(200, "x: 1"), null]), "{when}");
                assert_eq!(distinct(changes(&server)).len(), 1, "{when}");
            }
        }
    }
}

#[test]
fn request_that_was_sent_again_and_interrupted_is_in_doubt() {
    let server = Server::start();
    server.refuse([(429, "7")]);
    let mut place = waiting(&server, false, 60);
    // The first run begins the request and records the refusal. The second run begins it again, and dies before it has
    // recorded the answer.
    let program = json!([send(&server, "POST", "x")]);
    let ended = place.call(&program, &[(usize::MAX, Death::Before), (1, Death::Before)]);
    assert_eq!(ended.outcome, Outcome::InDoubt);
    assert_eq!(changes(&server).len(), 2, "it is not sent a third time");
    assert_eq!(ended.doubts, [[format!("3 http POST {}", server.url("/add"))]]);
}

#[test]
fn tool_gets_the_last_answer_of_a_server_that_asks_for_too_much() {
    let last = |retry, refusals: &[(u16, &'static str)]| {
        let server = Server::start();
        server.refuse(refusals.iter().copied());
        let mut place = waiting(&server, true, retry);
        let ended = place.call(&json!([send(&server, "POST", "x")]), &[]);
        (value(&ended)[0]["status"].clone(), server.requests().len(), ended.limits)
    };
    assert_eq!(last(5, &[(429, "3"), (503, "3")]), (json!(503), 2, 1), "the second wait would be too long");
    assert_eq!(last(5, &[(429, "99999999999999999999999")]), (json!(429), 1, 0));
    let for_ever = [(429, "0"); 100];
    assert_eq!(last(604_800, &for_ever), (json!(429), 33, 32), "a request is sent again 32 times");
}

#[test]
fn later_run_sees_the_stop_where_the_first_one_saw_it() {
    let server = Server::start();
    let mut place = Place::new(&server, true);
    place.stops_at = Some(3);
    let check = json!({"do": "check"});
    let program = json!([check, send(&server, "POST", "x"), check, check, send(&server, "POST", "y"), check]);
    // The first run dies after it has begun the second request. Nobody asks the second run to stop.
    let ended = place.call(&program, &[(2, Death::After)]);
    let (x, y) = (answered(200, "x: 1"), answered(200, "y: 2"));
    assert_eq!(result(&ended), json!([false, x, false, true, y, true]));
}
