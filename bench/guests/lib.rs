//! Reads and writes a key and sends requests, as often as its arguments say, and then asks a person. `work_plainly` does the same in
//! a call that is not durable, and asks nobody.

use toolgate_sdk::http::Request;
use toolgate_sdk::keyvalue::Bucket;
use toolgate_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Work {
    #[serde(default)]
    reads: u32,
    #[serde(default)]
    writes: u32,
    #[serde(default)]
    requests: u32,
    /// The URL of the requests.
    #[serde(default)]
    url: String,
    /// Whether it asks a person at its end.
    #[serde(default)]
    asks: bool,
}

toolgate_sdk::plugin! {
    Tool::server("work", "Works, and then asks.", |work: Work, call: &Call| -> Result<bool, Failure> {
        carry_out(&work)?;
        Ok(!work.asks || call.ask(Question::new("Go on?"))?)
    })
    .durable(),
    Tool::server("work_plainly", "Works.", |work: Work, _: &Call| -> Result<bool, Failure> {
        carry_out(&work)?;
        Ok(true)
    }),
}

fn carry_out(work: &Work) -> Result<(), Failure> {
    let bucket = Bucket::open()?;
    for _ in 0..work.reads {
        bucket.get::<u64>("n")?;
    }
    for _ in 0..work.writes {
        bucket.increment("n", 1)?;
    }
    for _ in 0..work.requests {
        Request::post(work.url.clone()).body("text/plain", "x").send()?;
    }
    Ok(())
}
