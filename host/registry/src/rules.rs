//! The rules for declarations. All of them are checked, so that an author sees every fault at once.

use std::collections::HashSet;

use domain::gate;
use domain::{CatalogLimits, Digest, Json, PluginName, Tool, ToolName, tool::Executor};
use sandbox::Declared;
use serde_json::Value;

use crate::finding::Findings;
use crate::json::quoted;
use crate::{LoadRule, RegistrySettings};

mod durable;
mod options;
mod references;
mod schema;

pub(crate) use durable::{check_component, check_question};
pub use options::{MAX_PROMPT, MAX_TITLE};
pub use schema::MAX_SCHEMA_DEPTH;

/// The declarations to check.
pub(crate) struct Subject<'a> {
    pub(crate) plugin: &'a PluginName,
    pub(crate) component: Digest,
    pub(crate) has_server: bool,
    pub(crate) declared: &'a [Declared],
    pub(crate) limits: &'a CatalogLimits,
}

/// Checks every rule, and returns the tools as far as they are readable. They may be used only without findings.
///
/// `owner` returns the other live plugin that has a tool of this name.
pub(crate) fn check(
    subject: &Subject<'_>,
    settings: &RegistrySettings,
    owner: &dyn Fn(&str) -> Option<PluginName>,
    findings: &mut Findings,
) -> Vec<Tool> {
    let (count, max) = (subject.declared.len(), subject.limits.tools);
    if count > max {
        findings.about_plugin();
        findings.add(
            LoadRule::TooManyTools,
            format!("the plugin has {count} tools; the maximum is {max} (limit `catalog.tools`)"),
            "split it into several plugins",
        );
        return Vec::new();
    }
    let mut names = HashSet::new();
    let mut tools = Vec::new();
    for (position, declared) in subject.declared.iter().enumerate() {
        findings.about(position, &declared.name);
        if !names.insert(declared.name.as_str()) {
            findings.add(LoadRule::ToolNameTwice, "the plugin has two tools of this name", "rename one of them");
        }
        if let Some(owner) = owner(&declared.name) {
            findings.add(
                LoadRule::ToolNameTaken,
                format!("the live plugin {owner} has a tool of this name"),
                "rename the tool, or unload that plugin first",
            );
        }
        if let Some(upstream) = settings.upstream_of(&declared.name).filter(|_| !subject.plugin.is_upstream()) {
            findings.add(
                LoadRule::ToolNameTaken,
                format!("names that begin with `{upstream}__` are for the tools of the upstream MCP server {upstream}"),
                "rename the tool, or the table `[upstream]` of that server",
            );
        }
        tools.extend(check_tool(subject, declared, settings, findings));
    }
    findings.about_plugin();
    tools
}

/// Checks the rules for one tool. Returns `None` without a valid name.
fn check_tool(
    subject: &Subject<'_>,
    declared: &Declared,
    settings: &RegistrySettings,
    findings: &mut Findings,
) -> Option<Tool> {
    let name = ToolName::new(&declared.name);
    if name.is_err() {
        findings.add(
            LoadRule::ToolName,
            "a tool's name must be 1 to 64 of the characters a-z A-Z 0-9 _ -",
            "rename the tool",
        );
    }
    check_cell(subject, declared, findings);
    check_description(&declared.description, subject.limits, findings);
    if declared.streaming && !matches!(declared.executor, Executor::Server | Executor::Client) {
        findings.add(
            LoadRule::Streaming,
            format!("a {} tool reports no progress and cannot be streaming", declared.executor.as_str()),
            "declare it without `streaming`",
        );
    }
    let parameters = parameters(&declared.parameters, subject.limits, findings);
    let options = options::read(declared, parameters.as_ref(), settings, subject.limits, findings);
    settings.check_policy(subject.plugin, &declared.name, declared.executor, findings);
    Some(Tool {
        name: name.ok()?,
        description: declared.description.clone(),
        parameters: Json::unchecked(declared.parameters.as_str()),
        executor: declared.executor,
        approval: declared.approval,
        streaming: declared.streaming,
        options,
        plugin: subject.plugin.clone(),
        component: subject.component,
        declaration: digest(declared),
    })
}

fn check_cell(subject: &Subject<'_>, declared: &Declared, findings: &mut Findings) {
    if let Err(cell) = gate::phases(declared.executor, declared.approval) {
        let (rule, remedy) = match declared.executor {
            Executor::Provider => (
                LoadRule::GatedProvider,
                "declare its approval `auto`, or make it a server or client tool, which the host can stop",
            ),
            _ => (
                LoadRule::GatedHuman,
                "declare its approval `auto`, and let people decline with one of its `responses`",
            ),
        };
        findings.add(rule, cell.to_string(), remedy);
    }
    if declared.executor == Executor::Server && !subject.has_server {
        findings.add(
            LoadRule::NoServer,
            "a server tool needs a function to run, and the component does not export `server`",
            "build against the world `plugin`, or choose the executor that carries it out",
        );
    }
}

fn check_description(description: &str, limits: &CatalogLimits, findings: &mut Findings) {
    if description.trim().is_empty() {
        findings.add(LoadRule::Description, "the description is empty", "say what the tool does and when to use it");
    }
    let (size, max) = (description.len(), limits.description);
    if size > max {
        findings.add(
            LoadRule::Description,
            format!("the description has {size} bytes; the maximum is {max} (limit `catalog.description_bytes`)"),
            "shorten it: every model reads it at every turn",
        );
    }
}

/// The schema of the arguments, if it is JSON.
fn parameters(text: &str, limits: &CatalogLimits, findings: &mut Findings) -> Option<Value> {
    const WHAT: &str = "`parameters`";
    if !schema::is_of_size(WHAT, text, limits, findings) {
        return None;
    }
    let value = match crate::json::read(text) {
        Ok((value, twice)) => {
            for pointer in twice {
                let message = format!("{WHAT} has the member {} twice", quoted(&pointer));
                findings.add(LoadRule::SchemaInvalid, message, "remove one of the two");
            }
            value
        }
        Err(error) => {
            findings.add(LoadRule::SchemaInvalid, format!("{WHAT} is not JSON: {error}"), "write a JSON Schema");
            return None;
        }
    };
    if value.get("type").and_then(Value::as_str) != Some("object") {
        findings.add(
            LoadRule::SchemaNotObject,
            format!("{WHAT} does not say `\"type\": \"object\"` at its root"),
            "make the arguments an object, one member for each",
        );
    }
    schema::check(WHAT, &value, findings);
    Some(value)
}

/// The digest of a declaration. It covers everything that an approver may see.
fn digest(declared: &Declared) -> Digest {
    Digest::of_parts(&[
        declared.name.as_bytes(),
        declared.description.as_bytes(),
        declared.parameters.as_bytes(),
        declared.executor.as_str().as_bytes(),
        declared.approval.as_str().as_bytes(),
        if declared.streaming { b"streaming" } else { b"" },
        declared.options.as_bytes(),
    ])
}

#[cfg(test)]
mod tests;
