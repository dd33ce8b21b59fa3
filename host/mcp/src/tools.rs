//! The result of `tools/list`.

use std::sync::Arc;

use dispatch::ports::KnownTool;
use domain::Json;
use domain::tool::{Approval, Executor};
use rmcp::model::{ErrorData, JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::json;

use crate::results::object;
use crate::{card, wait};

/// The member of a tool's `_meta` about the host.
const TOOL: &str = "dev.toolgate/tool";

/// The live tools in the order of their names, `toolgate_wait`, and for clients that show cards `toolgate_state`. A provider carries out its tools itself, so they are left
/// out. A tool of a plugin that is named like one of this host is left out too: calls of that name never reach it.
pub(crate) fn listed(live: &[Arc<KnownTool>], shows_cards: bool) -> Result<Vec<Tool>, ErrorData> {
    let offered = live.iter().filter(|live| is_offered(live));
    let mut tools = offered.map(|live| tool(live)).collect::<Result<Vec<_>, _>>()?;
    tools.push(wait());
    tools.extend(shows_cards.then(card::tool));
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(tools)
}

/// The listed tool with this name.
pub(crate) fn of_name(live: &[Arc<KnownTool>], name: &str) -> Option<Tool> {
    match name {
        wait::NAME => return Some(wait()),
        card::STATE => return Some(card::tool()),
        _ => {}
    }
    let live = live.iter().find(|live| live.tool.name.as_str() == name)?;
    if is_offered(live) { tool(live).ok() } else { None }
}

fn wait() -> Tool {
    let mut tool = wait::tool();
    card::attach(tool.meta.get_or_insert_default());
    tool
}

fn is_offered(live: &KnownTool) -> bool {
    live.tool.executor != Executor::Provider && ![wait::NAME, card::STATE].contains(&live.tool.name.as_str())
}

fn tool(live: &KnownTool) -> Result<Tool, ErrorData> {
    let (declared, options) = (&live.tool, &live.tool.options);
    let description = declared.description.clone();
    let mut tool = Tool::new(declared.name.as_str().to_owned(), description, input_schema(&declared.parameters)?);
    tool.title.clone_from(&options.title);
    tool.output_schema = output_schema(live).map(Arc::new);
    tool.annotations = Some(annotations(live));
    let about = json!({
        "plugin": declared.plugin.as_str(),
        "sandboxed": !declared.plugin.is_upstream(),
        "component": declared.component.to_string(),
        "declaration": declared.declaration.to_string(),
        "approval": live.pinned.approval.as_str(),
        "executor": declared.executor.as_str(),
    });
    let mut meta = MetaObject::new();
    meta.0.insert(TOOL.to_owned(), about);
    if live.pinned.approval == Approval::RequiresApproval || declared.executor != Executor::Server {
        card::attach(&mut meta);
    }
    tool.meta = Some(meta);
    Ok(tool)
}

/// The schema of the arguments. The protocol requires a type, and arguments are always an object.
fn input_schema(parameters: &Json) -> Result<Arc<JsonObject>, ErrorData> {
    // A schema may also be `true`.
    let mut schema = object(parameters).unwrap_or_default();
    if schema.get("type").is_none_or(|kind| kind != "object") {
        schema.insert("type".to_owned(), "object".into());
    }
    Ok(Arc::new(schema))
}

/// The schema of the result, if the result is an object. The protocol has no other structured results.
pub(crate) fn output_schema(live: &KnownTool) -> Option<JsonObject> {
    let schema = object(live.tool.options.result.as_ref()?)?;
    (schema.get("type")? == "object").then_some(schema)
}

/// The tool's hints. If the access of its component rules out an effect, the annotation says so.
fn annotations(live: &KnownTool) -> ToolAnnotations {
    let (hints, allowed) = (&live.tool.options.hints, live.allowed);
    ToolAnnotations::from_raw(
        live.tool.options.title.clone(),
        if allowed.changes { hints.read_only } else { Some(true) },
        if allowed.changes { hints.destructive } else { Some(false) },
        hints.idempotent,
        if allowed.outside { hints.open_world } else { Some(false) },
    )
}
