//! The calls after a build: the examples of the plugin, or the one that was asked for.

use std::time::Duration;

use domain::{Json, Outcome};
use kit::Project;
use kit::examples::{self, Example};
use serde_json::{Value, json};

use super::Round;
use crate::commands::author;
use crate::commands::call::{self, Answers};
use crate::report::{Exit, Report};
use crate::terminal::Style;

impl Round<'_> {
    /// Makes the calls and prints each outcome.
    pub(super) fn call(&mut self, project: &Project) -> Result<(), Report> {
        if let Some((tool, arguments)) = self.only_call.clone() {
            let (outcome, took, unasked) = self.make(&tool, arguments, Answers::new(&self.args.answer))?;
            if let Some(unasked) = unasked {
                self.terminal.warning(&unasked);
            }
            let result = match (&outcome, outcome.error(true)) {
                (Outcome::Ok { value, .. }, _) => escape::json(value.as_str()),
                (_, error) => {
                    let (code, message) = error.unwrap_or_default();
                    escape::line(&format!("{code}: {message}")).into_owned()
                }
            };
            let event = json!({
                "event": "called", "tool": tool, "millis": as_number(took), "outcome": value(&outcome),
            });
            return self.say(&event, || format!("{tool}  {result}  {}", millis(took)));
        }
        let file = project.folder().join(examples::FILE);
        if !file.is_file() {
            return Ok(());
        }
        let examples = examples::read(&file).map_err(|error| author::failed(&error))?;
        for example in &examples {
            self.example(example)?;
        }
        Ok(())
    }

    fn example(&mut self, example: &Example) -> Result<(), Report> {
        let title = escape::line(&example.title()).into_owned();
        let arguments = Json::unchecked(Value::Object(example.arguments.clone()).to_string());
        let called = |ok: bool, difference: Option<&String>, took: Duration| {
            json!({
                "event": "example", "title": example.title(), "tool": example.tool, "ok": ok, "difference": difference,
                "millis": as_number(took),
            })
        };
        let (event, line) = match self.make(&example.tool, arguments, Answers::of_example(&example.answers)) {
            Ok((outcome, time, unasked)) => {
                let (took, difference) = (millis(time), difference(example, &outcome).or(unasked));
                let event = called(difference.is_none(), difference.as_ref(), time);
                let line = match difference {
                    None => format!("{} {title}  {took}", self.terminal.style(Style::Good, "ok")),
                    Some(difference) => {
                        format!(
                            "{} {title}  {took}\n  {}",
                            self.terminal.style(Style::Bad, "differs"),
                            escape::line(&difference)
                        )
                    }
                };
                (event, line)
            }
            Err(report) if *self.ended.borrow() => return Err(report),
            // The other examples are still called.
            Err(report) => {
                if !self.args.json {
                    report.print(self.terminal);
                }
                let mut event = report.as_json();
                event["event"] = json!("example");
                (event["title"], event["tool"]) = (json!(example.title()), json!(example.tool));
                (event, format!("{} {title}", self.terminal.style(Style::Open, "not called")))
            }
        };
        self.say(&event, || line)
    }

    /// Makes one call and measures its time. Also returns a sentence about the answers that are left.
    fn make(
        &mut self,
        tool: &str,
        arguments: Json,
        mut answers: Answers,
    ) -> Result<(Outcome, Duration, Option<String>), Report> {
        let tool = author::tool(&self.host, tool)?;
        call::check_callable(&tool)?;
        self.calls += 1;
        let (id, begun) = (format!("dev-{}", self.calls), author::now());
        let mut ended = self.ended.clone();
        let outcome = self.runtime.block_on(async {
            tokio::select! {
                biased;
                Ok(_) = ended.wait_for(|ended| *ended) => Err(Report::silent(Exit::Refused)),
                made = call::call(&self.host, &tool, arguments, &id, &mut answers, self.terminal) => made,
            }
        })?;
        Ok((outcome, begun.elapsed(), answers.unasked()))
    }
}

/// How the outcome of a call differs from the example.
fn difference(example: &Example, outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Ok { value, .. } => match serde_json::from_str(value.as_str()) {
            Ok(value) => example.difference(Ok(&value)),
            Err(error) => Some(format!("the result is not JSON: {error}")),
        },
        other => {
            let (code, message) = other.error(true).unwrap_or_default();
            example.difference(Err((code, &message)))
        }
    }
}

/// The outcome in the form in which a turn has it.
fn value(outcome: &Outcome) -> Value {
    if let Outcome::Ok { value, .. } = outcome {
        let result: Value = serde_json::from_str(value.as_str()).unwrap_or_default();
        return json!({"ok": true, "result": result});
    }
    let (code, message) = outcome.error(true).unwrap_or_default();
    json!({"ok": false, "error": {"code": code, "message": message}})
}

/// Milliseconds, with the microseconds behind the point.
pub(super) fn as_number(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn millis(time: Duration) -> String {
    format!("({}.{} ms)", time.as_millis(), time.subsec_micros() % 1000 / 100)
}
