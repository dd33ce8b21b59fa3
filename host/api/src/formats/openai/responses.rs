//! Responses: reads the `function_call` and `custom_tool_call` items and writes their outputs. Items of tools that
//! OpenAI runs itself, such as `web_search_call`, are recorded. Their result is the item of the output, or the call's own item.
//! <https://platform.openai.com/docs/api-reference/responses>

use std::collections::BTreeMap;

use dispatch::ports::KnownTool;
use dispatch::{CallRequest, ProviderResult};
use domain::{Json, Turn, json::Value};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::formats::origin::{self, Hosted, OriginKind, addressed_to, bounded, undeclared};
use crate::formats::schema::list;
use crate::formats::{Answer, Expected, Format, IsProvider, List, arguments_of, call_id, cut_off, expected};
use crate::json::Checked;
use crate::{Verbatim, json};

pub(in crate::formats) static FORMAT: Format = Format {
    name: "openai-responses",
    list: Some(List { schema: || list("`openai-responses`: the `tools` of a request.").into(), write: tools }),
    answer: Some(Answer {
        about: "an OpenAI response",
        is_one: |body| body.has("output"),
        read: response,
        carried_out: None,
        schema: || list("`openai-responses`: the items to append.").into(),
        write: results,
    }),
};

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: Verbatim,
    strict: bool,
}

fn tools(tools: &[&KnownTool]) -> Result<String> {
    let tools = tools.iter().map(|live| Tool {
        r#type: "function",
        name: live.tool.name.as_str(),
        description: &live.tool.description,
        parameters: (&live.tool.parameters).into(),
        // Strict mode is the default of this API, and it refuses most schemas.
        strict: false,
    });
    json::write(&tools.collect::<Vec<_>>())
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    status: Option<String>,
    output: Vec<BTreeMap<String, Verbatim>>,
}

/// Any item. Its members depend on its type. Many types are not calls.
struct Item<'a> {
    members: &'a BTreeMap<String, Verbatim>,
    /// The JSON Pointer to the item in the body.
    at: String,
}

impl Item<'_> {
    /// A member, unless it is absent or `null`.
    fn get(&self, name: &str) -> Option<&Verbatim> {
        self.members.get(name).filter(|value| value.0.as_str() != "null")
    }

    /// A member that is a text.
    fn text(&self, name: &str) -> Result<Option<String>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let text = value.0.value().ok().and_then(|value| value.as_text().map(str::to_owned));
        text.map(Some).ok_or_else(|| Error::invalid_at(format!("{}/{name}", self.at), "a string is expected"))
    }

    /// A text that an item of its type always has.
    fn required(&self, name: &str) -> Result<String> {
        let missing = || Error::invalid_at(self.at.as_str(), format!("missing field `{name}`"));
        self.text(name)?.ok_or_else(missing)
    }

    /// Refuses an item that is not complete.
    fn complete(&self) -> Result<()> {
        complete(format!("{}/status", self.at), self.text("status")?.as_deref())
    }
}

/// The calls of a response.
fn response(body: &Checked<'_>, is_provider: IsProvider<'_>) -> Result<Vec<CallRequest>> {
    let response: Response = body.read()?;
    complete("/status", response.status.as_deref())?;
    let mut calls = Vec::new();
    for (index, members) in response.output.iter().enumerate() {
        let item = Item { members, at: format!("/output/{index}") };
        match item.required("type")?.as_str() {
            "function_call" => calls.push(addressed(&item, None)?),
            "custom_tool_call" => calls.push(addressed(&item, Some(OriginKind::Custom))?),
            kind if is_hosted(&item, kind)? => {
                let output = output_of(&item, kind, &response.output[index + 1..])?;
                calls.push(hosted(&item, kind, output, is_provider)?);
            }
            _ => {}
        }
    }
    Ok(calls)
}

/// Refuses an incomplete response or item. Some providers of this format omit the status.
fn complete(pointer: impl Into<String>, status: Option<&str>) -> Result<()> {
    match status {
        None | Some("completed") => Ok(()),
        Some(status) => Err(cut_off(pointer, status)),
    }
}

/// Members of a call that its output must repeat.
#[serde_with::skip_serializing_none]
#[derive(Default, Serialize, Deserialize)]
struct Addressed {
    kind: Option<OriginKind>,
    namespace: Option<String>,
    /// The program or the model that made the call.
    caller: Option<Verbatim>,
}

