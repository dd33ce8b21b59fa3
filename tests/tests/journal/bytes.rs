//! Limits on the bytes of a call. They are for the whole call, however often it is interrupted and however often it waits.

use serde_json::{Value, json};
use toolgate_tests::effects::Server;

use crate::place::{Death, Place};
use crate::result;

/// A call with a limit on its bytes.
struct Limited {
    limits: fn(&mut Place),
    program: fn(&Server) -> Vec<Value>,
}

impl Limited {
    /// Its results with these kills. With `asks`, it waits after half of its operations.
    fn results(&self, asks: bool, kills: &[(usize, Death)]) -> Vec<Value> {
        let server = Server::start();
        let mut place = Place::new(&server, true);
        (self.limits)(&mut place);
        let mut program = (self.program)(&server);
        let half = program.len() / 2;
        if asks {
            program.insert(half, json!({"do": "ask", "prompt": "Go on?"}));
        }
        let Value::Array(mut results) = result(&place.call(&json!(program), kills)) else { panic!("no results") };
        if asks {
            assert_eq!(results.remove(half), "yes");
        }
        results
    }

    /// The number of operations that succeed. It is the same with a kill at each of these writes, and across a wait.
    fn is_the_same(&self, writes: impl Iterator<Item = (usize, Death)>) -> usize {
        let straight = self.results(false, &[]);
        assert_eq!(self.results(true, &[]), straight, "across a wait");
        for kill in writes {
            assert_eq!(self.results(false, &[kill]), straight, "{kill:?}");
            assert_eq!(self.results(true, &[kill]), straight, "{kill:?}, across a wait");
        }
        straight.iter().take_while(|result| result["error"].is_null()).count()
    }
}

fn both(writes: std::ops::Range<usize>) -> impl Iterator<Item = (usize, Death)> {
    writes.flat_map(|write| [Death::Before, Death::After].map(|death| (write, death)))
}

#[test]
fn sent_bytes_are_limited_for_the_whole_call() {
    let call = Limited {
        limits: |place| place.limits.http_sent = 65 << 10,
        program: |server| {
            let body = "x".repeat(10 << 10);
            vec![json!({"do": "send", "method": "POST", "url": server.url("/size"), "body": body}); 10]
        },
    };
    // A request that is interrupted after it has exceeded the limit is in doubt, so it is not interrupted here.
    let after = [13, 15, 19].map(|write| (write, Death::After));
    assert_eq!(call.is_the_same(both(0..12).chain(after)), 6);
}

#[test]
fn received_bytes_are_limited_for_the_whole_call() {
    let call = Limited {
        limits: |place| place.limits.http_received = 200 << 10,
        program: |server| {
            let read = json!({"do": "send", "method": "GET", "url": server.url("/large"), "body": null});
            let count = json!({"do": "increment", "key": "n", "by": 1});
            [(); 4].iter().flat_map(|()| [read.clone(), count.clone()]).collect()
        },
    };
    assert_eq!(call.is_the_same(both(0..4)), 6, "three requests, and the operations after them");
}

#[test]
fn written_bytes_are_limited_for_the_whole_call() {
    let call = Limited {
        // A write has 1,138 bytes.
        limits: |place| place.limits.keyvalue_written = 7_000,
        program: |_| {
            let set = json!({"do": "set", "key": "k", "value": "x".repeat(1_000)});
            vec![json!({"do": "try", "operation": set}); 10]
        },
    };
    assert_eq!(call.is_the_same(both(0..6)), 6);
}

#[test]
fn refused_write_costs_a_call_nothing() {
    let call = Limited {
        limits: |place| {
            place.limits.keyvalue_written = 7_000;
            place.quota.keys = 1;
        },
        program: |_| {
            let set = |key: &str, value: usize| json!({"do": "try", "operation": {"do": "set", "key": key, "value": "x".repeat(value)}});
            // The second one is larger than the limit, the third one larger than any value, and there is one key only.
            let refused = vec![set("k", 8_000), set("k", 65_535), set("j", 1_000), set("j", 1_000)];
            [vec![set("k", 1_000)], refused, vec![set("k", 1_000); 7]].concat()
        },
    };
    assert_eq!(call.is_the_same(both(0..6)), 1);
    let results = call.results(false, &[]);
    assert_eq!(results.iter().filter(|result| result.is_null()).count(), 6, "{results:#?}");
}
