//! Anthropic's Messages: reads the `tool_use` blocks of an assistant message and writes `tool_result` blocks. A
//! `server_tool_use` or `mcp_tool_use` block is a call that Anthropic carried out. Another block refers to it and holds
//! its result. <https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview>

use std::collections::{HashMap, HashSet};

use dispatch::ports::KnownTool;
use dispatch::{CallRequest, ProviderResult};
use domain::{Json, Turn};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};

use super::origin::{self, Hosted, addressed_to, undeclared};
use super::schema::{list, object};
use super::{Answer, Expected, Format, IsProvider, List, call_id, cut_off, expected, value_of};
use crate::error::{Error, Result};
use crate::json::Checked;
use crate::{Verbatim, json};

pub(super) static FORMAT: Format = Format {
    name: "anthropic",
    list: Some(List { schema: || list("`anthropic`: the `tools` of a request.").into(), write: tools }),
    answer: Some(Answer {
        about: "an Anthropic message",
        is_one: |body| body.has("content"),
        read: message,
        carried_out: Some("srvtoolu_"),
        schema: message_schema,
        write: results,
    }),
};

/// The stop reasons after which a call may be incomplete or must not run.
const CUT_OFF: [&str; 3] = ["max_tokens", "model_context_window_exceeded", "refusal"];

/// The end of the types of blocks that hold a result.
const RESULT: &str = "_tool_result";

/// The outcome of a call that Anthropic had not finished.
const UNFINISHED: &str =
    "Anthropic had not finished this call when it sent the message; the result comes in a later message";

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Verbatim,
}

fn tools(tools: &[&KnownTool]) -> Result<String> {
    let tools = tools.iter().map(|live| Tool {
        name: live.tool.name.as_str(),
        description: &live.tool.description,
        input_schema: (&live.tool.parameters).into(),
    });
    json::write(&tools.collect::<Vec<_>>())
}

#[derive(Deserialize)]
struct Message {
    content: Box<RawValue>,
    #[serde(default)]
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    content: Vec<Block>,
}

/// Any block. Its members depend on its type. Some types are not calls.
#[derive(Deserialize)]
struct Block {
    r#type: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    toolset_name: Option<String>,
    #[serde(default)]
    server_name: Option<String>,
    #[serde(default)]
    input: Option<Box<RawValue>>,
    #[serde(default)]
    tool_use_id: Option<String>,
    #[serde(default)]
    content: Option<Box<RawValue>>,
    #[serde(default)]
    is_error: bool,
}

