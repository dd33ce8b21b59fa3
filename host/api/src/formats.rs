//! The formats of models' providers, in both directions: the list of tools, the calls of a model's answer, and their
//! results. One file per provider; each reads and writes that provider's documented JSON and nothing else.
//!
//! A model's answer can be submitted as it came. Its calls are read; everything else (texts, usage, reasoning) is ignored,
//! because these formats grow without notice. Calls that are addressed to another executor never run.

mod anthropic;
mod mcp;
mod openai;
mod origin;
mod toolgate;

use std::sync::Arc;

use dispatch::CallRequest;
use dispatch::ports::LiveTool;
use domain::{CallId, Executor, Json, Turn};
use origin::{Kind, Origin};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::json::Checked;
use crate::{Content, Rejection, json};

/// In which form tools are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToolFormat {
    /// Everything that is known of them.
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

/// In which form a turn is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TurnFormat {
    /// The turn with everything that is known of it.
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
    /// The names of provider tools, where the format leaves them out: the provider offers them itself.
    pub left_out: Vec<String>,
}

/// The live tools in a format. Schemas are the plugins' own texts.
///
/// # Errors
/// [`Error::Unwritable`].
pub fn tools(format: ToolFormat, tools: &[Arc<LiveTool>]) -> Result<Listed> {
    if format == ToolFormat::Toolgate {
        return Ok(Listed { text: toolgate::tools(tools)?, left_out: Vec::new() });
    }
    let is_provider = |live: &&Arc<LiveTool>| live.tool.executor == Executor::Provider;
    let left_out = tools.iter().filter(is_provider).map(|live| live.tool.name.to_string()).collect();
    let offered: Vec<&LiveTool> = tools.iter().filter(|live| !is_provider(live)).map(AsRef::as_ref).collect();
    let text = match format {
        ToolFormat::Toolgate => toolgate::tools(tools),
        ToolFormat::Openai => openai::chat::tools(&offered),
        ToolFormat::OpenaiResponses => openai::responses::tools(&offered),
        ToolFormat::Anthropic => anthropic::tools(&offered),
        ToolFormat::Mcp => mcp::tools(&offered),
    }?;
    Ok(Listed { text, left_out })
}

/// The results of an ended turn, as the model's provider takes them. Calls that the provider carried out are left out: the
/// provider has their results and refuses to get them again.
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
    /// What the model reads, as a JSON text.
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
            // A provider's call that was never pinned still has the provider's kind of id.
            None => origin.kind == Some(Kind::Hosted) || call.id.as_str().starts_with(anthropic::PROVIDER_CALL),
        };
        if let Some(outcome) = call.outcome().filter(|_| !by_provider) {
            let content = Content::from(outcome);
            expected.push(Expected { call, origin, content: json::write(&content)?, ok: content.ok });
        }
    }
    Ok(expected)
}

/// Refuses an answer that is not complete. Its calls may be incomplete too, so none of them runs.
fn cut_off(pointer: impl Into<String>, reason: &str) -> Error {
    let reason = text::quoted(reason, 64);
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
    /// The other members of toolgate's own form. The providers' formats have no place for them.
    pub own: Option<Own>,
}

/// The members of a body in toolgate's own form beside the calls.
#[derive(Default)]
pub struct Own {
    /// A JSON value for tools and people.
    pub context: Option<Json>,
    /// What a denial does to the other calls.
    pub rejection: Option<Rejection>,
    /// Whether the turn is written down only if something of it waits.
    pub ephemeral: bool,
}

/// Reads a submitted body in any of the formats. `is_provider` says whether a live tool of this name is carried out by the
/// provider.
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
        // An assistant message of Chat Completions that says nothing and asks for nothing.
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
    text.parse().map_err(|error: domain::InvalidId| Error::invalid_at(pointer(), error.to_string()))
}

/// The arguments of a call. They are documented to be a JSON text in a string; some who speak these formats send the object
/// itself. Models write texts that are not JSON; such a text is kept as a JSON string, which no tool's schema accepts, so
/// that the call fails with `invalid_arguments` and the turn goes on. For a function without parameters some models write
/// nothing at all.
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
