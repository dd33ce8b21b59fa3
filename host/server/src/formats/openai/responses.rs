//! Responses: `function_call` items of the output, and `function_call_output` items back. Items of tools that OpenAI
//! runs itself (`web_search_call` and its like) carry no result that could be recorded, and are ignored.
//! <https://platform.openai.com/docs/api-reference/responses>

use dispatch::CallRequest;
use dispatch::ports::LiveTool;
use domain::Turn;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::formats::{arguments, call_id, expected};
use crate::json;
use crate::wire::Verbatim;

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: Verbatim,
    strict: bool,
}

pub(in crate::formats) fn tools(tools: &[&LiveTool]) -> Result<String> {
    let tools = tools.iter().map(|live| Tool {
        r#type: "function",
        name: live.tool.name.as_str(),
        description: &live.tool.description,
        parameters: (&live.tool.parameters).into(),
        // Strict is the default here, and refuses most schemas that it did not write itself.
        strict: false,
    });
    json::write(&tools.collect::<Vec<_>>())
}

#[derive(Deserialize)]
struct Response {
    output: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    r#type: String,
    #[serde(default)]
    call_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
}

/// The calls of a response.
pub(in crate::formats) fn response(body: &[u8]) -> Result<Vec<CallRequest>> {
    let response: Response = json::parse(body)?;
    let items = response.output.iter().enumerate().filter(|(_, item)| item.r#type == "function_call");
    items
        .map(|(index, item)| {
            let (Some(id), Some(tool)) = (&item.call_id, &item.name) else {
                let message = "a function call has a `call_id` and a `name`";
                return Err(Error::invalid_at(format!("/output/{index}"), message));
            };
            let id = call_id(id, || format!("/output/{index}/call_id"))?;
            let arguments = arguments(item.arguments.as_deref().unwrap_or_default());
            Ok(CallRequest { id, tool: tool.as_str().into(), arguments, result: None })
        })
        .collect()
}

#[derive(Serialize)]
struct Output<'a> {
    r#type: &'static str,
    call_id: &'a str,
    output: String,
}

pub(in crate::formats) fn results(turn: &Turn) -> Result<String> {
    let expected = expected(turn)?;
    let outputs = expected.into_iter().map(|(call, output, _)| Output {
        r#type: "function_call_output",
        call_id: call.id.as_str(),
        output,
    });
    json::write(&outputs.collect::<Vec<_>>())
}
