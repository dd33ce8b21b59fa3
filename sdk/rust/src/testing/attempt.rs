//! One attempt at a call, run natively.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
#[cfg(feature = "keyvalue")]
use std::panic::{self, AssertUnwindSafe};

use serde_json::{Value, json};

#[cfg(feature = "config")]
use crate::config::values;
use crate::durable::{NotCarriedOut, Returned, Wait, WaitError};
#[cfg(feature = "http")]
use crate::http::{self, answers};
#[cfg(feature = "keyvalue")]
use crate::keyvalue::memory::{Killed, Memory};
use crate::{Call, Failure, Level, Outlet, Request, Tools};

/// Runs a server tool once, with an invented call.
pub fn run(tools: Tools, tool: &str, arguments: Value) -> Run {
    Attempt::at(tool, arguments).run(&tools)
}

/// One attempt at a call of a server tool.
#[derive(Clone)]
pub struct Attempt {
    request: Request,
    asked_before_stop: Option<u32>,
    script: Vec<Scripted>,
    #[cfg(feature = "keyvalue")]
    memory: Memory,
    #[cfg(feature = "http")]
    answers: Option<answers::Answers>,
    #[cfg(feature = "config")]
    values: values::Values,
}

/// The end of one wait for a person or an external system.
#[derive(Debug, Clone, PartialEq)]
enum Scripted {
    Answered(Value),
    /// `None`: without an edit.
    Approved(Option<Value>),
    Received(Value),
    Returned(Vec<Returned>),
    Unanswered(WaitError),
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The result, or the failure. As on a host, a text that is not JSON is `Failed`.
    pub result: Result<Value, Failure>,
    /// The reported progress, in order.
    pub updates: Vec<Update>,
    /// The log, in order.
    pub logs: Vec<(Level, String)>,
    /// The waits of a durable tool, in order.
    pub waits: Vec<Wait>,
}

/// One report of progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// One line for people.
    pub message: String,
    /// 0.0 to 1.0, if it is known.
    pub fraction: Option<f64>,
    /// A value for the user interface.
    pub data: Option<Value>,
}

impl Attempt {
    /// The first attempt at a call with these arguments. They are not checked against the tool's schema.
    pub fn at(tool: &str, arguments: Value) -> Self {
        let request = Request {
            id: "call-1".to_owned(),
            tool: tool.to_owned(),
            arguments: arguments.to_string(),
            idempotency_key: "key-1".to_owned(),
            attempt: 1,
            scope: json!({"conversation": "c", "turn": "t", "caller": "tester", "context": null}).to_string(),
        };
        Self {
            request,
            asked_before_stop: None,
            script: Vec::new(),
            #[cfg(feature = "keyvalue")]
            memory: Memory::new(),
            #[cfg(feature = "http")]
            answers: None,
            #[cfg(feature = "config")]
            values: values::Values::new(),
        }
    }

    /// Sets the idempotency key.
    pub fn key(mut self, key: &str) -> Self {
        key.clone_into(&mut self.request.idempotency_key);
        self
    }

    /// Sets the number of the attempt.
    pub fn number(mut self, attempt: u32) -> Self {
        self.request.attempt = attempt;
        self
    }

    /// Sets the scope: a JSON object as the interface describes it.
    pub fn scope(mut self, scope: &Value) -> Self {
        self.request.scope = scope.to_string();
        self
    }

    /// Makes [`Call::stop_requested`] return true after it returned false this many times. Without this, it always
    /// returns false.
    pub fn stop_after(mut self, asked: u32) -> Self {
        self.asked_before_stop = Some(asked);
        self
    }

    /// The next wait of a durable tool for a person ends with this answer. Sleeps end at once and need no script.
    pub fn answered(self, answer: Value) -> Self {
        self.scripted(Scripted::Answered(answer))
    }

    /// The next wait of a durable tool for a person ends with an approval of the value as it is.
    pub fn approved(self) -> Self {
        self.scripted(Scripted::Approved(None))
    }

    /// The next wait of a durable tool for a person ends with an approval of this value.
    pub fn approved_as(self, value: Value) -> Self {
        self.scripted(Scripted::Approved(Some(value)))
    }

    /// The next wait of a durable tool for an external system ends with this result.
    pub fn received(self, result: Value) -> Self {
        self.scripted(Scripted::Received(result))
    }

    /// The next calls of other tools by a durable tool end like this. A [`Result`] is a trusted end.
    pub fn returned<End: Into<Returned>>(self, ends: Vec<End>) -> Self {
        self.scripted(Scripted::Returned(ends.into_iter().map(Into::into).collect()))
    }

    /// The next wait of a durable tool for a person ends with a denial and this comment.
    pub fn denied(self, comment: &str) -> Self {
        self.scripted(Scripted::Unanswered(WaitError::Denied(Some(comment.to_owned()))))
    }

    /// The next wait of a durable tool for a person or an external system ends without an answer.
    pub fn expired(self) -> Self {
        self.scripted(Scripted::Unanswered(WaitError::Expired))
    }

    fn scripted(mut self, end: Scripted) -> Self {
        self.script.push(end);
        self
    }

