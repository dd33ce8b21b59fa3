//! Requests that a guest sends at once, and polls for together with a timer.

use serde_json::{Value, json};
use toolgate_tests::effects::Server;

use crate::place::{Death, Place};
use crate::{changes, distinct, result};

fn program(server: &Server) -> Value {
    let authority = server.url("").replace("http://", "");
    let posts = ["x", "y", "z"].map(|body| json!({"authority": authority, "path": "/add", "body": body}));
    json!([{"do": "together", "posts": posts, "timer": 5_000}])
}

/// The requests come before the timer, in the order in which the guest sent them.
fn expected() -> Value {
    json!([["200 x: 1", "200 y: 2", "200 z: 3", "timer"]])
}

#[test]
fn kill_between_requests_in_flight_repeats_none() {
    for write in 0..6 {
        for death in [Death::Before, Death::After] {
            let server = Server::start();
            let mut place = Place::new(&server, true);
            let ended = place.call(&program(&server), &[(write, death)]);
            let when = format!("{death:?} write {write}");
            assert_eq!(result(&ended), expected(), "{when}");
            let sent = distinct(changes(&server));
            assert_eq!(sent.iter().map(|(body, _)| body.as_str()).collect::<Vec<_>>(), ["x", "y", "z"], "{when}");
        }
    }
}

#[test]
fn of_requests_in_flight_only_the_begun_one_is_in_doubt() {
    let server = Server::start();
    let mut place = Place::new(&server, false);
    place.decisions.push_back(json!({"3": "send_again"}));
    // The fourth write would record the answer to the second request.
    let ended = place.call(&program(&server), &[(3, Death::Before)]);
    assert_eq!(ended.doubts, [[format!("3 http POST {}", server.url("/add"))]]);
    let bodies: Vec<_> = changes(&server).into_iter().map(|(body, _)| body).collect();
    assert_eq!(bodies, ["x", "y", "y", "z"]);
    assert_eq!(result(&ended), expected());
}
