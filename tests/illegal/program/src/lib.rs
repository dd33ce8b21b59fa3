//! Legal declarations and one durable tool, which carries out the operations in its arguments and returns their results.

mod together;

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, SystemTime};

use toolgate_sdk::config;
use toolgate_sdk::http::Request;
use toolgate_sdk::keyvalue::Bucket;
use toolgate_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Program {
    program: Vec<Operation>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Operation {
    /// Reads a configuration value.
    Config {
        name: String,
    },
    Get {
        key: String,
    },
    Set {
        key: String,
        value: String,
    },
    Delete {
        key: String,
    },
    Keys,
    Increment {
        key: String,
        by: i64,
    },
    /// Adds to a text with compare-and-swap.
    Append {
        key: String,
        text: String,
    },
    Send {
        method: String,
        url: String,
        body: Option<String>,
        /// The name of the secret in the header `authorization`.
        secret: Option<String>,
    },
    /// Sends requests and starts a timer before it polls for all of them together. Returns what became ready, in this order.
    Together {
        posts: Vec<together::Post>,
        /// A timer of this many milliseconds.
        timer: Option<u64>,
    },
    /// Sends a random number to this URL, and returns the answer.
    SendRandom {
        url: String,
    },
    Ask {
        prompt: String,
        expires_ms: Option<u64>,
    },
    /// Returns the value once this many of these people have approved it. They may edit it.
    Approve {
        value: String,
        who: Vec<String>,
        quorum: u32,
    },
    /// Calls other tools together, and returns their results.
    Call {
        calls: Vec<ToolCall>,
    },
    /// Returns the text that this signal brings.
    Await {
        signal: String,
    },
    Sleep {
        ms: u64,
    },
    /// Returns the microseconds since 1970.
    Now,
    /// Returns a random number.
    Random,
    Log {
        line: String,
    },
    /// Returns whether the call should stop.
    Check,
    /// Returns whether so much memory can be had.
    Allocate {
        bytes: usize,
    },
    /// Returns the message of an operation that fails, and goes on.
    Try {
        operation: Value,
    },
}

#[derive(Deserialize, JsonSchema)]
struct ToolCall {
    tool: String,
    arguments: Value,
}

toolgate_sdk::plugin! {
    Tool::server("run", "Carries out a program.", |Program { program }: Program, call: &Call| {
        program.into_iter().map(|operation| carry_out(operation, call)).collect::<Result<Vec<_>, _>>()
    })
    .durable()
    .recovery(Recovery::Ask),
}

fn carry_out(operation: Operation, call: &Call) -> Result<Value, Failure> {
    Ok(match operation {
        Operation::Config { name } => json!(config::get(&name)?),
        Operation::Get { key } => json!(Bucket::open()?.get::<Value>(&key)?),
        Operation::Set { key, value } => json!(Bucket::open()?.set(&key, &value)?),
        Operation::Delete { key } => json!(Bucket::open()?.delete(&key)?),
        Operation::Keys => json!(Bucket::open()?.keys("")?),
        Operation::Increment { key, by } => json!(Bucket::open()?.increment(&key, by)?),
        Operation::Append { key, text } => Bucket::open()?.update(&key, |held: &mut String| {
            held.push_str(&text);
            Ok(json!(held))
        })?,
        Operation::Send { method, url, body, secret } => {
            let mut request = Request::new(&method, url);
            if let Some(name) = secret {
                request = request.header("authorization", config::get(&name)?.unwrap_or_default());
            }
            if let Some(body) = body {
                request = request.body("text/plain", body);
            }
            match request.send() {
                Ok(response) => json!({"status": response.status, "text": response.text()}),
                Err(error) => json!({"error": error.to_string()}),
            }
        }
        Operation::Together { posts, timer } => json!(together::carry_out(&posts, timer)?),
        Operation::SendRandom { url } => {
            json!(Request::post(url).body("text/plain", random()).send()?.text())
        }
        Operation::Ask { prompt, expires_ms } => {
            let question = Question::new(prompt);
            let question = match expires_ms {
                Some(ms) => question.expires(Duration::from_millis(ms)),
                None => question,
            };
            match call.ask::<Value>(question) {
                Err(error @ WaitError::Expired) => json!({"error": error.to_string()}),
                answer => answer?,
            }
        }
        Operation::Approve { value, who, quorum } => {
            let who: Vec<_> = who.iter().map(String::as_str).collect();
            json!(call.approve(Question::new("Is it right?").who(&who).quorum(quorum).editable_all(), &value)?)
        }
        Operation::Call { calls } => {
            let asked = calls.into_iter().fold(ToolCalls::new(), |all, each| all.call(&each.tool, each.arguments));
            match call.call_tools(asked) {
                Err(WaitError::NotGranted(why)) => json!({"error": why}),
                ends => ends?.into_iter().map(|end| end.result.unwrap_or_else(|error| json!(error.code))).collect(),
            }
        }
        Operation::Await { signal } => {
            json!(call.await_external::<String>(External::new("A job ends").signal(&signal))?)
        }
        Operation::Now => {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            json!(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
        }
        Operation::Random => json!(random()),
        Operation::Sleep { ms } => {
            call.sleep(Duration::from_millis(ms));
            Value::Null
        }
        Operation::Allocate { bytes } => json!(std::hint::black_box(Vec::<u8>::new()).try_reserve_exact(bytes).is_ok()),
        Operation::Try { operation } => {
            let parsed = Operation::deserialize(operation).map_err(Failure::from);
            match parsed.and_then(|operation| carry_out(operation, call)) {
                Ok(result) => result,
                Err(Failure::InvalidArguments(why) | Failure::Failed(why) | Failure::Unavailable(why)) => {
                    json!({"error": why})
                }
            }
        }
        Operation::Check => json!(call.stop_requested()),
        Operation::Log { line } => {
            call.log(Level::Info, &line);
            Value::Null
        }
    })
}

fn random() -> String {
    RandomState::new().hash_one(()).to_string()
}
