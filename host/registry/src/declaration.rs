//! The section of a component with its declaration and its manifest. The host checks both before it compiles or runs
//! anything, and later compares the declaration with the result of `tools()`.

use std::collections::BTreeMap;

use domain::tool::{Approval, Executor};
use sandbox::Declared;
use serde::{Deserialize, Serialize};

use crate::LoadRule;
use crate::finding::Findings;
use crate::json::quoted;
use crate::manifest::Manifest;

/// Increased with every change of the form that an older host could misread.
const FORM: u64 = 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declaration {
    pub(crate) tools: Vec<Declared>,
    /// The manifest; `None` if the component has none.
    pub(crate) manifest: Option<Manifest>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    form: u64,
    tools: Vec<StoredTool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wants: Option<Manifest>,
}

/// The part of a section that is read first, because it decides how to read the rest.
#[derive(Deserialize)]
struct Form {
    form: u64,
}

/// The stored form of one tool's declaration, in sections and in the host's records.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredTool {
    name: String,
    description: String,
    parameters: String,
    executor: String,
    approval: String,
    streaming: bool,
    options: String,
}

impl From<&Declared> for StoredTool {
    fn from(declared: &Declared) -> Self {
        Self {
            name: declared.name.clone(),
            description: declared.description.clone(),
            parameters: declared.parameters.clone(),
            executor: declared.executor.as_str().to_owned(),
            approval: declared.approval.as_str().to_owned(),
            streaming: declared.streaming,
            options: declared.options.clone(),
        }
    }
}

impl StoredTool {
    /// The declaration. `None` if the executor or the approval is unknown.
    pub(crate) fn declared(self) -> Option<Declared> {
        Some(Declared {
            executor: Executor::named(&self.executor)?,
            approval: Approval::named(&self.approval)?,
            name: self.name,
            description: self.description,
            parameters: self.parameters,
            streaming: self.streaming,
            options: self.options,
        })
    }
}

impl Declaration {
    /// Writes the content of a section.
    pub(crate) fn write(&self) -> Vec<u8> {
        let tools = self.tools.iter().map(StoredTool::from).collect();
        let section = Section { form: FORM, tools, wants: self.manifest.clone() };
        // Texts, numbers and lists always serialize. An empty text would read as a missing declaration.
        serde_json::to_vec(&section).unwrap_or_default()
    }

    /// Reads the content of a section. Adds a finding and returns `None` if it is invalid.
    pub(crate) fn read(content: &[u8], findings: &mut Findings) -> Option<Self> {
        let read = Self::parse(content);
        read.map_err(|wrong| findings.add(LoadRule::DeclarationForm, wrong.0, wrong.1)).ok()
    }

    fn parse(content: &[u8]) -> Result<Self, (String, &'static str)> {
        const AGAIN: &str = "pack the component again with `toolgate pack`";
        let malformed = |error: serde_json::Error| {
            (format!("the component's declaration cannot be read: {}", quoted(&error.to_string())), AGAIN)
        };
        let Form { form } = serde_json::from_slice(content).map_err(malformed)?;
        if form != FORM {
            let message = format!("the component's declaration has form {form}, but this host reads form {FORM}");
            return Err((message, "pack it with this host's `toolgate pack`, or use a newer host"));
        }
        let section: Section = serde_json::from_slice(content).map_err(malformed)?;
        let tools = section.tools.into_iter().map(StoredTool::declared).collect::<Option<_>>();
        let tools = tools.ok_or_else(|| {
            ("the component's declaration names an executor or an approval that does not exist".to_owned(), AGAIN)
        })?;
        if let Some(manifest) = &section.wants {
            manifest.check().map_err(|error| {
                (format!("the component's manifest: {error}"), "correct the manifest, and pack the component again")
            })?;
        }
        Ok(Self { tools, manifest: section.wants })
    }

    /// Compares the section with the result of `tools()`. Each difference is a finding, because an approver sees the
    /// section and the host runs the other.
    pub(crate) fn compare(&self, answered: &[Declared], findings: &mut Findings) {
        if self.tools == answered {
            return;
        }
        let named = |tools: &[Declared]| -> BTreeMap<String, Declared> {
            tools.iter().map(|tool| (tool.name.clone(), tool.clone())).collect()
        };
        let (stated, live) = (named(&self.tools), named(answered));
        let before = findings.len();
        for (position, tool) in self.tools.iter().enumerate() {
            findings.about(position, &tool.name);
            match live.get(&tool.name) {
                Some(live) => differences(tool, live, findings),
                None => differs("the section declares a tool that `tools()` does not have", findings),
            }
        }
        for (position, tool) in answered.iter().enumerate().filter(|(_, tool)| !stated.contains_key(&tool.name)) {
            findings.about(position, &tool.name);
            differs("`tools()` has a tool that the section does not declare", findings);
        }
        findings.about_plugin();
        if findings.len() == before {
            differs("the section and `tools()` have the same tools in another order or number", findings);
        }
    }
}

fn differences(stated: &Declared, live: &Declared, findings: &mut Findings) {
    let fields = [
        ("description", stated.description.as_str(), live.description.as_str()),
        ("parameters", &stated.parameters, &live.parameters),
        ("executor", stated.executor.as_str(), live.executor.as_str()),
        ("approval", stated.approval.as_str(), live.approval.as_str()),
        ("streaming", yes(stated.streaming), yes(live.streaming)),
        ("options", &stated.options, &live.options),
    ];
    for (field, stated, live) in fields.into_iter().filter(|(_, stated, live)| stated != live) {
        let (stated, live) = (quoted(stated), quoted(live));
        differs(&format!("the section says `{field}` is {stated}, `tools()` says {live}"), findings);
    }
}

fn yes(flag: bool) -> &'static str {
    if flag { "true" } else { "false" }
}

fn differs(message: &str, findings: &mut Findings) {
    findings.add(
        LoadRule::DeclarationDiffers,
        message,
        "pack the component as it is with `toolgate pack`, and let `tools()` return a constant",
    );
}
