//! Nested turns: a durable call submits a turn, and waits for its results.

use std::sync::Arc;

use crate::{
    CallId, ConversationId, Json, Outcome, PluginName, Turn, TurnId,
    json::{Value, quote},
    turn::TurnState,
};

/// The turn that a durable call submits. The commit of the wait has it, so that it is submitted once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NestedTurn {
    pub turn: TurnId,
    pub calls: Arc<[NestedCall]>,
}

/// A call of a nested turn, as the guest asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NestedCall {
    pub tool: Arc<str>,
    pub arguments: Json,
}

/// The call that submitted a nested turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    pub conversation: ConversationId,
    pub turn: TurnId,
    pub call: CallId,
    pub plugin: PluginName,
    pub tool: Arc<str>,
    /// 1 if a caller submitted the turn of this call.
    pub depth: u32,
}

impl NestedTurn {
    /// The ids of its calls, in their order. They are unique in its conversation.
    pub fn ids(&self) -> impl Iterator<Item = CallId> {
        (1..=self.calls.len()).filter_map(|number| CallId::new(&format!("{}.{number}", self.turn)).ok())
    }

    /// The bytes that the guest wrote.
    #[must_use]
    pub fn size(&self) -> usize {
        self.calls.iter().map(NestedCall::size).sum()
    }
}

impl NestedCall {
    pub(crate) fn size(&self) -> usize {
        self.tool.len() + self.arguments.size()
    }
}

impl Turn {
    /// How deep it is nested: 0 if a caller submitted it.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.parent.as_ref().map_or(0, |parent| parent.depth)
    }

    /// The nested turns that its calls wait for.
    pub fn awaited(&self) -> impl Iterator<Item = &NestedTurn> {
        self.pending().filter_map(|(.., open)| open.nested())
    }

    /// The results of a nested turn that has ended, in the order of its calls: a JSON array of what a model would see. A result
    /// or failure that the host does not control is marked.
    #[must_use]
    pub fn nested_results(&self) -> Option<Json> {
        let TurnState::Ended(..) = self.state else { return None };
        let results = self.calls.iter().filter_map(|call| {
            let outcome = call.outcome()?;
            let is_trusted = match outcome {
                Outcome::Ok { trusted, .. } => *trusted,
                Outcome::Failed(_) => !call.is_outside(),
                _ => true,
            };
            Some(result(outcome, call.has_started(), is_trusted))
        });
        Some(Json::unchecked(format!("[{}]", results.collect::<Vec<_>>().join(","))))
    }
}

/// The results of a nested turn that could not be submitted: the same failure for each call.
#[must_use]
pub fn refused(calls: usize, outcome: &Outcome) -> Json {
    Json::unchecked(format!("[{}]", vec![result(outcome, false, true); calls].join(",")))
}

fn result(outcome: &Outcome, has_started: bool, is_trusted: bool) -> String {
    let mark = if is_trusted { "" } else { r#","trusted":false"# };
    if let Outcome::Ok { value, .. } = outcome {
        return format!(r#"{{"ok":true,"result":{value}{mark}}}"#);
    }
    let (code, message) = outcome.error(has_started).unwrap_or_default();
    format!(r#"{{"ok":false,"error":{{"code":{},"message":{}}}{mark}}}"#, quote(code), quote(&message))
}

/// Whether the host controls all of these results.
pub(crate) fn is_trusted(results: &Json) -> bool {
    let Ok(value) = results.value() else { return false };
    let Value::Array(results) = value.as_ref() else { return false };
    results.iter().all(|result| matches!(result, Value::Object(members) if members.get("trusted").is_none()))
}
