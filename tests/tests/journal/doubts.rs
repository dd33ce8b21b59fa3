//! Requests that a kill left in doubt: what is asked before the guest starts, and what each decision does.

use domain::Outcome;
use serde_json::{Value, json};
use toolgate_tests::effects::Server;

use crate::place::{Death, Ended, Place};
use crate::{changes, distinct, result};

fn program(server: &Server) -> Value {
    json!([
        {"do": "set", "key": "k", "value": "v"},
        {"do": "send", "method": "POST", "url": server.url("/add?secret=1"), "body": "x"},
        {"do": "set", "key": "k", "value": "w"},
    ])
}

/// The first run dies before it has recorded the answer to its request. Its entry is number 2.
const LOST: &[(usize, Death)] = &[(2, Death::Before)];

fn decided(server: &Server, decisions: &[Value], kills: &[(usize, Death)]) -> (Ended, Place) {
    let mut place = Place::new(server, false);
    place.decisions = decisions.iter().cloned().collect();
    (place.call(&program(server), kills), place)
}

#[test]
fn request_without_a_recorded_answer_is_in_doubt() {
    let server = Server::start();
    let (ended, place) = decided(&server, &[], LOST);
    assert_eq!(ended.outcome, Outcome::InDoubt);
    assert_eq!(changes(&server).len(), 1, "it is not sent again");
    let [doubts] = &*ended.doubts else { panic!("{:?}", ended.doubts) };
    assert_eq!(doubts, &[format!("2 http POST {}", server.url("/add"))], "the query is not shown");
    let line = ended.log.last().unwrap();
    assert!(
        line.contains("/add was begun by a run that was interrupted") && line.contains("(entry 2 of the"),
        "{line}"
    );
    assert_eq!(place.values(), [("k".to_owned(), "\"v\"".to_owned())], "nothing follows it");
}

#[test]
fn request_is_sent_again_after_a_decision_with_the_same_key() {
    let server = Server::start();
    let (ended, place) = decided(&server, &[json!({"2": "send_again"})], LOST);
    assert_eq!(result(&ended), json!([null, {"status": 200, "text": "x: 1"}, null]));
    let changes = changes(&server);
    assert_eq!((changes.len(), distinct(changes).len()), (2, 1));
    assert_eq!(place.values(), [("k".to_owned(), "\"w\"".to_owned())]);
}

#[test]
fn kill_after_a_decision_repeats_only_what_was_decided() {
    // The second run begins the request once more (write 0) and records the answer (write 1).
    let cases: [((usize, Death), &[&str], usize); 4] = [
        ((0, Death::Before), &["2"], 2),
        ((0, Death::After), &["2", "3"], 2),
        ((1, Death::Before), &["2", "3"], 3),
        ((1, Death::After), &["2"], 2),
    ];
    for (kill, asked, sent) in cases {
        let server = Server::start();
        let again = [json!({"2": "send_again"}), json!({"3": "send_again"})];
        // No write is made by a run that finds a doubt.
        let nothing = (usize::MAX, Death::Before);
        let (ended, _) = decided(&server, &again, &[LOST[0], nothing, kill]);
        assert_eq!(result(&ended), json!([null, {"status": 200, "text": "x: 1"}, null]), "{kill:?}");
        let entries: Vec<_> = ended.doubts.iter().map(|doubts| doubts[0].split(' ').next().unwrap()).collect();
        assert_eq!(entries, asked, "{kill:?}: one decision is for one sending");
        let changes = changes(&server);
        assert_eq!((changes.len(), distinct(changes).len()), (sent, 1), "{kill:?}");
    }
}

#[test]
fn answer_of_a_person_takes_the_place_of_the_server() {
    let server = Server::start();
    // The third run dies before or after it has recorded the answer.
    for kill in [None, Some((0, Death::Before)), Some((0, Death::After))] {
        let before = server.requests().len();
        let kills: Vec<_> = [LOST[0], (usize::MAX, Death::Before)].into_iter().chain(kill).collect();
        let (ended, _) = decided(&server, &[json!({"2": {"status": 201, "body": "done: 7"}})], &kills);
        assert_eq!(result(&ended), json!([null, {"status": 201, "text": "done: 7"}, null]), "{kill:?}");
        assert_eq!(ended.doubts.len(), 1, "{kill:?}: nobody is asked twice");
        assert_eq!(server.requests().len(), before + 1, "{kill:?}: it is not sent again");
    }
}

#[test]
fn failed_request_is_an_error_for_the_tool() {
    let server = Server::start();
    let (ended, place) = decided(&server, &[json!({"2": "fail"})], LOST);
    let error = result(&ended)[1]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("nobody knows whether it was carried out"), "{error}");
    assert_eq!(changes(&server).len(), 1);
    assert_eq!(place.values(), [("k".to_owned(), "\"w\"".to_owned())], "the tool goes on");
}

#[test]
fn request_that_is_not_idempotent_any_more_needs_a_decision() {
    let server = Server::start();
    for (withdrawn_after, asked) in [(None, 0), (Some(2), 0), (Some(1), 1)] {
        let mut place = Place::new(&server, true);
        place.withdrawn_after = withdrawn_after;
        place.decisions = [json!({"2": "send_again"})].into();
        let ended = place.call(&program(&server), LOST);
        result(&ended);
        assert_eq!(ended.doubts.len(), asked, "{withdrawn_after:?}");
    }
}
