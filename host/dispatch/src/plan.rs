//! What shall become of each requested call: the tool is found, the arguments are checked, the question is written. What
//! is wrong with a call is that call's outcome, in words that a model can act on; it never refuses the turn.

use std::sync::Arc;

use domain::gate::Phase;
use domain::{Failure, FailureCode, Outcome, Plan, Requested, Rule, ToolName, Violation};

use crate::exact::Exact;
use crate::ports::{LiveTool, Tools};
use crate::prompt::{self, Template};
use crate::request::{CallRequest, ProviderResult};

/// Plans a call.
pub(crate) fn plan(request: CallRequest, tools: &dyn Tools) -> Requested {
    let CallRequest { id, tool, arguments, result } = request;
    let settled = |outcome| Requested {
        id: id.clone(),
        tool: tool.clone(),
        arguments: arguments.clone(),
        plan: Plan::Settle(outcome),
        prompt: None,
        result: None,
    };
    let live = match tools.find(&tool) {
        Ok(live) => live,
        Err(nearest) => return settled(unknown(&tool, nearest.as_ref())),
    };
    if live.rule == Rule::Deny {
        return settled(Outcome::Denied(Some("the operator's policy denies this tool".into())));
    }
    if arguments.as_str().starts_with('"') {
        // A model's answer holds arguments as a text; one that is no JSON arrives here as the string that it was.
        let quoted = text::excerpt(arguments.as_str(), 200);
        let message = format!("the arguments are not a JSON object but the text {quoted}");
        return settled(Outcome::Failed(Failure::new(FailureCode::InvalidArguments, message)));
    }
    let violations = live.checks.arguments(&arguments);
    if !violations.is_empty() {
        let message = sentence("the arguments do not fit the tool's schema", &violations);
        return settled(Outcome::Failed(Failure::new(FailureCode::InvalidArguments, message)));
    }
    let prompt = match prompt(&live, arguments.as_str()) {
        Ok(prompt) => prompt,
        Err(message) => return settled(Outcome::Failed(Failure::new(FailureCode::InvalidArguments, message))),
    };
    let result = result.map(|result| recorded(&live, result));
    Requested { plan: Plan::Go(live.pinned.clone()), prompt, result, id, tool, arguments }
}

/// Violations in one sentence.
fn sentence(what: &str, violations: &[Violation]) -> String {
    let list: Vec<String> = violations.iter().map(Violation::to_string).collect();
    format!("{what}: {}", list.join("; "))
}

fn unknown(asked: &str, nearest: Option<&ToolName>) -> Outcome {
    // A name that a model made up may be of any length and hold anything; the message quotes only its beginning.
    let quoted = text::quoted(asked, 64);
    let message = match nearest {
        Some(nearest) => format!("there is no tool {quoted}; did you mean {nearest}?"),
        None => format!("there is no tool {quoted}"),
    };
    Outcome::Failed(Failure::new(FailureCode::UnknownTool, message))
}

/// What people are asked, for a call that will ask them; or why these arguments cannot be asked about.
fn prompt(live: &Arc<LiveTool>, arguments: &str) -> Result<Option<String>, String> {
    let asks = |phase: &Phase| matches!(phase, Phase::Approve | Phase::Ask);
    if !live.pinned.phases().iter().any(asks) {
        return Ok(None);
    }
    let Some(template) = live.tool.options.prompt.as_deref().and_then(|text| Template::parse(text).ok()) else {
        return Ok(Some(format!("{}?", live.tool.options.title.as_deref().unwrap_or(live.tool.name.as_str()))));
    };
    let values = Exact::parse(arguments).ok_or(
        "the arguments cannot be shown to a person exactly: they are nested too deeply, or name a member twice",
    )?;
    let text = template.render(&values).ok_or_else(|| {
        let most = prompt::LONGEST;
        format!("with these arguments, what a person would be asked is longer than {most} bytes; send less text")
    })?;
    Ok(Some(text))
}

/// The outcome of a call that the provider carried out. Its result came through the caller, so it is not trusted.
fn recorded(live: &Arc<LiveTool>, result: ProviderResult) -> Outcome {
    match result {
        ProviderResult::Error(message) => Outcome::Failed(Failure::new(FailureCode::ToolFailed, message)),
        ProviderResult::Value(value) => {
            let violations = live.checks.result(&value);
            if violations.is_empty() {
                Outcome::Ok { value, trusted: false }
            } else {
                let message = sentence("the provider's result does not fit the tool's schema", &violations);
                Outcome::Failed(Failure::new(FailureCode::InvalidResult, message))
            }
        }
    }
}
