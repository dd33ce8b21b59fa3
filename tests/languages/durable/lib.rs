//! A durable tool that counts, draws a random number, sends a request, asks and sleeps in each round. A kill of the host
//! changes none of its results.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use toolgate_sdk::http::Request;
use toolgate_sdk::keyvalue::Bucket;
use toolgate_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Work {
    key: String,
    rounds: u32,
    url: String,
}

#[derive(Deserialize, JsonSchema)]
struct Given {
    word: String,
}

fn work(Work { key, rounds, url }: Work, call: &Call) -> Result<Vec<Value>, Failure> {
    let round = |number: u32| {
        let count = Bucket::open()?.increment(&key, 1)?;
        let drawn = RandomState::new().hash_one(());
        let body = format!("{key} {number} {count} {drawn}");
        let answer = Request::new("POST", url.clone()).body("text/plain", body).send()?;
        let given: Given = call.ask(Question::new(format!("{key} {number}")))?;
        call.sleep(Duration::from_secs(1));
        Ok(json!({"count": count, "sent": answer.text(), "given": given.word}))
    };
    (0..rounds).map(round).collect()
}

toolgate_sdk::plugin! {
    Tool::server("work_rust", "Counts, draws, sends, asks and sleeps in each round.", work).durable(),
}
