//! How the waits of a durable tool under test end.

use domain::step::{Question, Step, StepEnd, StepRequest, StepWait};
use domain::{Json, Span, Timestamp};
use kit::reply::{Asks, Reply};
use serde_json::{Map, Value};

/// The end of a wait that began at this time. A question takes the next answer; without one, nobody answers it.
pub(crate) fn ended<'a>(
    request: &StepRequest,
    answers: &mut impl Iterator<Item = &'a Value>,
    began: Timestamp,
) -> Step {
    let mut reply = |asks| {
        let answer = answers.next()?;
        Reply::read(&answer.as_str().map_or_else(|| answer.to_string(), str::to_owned), asks).ok()
    };
    let in_time = began + Span::from_secs(1);
    let (ended_at, end) = match &request.wait {
        StepWait::Time(at) => (began.max(*at), Some(StepEnd::Elapsed)),
        StepWait::Approval { subject, .. } => (in_time, reply(Asks::Approval).map(|reply| decided(reply, subject))),
        StepWait::External { .. } => (in_time, reply(Asks::Data).map(|reply| StepEnd::Received(answered(reply)))),
        StepWait::Answer(Question { responses, .. }) => {
            let asks = responses.as_deref().map_or(Asks::Data, Asks::Choice);
            (in_time, reply(asks).map(|reply| StepEnd::Answered(answered(reply))))
        }
    };
    Step { digest: request.digest, ended_at, end: end.unwrap_or(StepEnd::Expired) }
}

fn decided(reply: Reply, subject: &Json) -> StepEnd {
    match reply {
        Reply::Denied { comment } => StepEnd::Denied(comment),
        Reply::Approved { edited: Some(edited), .. } => StepEnd::Approved(Json::unchecked(edited)),
        _ => StepEnd::Approved(subject.clone()),
    }
}

/// The answer in the form in which a guest gets it.
fn answered(reply: Reply) -> Json {
    match reply {
        Reply::Chosen { choice, data } => {
            let data = data.and_then(|data| serde_json::from_str(&data).ok()).map(|data| ("data".to_owned(), data));
            let members = [("decision".to_owned(), Value::from(choice))].into_iter().chain(data);
            Json::unchecked(Value::Object(Map::from_iter(members)).to_string())
        }
        Reply::Data(data) => Json::unchecked(data),
        Reply::Approved { .. } | Reply::Denied { .. } => Json::unchecked("null"),
    }
}
