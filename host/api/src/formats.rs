//! The formats of models' providers: the list of tools, the calls of a model's answer, and their results. Each provider
//! has one file, which reads and writes only the JSON that the provider documents.
//!
//! A model's answer can be submitted unchanged. The host reads its calls and ignores everything else (texts, usage,
//! reasoning), because these formats grow without notice. A call that is addressed to another executor never runs.

mod anthropic;
mod mcp;
mod openai;
mod origin;
mod toolgate;

use std::sync::Arc;

use dispatch::CallRequest;
use dispatch::ports::KnownTool;
use domain::{CallId, Json, Turn, tool::Executor};
use origin::{Kind, Origin};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::json::Checked;
use crate::{Content, Rejection, json};

/// The format of a list of tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToolFormat {
    /// Toolgate's own format, with all properties of each tool.
    #[default]
    Toolgate,
    /// The `tools` of OpenAI's Chat Completions.
    Openai,
    /// The `tools` of OpenAI's Responses.
    OpenaiResponses,
    /// The `tools` of Anthropic's Messages.
    Anthropic,
    /// The result of MCP's `tools/list`.
    Mcp,
}

/// The format of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TurnFormat {
    /// Toolgate's own format, with all properties of the turn.
    #[default]
    Toolgate,
    /// The messages to append for OpenAI's Chat Completions.
    Openai,
    /// The items to append for OpenAI's Responses.
    OpenaiResponses,
    /// The message to append for Anthropic's Messages.
    Anthropic,
}

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
    if format == ToolFormat::Toolgate {
        return Ok(Listed { text: toolgate::tools(tools)?, left_out: Vec::new() });
    }
    let is_provider = |live: &&Arc<KnownTool>| live.tool.executor == Executor::Provider;
    let left_out = tools.iter().filter(is_provider).map(|live| live.tool.name.to_string()).collect();
    let offered: Vec<&KnownTool> = tools.iter().filter(|live| !is_provider(live)).map(AsRef::as_ref).collect();
    let text = match format {
        ToolFormat::Toolgate => toolgate::tools(tools),
        ToolFormat::Openai => openai::chat::tools(&offered),
        ToolFormat::OpenaiResponses => openai::responses::tools(&offered),
        ToolFormat::Anthropic => anthropic::tools(&offered),
        ToolFormat::Mcp => mcp::tools(&offered),
    }?;
    Ok(Listed { text, left_out })
}

/// The results of an ended turn in the format of the model's provider. Calls that the provider carried out are left
/// out: the provider has their results and refuses them.
///
/// # Errors
/// [`Error::Unwritable`].
pub fn results(format: TurnFormat, turn: &Turn, replayed: bool, ephemeral: bool) -> Result<String> {
    match format {
        TurnFormat::Toolgate => toolgate::turn(turn, replayed, ephemeral),
        TurnFormat::Openai => openai::chat::results(turn),
        TurnFormat::OpenaiResponses => openai::responses::results(turn),
        TurnFormat::Anthropic => anthropic::results(turn),
    }
}

/// An ended call whose result the model expects.
struct Expected<'a> {
    call: &'a domain::Call,
    origin: Origin,
    /// The result for the model, as a JSON text.
    content: String,
    ok: bool,
}

/// The ended calls whose results the model expects.
fn expected(turn: &Turn) -> Result<Vec<Expected<'_>>> {
    let mut expected = Vec::new();
    for call in &turn.calls {
        let origin = Origin::of(call);
        let by_provider = match &call.pinned {
            Some(pinned) => pinned.executor == Executor::Provider,
            // The id shows that a provider made the call, even if the call was never pinned.
            None => origin.kind == Some(Kind::Hosted) || call.id.as_str().starts_with(anthropic::PROVIDER_CALL),
        };
        if let Some(outcome) = call.outcome().filter(|_| !by_provider) {
            let content = Content::from(outcome);
            expected.push(Expected { call, origin, content: json::write(&content)?, ok: content.ok });
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
    pub own: Option<Own>,
}

/// The members beside the calls in toolgate's own format.
#[derive(Default)]
pub struct Own {
    /// A JSON value for tools and people.
    pub context: Option<Json>,
    /// The effect of a denial on the other calls.
    pub rejection: Option<Rejection>,
    /// Whether the turn is stored only when something in it waits.
    pub ephemeral: bool,
}

/// Reads a submitted body in any of the formats. `is_provider` tells whether the provider runs the live tool of this
/// name.
///
/// # Errors
/// [`Error::BadJson`] and [`Error::Invalid`].
pub fn submitted(body: &[u8], is_provider: &dyn Fn(&str) -> bool) -> Result<Submitted> {
    let body = Checked::new(body)?;
    let calls = if body.has("calls") {
        return toolgate::submitted(&body);
    } else if body.has("choices") {
        openai::chat::response(&body)?
    } else if body.has("output") {
        openai::responses::response(&body, is_provider)?
    } else if body.has("tool_calls") {
        openai::chat::message(&body)?
    } else if body.has("content") {
        anthropic::message(&body, is_provider)?
    } else if body.has("role") {
        // An assistant message of Chat Completions without content and calls.
        Vec::new()
    } else {
        let message = "a turn is `{\"calls\":[…]}`, an OpenAI chat completion or its message, an OpenAI response, or an \
                       Anthropic message";
        return Err(Error::invalid_at("", message));
    };
    Ok(Submitted { calls, own: None })
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
        None => return Ok(Json::new("{}")),
        Some(raw) if raw.starts_with('"') => json::part::<String>(raw)?,
        Some(raw) => return Ok(Json::part(raw)),
    };
    if text.trim().is_empty() {
        return Ok(Json::new("{}"));
    }
    Ok(json::embedded(&text).unwrap_or_else(|| json::string(&text)))
}
