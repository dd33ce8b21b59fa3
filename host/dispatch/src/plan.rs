//! Planning each requested call: the tool is found, the arguments are checked, the policy is asked, the prompt is
//! written. An error in a call is the outcome of that call, in words that a model can act on. It never refuses the
//! turn.

use std::sync::Arc;

use domain::gate::{self, Phase};
use domain::json::{Defaults, TooManyDefaults, Value};
use domain::{
    Call, ConversationId, Json, Outcome, PrincipalId, ToolName, Turn, Violation,
    call::{Pinned, Plan},
    gate::{RuleEffect, Verdict},
    nested::Parent,
    outcome::{Failure, FailureCode},
    suspension::{About, Asked, PromptBy},
    tool::{Approval, ToolOptions},
    turn::Requested,
};

use crate::ports::{KnownTool, Policy, PolicyQuery, Tools};
use crate::prompt::{self, Template};
use crate::request::{CallRequest, ProviderResult};

/// Who made a call, in which conversation and with which context.
pub(crate) struct CallScope {
    pub(crate) caller: PrincipalId,
    pub(crate) conversation: ConversationId,
    pub(crate) context: Option<Json>,
    /// The call that submits the turn, if it is nested.
    pub(crate) parent: Option<Box<Parent>>,
}

impl CallScope {
    pub(crate) fn of(turn: &Turn) -> Self {
        let Turn { caller, conversation, context, parent, .. } = turn;
        let (caller, conversation) = (caller.clone(), conversation.clone());
        Self { caller, conversation, context: context.clone(), parent: parent.clone() }
    }

    /// The question about a call, for the policy.
    pub(crate) fn policy_query(&self, known: &Arc<KnownTool>, arguments: &Json) -> PolicyQuery {
        PolicyQuery {
            known: known.clone(),
            caller: self.caller.clone(),
            conversation: self.conversation.of_caller(),
            via: self.parent.clone(),
            context: self.context.clone(),
            arguments: arguments.clone(),
            step: None,
        }
    }
}

/// A call with its plan.
pub(crate) struct Planned {
    pub(crate) requested: Requested,
    /// Its tool, if the call needs an approval.
    pub(crate) gated: Option<Arc<KnownTool>>,
    /// The value of the arguments. It is kept so that they are not parsed again.
    pub(crate) _value: Option<Arc<Value>>,
}

pub(crate) async fn plan(request: CallRequest, scope: &CallScope, tools: &dyn Tools, policy: &dyn Policy) -> Planned {
    if let Some(outcome) = request.ended().cloned() {
        return settled(request, outcome, None);
    }
    let (known, value) = match checked(&request, tools) {
        Ok(checked) => checked,
        Err(outcome) => return settled(request, outcome, None),
    };
    let verdict = policy.decide(scope.policy_query(&known, &request.arguments)).await;
    if verdict.rule == RuleEffect::Deny {
        return settled(request, denied(&verdict), verdict.by);
    }
    let pinned = pinned(&known, &verdict);
    let (prompt, defaults) = match question(&known, &pinned, &value) {
        Ok(question) => question,
        Err(message) => {
            let failure = Failure::new(FailureCode::InvalidArguments, message);
            return settled(request, Outcome::Failed(failure), verdict.by);
        }
    };
    let CallRequest { id, tool, arguments, result, origin } = request;
    let requested = Requested {
        asked: asked(&known, &verdict, prompt, defaults),
        ruled_by: verdict.by.clone(),
        result: result.map(|result| recorded(&known, result)),
        origin: origin.map(|origin| origin.members),
        standing: None,
        plan: Plan::Go(pinned.clone()),
        id,
        tool,
        arguments,
    };
    let gated = pinned.phases().contains(&Phase::Approve).then_some(known);
    Planned { requested, gated, _value: Some(value) }
}

fn settled(request: CallRequest, outcome: Outcome, ruled_by: Option<Arc<str>>) -> Planned {
    let CallRequest { id, tool, arguments, origin, .. } = request;
    let requested = Requested {
        plan: Plan::Settle(outcome),
        asked: Asked::default(),
        ruled_by,
        origin: origin.map(|origin| origin.members),
        standing: None,
        result: None,
        id,
        tool,
        arguments,
    };
    Planned { requested, gated: None, _value: None }
}