impl Block {
    fn is_use(&self) -> bool {
        matches!(self.r#type.as_str(), "tool_use" | "server_tool_use" | "mcp_tool_use")
    }

    /// The id of the call whose result this is.
    fn result_of(&self) -> Option<&str> {
        self.tool_use_id.as_deref().filter(|_| self.r#type.ends_with(RESULT))
    }
}

/// The calls of an assistant message. A call that Anthropic carried out gets the result from the message. If Anthropic
/// paused before the call ended, the call is recorded as unfinished, under an id of its own. Its result comes in a later
/// message, and is recorded there as a call of its own, because a turn has ended when its calls have. A program may also
/// join the two messages and submit them as one, in which the call has its result and its own id.
fn message(body: &Checked<'_>, is_provider: IsProvider<'_>) -> Result<Vec<CallRequest>> {
    let message: Message = body.read()?;
    if let Some(reason) = message.stop_reason.as_deref().filter(|reason| CUT_OFF.contains(reason)) {
        return Err(cut_off("/stop_reason", reason));
    }
    if !message.content.get().starts_with('[') {
        // A text without calls.
        return Ok(Vec::new());
    }
    let Content { content } = body.read()?;
    let results: HashMap<&str, &Block> = content.iter().filter_map(|block| Some((block.result_of()?, block))).collect();
    let uses: HashSet<&str> =
        content.iter().filter(|block| block.is_use()).filter_map(|block| block.id.as_deref()).collect();
    let mut calls = Vec::new();
    for (index, block) in content.iter().enumerate() {
        let at = format!("/content/{index}");
        if let Some(id) = block.result_of().filter(|id| !uses.contains(id)) {
            calls.push(late(block, id, &at)?);
        }
        if !block.is_use() {
            continue;
        }
        let (Some(id), Some(name)) = (&block.id, &block.name) else {
            return Err(Error::invalid_at(at, "a call must have an `id` and a `name`"));
        };
        let result = results.get(id.as_str()).map(|block| result(block)).transpose()?;
        let is_unfinished = result.is_none() && block.r#type != "tool_use";
        let (tool, result, origin) = match (block.r#type.as_str(), result) {
            ("tool_use", _) => (name.clone(), None, member_of(block)?),
            ("server_tool_use", Some(result)) if is_provider(name) => (name.clone(), Some(result), None),
            (_, result) => {
                let tool =
                    block.server_name.as_ref().map_or_else(|| name.clone(), |server| format!("mcp:{server}:{name}"));
                let result = result.unwrap_or_else(|| ProviderResult::Error(UNFINISHED.to_owned()));
                (tool, None, origin::recorded(&Hosted::default(), Some(undeclared(result)))?)
            }
        };
        let arguments =
            block.input.as_ref().map_or_else(|| Json::unchecked("{}"), |input| value_of(Json::unchecked(input.get())));
        let id = if is_unfinished { format!("{id}:unfinished") } else { id.clone() };
        calls.push(CallRequest {
            id: call_id(&id, || format!("{at}/id"))?,
            tool: tool.into(),
            arguments,
            result,
            origin,
        });
    }
    Ok(calls)
}

/// A call for the result of a call in an earlier message.
fn late(block: &Block, id: &str, at: &str) -> Result<CallRequest> {
    Ok(CallRequest {
        id: call_id(&format!("{id}:result"), || format!("{at}/tool_use_id"))?,
        tool: block.r#type.trim_end_matches(RESULT).into(),
        arguments: Json::unchecked("{}"),
        result: None,
        origin: origin::recorded(&Hosted::default(), Some(undeclared(result(block)?)))?,
    })
}

/// The member of a call that its result must repeat.
#[serde_with::skip_serializing_none]
#[derive(Default, Serialize, Deserialize)]
struct Member {
    /// The toolset that the tool is a member of.
    toolset_name: Option<String>,
}

/// The origin of a call of a tool in a toolset. The program that offers the toolset carries it out.
fn member_of(block: &Block) -> Result<Option<dispatch::Origin>> {
    let toolset_name = block.toolset_name.clone().filter(|name| !name.is_empty());
    let ended = toolset_name.as_deref().map(addressed_to);
    origin::recorded(&Member { toolset_name }, ended)
}

/// The error of a tool that Anthropic runs. It is an object where the result would be.
#[derive(Deserialize)]
struct Failed {
    r#type: Option<String>,
    error_code: Option<String>,
}

fn result(block: &Block) -> Result<ProviderResult> {
    let text = block.content.as_ref().map_or("null", |content| content.get());
    if text.starts_with('{') {
        let failed: Failed = json::part(text)?;
        if let Some(code) = failed.error_code.filter(|_| failed.r#type.is_some_and(|of| of.ends_with("_error"))) {
            return Ok(ProviderResult::Error(code));
        }
    }
    if block.is_error {
        return Ok(ProviderResult::Error(text.to_owned()));
    }
    Ok(ProviderResult::Value(Json::unchecked(text)))
}

#[derive(Serialize)]
struct UserMessage<'a> {
    role: &'static str,
    content: Vec<ToolResult<'a>>,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct ToolResult<'a> {
    r#type: &'static str,
    tool_use_id: &'a str,
    content: String,
    is_error: bool,
    toolset_name: Option<String>,
}

/// The message to append. `null` if there is nothing to append, because the API refuses an empty message.
fn results(turn: &Turn) -> Result<String> {
    let content = expected(turn)?.into_iter().map(|Expected { call, content, ok }| ToolResult {
        r#type: "tool_result",
        tool_use_id: call.id.as_str(),
        content,
        is_error: !ok,
        toolset_name: origin::members::<Member>(call).toolset_name,
    });
    let content: Vec<_> = content.collect();
    json::write(&(!content.is_empty()).then_some(UserMessage { role: "user", content }))
}

fn message_schema() -> RefOr<Schema> {
    let content = ArrayBuilder::new().items(object("A `tool_result`."));
    let message = object("`anthropic`: the message to append.")
        .property("role", ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["user"])))
        .required("role")
        .property("content", content)
        .required("content");
    let about = "`anthropic`: there is nothing to append, because the API refuses an empty message.";
    let nothing = ObjectBuilder::new().schema_type(Type::Null).description(Some(about));
    AnyOfBuilder::new().item(message).item(nothing).into()
}
