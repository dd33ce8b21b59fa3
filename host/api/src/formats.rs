//! The formats of models' providers: the list of tools, the calls of a model's answer, and their results. Each provider
//! has one file, which reads and writes only the JSON that the provider documents.
//!
//! A model's answer can be submitted unchanged. The host reads its calls and ignores everything else (texts, usage,
//! reasoning), because these formats grow without notice. A call that is addressed to another executor never runs.

mod anthropic;
mod chosen;
mod mcp;
mod openai;
mod origin;
mod schema;
mod toolgate;

use std::sync::Arc;

pub use chosen::{Chosen, Part};
use dispatch::CallRequest;
use dispatch::ports::KnownTool;
use domain::json::{Malformed, ValuePath, check_body};
use domain::{CallId, Json, Turn, tool::Executor};
use origin::OriginKind;
pub use schema::{ToolsInFormat, TurnInFormat};
use utoipa::openapi::{RefOr, Schema};

use crate::error::{Error, Result};
use crate::json::Checked;
use crate::{Content, Rejection, json};

/// The formats of the providers. A new one is a file in this folder and a row here. The first whose answer a body is
/// reads it.
static FORMATS: [&Format; 4] = [&openai::chat::FORMAT, &openai::responses::FORMAT, &anthropic::FORMAT, &mcp::FORMAT];

/// Everything that the host knows about the format of one provider.
pub struct Format {
    /// Its name in a query and on the command line.
    name: &'static str,
    list: Option<List>,
    answer: Option<Answer>,
}

/// The list of tools that a provider accepts.
pub struct List {
    schema: fn() -> RefOr<Schema>,
    write: fn(&[&KnownTool]) -> Result<String>,
}

/// The answer of a model, and the results that the model expects.
pub struct Answer {
    /// A name of the answer, with its article.
    about: &'static str,
    /// Whether a body is such an answer.
    is_one: fn(&Checked<'_>) -> bool,
    read: fn(&Checked<'_>, IsProvider<'_>) -> Result<Vec<CallRequest>>,
    /// The prefix of the ids of calls that the provider carries out itself.
    carried_out: Option<&'static str>,
    schema: fn() -> RefOr<Schema>,
    write: fn(&Turn) -> Result<String>,
}

/// Whether the provider runs the live tool of a name.
type IsProvider<'a> = &'a dyn Fn(&str) -> bool;

/// The format of a list of tools.
pub type ToolFormat = Chosen<List>;

/// The format of a turn.
pub type TurnFormat = Chosen<Answer>;

/// Tools in a format.
pub struct Listed {
    /// The list, as a JSON text.
    pub text: String,
    /// The names of provider tools that the format leaves out, because the provider offers them itself.
    pub left_out: Vec<String>,
}

/// The live tools in a format, with schemas exactly as the plugins wrote them.
///
/// # Errors
/// [`Error::Unwritable`].
pub fn tools(format: ToolFormat, tools: &[Arc<KnownTool>]) -> Result<Listed> {
    let Some(list) = format.of_provider() else {
        return Ok(Listed { text: toolgate::tools(tools)?, left_out: Vec::new() });
    };
    let is_provider = |live: &&Arc<KnownTool>| live.tool.executor == Executor::Provider;
    let left_out = tools.iter().filter(is_provider).map(|live| live.tool.name.to_string()).collect();
    let offered: Vec<&KnownTool> = tools.iter().filter(|live| !is_provider(live)).map(AsRef::as_ref).collect();
    Ok(Listed { text: (list.write)(&offered)?, left_out })
}

/// The results of an ended turn in the format of the model's provider. Calls that the provider carried out are left
/// out: the provider has their results and refuses them.
///
/// # Errors
/// [`Error::Unwritable`].
pub fn results(format: TurnFormat, turn: &Turn, replayed: bool, ephemeral: bool) -> Result<String> {
    match format.of_provider() {
        None => toolgate::turn(turn, replayed, ephemeral),
        Some(answer) => (answer.write)(turn),
    }
}

/// The answers of every format that has one.
fn answers() -> impl Iterator<Item = &'static Answer> {
    FORMATS.iter().filter_map(|format| format.answer.as_ref())
}

impl Answer {
    /// Whether an id shows that the provider carried the call out.
    fn carried_out(&self, id: &CallId) -> bool {
        self.carried_out.is_some_and(|prefix| id.as_str().starts_with(prefix))
    }
}

/// An ended call whose result the model expects.
struct Expected<'a> {
    call: &'a domain::Call,
    /// The result for the model, as a JSON text.
    content: String,
    ok: bool,
}

