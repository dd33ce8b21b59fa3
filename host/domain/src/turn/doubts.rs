//! The questions about what a kill of the host left in doubt: whether to run a call again, and what to do about the requests
//! of a durable call.

use super::{Context, decide::Draft, steps::DEFAULT_WAIT};
use crate::{
    Call, CallIndex, Digest, Outcome, Receipt, Suspension, SuspensionId,
    call::Pinned,
    doubt::{Doubt, DoubtfulRequests, MAX_REQUESTS, RequestDecision},
    event::CallEvent,
    suspension::{About, ApprovalRequest, Asked, Decision, PromptBy, Resolution, SuspensionBody},
    tool::{Editable, Recovery},
};

/// The prompt for a call that a kill left in doubt.
const REPEAT: &str = "The host stopped while this call ran, so it may have taken effect already. Approve to run it \
                      again, deny to leave it as it is.";

/// The prompt for requests that a kill left in doubt. The list of them follows.
const REQUESTS: &str = "The host stopped while this call sent requests, so they may have been carried out already. Approve \
                        with a decision for each request: \"send_again\", the answer of the server if it was carried out, or \
                        \"fail\". Deny to end the call in doubt. The requests:";

impl Draft {
    /// Asks people whether to run a call again.
    pub(super) fn ask_again(&mut self, index: CallIndex, cx: &mut Context<'_>) {
        let Some((call, pinned)) = self.pinned(index) else { return };
        let request = ApprovalRequest {
            doubt: Some(Doubt::Run(call.attempts)),
            ..ApprovalRequest::new(asked(call, REPEAT.into(), cx))
        };
        let suspension = suspension(pinned, request, pinned.binding(&call.arguments), cx);
        self.record(index, CallEvent::Suspended { suspension: Box::new(suspension) });
    }

    /// Decides about the requests of a durable call that are in doubt, as its tool declares.
    pub(super) fn doubt(
        &mut self,
        index: CallIndex,
        requests: DoubtfulRequests,
        receipt: Option<Receipt>,
        cx: &mut Context<'_>,
    ) {
        let Some((call, pinned)) = self.pinned(index) else { return };
        let recovery = pinned.recovery;
        if recovery == Recovery::Fail || requests.all().len() > MAX_REQUESTS {
            return self.settle_with(index, Outcome::InDoubt, receipt, cx);
        }
        let digest = pinned.binding_of_step(requests.digest(), Some(requests.subject()));
        let again = requests.decided_alike(&RequestDecision::SendAgain);
        let prompt = format!("{REQUESTS}{}", requests.lines());
        let request = ApprovalRequest {
            editable: Editable::All,
            doubt: Some(Doubt::Requests(requests)),
            // The defaults are those of the arguments.
            ..ApprovalRequest::new(Asked { defaults: None, ..asked(call, prompt, cx) })
        };
        let suspension = suspension(pinned, request, digest, cx);
        let id = suspension.id;
        self.record(index, CallEvent::Suspended { suspension: Box::new(suspension) });
        if recovery == Recovery::Retry {
            let comment = Some("the tool declares the recovery `retry`".to_owned());
            let resolution = Resolution { arguments: Some(again), comment, ..Resolution::of(Decision::Approve) };
            self.go_on(index, id, resolution, cx);
        }
    }
}

/// The question to people. Those who had to approve the call are asked again.
fn asked(call: &Call, prompt: String, cx: &Context<'_>) -> Asked {
    let before = call.suspensions.iter().map(|(suspension, _)| suspension).find(|each| !each.is_inside());
    let first = before.and_then(Suspension::asked).cloned().unwrap_or_default();
    let recorded = || {
        // The recorded defaults are those of the submitted arguments.
        let defaults = first.defaults.clone().filter(|_| call.arguments == call.submitted);
        Asked { defaults, ..first.clone() }
    };
    let Asked { about: About { title, context_keys, risk, .. }, defaults, .. } =
        (cx.about)(call).unwrap_or_else(recorded);
    let about = About {
        prompt: Some(prompt.into()),
        prompt_by: PromptBy::Host,
        title,
        // A rule may know the risk better than the tool.
        risk: first.about.risk.or(risk),
        context_keys,
        ..About::default()
    };
    Asked { about, defaults, needs: first.needs, policy_failed: false }
}

fn suspension(pinned: &Pinned, request: ApprovalRequest, digest: Digest, cx: &mut Context<'_>) -> Suspension {
    Suspension {
        id: SuspensionId::from_bits((cx.mint)()),
        created_at: cx.now,
        expires_at: cx.now + pinned.wait.as_ref().map_or(DEFAULT_WAIT, |wait| wait.expires),
        digest,
        step: None,
        body: SuspensionBody::Approval(request),
    }
}
