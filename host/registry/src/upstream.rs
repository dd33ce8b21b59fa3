//! Tools that no component has: those of upstream MCP servers. They pass the same rules as the tools of a component.

use capabilities::Grants;
use dispatch::ports::{AllowedEffects, KnownTool};
use domain::{Digest, PluginName};
use sandbox::Declared;

use crate::component::live;
use crate::finding::Findings;
use crate::rules::{self, Subject};
use crate::{Finding, RegistrySettings};

/// The tool of an upstream MCP server with this declaration, with the operator's rules applied. `identity` is what its calls are
/// pinned to instead of a component.
///
/// # Errors
/// Every rule that the declaration breaks.
pub fn upstream_tool(
    settings: &RegistrySettings,
    plugin: &PluginName,
    identity: Digest,
    declared: &Declared,
) -> Result<KnownTool, Vec<Finding>> {
    let declared = std::slice::from_ref(declared);
    let subject = Subject { plugin, component: identity, has_server: true, declared, limits: &settings.catalog };
    let mut findings = Findings::default();
    let tools = rules::check(&subject, settings, &|_| None, &mut findings);
    let findings = findings.into_vec();
    match tools.into_iter().next() {
        Some(tool) if findings.is_empty() => {
            let tool = live(tool, settings, &settings.limits(plugin), &Grants::default());
            // It runs outside the sandbox, so nothing limits its effects.
            Ok(KnownTool { allowed: AllowedEffects::ANY, ..tool })
        }
        _ => Err(findings),
    }
}
