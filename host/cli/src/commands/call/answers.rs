//! Answers to what a durable call asks people in the middle of its code.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, IsTerminal as _};

use dispatch::Answer;
use domain::suspension::{Decision, Elicitation, Suspension, SuspensionBody};
use domain::tool::Editable;
use domain::{Json, Principal, Turn};
use kit::reply::{Asks, Reply};
use serde_json::Value;
use tokio::task::JoinHandle;
use toolgate::Host;

use super::resolve;
use crate::args::checked;
use crate::report::{Exit, Report};
use crate::terminal::{Style, Terminal};

/// The answers for one call.
pub(in crate::commands) struct Answers {
    /// Those that were given before the call began, and are left.
    given: VecDeque<String>,
    /// The number of answers that were given before the call began.
    all: usize,
    /// Whether somebody at the terminal gives the others.
    asks: bool,
    /// The last step that was asked about.
    asked: Option<Suspension>,
    /// The line that the user is writing. It cannot be cancelled, so the answer to the next question may be in it.
    writing: Option<JoinHandle<io::Result<Option<String>>>>,
}

impl Answers {
    /// These answers. When they are used up, the user is asked, if there is a terminal.
    pub(in crate::commands) fn new(given: &[String]) -> Self {
        Self::of(given.to_vec().into(), io::stdin().is_terminal())
    }

    /// The answers of an example.
    pub(in crate::commands) fn of_example(answers: &[Value]) -> Self {
        let text = |answer: &Value| answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
        Self::of(answers.iter().map(text).collect(), false)
    }

    fn of(given: VecDeque<String>, asks: bool) -> Self {
        Self { all: given.len(), given, asks, asked: None, writing: None }
    }

    /// A sentence about the answers that the call did not ask for.
    pub(in crate::commands) fn unasked(&self) -> Option<String> {
        let (left, all) = (self.given.len(), self.all);
        (left > 0).then(|| format!("the call asked for {} of {all} answers", all - left))
    }

    /// Answers the step that the call waits for, if it waits for a person. If no answer is left, asks the user.
    pub(super) async fn answer(
        &mut self,
        host: &Host,
        by: &Principal,
        turn: &Turn,
        terminal: &Terminal,
    ) -> Result<(), Report> {
        let open = turn.calls.iter().find_map(|call| call.open()).filter(|open| open.step.is_some());
        let is_asked = |step: &Suspension| self.asked.as_ref().is_some_and(|asked| asked.id == step.id);
        let Some(step) = open.filter(|open| !is_asked(open)) else { return Ok(()) };
        let Some(prompt) = prompt(step) else { return Ok(()) };
        terminal.note(&escape::block(prompt, "  | "));
        self.asked = Some(step.clone());
        if let Some(given) = self.given.pop_front() {
            return resolve(host, by, answer_to(step, &given)?).await;
        }
        if !self.asks {
            return Err(unanswered(prompt));
        }
        terminal.note(&format!("{}{} ", form(step), terminal.note_style(Style::Open, "answer>")));
        let write = || {
            let mut line = String::new();
            io::stdin().lock().read_line(&mut line).map(|bytes| (bytes > 0).then_some(line))
        };
        self.writing.get_or_insert_with(|| tokio::task::spawn_blocking(write));
        Ok(())
    }

    /// The line that the user writes. `None` at the end of the input. Waits forever if the user was not asked. Safe to cancel.
    pub(super) async fn line(&mut self) -> Result<Option<String>, Report> {
        let Some(writing) = &mut self.writing else { return std::future::pending().await };
        let line = writing.await;
        self.writing = None;
        Ok(line??)
    }

    /// Answers the question with the user's line. If the answer is refused, the user can be asked again.
    pub(super) async fn reply(
        &mut self,
        line: Option<String>,
        host: &Host,
        by: &Principal,
        terminal: &Terminal,
    ) -> Result<(), Report> {
        let Some(step) = &self.asked else { return Ok(()) };
        let Some(line) = line else { return Err(unanswered(prompt(step).unwrap_or_default())) };
        let refused = match answer_to(step, &line) {
            Ok(answer) => resolve(host, by, answer).await.err(),
            Err(refused) => Some(refused),
        };
        if let Some(refused) = refused {
            refused.print(terminal);
            self.asked = None;
        }
        Ok(())
    }
}

/// The question of a step. `None` if it does not wait for a person or an external system.
fn prompt(step: &Suspension) -> Option<&str> {
    step.about().map(|about| about.prompt.as_deref().unwrap_or_default())
}

/// The form of an answer.
fn form(step: &Suspension) -> String {
    let shown = |json: &Json| escape::json(json.as_str());
    match &step.body {
        SuspensionBody::Approval(approval) => {
            let subject = step.step.as_ref().and_then(|step| step.subject.as_ref()).map(shown).unwrap_or_default();
            let edit = if approval.editable == Editable::Nothing { "" } else { ", or the value as you approve it" };
            format!("{subject}\n`approve`, `deny` and why{edit}\n")
        }
        SuspensionBody::Elicitation(question) => match (&question.choices, &question.data_schema) {
            (Some(choices), _) => format!("one of: {}\n", escape::line(&choices.join(", "))),
            (None, Some(schema)) => format!("JSON that fits {}\n", shown(schema)),
            (None, None) => "JSON\n".into(),
        },
        SuspensionBody::External(wait) => match &wait.result_schema {
            Some(schema) => format!("the result of the external system: JSON that fits {}\n", shown(schema)),
            None => "the result of the external system: JSON\n".into(),
        },
        SuspensionBody::ClientExec(_)
        | SuspensionBody::Nested(_)
        | SuspensionBody::Timer
        | SuspensionBody::RateLimit => String::new(),
    }
}

fn unanswered(prompt: &str) -> Report {
    Report::new(Exit::Refused, "the call waits for an answer, and has none")
        .because(format!("it asks: {prompt}"))
        .hint("give its answers with --answer, one for each question, or run this at a terminal")
}

/// The answer to a step, from what the user wrote.
fn answer_to(step: &Suspension, text: &str) -> Result<Answer, Report> {
    let asks = match &step.body {
        SuspensionBody::Approval(_) => Asks::Approval,
        SuspensionBody::Elicitation(Elicitation { choices: Some(choices), .. }) => Asks::Choice(choices),
        _ => Asks::Data,
    };
    let reply = Reply::read(text, asks).map_err(|error| Report::new(Exit::Usage, error.to_string()))?;
    let (decision, data, arguments, comment) = match reply {
        Reply::Approved { edited, comment } => (Decision::Approve, None, edited, comment),
        Reply::Denied { comment } => (Decision::Deny, None, None, comment),
        Reply::Chosen { choice, data } => (choice.as_str().into(), data, None, None),
        Reply::Data(data) if step.external().is_some() => (Decision::Result, Some(data), None, None),
        Reply::Data(data) => ("answer".into(), Some(data), None, None),
    };
    let json = |text: Option<String>| text.as_deref().map(checked).transpose();
    let malformed = |error| Report::new(Exit::Usage, "the answer is not valid JSON").because(error);
    Ok(Answer {
        suspension: step.id,
        decision,
        data: json(data).map_err(malformed)?,
        arguments: json(arguments).map_err(malformed)?,
        comment,
        expect_digest: Some(step.digest),
        standing: None,
    })
}
