//! The questions of a guest. The table is the one in the comment of `durable` in `wit/v0.1/plugin.wit`.

use std::collections::BTreeSet;
use std::sync::Arc;

use capabilities::excerpt;
use domain::approvers::{Need, Who};
use domain::json::{Value, quote};
use domain::nested::NestedCall;
use domain::outcome::{Failure, FailureCode};
use domain::principal::Channels;
use domain::step::{Question, RunEnd, StepRequest, StepWait};
use domain::suspension::SuspensionState;
use domain::tool::{Editable, Risk};
use domain::{Digest, Json, Outcome, SignalName, Span};

/// The functions that ask a person, or wait for an external system or for other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Answer,
    Approval,
    External,
    Calls,
}

/// A question, and its digest for later runs.
pub(super) struct Asked {
    pub(super) digest: Digest,
    /// The error continues "the question is refused: ".
    pub(super) wait: Result<StepWait, String>,
}

/// Bytes of a question.
const MAX_QUESTION: usize = 256 << 10;

/// Bytes of a prompt.
const MAX_PROMPT: usize = 4 << 10;

/// The maximum wait: 365 days.
const MAX_EXPIRES: u64 = 31_536_000_000;

/// Texts in a list.
const MAX_LIST: usize = 16;

/// Characters of a response to choose from.
const MAX_RESPONSE: usize = 64;

/// Bytes of the data for an external system.
const MAX_METADATA: usize = 4 << 10;

/// Calls of other tools in one request.
const MAX_CALLS: usize = 100;

/// Characters of the name of a tool.
const MAX_NAME: usize = 64;

const KEYS: [(&str, &[Kind]); 13] = [
    ("prompt", &[Kind::Answer, Kind::Approval, Kind::External]),
    ("responses", &[Kind::Answer]),
    ("response", &[Kind::Answer]),
    ("subject", &[Kind::Approval]),
    ("editable", &[Kind::Approval]),
    ("expires_ms", &[Kind::Answer, Kind::Approval, Kind::External]),
    ("risk", &[Kind::Answer, Kind::Approval]),
    ("who", &[Kind::Answer, Kind::Approval]),
    ("quorum", &[Kind::Approval]),
    ("schema", &[Kind::External]),
    ("name", &[Kind::External]),
    ("metadata", &[Kind::External]),
    ("calls", &[Kind::Calls]),
];

impl Kind {
    const fn function(self) -> &'static str {
        match self {
            Self::Answer => "ask",
            Self::Approval => "approve",
            Self::External => "await-external",
            Self::Calls => "call-tools",
        }
    }
}

impl Asked {
    pub(super) fn read(kind: Kind, text: &str) -> Self {
        let function = kind.function();
        let digest = |text: &str| Digest::of_parts(&[b"toolgate:plugin/durable", function.as_bytes(), text.as_bytes()]);
        let refused = |fault: String| format!("the question that the tool passes to `{function}` is refused: {fault}");
        let value = if text.len() > MAX_QUESTION {
            Err(format!("it has {} bytes, and the maximum is {MAX_QUESTION}", text.len()))
        } else {
            Value::parse(text).map_err(|malformed| format!("it is not JSON: {malformed}"))
        };
        match value {
            Ok(value) => Self { digest: digest(&value.to_json()), wait: read(kind, &value).map_err(refused) },
            Err(fault) => Self { digest: digest(text), wait: Err(refused(fault)) },
        }
    }
}

/// The wait of a guest for people to see, without the secrets that the guest has learned. The call fails if a name holds one,
/// because the redacted name would be another one.
pub(crate) fn redacted(StepRequest { digest, wait }: StepRequest, redact: impl Fn(String) -> String) -> RunEnd {
    if let Some(key) = secret_name(&wait, |name| redact(name.to_owned()) != name) {
        let message = format!("the tool put a secret into `{key}` of a question, which others see");
        return Outcome::Failed(Failure::new(FailureCode::ToolFailed, message)).into();
    }
    let json = |json: Json| Json::unchecked(redact(json.as_str().to_owned()));
    let texts = |question: Question| Question {
        prompt: redact(question.prompt.as_ref().to_owned()).into(),
        responses: question.responses.map(|responses| responses.iter().cloned().map(&redact).collect()),
        response: question.response.map(json),
        ..question
    };
    let wait = match wait {
        StepWait::Answer(question) => StepWait::Answer(texts(question)),
        StepWait::Approval { question, subject, editable } => {
            StepWait::Approval { question: texts(question), subject: json(subject), editable }
        }
        StepWait::External { question, signal, metadata } => {
            StepWait::External { question: texts(question), signal, metadata: metadata.map(json) }
        }
        StepWait::Calls(calls) => {
            let redacted = |call: &NestedCall| NestedCall {
                tool: redact(call.tool.as_ref().to_owned()).into(),
                arguments: json(call.arguments.clone()),
            };
            StepWait::Calls(calls.iter().map(redacted).collect())
        }
        StepWait::Time(_) | StepWait::RateLimit(_) => wait,
    };
    RunEnd::Waits(StepRequest { digest, wait })
}

