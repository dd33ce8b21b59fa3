//! The steps of a durable call, one line each.

use api::StepSummary;
use domain::suspension::{SuspensionEnd, SuspensionKind, SuspensionState};

/// A step on one line: its kind, the beginning of its prompt, and how it ended, by whom and when.
pub(crate) fn step(step: &StepSummary) -> String {
    let kind = step.kind.0.noun();
    // The host has escaped it. Nobody knows which host answered.
    let prompt = step.prompt.as_ref().map_or_else(String::new, |prompt| format!(" \"{prompt}\""));
    let end = match (&step.at, &step.by) {
        (Some(at), _) if is_over(step) => format!("over at {at}"),
        (Some(at), Some(by)) => format!("{} by {} at {at}", step.state, super::names(&step.approvers, by)),
        _ => format!("{} since {}", step.state, step.since),
    };
    escape::line(&format!("step {}: {kind}{prompt}, {end}", step.step)).into_owned()
}

/// Whether it slept until its time came.
fn is_over(step: &StepSummary) -> bool {
    matches!(step.kind.0, SuspensionKind::Timer | SuspensionKind::RateLimit)
        && step.state.0 == SuspensionState::Ended(SuspensionEnd::Expired)
}
