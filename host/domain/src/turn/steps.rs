//! The steps of a durable call: it suspends in the middle of its code, and a later run continues it.

use super::Context;
use super::decide::{Draft, running};
use crate::{
    Call, CallIndex, Json, Outcome, PrincipalId, Receipt, Span, Suspension, SuspensionId, TurnId,
    event::CallEvent,
    gate::{RuleEffect, Verdict},
    nested::NestedTurn,
    outcome::{Failure, FailureCode},
    step::{Question, StepKind, StepRequest, StepWait},
    suspension::{
        About, ApprovalRequest, Asked, Decision, Elicitation, ExternalWait, PromptBy, Resolution, SuspendedStep,
        SuspensionBody,
    },
};

/// The maximum time of a wait of a tool that declares none.
pub(super) const DEFAULT_WAIT: Span = Span::from_secs(86_400);

/// The maximum time of a wait for a nested turn, 100 years. Its calls have waits of their own, which an operator may make long.
const NESTED_WAIT: Span = Span::from_secs(36_500 * 86_400);

impl Draft {
    /// Commits to running the guest again after a step of its code has ended.
    pub(super) fn resume(&mut self, index: CallIndex, cx: &Context<'_>) {
        let Some((call, pinned)) = self.pinned(index) else { return };
        let running = running(call.attempts, pinned, cx);
        self.record(index, CallEvent::Resumed { running, at: cx.now });
    }