/// The key of a name that is a secret, or has one in it.
fn secret_name(wait: &StepWait, is_secret: impl Fn(&str) -> bool) -> Option<&'static str> {
    let (question, editable, signal) = match wait {
        StepWait::Answer(question) => (question, None, None),
        StepWait::Approval { question, editable, .. } => (question, Some(editable), None),
        StepWait::External { question, signal, .. } => (question, None, signal.as_ref()),
        StepWait::Calls(_) | StepWait::Time(_) | StepWait::RateLimit(_) => return None,
    };
    let mut who = question.needs.iter().flat_map(|need| need.who.iter());
    if who.any(|who| is_secret(&who.to_string())) {
        return Some("who");
    }
    match editable {
        Some(Editable::Fields(names)) if names.iter().any(|name| is_secret(name)) => return Some("editable"),
        _ => {}
    }
    signal.filter(|signal| is_secret(signal.as_str())).map(|_| "name")
}

/// Reads a question. The error is a clause about it.
fn read(kind: Kind, value: &Value) -> Result<StepWait, String> {
    let Value::Object(members) = value else { return Err("it is not a JSON object".to_owned()) };
    let known = |name: &str| KEYS.iter().any(|(key, only)| *key == name && only.contains(&kind));
    if let Some((name, _)) = members.iter().find(|(name, _)| !known(name)) {
        return Err(format!("`{}` has no key `{}`", kind.function(), excerpt(name)));
    }
    let member = |name: &str| members.get(name);
    let required = |name: &str| member(name).ok_or_else(|| format!("it has no `{name}`"));
    let question = || -> Result<Question, String> {
        Ok(Question {
            prompt: prompt(required("prompt")?)?,
            responses: member("responses").map(responses).transpose()?,
            response: schema("response", member)?.or(schema("schema", member)?),
            expires: member("expires_ms")
                .map(|value| number("expires_ms", value, MAX_EXPIRES))
                .transpose()?
                .map(Span::from_millis),
            risk: member("risk").map(risk).transpose()?,
            title: None,
            context_keys: None,
            needs: needs(member("who"), member("quorum"))?,
        })
    };
    Ok(match kind {
        Kind::Answer => StepWait::Answer(question()?),
        Kind::Approval => {
            let question = question()?;
            let subject = required("subject")?;
            let editable = member("editable").map_or(Ok(Editable::Nothing), |value| editable(value, subject))?;
            StepWait::Approval { question, subject: verbatim(subject), editable }
        }
        Kind::Calls => StepWait::Calls(calls(required("calls")?)?),
        Kind::External => StepWait::External {
            question: question()?,
            signal: member("name").map(signal).transpose()?,
            metadata: member("metadata").map(metadata).transpose()?,
        },
    })
}

/// The error for a member of another form.
fn expected<T>(name: &str, form: &str) -> Result<T, String> {
    Err(format!("`{name}` must be {form}"))
}

fn prompt(value: &Value) -> Result<Arc<str>, String> {
    match value {
        Value::Text(text) if (1..=MAX_PROMPT).contains(&text.len()) => Ok(Arc::from(&**text)),
        _ => expected("prompt", &format!("a string of 1 to {MAX_PROMPT} bytes")),
    }
}

/// The registry checks that it is a schema.
fn schema<'a>(name: &str, member: impl Fn(&str) -> Option<&'a Value>) -> Result<Option<Json>, String> {
    match member(name) {
        None => Ok(None),
        Some(value @ (Value::Object(_) | Value::Bool(_))) => Ok(Some(verbatim(value))),
        Some(_) => expected(name, "a JSON Schema"),
    }
}

/// The calls of a nested turn.
fn calls(value: &Value) -> Result<Arc<[NestedCall]>, String> {
    let call = |value: &Value| {
        let Value::Object(members) = value else { return None };
        let (Some(Value::Text(tool)), Some(arguments)) = (members.get("tool"), members.get("arguments")) else {
            return None;
        };
        let is_named = (1..=MAX_NAME).contains(&tool.len()) && members.iter().count() == 2;
        is_named.then(|| NestedCall { tool: (**tool).into(), arguments: verbatim(arguments) })
    };
    let list = if let Value::Array(items) = value { items.iter().map(call).collect() } else { None };
    let list = list.filter(|list: &Vec<NestedCall>| (1..=MAX_CALLS).contains(&list.len()));
    list.map_or_else(
        || {
            expected(
                "calls",
                &format!("an array of 1 to {MAX_CALLS} objects with the keys `tool`, a name, and `arguments`"),
            )
        },
        |list| Ok(list.into()),
    )
}

fn signal(value: &Value) -> Result<SignalName, String> {
    let named = if let Value::Text(text) = value { text.parse().ok() } else { None };
    named.map_or_else(|| expected("name", "a string of 1 to 64 of the characters a-z A-Z 0-9 _ . -"), Ok)
}