    /// Sets the key-value store. Without this, the store is empty.
    #[cfg(feature = "keyvalue")]
    pub fn memory(mut self, memory: &Memory) -> Self {
        self.memory = memory.clone();
        self
    }

    /// Sets the function that returns the responses to requests. Without this, all requests are denied.
    #[cfg(feature = "http")]
    pub fn answers(
        mut self,
        answers: impl Fn(&http::Request) -> Result<http::Response, http::Error> + 'static,
    ) -> Self {
        self.answers = Some(std::rc::Rc::new(answers));
        self
    }

    /// Adds a configured value.
    #[cfg(feature = "config")]
    pub fn config(mut self, name: &str, value: &str) -> Self {
        self.values.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Runs the attempt.
    pub fn run(&self, tools: &Tools) -> Run {
        let call = || self.run_here(tools);
        #[cfg(feature = "keyvalue")]
        let call = || self.memory.during(call);
        #[cfg(feature = "http")]
        let call = || answers::during(self.answers.clone(), call);
        #[cfg(feature = "config")]
        let call = || values::during(self.values.clone(), call);
        call()
    }

    /// Runs the attempt. `None` if [`Memory::kill_after`] killed it.
    #[cfg(feature = "keyvalue")]
    pub fn run_or_die(&self, tools: &Tools) -> Option<Run> {
        match panic::catch_unwind(AssertUnwindSafe(|| self.run(tools))) {
            Ok(run) => Some(run),
            Err(payload) if payload.is::<Killed>() => None,
            Err(payload) => panic::resume_unwind(payload),
        }
    }

    fn run_here(&self, tools: &Tools) -> Run {
        let durable = tools.iter().any(|tool| tool.name() == self.request.tool && tool.is_durable());
        let script = RefCell::new(self.script.iter().cloned().collect());
        let notes = Notes { asked_before_stop: self.asked_before_stop, durable, script, ..Notes::default() };
        let result = tools.run(&self.request.tool, &Call::new(&self.request, &notes), &self.request.arguments);
        let result = result.and_then(|text| {
            serde_json::from_str(&text).map_err(|error| Failure::Failed(format!("the result is not JSON: {error}")))
        });
        let slept = notes.waits.borrow().iter().any(|wait| matches!(wait, Wait::Sleep(_)));
        let result = if slept && !durable { Err(Failure::failed(NOT_DURABLE)) } else { result };
        Run { result, updates: notes.updates.take(), logs: notes.logs.take(), waits: notes.waits.take() }
    }
}

/// The outlet of a test.
#[derive(Default)]
struct Notes {
    updates: RefCell<Vec<Update>>,
    logs: RefCell<Vec<(Level, String)>>,
    asked_before_stop: Option<u32>,
    asked: Cell<u32>,
    durable: bool,
    script: RefCell<VecDeque<Scripted>>,
    waits: RefCell<Vec<Wait>>,
}

/// An end in the form in which a guest gets it.
fn as_end(Returned { result, trusted }: Returned) -> Value {
    let mut end = match result {
        Ok(result) => json!({"ok": true, "result": result}),
        Err(NotCarriedOut { code, message }) => json!({"ok": false, "error": {"code": code, "message": message}}),
    };
    if !trusted {
        end["trusted"] = json!(false);
    }
    end
}

const NOT_DURABLE: &str = "only a durable tool can wait in the middle of a call: declare it with `.durable()`";

impl Outlet for Notes {
    fn progress(&self, message: &str, fraction: Option<f64>, data: Option<String>) {
        let data = data.and_then(|text| serde_json::from_str(&text).ok());
        self.updates.borrow_mut().push(Update { message: message.to_owned(), fraction, data });
    }

    fn log(&self, level: Level, message: &str) {
        self.logs.borrow_mut().push((level, message.to_owned()));
    }

    fn stop_requested(&self) -> bool {
        let asked = self.asked.get();
        self.asked.set(asked.saturating_add(1));
        self.asked_before_stop.is_some_and(|in_vain| asked >= in_vain)
    }

    fn wait(&self, wait: Wait) -> Result<Value, WaitError> {
        self.waits.borrow_mut().push(wait.clone());
        if !self.durable {
            return Err(WaitError::NotGranted(NOT_DURABLE.to_owned()));
        }
        let scripted = if matches!(wait, Wait::Sleep(_)) { None } else { self.script.borrow_mut().pop_front() };
        match (scripted, wait) {
            (Some(Scripted::Answered(answer)), Wait::Ask(_)) => Ok(answer),
            (Some(Scripted::Received(result)), Wait::External(_)) => Ok(result),
            (Some(Scripted::Approved(value)), Wait::Approve(question)) => {
                Ok(value.unwrap_or_else(|| question["subject"].clone()))
            }
            (Some(Scripted::Returned(ends)), Wait::Calls(_)) => Ok(ends.into_iter().map(as_end).collect()),
            (Some(Scripted::Unanswered(why)), _) => Err(why),
            (_, Wait::Sleep(_)) => Ok(Value::Null),
            (_, Wait::Ask(question) | Wait::Approve(question) | Wait::External(question) | Wait::Calls(question)) => {
                Err(WaitError::NotGranted(format!("the test does not answer this question: {question}")))
            }
        }
    }
}
