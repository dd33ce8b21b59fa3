//! Waits in the middle of a call: for an answer, for a decision about a value, for an external system, or for time.
//!
//! Only a tool that is declared [`durable`](crate::Tool::durable) may wait. While its call waits, it has no instance, and the
//! host may be stopped. Then the host runs the function again from its beginning and answers each wait that has ended with the
//! same answer. So the function must do the same each time: clocks and random numbers do, and a function that keeps its data
//! in its arguments and local variables does too. The host records what the modules `http`, `keyvalue` and `config` return, and
//! a later run gets the same from them. A request is sent while the function waits for its answer.
//!
//! ```
//! use std::time::Duration;
//! use toolgate_sdk::prelude::*;
//! use toolgate_sdk::testing::Attempt;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Target {
//!     /// The environment to deploy to.
//!     environment: String,
//! }
//!
//! #[derive(Serialize, Deserialize)]
//! struct Plan {
//!     environment: String,
//!     instances: u32,
//! }
//!
//! toolgate_sdk::plugin! {
//!     Tool::server("deploy", "Deploys the service.", |_: NoArguments, call: &Call| {
//!         let target: Target = call.ask(Question::new("Where to?").expires(Duration::from_secs(86_400)))?;
//!         let plan = Plan { environment: target.environment, instances: 3 };
//!         let plan = call.approve(Question::new("Deploy this?").risk(Risk::High).editable(&["instances"]), &plan)?;
//!         call.sleep(Duration::from_secs(600));
//!         Ok(format!("{} instances in {}", plan.instances, plan.environment))
//!     })
//!     .durable(),
//! }
//!
//! let attempt = Attempt::at("deploy", json!({}))
//!     .answered(json!({"environment": "staging"}))
//!     .approved_as(json!({"environment": "staging", "instances": 2}));
//! assert_eq!(attempt.run(&tools()).result, Ok(json!("2 instances in staging")));
//! let denied = Attempt::at("deploy", json!({})).answered(json!({"environment": "live"})).denied("not today");
//! assert_eq!(denied.run(&tools()).result, Err(Failure::failed("a person denied it: not today")));
//! ```

use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::options::Editable;
use crate::schema::schema_of;
pub use crate::waiting::{Wait, WaitError};
use crate::{Call, Risk};

/// A question to a person.
#[derive(Debug, Clone, Default)]
#[must_use = "a question does nothing until it is asked"]
pub struct Question {
    members: Map<String, Value>,
}

/// A wait for an external system, for example for the end of a job.
#[derive(Debug, Clone, Default)]
#[must_use = "nothing waits until it is passed to `Call::await_external`"]
pub struct External {
    members: Map<String, Value>,
}

impl External {
    /// A wait with this text for people, of 1 to 4096 bytes: what is awaited.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self::default().with("prompt", prompt.into())
    }

    /// The time of the wait, in whole milliseconds, at most the option of the tool. Without it, that option.
    pub fn expires(self, after: Duration) -> Self {
        self.with("expires_ms", millis(after))
    }

    /// The name of the signal that brings the result: 1 to 64 of the characters `a-z A-Z 0-9 _ . -`. If another call of the
    /// conversation waits for this name, the call fails. Without it, no signal brings the result.
    pub fn signal(self, name: &str) -> Self {
        self.with("name", name)
    }

    /// Data for the external system, of at most 4 KiB.
    pub fn metadata(self, metadata: Value) -> Self {
        self.with("metadata", metadata)
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.members.insert(key.to_owned(), value.into());
        self
    }
}

/// The answer to a question with choices.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Choice {
    /// One of the choices.
    pub decision: String,
    /// Anything that the person added.
    pub data: Option<Value>,
}

/// The calls of other tools, which are made together.
#[derive(Debug, Clone, Default)]
#[must_use = "nothing is called until it is passed to `Call::call_tools`"]
pub struct ToolCalls {
    calls: Vec<Value>,
}

impl ToolCalls {
    /// No calls yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a call of a tool. All calls of one call together have a limit, 100 unless the operator sets another.
    pub fn call(mut self, tool: &str, arguments: Value) -> Self {
        self.calls.push(json!({"tool": tool, "arguments": arguments}));
        self
    }
}

/// Why a call of another tool has no result.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NotCarriedOut {
    /// How the call ended, for example `denied` or `expired`, or the code of a failure, for example `invalid_arguments`.
    pub code: String,
    /// A sentence for a model.
    pub message: String,
}

impl std::fmt::Display for NotCarriedOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for NotCarriedOut {}

/// The end of a call of another tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returned {
    /// The result, or why the call has no result.
    pub result: Result<Value, NotCarriedOut>,
    /// Whether the host controls the result. It does not control that of a client, a provider or an external system.
    pub trusted: bool,
}

/// A trusted end.
impl From<Result<Value, NotCarriedOut>> for Returned {
    fn from(result: Result<Value, NotCarriedOut>) -> Self {
        Self { result, trusted: true }
    }
}

/// An end as the interface defines it.
#[derive(Deserialize)]
struct ToolEnd {
    #[serde(default)]
    result: Value,
    error: Option<NotCarriedOut>,
    trusted: Option<bool>,
}

