//! The steps of a durable call in short.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::approval::several;
use crate::{Kind, SuspensionState, rfc3339};

/// Characters of a prompt in a summary.
const MAX_PROMPT: usize = 160;

/// The maximum number of earlier steps in a suspension.
const MAX_EARLIER: usize = 10;

/// A step of the code of a durable call in short, without its answer.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct StepSummary {
    /// Its number among the steps of the call, from 1.
    pub step: u32,
    /// Its suspension.
    pub suspension: String,
    /// The kind of its wait.
    pub kind: Kind,
    /// The beginning of the prompt's first line. The plugin wrote it. It is escaped, and it is text, not HTML.
    pub prompt: Option<String>,
    /// `open`, or how it ended: the decision, `expired` or `withdrawn`. A sleep that is over has `expired`.
    #[schema(value_type = String)]
    pub state: SuspensionState,
    /// The principal that ended it. `system` for an expiry.
    pub by: Option<String>,
    /// The principals whose approvals count, in their order. Present if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// When it began to wait.
    pub since: String,
    /// When it ended.
    pub at: Option<String>,
}

impl StepSummary {
    /// The last steps before the one with this number, oldest first.
    pub(super) fn before(call: &domain::Call, step: u32) -> Vec<Self> {
        let mut steps: Vec<_> = Self::of_call(call).filter(|each| each.step < step).collect();
        steps.split_off(steps.len().saturating_sub(MAX_EARLIER))
    }

    /// About its size in JSON, in bytes.
    pub(super) fn len(&self) -> usize {
        let names = self.approvers.iter().chain(&self.by).chain(&self.prompt);
        200 + names.map(String::len).sum::<usize>()
    }

    /// The steps of a call, oldest first.
    pub fn of_call(call: &domain::Call) -> impl DoubleEndedIterator<Item = Self> {
        let steps = call.suspensions.iter().filter(|(suspension, _)| suspension.step.is_some());
        let steps: Vec<_> = (1..).zip(steps).collect();
        steps.into_iter().map(|(step, (suspension, closed))| {
            let prompt = suspension.about().and_then(|about| about.prompt.as_deref());
            let first = prompt.and_then(|prompt| prompt.lines().next());
            let approvers = closed.iter().map(|closed| call.approvers_of(suspension, closed)).next();
            Self {
                step,
                suspension: suspension.id.to_string(),
                kind: (&suspension.kind()).into(),
                prompt: first.map(|line| escape::excerpt(line, MAX_PROMPT).into_owned()),
                state: SuspensionState(domain::suspension::SuspensionState::of(closed.as_ref())),
                by: closed.as_ref().map(|closed| closed.by.to_string()),
                approvers: several(approvers.unwrap_or_default().into_iter()),
                since: rfc3339(suspension.created_at),
                at: closed.as_ref().map(|closed| rfc3339(closed.at)),
            }
        })
    }
}
