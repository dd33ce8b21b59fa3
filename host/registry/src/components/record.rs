//! The stored form of a component's record.

use capabilities::{Capabilities, Capability};
use domain::{Digest, PluginName};
use serde::{Deserialize, Serialize};

use super::Known;
use crate::declaration::StoredTool;
use crate::manifest::Manifest;

/// Increased with every change of the form.
const FORM: u32 = 3;

/// The oldest form that is read. Its records have no manifest: the calls that wait for these components were submitted
/// before manifests existed.
const OLDEST: u32 = 2;

/// The version of the host that wrote the record.
const HOST: &str = env!("CARGO_PKG_VERSION");

#[derive(Serialize, Deserialize)]
struct Record {
    form: u32,
    host: String,
    component: String,
    plugin: String,
    capabilities: Vec<String>,
    has_server: bool,
    tools: Vec<StoredTool>,
    /// Since form 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wants: Option<Manifest>,
}

pub(super) fn write(digest: Digest, known: &Known) -> String {
    let record = Record {
        form: FORM,
        host: HOST.to_owned(),
        component: digest.to_string(),
        plugin: known.plugin.to_string(),
        capabilities: known.capabilities.iter().map(|capability| capability.to_string()).collect(),
        has_server: known.has_server,
        tools: known.declared.iter().map(StoredTool::from).collect(),
        wants: known.manifest.clone(),
    };
    // Strings, numbers and lists always serialize. An empty text would read as a missing record.
    serde_json::to_string(&record).unwrap_or_default()
}

/// Reads the record of this component. A record of an older host still serves the calls that wait for the component.
pub(super) fn read(digest: Digest, bytes: &[u8]) -> Option<Known> {
    let record: Record = serde_json::from_slice(bytes).ok()?;
    if !(OLDEST..=FORM).contains(&record.form) || record.component != digest.to_string() {
        return None;
    }
    let known = |name: &String| Capability::named(name);
    let granted = record.capabilities.iter().map(known).collect::<Option<Vec<_>>>()?;
    Some(Known {
        plugin: PluginName::new(&record.plugin).ok()?,
        capabilities: Capabilities::of(granted),
        has_server: record.has_server,
        current: record.host == HOST && record.form == FORM,
        manifest: record.wants,
        declared: record.tools.into_iter().map(StoredTool::declared).collect::<Option<_>>()?,
    })
}
