//! The result of MCP's `tools/list`. <https://modelcontextprotocol.io/specification>

use dispatch::ports::KnownTool;
use domain::{Json, json::Value};
use serde::Serialize;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};

use super::schema::object;
use super::{Format, List};
use crate::error::Result;
use crate::{Verbatim, json};

/// MCP has no format for the results of several calls.
pub(super) static FORMAT: Format =
    Format { name: "mcp", list: Some(List { schema: list_schema, write: tools }), answer: None };

#[derive(Serialize)]
struct Listing<'a> {
    tools: Vec<Tool<'a>>,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    name: &'a str,
    title: Option<&'a str>,
    description: &'a str,
    input_schema: Verbatim,
    output_schema: Option<Verbatim>,
    annotations: Annotations,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Annotations {
    read_only_hint: Option<bool>,
    destructive_hint: Option<bool>,
    idempotent_hint: Option<bool>,
    open_world_hint: Option<bool>,
}

fn tools(tools: &[&KnownTool]) -> Result<String> {
    let tools = tools.iter().map(|live| {
        let options = &live.tool.options;
        Tool {
            name: live.tool.name.as_str(),
            title: options.title.as_deref(),
            description: &live.tool.description,
            input_schema: (&live.tool.parameters).into(),
            output_schema: options.result.as_ref().filter(|schema| is_object(schema)).map(Verbatim::from),
            annotations: Annotations {
                read_only_hint: options.hints.read_only,
                destructive_hint: options.hints.destructive,
                idempotent_hint: options.hints.idempotent,
                open_world_hint: options.hints.open_world,
            },
        }
    });
    json::write(&Listing { tools: tools.collect() })
}

/// Whether a schema describes an object. MCP's structured results must be objects.
fn is_object(schema: &Json) -> bool {
    schema.value().is_ok_and(|root| root.pointer("/type").and_then(Value::as_text) == Some("object"))
}

fn list_schema() -> RefOr<Schema> {
    let tool = object("A tool.")
        .property("name", ObjectBuilder::new().schema_type(Type::String))
        .required("name")
        .property("inputSchema", object("A JSON Schema."))
        .required("inputSchema");
    let tools = ArrayBuilder::new().items(tool);
    object("`mcp`: the result of `tools/list`.").property("tools", tools).required("tools").into()
}