/// The ended calls whose results the model expects.
fn expected(turn: &Turn) -> Result<Vec<Expected<'_>>> {
    let mut expected = Vec::new();
    for call in &turn.calls {
        let by_provider = match &call.pinned {
            Some(pinned) => pinned.executor == Executor::Provider,
            // The id shows that a provider made the call, even if the call was never pinned.
            None => {
                origin::kind(call) == Some(OriginKind::Hosted) || answers().any(|answer| answer.carried_out(&call.id))
            }
        };
        if let Some(outcome) = call.outcome().filter(|_| !by_provider) {
            let content = Content::new(call, outcome);
            expected.push(Expected { call, content: json::write(&content)?, ok: content.ok });
        }
    }
    Ok(expected)
}

/// The error for an incomplete answer. Its calls may be incomplete too, so no call runs.
fn cut_off(pointer: impl Into<String>, reason: &str) -> Error {
    let reason = escape::quoted(reason, 64);
    let message = format!(
        "the answer is incomplete ({reason}), so none of its calls is run; ask the model again, with room for a longer \
         answer if it was cut off"
    );
    Error::invalid_at(pointer, message)
}

/// A submitted body.
pub struct Submitted {
    /// The calls, in their order.
    pub calls: Vec<CallRequest>,
    /// Members that only toolgate's own format has.
    pub own: Option<OwnMembers>,
}

/// The members beside the calls in toolgate's own format.
#[derive(Default)]
pub struct OwnMembers {
    /// A JSON value for tools and people.
    pub context: Option<Json>,
    /// The effect of a denial on the other calls.
    pub rejection: Option<Rejection>,
    /// Whether the turn is stored only when something in it waits.
    pub ephemeral: bool,
}

/// Where toolgate's own format and Anthropic's have the arguments of a call as a value. Duplicate keys there fail that call
/// and not the whole turn ([`value_of`]).
const ARGUMENTS: [ValuePath; 2] = [&["calls", "*", "arguments"], &["content", "*", "input"]];

/// Checks a body as [`submitted`] does before it reads the body.
///
/// # Errors
/// The fault, and its place.
pub fn check(body: &str) -> std::result::Result<(), Malformed> {
    check_body(body, &ARGUMENTS).map(drop)
}

/// Reads a submitted body in any of the formats. `is_provider` tells whether the provider runs the live tool of this
/// name.
///
/// # Errors
/// [`Error::BadJson`] and [`Error::Invalid`].
pub fn submitted(body: &[u8], is_provider: IsProvider<'_>) -> Result<Submitted> {
    let body = Checked::except(body, &ARGUMENTS)?;
    if body.has("calls") {
        return toolgate::read(&body);
    }
    let Some(answer) = answers().find(|answer| (answer.is_one)(&body)) else {
        let message = format!("a turn is `{{\"calls\":[…]}}`, {}", known_answers());
        return Err(Error::invalid_at("", message));
    };
    Ok(Submitted { calls: (answer.read)(&body, is_provider)?, own: None })
}

/// The answers that are recognised, for people.
fn known_answers() -> String {
    let mut known: Vec<_> = answers().map(|answer| answer.about.to_owned()).collect();
    if let Some(last) = known.last_mut() {
        last.insert_str(0, "or ");
    }
    known.join(", ")
}

/// Parses a call id at a place of the body.
fn call_id(text: &str, pointer: impl FnOnce() -> String) -> Result<CallId> {
    text.parse().map_err(|error: domain::ids::InvalidId| Error::invalid_at(pointer(), error.to_string()))
}

/// The arguments of a call. The formats document them as a JSON text in a string, but some providers send the object
/// itself. Some models write text that is not JSON. It becomes a JSON string, which no tool's schema accepts: the call
/// fails with `invalid_arguments`, and the turn continues. Some models write nothing for a function without parameters.
fn arguments_of(raw: Option<&str>) -> Result<Json> {
    let text = match raw {
        None => return Ok(Json::unchecked("{}")),
        Some(raw) if raw.starts_with('"') => json::part::<String>(raw)?,
        Some(raw) => return Ok(value_of(Json::unchecked(raw))),
    };
    if text.trim().is_empty() {
        return Ok(Json::unchecked("{}"));
    }
    Ok(json::embedded(&text).unwrap_or_else(|| json::string(&text)))
}

/// Arguments that are a value. If they have a key twice, they become a JSON string of their text, so that the call fails.
fn value_of(arguments: Json) -> Json {
    match arguments.check() {
        Err(malformed) if malformed.is_duplicate() => json::string(arguments.as_str()),
        _ => arguments,
    }
}
