//! The rules for durable tools: a component that has one imports only what a later run can repeat. The host checks the schema in
//! a question of a durable call by the rules for the schemas of tools.

use capabilities::{Capabilities, Capability};
use domain::outcome::{Failure, FailureCode};
use domain::step::StepWait;
use domain::{CatalogLimits, Tool};

use super::schema;
use crate::LoadRule;
use crate::finding::Findings;
use crate::guests::Looked;
use crate::json;

/// Checks the imports of a component with these tools and this access.
pub(crate) fn check_component(looked: &Looked, held: Capabilities, tools: &[Tool], findings: &mut Findings) {
    let durable: Vec<_> = tools.iter().filter(|tool| tool.options.durable).map(|tool| tool.name.as_str()).collect();
    findings.about_plugin();
    if durable.is_empty() {
        if looked.imports_durable {
            findings.add(
                LoadRule::OptionContradiction,
                "the component imports the interface `durable`, and none of its tools is durable",
                "declare the tools that wait with the option `\"durable\": true`, or build it without that import",
            );
        }
        return;
    }
    // An import that no grant allows has a finding of its own.
    let mut lasting: Vec<_> = looked
        .beyond
        .iter()
        .filter(|import| import.needs.is_some_and(|capability| !capability.is_replayable()))
        .map(|import| format!("`{}`", import.name))
        .collect();
    if looked.asks_for_folders && held.holds(Capability::Filesystem) {
        lasting.push("the granted folders".to_owned());
    }
    if !lasting.is_empty() {
        findings.add(
            LoadRule::OptionContradiction,
            format!(
                "a durable call cannot repeat its use of {}, and the plugin has durable tools: {}",
                lasting.join(", "),
                durable.join(", ")
            ),
            "move the durable tools to another plugin, or do without these",
        );
    }
}

/// Checks the schema of the answer that a durable call waits for. The sandbox has checked the rest of the question.
///
/// # Errors
/// The failure of the call.
pub(crate) fn check_question(wait: &StepWait, limits: &CatalogLimits) -> Result<(), Failure> {
    let (question, what) = match wait {
        StepWait::Answer(question) => (question, "the `response` of its question"),
        StepWait::External { question, .. } => (question, "the `schema` of its question"),
        StepWait::Approval { .. } | StepWait::Calls(_) | StepWait::Time(_) | StepWait::RateLimit(_) => return Ok(()),
    };
    let Some(response) = &question.response else { return Ok(()) };
    let mut findings = Findings::default();
    if schema::is_of_size(what, response.as_str(), limits, &mut findings) {
        match json::read(response.as_str()) {
            Ok((value, _)) => drop(schema::check(what, &value, &mut findings)),
            Err(error) => {
                findings.add(LoadRule::SchemaInvalid, format!("{what} is not JSON: {error}"), "write a JSON Schema")
            }
        }
    }
    let faults: Vec<_> = findings.into_vec().iter().map(ToString::to_string).collect();
    if faults.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        FailureCode::ToolFailed,
        format!("the tool asked a question that is refused: {}", faults.join("; ")),
    ))
}