    /// The outcome of a guest. A result that may repeat what an external system sent is not trusted.
    pub(super) fn marked(&self, index: CallIndex, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Ok { value, trusted } => {
                let has_received = self.call(index).is_some_and(Call::has_received);
                Outcome::Ok { value, trusted: trusted && !has_received }
            }
            outcome => outcome,
        }
    }

    /// Suspends a call in the middle of its code. If the policy denies the step, the guest goes on with that.
    pub(super) fn wait(
        &mut self,
        index: CallIndex,
        step: StepRequest,
        verdict: &Verdict,
        receipt: Option<Receipt>,
        cx: &mut Context<'_>,
    ) {
        let Some((call, pinned)) = self.pinned(index) else { return };
        let (max, bytes) = (cx.settings.max_steps, cx.settings.step_bytes);
        let exceeded = if let Some(message) = self.too_nested(call, &step.wait, cx) {
            Some(message)
        } else if call.steps().count() >= max {
            Some(format!("the tool waited {max} times, and no call may wait more often (`max_steps`)"))
        } else if call.step_bytes() + step.wait.size() > bytes {
            Some(format!("the questions and answers of the call have more than {bytes} bytes together (`step_bytes`)"))
        } else {
            None
        };
        if let Some(message) = exceeded {
            let failure = Failure::new(FailureCode::LimitExceeded, message);
            return self.settle_with(index, Outcome::Failed(failure), receipt, cx);
        }
        let longest = pinned.wait.as_ref().map_or(DEFAULT_WAIT, |wait| wait.expires);
        let expires = |question: &Question| cx.now + question.expires.map_or(longest, |span| span.min(longest));
        let kind = step.wait.kind();
        let asked = |question: Question| asked(question, kind, verdict);
        let (expires_at, subject, body) = match step.wait {
            StepWait::Calls(calls) => {
                let turn = TurnId::from_bits((cx.mint)());
                (cx.now + NESTED_WAIT, None, SuspensionBody::Nested(NestedTurn { turn, calls }))
            }
            StepWait::Time(until) => (until, None, SuspensionBody::Timer),
            StepWait::RateLimit(until) => (until, None, SuspensionBody::RateLimit),
            StepWait::Answer(question) => {
                let expires_at = expires(&question);
                let Question { responses: choices, response: data_schema, .. } = question.clone();
                let asked = asked(question);
                let body = Elicitation { asked, choices, data_schema, default: None, escalated_at: None };
                (expires_at, None, SuspensionBody::Elicitation(body))
            }
            StepWait::Approval { question, subject, editable } => {
                let expires_at = expires(&question);
                let approval = ApprovalRequest { editable, ..ApprovalRequest::new(asked(question)) };
                (expires_at, Some(subject), SuspensionBody::Approval(approval))
            }
            StepWait::External { mut question, signal, metadata } => {
                let (expires_at, result_schema) = (expires(&question), question.response.take());
                let about = about(question, kind, verdict);
                (expires_at, None, SuspensionBody::External(ExternalWait { about, result_schema, signal, metadata }))
            }
        };
        let suspension = Suspension {
            id: SuspensionId::from_bits((cx.mint)()),
            created_at: cx.now,
            expires_at,
            digest: pinned.binding_of_step(step.digest, subject.as_ref()),
            step: Some(SuspendedStep { digest: step.digest, subject, receipt }),
            body,
        };
        let id = suspension.id;
        self.record(index, CallEvent::Suspended { suspension: Box::new(suspension) });
        if kind.is_some() && verdict.rule == RuleEffect::Deny {
            self.deny_step(index, id, verdict, cx);
        }
    }

    /// Records that the policy denies a step, and continues the call.
    fn deny_step(&mut self, index: CallIndex, suspension: SuspensionId, verdict: &Verdict, cx: &Context<'_>) {
        let reason = verdict.reason.as_deref().unwrap_or("the operator's policy denies this step");
        let resolution = Resolution { comment: Some(reason.to_owned()), ..Resolution::of(Decision::Deny) };
        self.go_on(index, suspension, resolution, cx);
    }

    /// Ends a wait inside a call that nobody answers, and continues the call.
    pub(super) fn go_on(
        &mut self,
        index: CallIndex,
        suspension: SuspensionId,
        resolution: Resolution,
        cx: &Context<'_>,
    ) {
        let (resolution, by) = (Box::new(resolution), PrincipalId::system());
        self.record(index, CallEvent::Resolved { suspension, resolution, approved: None, by, at: cx.now });
        self.resume(index, cx);
    }

    /// Why a call may not submit this nested turn.
    fn too_nested(&self, call: &Call, wait: &StepWait, cx: &Context<'_>) -> Option<String> {
        let StepWait::Calls(calls) = wait else { return None };
        let (depth, max_calls) = (cx.settings.nesting_depth, cx.settings.nested_calls);
        let earlier: usize = call.nested().map(|nested| nested.calls.len()).sum();
        if self.turn.depth() >= depth {
            Some(format!("turns can be nested {depth} deep, and this one would be deeper (`nesting_depth`)"))
        } else if earlier + calls.len() > max_calls {
            Some(format!("the tool asked for more than {max_calls} calls of other tools (`nested_calls`)"))
        } else {
            None
        }
    }

    /// Continues the call that waits for a nested turn.
    pub(super) fn returned(&mut self, turn: TurnId, results: Json, cx: &Context<'_>) {
        let waits = |call: &&Call| call.open().and_then(Suspension::nested).is_some_and(|nested| nested.turn == turn);
        let Some((index, call)) = self.turn.indexed().find(|(_, call)| waits(call)) else { return };
        let Some(suspension) = call.open().map(|open| open.id) else { return };
        let (max, bytes) = (cx.settings.step_bytes, call.step_bytes() + results.size());
        if bytes > max {
            let message = format!(
                "the results of the nested turns and the other steps have more than {max} bytes together (`step_bytes`)"
            );
            return self.settle(index, Outcome::Failed(Failure::new(FailureCode::LimitExceeded, message)), cx);
        }
        let resolution = Resolution { data: Some(results), ..Resolution::of(Decision::Result) };
        self.go_on(index, suspension, resolution, cx);
    }
}

/// The question of a guest to people. A verdict can demand more of an approval.
fn asked(question: Question, kind: Option<StepKind>, verdict: &Verdict) -> Asked {
    let needs = question.needs.clone();
    // A rule that asks does not make an approval of a question.
    if kind != Some(StepKind::Approve) && verdict.rule != RuleEffect::Deny {
        return Asked { needs, ..about(question, kind, verdict).into() };
    }
    let more = verdict.needs.iter().filter(|need| !needs.contains(need));
    Asked {
        needs: needs.iter().chain(more).cloned().collect(),
        policy_failed: verdict.policy_failed,
        ..about(question, kind, verdict).into()
    }
}

/// The texts of a guest for people. A verdict can make the risk higher.
fn about(question: Question, kind: Option<StepKind>, verdict: &Verdict) -> About {
    let Question { prompt, risk, title, context_keys, .. } = question;
    let names_rule = match verdict.rule {
        // The audit names the rule.
        RuleEffect::Deny => true,
        RuleEffect::Ask => kind == Some(StepKind::Approve),
        RuleEffect::Allow => false,
    };
    About {
        prompt: Some(prompt),
        prompt_by: PromptBy::Plugin,
        title,
        by: verdict.by.clone().filter(|_| names_rule),
        reason: verdict.reason.clone().filter(|_| names_rule),
        risk: risk.max(verdict.risk),
        context_keys,
    }
}