/// The outcome of a call that the policy denies.
pub(crate) fn denied(verdict: &Verdict) -> Outcome {
    Outcome::Denied(Some(verdict.denial()))
}

/// The tool of a call, and the value of the arguments, which fit its schema. Policy, prompt and gate share this value while it
/// is kept.
fn checked(request: &CallRequest, tools: &dyn Tools) -> Result<(Arc<KnownTool>, Arc<Value>), Outcome> {
    let refused = |nearest: Option<ToolName>| {
        tools.refusal(&request.tool).unwrap_or_else(|| unknown(&request.tool, nearest.as_ref()))
    };
    let known = tools.find(&request.tool).map_err(refused)?;
    let invalid = |message| Outcome::Failed(Failure::new(FailureCode::InvalidArguments, message));
    if request.arguments.as_str().starts_with('"') {
        return Err(invalid(unread(&request.arguments)));
    }
    let unfit = |violations: &[Violation]| invalid(sentence("the arguments do not fit the tool's schema", violations));
    let value = request.arguments.value().map_err(|malformed| unfit(&[malformed.into()]))?;
    let violations = violations(&request.arguments, |arguments| known.checks.arguments(arguments));
    if violations.is_empty() { Ok((known, value)) } else { Err(unfit(&violations)) }
}

/// The fault in arguments that are a JSON string. Providers send arguments as text, and text that is not JSON arrives here
/// as a string.
fn unread(arguments: &Json) -> String {
    let quoted = escape::excerpt(arguments.as_str(), 200);
    let fault = match arguments.value().as_deref() {
        Ok(Value::Text(text)) => Json::parse(text.clone()).err(),
        _ => None,
    };
    match fault {
        Some(fault) if fault.is_cut_off() => {
            format!("the arguments are cut off: {fault}; send the whole call again. They are the text {quoted}")
        }
        Some(fault) if fault.is_duplicate() => format!("the arguments can be read in two ways: {fault}"),
        _ => format!("the arguments are not a JSON object but the text {quoted}"),
    }
}

/// The faults in JSON from outside: it breaks its schema, or is not JSON that the host accepts.
pub(crate) fn violations(json: &Json, schema: impl FnOnce(&Json) -> Vec<Violation>) -> Vec<Violation> {
    let mut found = schema(json);
    if found.is_empty() {
        found.extend(json.check().err().map(Violation::from));
    }
    found
}

/// The defaults for what edited arguments leave out, or the faults in them. Arguments whose defaults cannot be shown to people are refused, as they are when they are
/// submitted.
pub(crate) fn edited(known: &KnownTool, arguments: &Json) -> Result<Option<Json>, Vec<Violation>> {
    let found = violations(arguments, |arguments| known.checks.arguments(arguments));
    if !found.is_empty() {
        return Err(found);
    }
    let value = arguments.value().map_err(|malformed| vec![malformed.into()])?;
    let fault = |error| Violation { pointer: String::new(), message: more_arguments(error) };
    known.defaults(&value).map_err(|error| vec![fault(error)])
}

fn more_arguments(error: TooManyDefaults) -> String {
    format!("{error}; send more of the arguments")
}

/// The component, declaration and approval of a call under a verdict. A verdict does not gate a tool that cannot be
/// gated: a person is asked anyway, or the provider has made the call already.
fn pinned(known: &KnownTool, verdict: &Verdict) -> Arc<Pinned> {
    let declared = &known.pinned;
    let approval = verdict.gates(known.tool.approval);
    if approval == declared.approval || gate::phases(declared.executor, approval).is_err() {
        return declared.clone();
    }
    let mut pinned = declared.as_ref().clone();
    pinned.approval = approval;
    let waits = pinned.durable || pinned.phases().iter().any(|phase| phase.suspends());
    pinned.wait = waits.then(|| known.wait.clone());
    Arc::new(pinned)
}

