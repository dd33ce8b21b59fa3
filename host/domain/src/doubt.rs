//! Doubts that a kill of the host left: about a run, or about requests of a durable call.
//!
//! A person decides about requests by editing the value that the question shows: an object with a member for each request.

use std::sync::Arc;

use crate::{
    Digest, Json, Timestamp, Violation,
    json::{Value, pointer_step, quote},
    rfc3339,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// The run of this attempt. The question is whether to run the call again.
    Run(u32),
    /// Requests that were begun and not done. Each needs a decision.
    Requests(DoubtfulRequests),
}

/// A request that was begun, and that may have been carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoubtfulRequest {
    /// The entry of the journal that left it in doubt.
    pub entry: u32,
    /// Its method and place, for people.
    pub request: Arc<str>,
    /// When it was begun.
    pub at: Timestamp,
}

/// All doubtful requests of a call. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoubtfulRequests {
    all: Arc<[DoubtfulRequest]>,
    /// The value that people are asked about. In it, nothing is decided.
    subject: Json,
}

/// The decision about a doubtful request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestDecision {
    /// It is sent again, with the same body and the same `Idempotency-Key`.
    SendAgain,
    /// It was carried out, and this was the answer.
    Done { status: u16, body: Arc<str> },
    /// The tool gets an error that says that nobody knows whether it was carried out.
    Fail,
}

/// A doubtful request that was decided, by its entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidedRequest {
    pub entry: u32,
    pub decision: RequestDecision,
}

/// The maximum number of requests that one question lists. A call with more ends in doubt.
pub const MAX_REQUESTS: usize = 32;

const UNDECIDED: &str = "undecided";
const SEND_AGAIN: &str = "send_again";
const FAIL: &str = "fail";

impl DoubtfulRequests {
    #[must_use]
    pub fn new(all: Arc<[DoubtfulRequest]>) -> Self {
        let subject = object(all.iter().map(|request| (request.entry, quote(UNDECIDED))));
        Self { all, subject }
    }

    #[must_use]
    pub fn all(&self) -> &[DoubtfulRequest] {
        &self.all
    }

    #[must_use]
    pub const fn subject(&self) -> &Json {
        &self.subject
    }

    /// Digest over the requests.
    pub(crate) fn digest(&self) -> Digest {
        let texts = self.all.iter().map(|each| format!("{} {} {}", each.entry, each.at.millis(), each.request));
        let texts: Vec<String> = texts.collect();
        let parts = std::iter::once(b"requests in doubt".as_slice()).chain(texts.iter().map(String::as_bytes));
        Digest::of_parts(&parts.collect::<Vec<_>>())
    }

    /// The list of the requests for people, a line for each.
    pub(crate) fn lines(&self) -> String {
        let line =
            |each: &DoubtfulRequest| format!("\n{}: {}, begun at {}", each.entry, each.request, rfc3339(each.at));
        self.all.iter().map(line).collect()
    }

    /// The value that makes the same decision about all requests.
    pub(crate) fn decided_alike(&self, decision: &RequestDecision) -> Json {
        object(self.all.iter().map(|request| (request.entry, decision.to_json())))
    }

    /// The decisions in the value of an approval: an object with the entry of each request.
    ///
    /// # Errors
    /// The faults of the value, with pointers into it.
    pub fn decided(&self, value: Option<&Json>) -> Result<Vec<DecidedRequest>, Vec<Violation>> {
        let fault = |pointer: String, message: String| Violation { pointer, message };
        let value = value.unwrap_or(&self.subject).value();
        let Some(Value::Object(members)) = value.as_deref().ok() else {
            return Err(vec![fault(String::new(), "an object with a decision for each request is required".into())]);
        };
        let (mut decided, mut faults) = (Vec::new(), Vec::new());
        for request in self.all.iter() {
            let name = request.entry.to_string();
            match members.get(&name).ok_or_else(undecided).and_then(RequestDecision::of) {
                Ok(decision) => decided.push(DecidedRequest { entry: request.entry, decision }),
                Err(message) => faults.push(fault(format!("/{name}"), message)),
            }
        }
        let is_known = |name: &str| self.all.iter().any(|request| request.entry.to_string() == name);
        if let Some((name, _)) = members.iter().find(|(name, _)| !is_known(name)) {
            faults.push(fault(format!("/{}", pointer_step(name)), "no request in doubt has this number".into()));
        }
        if faults.is_empty() { Ok(decided) } else { Err(faults) }
    }
}