impl From<ToolEnd> for Returned {
    fn from(ToolEnd { result, error, trusted }: ToolEnd) -> Self {
        Self { result: error.map_or(Ok(result), Err), trusted: trusted.unwrap_or(true) }
    }
}

impl Question {
    /// A question with this text, of 1 to 4096 bytes.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self::default().with("prompt", prompt.into())
    }

    /// The time of the wait, in whole milliseconds, at most the option of the tool. Without it, that option.
    pub fn expires(self, after: Duration) -> Self {
        self.with("expires_ms", millis(after))
    }

    /// The possible harm of a wrong answer. Without it, that of the tool.
    pub fn risk(self, risk: Risk) -> Self {
        self.with("risk", risk.as_str())
    }

    /// The people who may answer: `principal:NAME`, `group:NAME` or `role:NAME`. Without it, any approver.
    pub fn who(self, who: &[&str]) -> Self {
        self.with("who", json!(who))
    }

    /// For [`Call::approve`]: how many people must approve. Without it, one.
    pub fn quorum(self, people: u32) -> Self {
        self.with("quorum", people)
    }

    /// For [`Call::approve`]: an approver may change these members of the value.
    pub fn editable(self, names: &'static [&'static str]) -> Self {
        self.with("editable", Editable::Fields(names).to_json())
    }

    /// For [`Call::approve`]: an approver may change the whole value.
    pub fn editable_all(self) -> Self {
        self.with("editable", Editable::All.to_json())
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.members.insert(key.to_owned(), value.into());
        self
    }
}

/// Waits in the middle of a call. They need a tool that is declared [`durable`](crate::Tool::durable), and a host with version
/// 0.1.2 of the interface.
impl Call<'_> {
    /// Asks a person for a value of this type, and returns it. The person sees the schema of the type as a form.
    ///
    /// # Errors
    /// [`WaitError`]
    pub fn ask<Answer: DeserializeOwned + JsonSchema>(&self, question: Question) -> Result<Answer, WaitError> {
        read(self.wait(Wait::Ask(Value::Object(question.with("response", schema_of::<Answer>()).members)))?)
    }

    /// Asks a person to choose. There are 1 to 16 distinct choices of 1 to 64 characters.
    ///
    /// # Errors
    /// [`WaitError`]
    pub fn choose(&self, question: Question, choices: &[&str]) -> Result<Choice, WaitError> {
        read(self.wait(Wait::Ask(Value::Object(question.with("responses", json!(choices)).members)))?)
    }

    /// Asks for a decision about a value, and returns the value as it was approved. The host cannot know whether later effects
    /// match it. To bind an approval to an effect, put the effect into a tool that requires approval.
    ///
    /// # Errors
    /// [`WaitError`]
    pub fn approve<Subject>(&self, question: Question, subject: &Subject) -> Result<Subject, WaitError>
    where
        Subject: Serialize + DeserializeOwned,
    {
        let subject = serde_json::to_value(subject).map_err(|error| WaitError::Malformed(error.to_string()))?;
        read(self.wait(Wait::Approve(Value::Object(question.with("subject", subject).members)))?)
    }

    /// Waits for an external system, and returns the result that it sends. The sender is the caller, an admin, or the holder
    /// of a link to the wait. So the result is untrusted; the host has checked only that it fits the schema of the type.
    ///
    /// # Errors
    /// [`WaitError`]
    pub fn await_external<Received: DeserializeOwned + JsonSchema>(
        &self,
        external: External,
    ) -> Result<Received, WaitError> {
        read(self.wait(Wait::External(Value::Object(external.with("schema", schema_of::<Received>()).members)))?)
    }

    /// Calls other tools, and returns their ends in the order of the calls, when all of them have ended. The calls are a
    /// turn of their own, with the gates, policies and people of any turn: each may take days, or be denied. The plugin's
    /// manifest requests the tools under `calls`, and the operator grants them.
    ///
    /// # Errors
    /// [`WaitError`]; no tool was called. A call without a result is no error here.
    pub fn call_tools(&self, calls: ToolCalls) -> Result<Vec<Returned>, WaitError> {
        let ends: Vec<ToolEnd> = read(self.wait(Wait::Calls(json!({"calls": calls.calls})))?)?;
        Ok(ends.into_iter().map(Returned::from).collect())
    }

    /// Waits for this time, in whole milliseconds. The function `std::thread::sleep` does the same in a durable tool.
    pub fn sleep(&self, time: Duration) {
        // Time always comes.
        let _ = self.wait(Wait::Sleep(time));
    }

    fn wait(&self, wait: Wait) -> Result<Value, WaitError> {
        #[cfg(target_family = "wasm")]
        let answer = crate::waiting::host::wait(&wait);
        #[cfg(not(target_family = "wasm"))]
        let answer = self.outlet.wait(wait);
        answer
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn read<T: DeserializeOwned>(answer: Value) -> Result<T, WaitError> {
    serde_json::from_value(answer).map_err(|error| WaitError::Malformed(error.to_string()))
}
