//! Answers to what a durable call asks people in the middle of its code.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, IsTerminal as _};

use dispatch::Answer;
use domain::suspension::{Decision, Elicitation, Suspension, SuspensionBody};
use domain::tool::Editable;
use domain::{Json, Principal, SuspensionId, Turn};
use kit::reply::{Asks, Reply};
use serde_json::Value;
use toolgate::Host;

use super::resolve;
use crate::args::checked;
use crate::report::{Exit, Report};
use crate::terminal::{Style, Terminal};

/// The answers for one call.
pub(in crate::commands) struct Answers {
    /// Those that were given before the call began.
    given: VecDeque<String>,
    /// Whether somebody at the terminal gives the others.
    asks: bool,
    /// The last step that was answered.
    answered: Option<SuspensionId>,
}

impl Answers {
    /// These answers. When they are used up, the user is asked, if there is a terminal.
    pub(in crate::commands) fn new(given: &[String]) -> Self {
        Self { given: given.to_vec().into(), asks: io::stdin().is_terminal(), answered: None }
    }

    /// The answers of an example.
    pub(in crate::commands) fn of_example(answers: &[Value]) -> Self {
        let text = |answer: &Value| answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
        Self { given: answers.iter().map(text).collect(), asks: false, answered: None }
    }

    /// Answers the step that the call waits for, if it waits for a person.
    pub(super) async fn answer(
        &mut self,
        host: &Host,
        by: &Principal,
        turn: &Turn,
        terminal: &Terminal,
    ) -> Result<(), Report> {
        let open = turn.calls.iter().find_map(|call| call.open());
        let Some(step) = open.filter(|open| open.step.is_some() && self.answered != Some(open.id)) else {
            return Ok(());
        };
        let Some(prompt) = step.asked().map(|asked| asked.prompt.as_deref().unwrap_or_default()) else { return Ok(()) };
        terminal.note(&escape::block(prompt, "  | "));
        loop {
            let is_given = !self.given.is_empty();
            let answer = match self.next(step, terminal).await? {
                Some(text) => answer_to(step, &text),
                None => return Err(unanswered(prompt)),
            };
            let refused = match answer {
                Ok(answer) => resolve(host, by, answer).await.err(),
                Err(refused) => Some(refused),
            };
            match refused {
                None => break,
                Some(refused) if is_given => return Err(refused),
                // The user tries again, unless the question has expired meanwhile.
                Some(refused) => refused.print(terminal),
            }
            let now = host.handle().turn(by, &turn.conversation, turn.id).await?;
            if now.calls.iter().all(|call| call.open().is_none_or(|open| open.id != step.id)) {
                break;
            }
        }
        self.answered = Some(step.id);
        Ok(())
    }

    /// The next answer. `None`: there is no more, and nobody to ask.
    async fn next(&mut self, step: &Suspension, terminal: &Terminal) -> Result<Option<String>, Report> {
        if let Some(given) = self.given.pop_front() {
            return Ok(Some(given));
        }
        if !self.asks {
            return Ok(None);
        }
        terminal.note(&format!("{}{} ", form(step), terminal.note_style(Style::Open, "answer>")));
        let line = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            io::stdin().lock().read_line(&mut line).map(|bytes| (bytes > 0).then_some(line))
        });
        Ok(line.await??)
    }
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
        SuspensionBody::ClientExec(_) | SuspensionBody::Timer => String::new(),
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
