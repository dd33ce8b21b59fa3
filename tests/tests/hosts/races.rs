//! Two hosts get different answers to one suspension at the same time, again and again. One of them wins, and its answer is the
//! result.

use std::sync::Barrier;
use std::thread;

use serde_json::json;
use toolgate_tests::host::{Host, say};
use toolgate_tests::http::{Answer, outcomes};

use crate::named::host;
use crate::server;

/// The number of calls of a turn.
const CALLS: usize = 25;

/// The wins of each host.
type Wins = [usize; 2];

/// Races at least this often.
pub(crate) fn run(races: usize) {
    let (_, url) = server::database();
    let first = host(&url, "a", &["ask"], None);
    let second = host(&url, "b", &["ask"], Some(&first));
    let hosts = [&first, &second];
    let mut wins = [0; 2];
    for turn in 0..races.div_ceil(CALLS) {
        race(hosts, turn, &mut wins);
    }
    say(&format!("one of two answers won each time: {} times at one host, {} times at the other", wins[0], wins[1]));
    assert!(wins.iter().all(|wins| *wins > 0), "{wins:?}: the answers did not race");
}

fn race(hosts: [&Host; 2], number: usize, wins: &mut Wins) {
    let ask =
        |call: usize| json!({"id": format!("{number}-{call}"), "tool": "ask_user", "arguments": {"question": "Who?"}});
    let turn = hosts[number % 2].agent.submit("races", (0..CALLS).map(ask).collect());
    let open: Vec<&str> =
        turn["pending"].as_array().unwrap().iter().map(|open| open["suspension"].as_str().unwrap()).collect();
    assert_eq!(open.len(), CALLS);
    let begin = Barrier::new(2);
    let answer = |host: usize| -> Vec<Answer> {
        let body = json!({"decision": "answer", "data": {"answer": host.to_string()}});
        let resolve = |suspension: &&str| {
            begin.wait();
            hosts[host].approver.resolve(suspension, body.clone())
        };
        open.iter().map(resolve).collect()
    };
    let [first, second] = thread::scope(|scope| {
        [0, 1].map(|host| scope.spawn(move || answer(host))).map(|thread| thread.join().unwrap())
    });
    let settled = hosts[1 - number % 2].agent.settled(&turn);
    assert_eq!(outcomes(&settled), vec!["ok"; CALLS], "{settled:#}");
    for (call, answers) in settled["calls"].as_array().unwrap().iter().zip(first.into_iter().zip(second)) {
        let (winner, won, lost) = match answers {
            (first, second) if first.status == 200 => (0, first, second),
            (first, second) => (1, second, first),
        };
        assert_ne!(won.ok(200)["replayed"], true);
        lost.problem(409, "stale");
        wins[winner] += 1;
        assert_eq!(call["content"]["result"]["data"]["answer"], winner.to_string(), "{call:#}");
    }
}