/// The terms of its approval: who asks, why, and who may answer.
fn asked(known: &KnownTool, verdict: &Verdict, prompt: Option<Arc<str>>, defaults: Option<Json>) -> Asked {
    let declared = known.tool.options.clone();
    let by_rule = verdict.rule == RuleEffect::Ask || known.tool.approval == Approval::Auto;
    let about = About {
        prompt,
        prompt_by: if declared.prompt.is_some() { PromptBy::Plugin } else { PromptBy::Host },
        title: declared.title,
        by: verdict.by.clone().filter(|_| by_rule),
        reason: verdict.reason.clone(),
        risk: verdict.risk.or(declared.risk),
        context_keys: declared.context_keys,
    };
    Asked { about, defaults, needs: verdict.needs.clone(), policy_failed: verdict.policy_failed }
}

/// The parts that people see beside a question about a call that is asked again, if its tool is known.
pub(crate) fn about(tools: &dyn Tools, call: &Call) -> Option<Asked> {
    let pinned = call.pinned.as_ref()?;
    let known = tools.pinned(&pinned.plugin, pinned.component, &call.tool)?;
    let defaults = known.defaults(call.arguments.value().ok()?.as_ref()).ok().flatten();
    let ToolOptions { title, risk, context_keys, .. } = known.tool.options.clone();
    Some(Asked { defaults, ..About { title, risk, context_keys, ..About::default() }.into() })
}

fn sentence(what: &str, violations: &[Violation]) -> String {
    let list: Vec<String> = violations.iter().map(Violation::to_string).collect();
    format!("{what}: {}", list.join("; "))
}

fn unknown(asked: &str, nearest: Option<&ToolName>) -> Outcome {
    let message = match nearest {
        Some(nearest) => format!("{}; did you mean {nearest}?", crate::error::no_tool(asked)),
        None => crate::error::no_tool(asked),
    };
    Outcome::Failed(Failure::new(FailureCode::UnknownTool, message))
}

/// The prompt of a call that asks people, and the defaults that they are shown with it.
type AskedText = (Option<Arc<str>>, Option<Json>);

/// The question to people about a call, or why it cannot be written for these arguments.
fn question(known: &KnownTool, pinned: &Pinned, arguments: &Value) -> Result<AskedText, String> {
    let asks = |phase: &Phase| matches!(phase, Phase::Approve | Phase::Question);
    if !pinned.phases().iter().any(asks) {
        return Ok((None, None));
    }
    let schema = known.tool.parameters.value().ok();
    let matches = |pattern: &str, name: &str| known.checks.name_matches(pattern, name);
    let defaults = schema.as_deref().map(|schema| Defaults::of(schema, arguments, &matches)).transpose();
    let defaults = defaults.map_err(more_arguments)?.unwrap_or_default();
    let Some(template) = known.tool.options.prompt.as_deref().and_then(|text| Template::parse(text).ok()) else {
        let title = known.tool.options.title.as_deref().unwrap_or(known.tool.name.as_str());
        return Ok((Some(format!("{title}?").into()), defaults.to_json()));
    };
    let text = template.render(arguments, &defaults).ok_or_else(|| {
        let max = prompt::MAX_BYTES;
        format!("with these arguments, the question to the person would be longer than {max} bytes; send less text")
    })?;
    Ok((Some(text.into()), defaults.to_json()))
}

/// The outcome of a call that the provider carried out. Its result came through the caller, so it is untrusted.
fn recorded(known: &KnownTool, result: ProviderResult) -> Outcome {
    match result {
        ProviderResult::Error(message) => Outcome::Failed(Failure::new(FailureCode::ToolFailed, message)),
        ProviderResult::Value(value) => {
            let violations = violations(&value, |value| known.checks.result(value));
            if violations.is_empty() {
                Outcome::Ok { value, trusted: false }
            } else {
                let message = sentence("the provider's result does not fit the tool's schema", &violations);
                Outcome::Failed(Failure::new(FailureCode::InvalidResult, message))
            }
        }
    }
}
