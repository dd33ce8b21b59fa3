//! Anthropic's Messages: `tool_use` blocks of an assistant message, and `tool_result` blocks back. A `server_tool_use`
//! block is a call that Anthropic carried out; the block that names it has its result.
//! <https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview>

use std::collections::HashMap;

use dispatch::ports::LiveTool;
use dispatch::{CallRequest, ProviderResult};
use domain::{Json, Turn};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{call_id, expected};
use crate::error::{Error, Result};
use crate::json;
use crate::wire::Verbatim;

/// How the ids of calls begin that Anthropic carries out itself.
pub(super) const PROVIDER_CALL: &str = "srvtoolu_";

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Verbatim,
}

pub(super) fn tools(tools: &[&LiveTool]) -> Result<String> {
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
}

#[derive(Deserialize)]
struct Content {
    content: Vec<Block>,
}

/// Any block: which members it has depends on its type, and there are types that are not calls.
#[derive(Deserialize)]
struct Block {
    r#type: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    input: Option<Box<RawValue>>,
    #[serde(default)]
    tool_use_id: Option<String>,
    #[serde(default)]
    content: Option<Box<RawValue>>,
    #[serde(default)]
    is_error: bool,
}

/// The calls of an assistant message. A call that Anthropic carried out is one of the turn where the host has the tool
/// and so something to record it against; it ends with the result that the message holds.
pub(super) fn message(body: &[u8], is_provider: &dyn Fn(&str) -> bool) -> Result<Vec<CallRequest>> {
    let message: Message = json::parse(body)?;
    if !message.content.get().starts_with('[') {
        // A text alone: the model asked for nothing.
        return Ok(Vec::new());
    }
    let Content { content } = json::parse(body)?;
    let results: HashMap<&str, &Block> = content
        .iter()
        .filter(|block| block.r#type.ends_with("_tool_result"))
        .filter_map(|block| Some((block.tool_use_id.as_deref()?, block)))
        .collect();
    let mut calls = Vec::new();
    for (index, block) in content.iter().enumerate() {
        let by_provider = match block.r#type.as_str() {
            "tool_use" => false,
            "server_tool_use" => true,
            _ => continue,
        };
        let at = format!("/content/{index}");
        let (Some(id), Some(tool)) = (&block.id, &block.name) else {
            return Err(Error::invalid_at(at, "a call has an `id` and a `name`"));
        };
        if by_provider && !is_provider(tool) {
            continue;
        }
        calls.push(CallRequest {
            result: results.get(id.as_str()).filter(|_| by_provider).map(|block| result(block)).transpose()?,
            arguments: block.input.as_ref().map_or_else(|| Json::new("{}"), |input| Json::new(input.get())),
            tool: tool.as_str().into(),
            id: call_id(id, || format!("{at}/id"))?,
        });
    }
    Ok(calls)
}

/// An error of a tool that Anthropic runs is an object in the place of the result.
#[derive(Deserialize)]
struct Failed {
    r#type: Option<String>,
    error_code: Option<String>,
}

fn result(block: &Block) -> Result<ProviderResult> {
    let text = block.content.as_ref().map_or("null", |content| content.get());
    if text.starts_with('{') {
        let failed: Failed = json::parse(text.as_bytes())?;
        if let Some(code) = failed.error_code.filter(|_| failed.r#type.is_some_and(|of| of.ends_with("_error"))) {
            return Ok(ProviderResult::Error(code));
        }
    }
    if block.is_error {
        return Ok(ProviderResult::Error(text.to_owned()));
    }
    Ok(ProviderResult::Value(Json::new(text)))
}

#[derive(Serialize)]
struct UserMessage<'a> {
    role: &'static str,
    content: Vec<ToolResult<'a>>,
}

#[derive(Serialize)]
struct ToolResult<'a> {
    r#type: &'static str,
    tool_use_id: &'a str,
    content: String,
    is_error: bool,
}

pub(super) fn results(turn: &Turn) -> Result<String> {
    let expected = expected(turn)?;
    let content = expected.into_iter().map(|(call, content, ok)| ToolResult {
        r#type: "tool_result",
        tool_use_id: call.id.as_str(),
        content,
        is_error: !ok,
    });
    json::write(&UserMessage { role: "user", content: content.collect() })
}