/// A call of a function or a custom tool. If the namespace is the function's own name, the call is for this host. Any
/// other namespace belongs to another executor.
fn addressed(item: &Item<'_>, kind: Option<OriginKind>) -> Result<CallRequest> {
    let (Some(id), Some(tool)) = (item.text("call_id")?, item.text("name")?) else {
        return Err(Error::invalid_at(item.at.as_str(), "a function call must have a `call_id` and a `name`"));
    };
    item.complete()?;
    let namespace = item.text("namespace")?.filter(|namespace| !namespace.is_empty());
    let ended = namespace.as_deref().filter(|namespace| *namespace != tool).map(addressed_to);
    let arguments = match kind {
        // No schema accepts a string, so the call fails with that reason.
        Some(_) => json::string(&item.text("input")?.unwrap_or_default()),
        None => arguments_of(item.get("arguments").map(|arguments| arguments.0.as_str()))?,
    };
    let caller = item.get("caller").cloned();
    Ok(CallRequest {
        id: call_id(&id, || format!("{}/call_id", item.at))?,
        tool: tool.into(),
        arguments,
        result: None,
        origin: origin::recorded(&Addressed { kind, namespace, caller }, ended)?,
    })
}

/// The calls that OpenAI always carries out itself.
const HOSTED: [&str; 6] =
    ["code_interpreter_call", "file_search_call", "image_generation_call", "mcp_call", "program", "web_search_call"];

/// Whether OpenAI carries out a call itself. The other `…_call` items are for other programs.
fn is_hosted(item: &Item<'_>, kind: &str) -> Result<bool> {
    Ok(match kind {
        "tool_search_call" => item.text("execution")?.as_deref() == Some("server"),
        "shell_call" => {
            let environment = item.get("environment").and_then(|environment| environment.0.value().ok());
            environment
                .is_some_and(|value| value.pointer("/type").and_then(Value::as_text) == Some("container_reference"))
        }
        kind => HOSTED.contains(&kind),
    })
}

/// The item with the output of a hosted call, if it is not in the item of the call. It is the first of its type after the
/// call that has the same `call_id`, which may be absent in both.
fn output_of<'a>(
    call: &Item<'_>,
    kind: &str,
    after: &'a [BTreeMap<String, Verbatim>],
) -> Result<Option<&'a BTreeMap<String, Verbatim>>> {
    let kind = match kind {
        "tool_search_call" => "tool_search_output",
        "shell_call" => "shell_call_output",
        "program" => "program_output",
        _ => return Ok(None),
    };
    let id = call.text("call_id")?;
    Ok(after.iter().find(|members| {
        let item = Item { members, at: String::new() };
        let text = |name| item.text(name).ok().flatten();
        text("type").as_deref() == Some(kind) && text("call_id") == id
    }))
}

/// Members of a hosted item that are not arguments of its tool.
const NOT_ARGUMENTS: [&str; 9] =
    ["id", "name", "output", "outputs", "result", "results", "server_label", "status", "type"];

/// A call that OpenAI carried out. The item of its output is its result, or the call's own item.
fn hosted(
    item: &Item<'_>,
    kind: &str,
    output: Option<&BTreeMap<String, Verbatim>>,
    is_provider: IsProvider<'_>,
) -> Result<CallRequest> {
    let id = item.required("id")?;
    let kind = kind.trim_end_matches("_call");
    // A tool of another MCP server is never a tool of this host, even if the names are equal.
    let (tool, is_declared) = match (item.text("server_label")?, item.text("name")?) {
        (Some(server), Some(name)) => (format!("{kind}:{server}:{name}"), false),
        _ => (kind.to_owned(), is_provider(kind)),
    };
    let arguments = match (item.get("action"), item.get("arguments")) {
        (Some(action), _) => action.0.clone(),
        (None, Some(arguments)) => arguments_of(Some(arguments.0.as_str()))?,
        (None, None) => {
            let rest = item.members.iter().filter(|(name, _)| !NOT_ARGUMENTS.contains(&name.as_str()));
            Json::unchecked(json::write(&rest.collect::<BTreeMap<_, _>>())?)
        }
    };
    let result = match item.text("status")?.as_deref() {
        None | Some("completed") => {
            ProviderResult::Value(bounded(Json::unchecked(json::write(output.unwrap_or(item.members))?)))
        }
        Some(status) => ProviderResult::Error(format!("OpenAI reported the status {}", escape::quoted(status, 64))),
    };
    let (result, ended) = if is_declared { (Some(result), None) } else { (None, Some(undeclared(result))) };
    Ok(CallRequest {
        id: call_id(&id, || format!("{}/id", item.at))?,
        tool: tool.into(),
        arguments: bounded(arguments),
        result,
        origin: origin::recorded(&Hosted::default(), ended)?,
    })
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct Output<'a> {
    r#type: &'static str,
    call_id: &'a str,
    output: String,
    namespace: Option<String>,
    caller: Option<Verbatim>,
}

fn results(turn: &Turn) -> Result<String> {
    let outputs = expected(turn)?.into_iter().map(|Expected { call, content, .. }| {
        let Addressed { kind, namespace, caller } = origin::members(call);
        let is_custom = kind == Some(OriginKind::Custom);
        Output {
            r#type: if is_custom { "custom_tool_call_output" } else { "function_call_output" },
            call_id: call.id.as_str(),
            output: content,
            // The output of a custom tool has no namespace in this API.
            namespace: namespace.filter(|_| !is_custom),
            caller,
        }
    });
    json::write(&outputs.collect::<Vec<_>>())
}
