//! How the waits of a durable tool under test end. An answer is checked as a host checks it.

use dispatch::exact;
use domain::step::{Question, Step, StepEnd, StepRequest, StepWait};
use domain::tool::Editable;
use domain::{Json, Span, Timestamp};
use kit::reply::{Asks, Reply};
use serde_json::Value;

/// The end of a wait that began at this time. A question takes the next answer; without one, nobody answers it.
///
/// # Errors
/// Why no host accepts the answer.
pub(crate) fn ended<'a>(
    request: &StepRequest,
    answers: &mut impl Iterator<Item = &'a Value>,
    began: Timestamp,
) -> Result<Step, String> {
    let mut given = || answers.next().map(|answer| answer.as_str().map_or_else(|| answer.to_string(), str::to_owned));
    let in_time = began + Span::from_secs(1);
    let (ended_at, end) = match &request.wait {
        StepWait::Calls(calls) => (in_time, given().map(|text| returned(&text, calls.len()).map(StepEnd::Returned))),
        StepWait::Time(at) | StepWait::RateLimit(at) => (began.max(*at), Some(Ok(StepEnd::Elapsed))),
        StepWait::Approval { subject, editable, .. } => {
            (in_time, given().map(|text| decided(&text, subject, editable)))
        }
        StepWait::External { question, .. } => {
            (in_time, given().map(|text| answered(&text, question).map(StepEnd::Received)))
        }
        StepWait::Answer(question) => (in_time, given().map(|text| answered(&text, question).map(StepEnd::Answered))),
    };
    Ok(Step { digest: request.digest, ended_at, end: end.transpose()?.unwrap_or(StepEnd::Expired) })
}

fn decided(text: &str, subject: &Json, editable: &Editable) -> Result<StepEnd, String> {
    match Reply::read(text, Asks::Approval).map_err(|error| error.to_string())? {
        Reply::Denied { comment } => Ok(StepEnd::Denied(comment)),
        Reply::Approved { edited: Some(edited), .. } => {
            let edited = read(&edited)?;
            if exact::same(&edited, subject) {
                return Ok(StepEnd::Approved(subject.clone()));
            }
            editable.check(exact::changed_members(subject, &edited).as_deref())?;
            Ok(StepEnd::Approved(edited))
        }
        Reply::Approved { edited: None, .. } | Reply::Chosen { .. } | Reply::Data(_) => {
            Ok(StepEnd::Approved(subject.clone()))
        }
    }
}

/// The answer in the form in which a guest gets it.
fn answered(text: &str, question: &Question) -> Result<Json, String> {
    let choices = question.responses.as_deref();
    let fitting = |data: &str| {
        let data = read(data)?;
        let violations = question.response.as_ref().map_or_else(Vec::new, |schema| registry::violations(schema, &data));
        let violations: Vec<_> = violations.iter().map(ToString::to_string).collect();
        if violations.is_empty() { Ok(data) } else { Err(violations.join("; ")) }
    };
    match Reply::read(text, choices.map_or(Asks::Data, Asks::Choice)).map_err(|error| error.to_string())? {
        Reply::Chosen { choice, data } => {
            let choices = choices.unwrap_or_default();
            if !choices.contains(&choice) {
                return Err(format!("{choice:?} is not allowed here; choose one of: {}", choices.join(", ")));
            }
            let choice = Value::from(choice);
            Ok(Json::unchecked(match data {
                None => format!("{{\"decision\":{choice}}}"),
                Some(data) => format!("{{\"decision\":{choice},\"data\":{}}}", fitting(&data)?),
            }))
        }
        Reply::Data(data) => fitting(&data),
        Reply::Approved { .. } | Reply::Denied { .. } => Ok(Json::unchecked("null")),
    }
}

/// The results of calls of other tools: an array with one for each.
fn returned(text: &str, calls: usize) -> Result<Json, String> {
    let results = read(text)?;
    match results.value().map_err(|error| error.to_string())?.as_ref() {
        domain::json::Value::Array(items) if items.len() == calls => Ok(results.clone()),
        _ => Err(format!("expected an array with the results of {calls} calls")),
    }
}

fn read(text: &str) -> Result<Json, String> {
    Json::parse(text).map_err(|error| format!("{text:?} is not JSON that a host accepts: {error}"))
}