/// The value with these decisions, in one form. So equal decisions of several people are the same text.
#[must_use]
pub fn value_of(decided: &[DecidedRequest]) -> Json {
    object(decided.iter().map(|each| (each.entry, each.decision.to_json())))
}

fn object(members: impl Iterator<Item = (u32, String)>) -> Json {
    let members: Vec<String> = members.map(|(entry, value)| format!("\"{entry}\":{value}")).collect();
    Json::unchecked(format!("{{{}}}", members.join(",")))
}

fn undecided() -> String {
    format!(
        "decide about this request: \"{SEND_AGAIN}\", \"{FAIL}\", or the answer of the server as {{\"status\":200,\"body\":\"…\"}}"
    )
}

impl RequestDecision {
    fn of(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if **text == *SEND_AGAIN => Ok(Self::SendAgain),
            Value::Text(text) if **text == *FAIL => Ok(Self::Fail),
            Value::Object(members) => {
                if let Some((name, _)) = members.iter().find(|(name, _)| !["status", "body"].contains(name)) {
                    return Err(format!("an answer has a status and a body, and not {name:?}"));
                }
                let status = match members.get("status") {
                    Some(Value::Number(number)) => number.as_str().parse().ok().filter(|s| (200..=599).contains(s)),
                    _ => None,
                };
                let status = status.ok_or("the answer needs a status from 200 to 599")?;
                let body = match members.get("body") {
                    None => "",
                    Some(body) => body.as_text().ok_or("the body of the answer must be a text")?,
                };
                Ok(Self::Done { status, body: body.into() })
            }
            _ => Err(undecided()),
        }
    }

    fn to_json(&self) -> String {
        match self {
            Self::SendAgain => quote(SEND_AGAIN),
            Self::Fail => quote(FAIL),
            Self::Done { status, body } => format!("{{\"status\":{status},\"body\":{}}}", quote(body)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests() -> DoubtfulRequests {
        let request = |entry| DoubtfulRequest { entry, request: "http POST /".into(), at: Timestamp::from_millis(0) };
        DoubtfulRequests::new([request(2), request(11)].into())
    }

    #[test]
    fn decisions_have_one_form() {
        let text = r#"{ "11": {"body": "a\u0062", "status": 201}, "2": "send_again" }"#;
        let decided = requests().decided(Some(&Json::unchecked(text))).unwrap();
        assert_eq!(value_of(&decided).as_str(), r#"{"2":"send_again","11":{"status":201,"body":"ab"}}"#);
        let fail = requests().decided_alike(&RequestDecision::Fail);
        assert_eq!(fail.as_str(), r#"{"2":"fail","11":"fail"}"#);
        assert_eq!(value_of(&requests().decided(Some(&fail)).unwrap()), fail);
    }

    #[test]
    fn faulty_decisions_are_named() {
        let cases: [(&str, &[&str]); 7] = [
            (r#"{"2":"undecided","11":"fail"}"#, &["/2"]),
            (r#"{"2":"fail"}"#, &["/11"]),
            (r#"{"2":"fail","11":"fail","3":"fail"}"#, &["/3"]),
            (r#"{"2":{"status":99},"11":{"body":""}}"#, &["/2", "/11"]),
            (r#"{"2":{"status":200,"headers":{}},"11":{"status":200,"body":1}}"#, &["/2", "/11"]),
            (r#"{"2":{"status":200.0},"11":{"status":"200"}}"#, &["/2", "/11"]),
            ("[]", &[""]),
        ];
        for (text, pointers) in cases {
            let faults = requests().decided(Some(&Json::unchecked(text))).unwrap_err();
            let found: Vec<_> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
            assert_eq!(found, pointers, "{text}");
        }
        assert_eq!(requests().decided(None).unwrap_err().len(), 2, "nothing is decided");
    }
}
