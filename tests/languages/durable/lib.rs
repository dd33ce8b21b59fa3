//! A durable tool. In each round it counts, draws a random number, reads the clock, sends two requests, waits and sleeps. Each
//! kind of wait has its turn. A kill of the host changes none of its results.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, SystemTime};

use toolgate_sdk::http::Request;
use toolgate_sdk::keyvalue::Bucket;
use toolgate_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Work {
    key: String,
    rounds: u32,
    url: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Given {
    word: String,
}

fn work(Work { key, rounds, url }: Work, call: &Call) -> Result<Vec<Value>, Failure> {
    let round = |number: u32| {
        let count = Bucket::open()?.increment(&key, 1)?;
        let drawn = RandomState::new().hash_one(());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
        let read = Request::get(url.clone()).send()?;
        let body = format!("{key} {number} {count} {drawn} {now} {}", read.text());
        let answer = Request::post(url.clone()).body("text/plain", body).send()?;
        let given = wait(&key, number, &url, call)?;
        call.sleep(Duration::from_secs(1));
        Ok(json!({"count": count, "sent": answer.text(), "given": given}))
    };
    (0..rounds).map(round).collect()
}

fn wait(key: &str, number: u32, url: &str, call: &Call) -> Result<Value, Failure> {
    let prompt = format!("{key} {number}");
    let given: Given = match number % 4 {
        0 => call.ask(Question::new(prompt))?,
        1 => {
            let subject = Given { word: format!("go on with {prompt}") };
            call.approve(Question::new(prompt), &subject)?
        }
        2 => call.await_external(External::new(prompt))?,
        _ => {
            let arguments = json!({"key": format!("{key}+"), "rounds": 1, "url": url});
            let mut ends = call.call_tools(ToolCalls::new().call("work_rust", arguments))?;
            return ends.remove(0).result.map_err(|error| Failure::failed(error.to_string()));
        }
    };
    Ok(json!(given.word))
}

toolgate_sdk::plugin! {
    Tool::server("work_rust", "Counts, draws, sends, waits and sleeps in each round.", work).durable(),
}