fn metadata(value: &Value) -> Result<Json, String> {
    let metadata = verbatim(value);
    if metadata.size() > MAX_METADATA {
        return expected("metadata", &format!("JSON of at most {MAX_METADATA} bytes"));
    }
    Ok(metadata)
}

/// A value as JSON, with the members in the order of the guest: people read them in it.
fn verbatim(value: &Value) -> Json {
    fn write(value: &Value, to: &mut String) {
        match value {
            Value::Array(items) => list(to, ['[', ']'], items.iter(), write),
            Value::Object(members) => list(to, ['{', '}'], members.iter(), |(name, value), to| {
                to.push_str(&quote(name));
                to.push(':');
                write(value, to);
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => to.push_str(&value.to_json()),
        }
    }
    fn list<T>(to: &mut String, around: [char; 2], items: impl Iterator<Item = T>, write: impl Fn(T, &mut String)) {
        to.push(around[0]);
        for (n, item) in items.enumerate() {
            to.push_str(if n > 0 { "," } else { "" });
            write(item, to);
        }
        to.push(around[1]);
    }
    let mut text = String::new();
    write(value, &mut text);
    Json::unchecked(text)
}

/// A list of distinct strings that is not empty.
fn texts(value: &Value) -> Option<Vec<&str>> {
    let Value::Array(items) = value else { return None };
    let texts: Option<Vec<&str>> =
        items.iter().map(|item| if let Value::Text(text) = item { Some(&**text) } else { None }).collect();
    let distinct = |texts: &Vec<&str>| texts.iter().collect::<BTreeSet<_>>().len() == texts.len();
    texts.filter(|texts| !texts.is_empty() && distinct(texts))
}

fn responses(value: &Value) -> Result<Arc<[String]>, String> {
    let fits =
        |text: &&str| (1..=MAX_RESPONSE).contains(&text.chars().count()) && !SuspensionState::RESERVED.contains(text);
    match texts(value).filter(|texts| texts.len() <= MAX_LIST && texts.iter().all(fits)) {
        Some(texts) => Ok(texts.into_iter().map(str::to_owned).collect()),
        None => expected(
            "responses",
            &format!(
                "an array of 1 to {MAX_LIST} distinct strings of 1 to {MAX_RESPONSE} characters, none of them {}",
                SuspensionState::RESERVED.join(", ")
            ),
        ),
    }
}

fn risk(value: &Value) -> Result<Risk, String> {
    let named = if let Value::Text(text) = value { text.parse().ok() } else { None };
    named.map_or_else(|| expected("risk", "\"low\", \"medium\", \"high\" or \"critical\""), Ok)
}

fn number(name: &str, value: &Value, max: u64) -> Result<u64, String> {
    let number = if let Value::Number(number) = value { number.as_str().parse().ok() } else { None };
    number
        .filter(|number| (1..=max).contains(number))
        .map_or_else(|| expected(name, &format!("an integer from 1 to {max}")), Ok)
}

/// The people who may answer, and how many of them are needed.
fn needs(who: Option<&Value>, quorum: Option<&Value>) -> Result<Arc<[Need]>, String> {
    if who.is_none() && quorum.is_none() {
        return Ok(Arc::new([]));
    }
    let list: Arc<[Who]> = match who {
        None => Arc::new([]),
        Some(value) => {
            let names = texts(value).filter(|names| names.len() <= MAX_LIST);
            let list = names.and_then(|names| names.into_iter().map(|name| name.parse().ok()).collect());
            list.map_or_else(
                || {
                    expected(
                        "who",
                        &format!(
                            "an array of 1 to {MAX_LIST} distinct strings principal:NAME, group:NAME or role:NAME"
                        ),
                    )
                },
                Ok,
            )?
        }
    };
    let quorum = quorum.map_or(Ok(1), |value| number("quorum", value, MAX_LIST as u64))?;
    Ok(Arc::new([Need {
        who: list,
        quorum: u32::try_from(quorum).unwrap_or(u32::MAX),
        escalate: None,
        via: Channels::ANY,
    }]))
}

/// The members of the subject that an approver may change.
fn editable(value: &Value, subject: &Value) -> Result<Editable, String> {
    let members: BTreeSet<&str> = match subject {
        Value::Object(members) => members.iter().map(|(name, _)| name).collect(),
        _ => BTreeSet::new(),
    };
    let has = |name: &&str| members.contains(name);
    match (value, texts(value).filter(|names| names.iter().all(has))) {
        (Value::Text(text), _) if **text == *"none" => Ok(Editable::Nothing),
        (Value::Text(text), _) if **text == *"all" => Ok(Editable::All),
        (_, Some(names)) => Ok(Editable::Fields(names.into_iter().map(str::to_owned).collect())),
        _ => expected("editable", "\"none\", \"all\" or a non-empty array of distinct member names of `subject`"),
    }
}
