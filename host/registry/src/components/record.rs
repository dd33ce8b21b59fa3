//! The stored form of what is known of a component.

use domain::{Approval, Digest, Executor, PluginName};
use sandbox::{Capabilities, Capability, Declared};
use serde::{Deserialize, Serialize};

use super::Known;

/// Counted up with every change of the form.
const FORM: u32 = 2;

/// The host that wrote a record.
const HOST: &str = env!("CARGO_PKG_VERSION");

#[derive(Serialize, Deserialize)]
struct Record {
    form: u32,
    host: String,
    component: String,
    plugin: String,
    capabilities: Vec<String>,
    has_server: bool,
    tools: Vec<Tool>,
}

#[derive(Serialize, Deserialize)]
struct Tool {
    name: String,
    description: String,
    parameters: String,
    executor: String,
    approval: String,
    streaming: bool,
    options: String,
}

/// The record of a component.
pub(super) fn write(digest: Digest, known: &Known) -> String {
    let tool = |declared: &Declared| Tool {
        name: declared.name.clone(),
        description: declared.description.clone(),
        parameters: declared.parameters.clone(),
        executor: declared.executor.as_str().to_owned(),
        approval: declared.approval.as_str().to_owned(),
        streaming: declared.streaming,
        options: declared.options.clone(),
    };
    let record = Record {
        form: FORM,
        host: HOST.to_owned(),
        component: digest.to_string(),
        plugin: known.plugin.to_string(),
        capabilities: known.capabilities.iter().map(|capability| capability.to_string()).collect(),
        has_server: known.has_server,
        tools: known.declared.iter().map(tool).collect(),
    };
    // Strings, numbers and lists of them always have a text; an empty one would read as no record.
    serde_json::to_string(&record).unwrap_or_default()
}

/// What a record says, if it is one about this component. One of an older host still serves the calls that wait for it.
pub(super) fn read(digest: Digest, bytes: &[u8]) -> Option<Known> {
    let record: Record = serde_json::from_slice(bytes).ok()?;
    if record.form != FORM || record.component != digest.to_string() {
        return None;
    }
    let known = |name: &String| Capability::ALL.into_iter().find(|capability| capability.as_str() == name);
    let capabilities = record.capabilities.iter().map(known).collect::<Option<Vec<_>>>()?;
    Some(Known {
        plugin: PluginName::new(&record.plugin).ok()?,
        capabilities: Capabilities::of(capabilities),
        has_server: record.has_server,
        current: record.host == HOST,
        declared: record.tools.into_iter().map(declared).collect::<Option<_>>()?,
    })
}

fn declared(tool: Tool) -> Option<Declared> {
    Some(Declared {
        executor: Executor::ALL.into_iter().find(|executor| executor.as_str() == tool.executor)?,
        approval: Approval::ALL.into_iter().find(|approval| approval.as_str() == tool.approval)?,
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters,
        streaming: tool.streaming,
        options: tool.options,
    })
}
