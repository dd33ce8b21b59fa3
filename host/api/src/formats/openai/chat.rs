//! Chat Completions: reads the `tool_calls` of an assistant message and writes `tool` messages.
//! <https://platform.openai.com/docs/api-reference/chat/create>

use dispatch::CallRequest;
use dispatch::ports::KnownTool;
use domain::Turn;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::formats::schema::list;
use crate::formats::{Answer, Expected, Format, IsProvider, List, arguments_of, call_id, cut_off, expected};
use crate::json::Checked;
use crate::{Verbatim, json};

pub(in crate::formats) static FORMAT: Format = Format {
    name: "openai",
    list: Some(List { schema: || list("`openai`: the `tools` of a request.").into(), write: tools }),
    answer: Some(Answer {
        about: "an OpenAI chat completion or its message",
        is_one,
        read,
        carried_out: None,
        schema: || list("`openai`: the messages to append.").into(),
        write: results,
    }),
};

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Verbatim,
}

fn tools(tools: &[&KnownTool]) -> Result<String> {
    // No `strict`, because strict mode allows only some schemas, and this host passes schemas on verbatim.
    let tools = tools.iter().map(|live| Tool {
        r#type: "function",
        function: Function {
            name: live.tool.name.as_str(),
            description: &live.tool.description,
            parameters: (&live.tool.parameters).into(),
        },
    });
    json::write(&tools.collect::<Vec<_>>())
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    tool_calls: Option<Vec<ToolCall>>,
    /// The call of a model that was offered `functions`, the older form of `tools`. It has no id.
    #[serde(default)]
    function_call: Option<Called>,
}

#[derive(Deserialize)]
struct ToolCall {
    id: String,
    function: Option<Called>,
    custom: Option<Custom>,
}

#[derive(Deserialize)]
struct Called {
    name: String,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Custom {
    name: String,
    input: String,
}

/// A message without calls may have nothing but a role. An Anthropic message has a role and `content`.
fn is_one(body: &Checked<'_>) -> bool {
    let has_calls = body.has("tool_calls") || body.has("function_call");
    let is_message = has_calls || (body.has("role") && !body.has("content"));
    body.has("choices") || (is_message && !body.has("output"))
}

/// The calls of a completion, or of its message alone.
fn read(body: &Checked<'_>, _is_provider: IsProvider<'_>) -> Result<Vec<CallRequest>> {
    if body.has("choices") { response(body) } else { calls(&body.read()?, "") }
}

fn response(body: &Checked<'_>) -> Result<Vec<CallRequest>> {
    let completion: Completion = body.read()?;
    match completion.choices.as_slice() {
        [choice] => match choice.finish_reason.as_deref() {
            Some(reason @ ("length" | "content_filter")) => Err(cut_off("/choices/0/finish_reason", reason)),
            _ => calls(&choice.message, "/choices/0/message"),
        },
        _ => {
            Err(Error::invalid_at("/choices", "a turn is one answer: submit the message of the choice that was taken"))
        }
    }
}

fn calls(message: &Message, at: &str) -> Result<Vec<CallRequest>> {
    if message.function_call.is_some() {
        let what = "a `function_call` has no id; offer the model `tools` and not `functions`, and it answers with `tool_calls`";
        return Err(Error::invalid_at(format!("{at}/function_call"), what));
    }
    let calls = message.tool_calls.iter().flatten().enumerate();
    calls
        .map(|(index, call)| {
            let at = format!("{at}/tool_calls/{index}");
            let (tool, arguments) = match call {
                ToolCall { function: Some(function), .. } => {
                    (&function.name, arguments_of(function.arguments.as_deref().map(RawValue::get))?)
                }
                // A custom tool's input is free text. No schema accepts a string, so the call fails with that reason.
                ToolCall { custom: Some(custom), .. } => (&custom.name, json::string(&custom.input)),
                _ => return Err(Error::invalid_at(at, "a tool call must have a `function`")),
            };
            let id = call_id(&call.id, || format!("{at}/id"))?;
            Ok(CallRequest { id, tool: tool.as_str().into(), arguments, result: None, origin: None })
        })
        .collect()
}

#[derive(Serialize)]
struct ToolMessage<'a> {
    role: &'static str,
    tool_call_id: &'a str,
    content: String,
}

fn results(turn: &Turn) -> Result<String> {
    let messages = expected(turn)?.into_iter().map(|Expected { call, content, .. }| ToolMessage {
        role: "tool",
        tool_call_id: call.id.as_str(),
        content,
    });
    json::write(&messages.collect::<Vec<_>>())
}
