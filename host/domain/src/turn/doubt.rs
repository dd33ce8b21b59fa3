//! The question whether to run a call again that a kill of its host left in doubt.

use super::{Context, decide::Draft, steps::DEFAULT_WAIT};
use crate::{
    CallIndex, Suspension, SuspensionId,
    event::CallEvent,
    suspension::{ApprovalRequest, Asked, PromptBy, SuspensionBody},
};

/// The prompt for a call that a kill left in doubt.
const REPEAT: &str = "The host stopped while this call ran, so it may have taken effect already. Approve to run it \
                      again, deny to leave it as it is.";

impl Draft {
    /// Asks people whether to run a call again.
    pub(super) fn ask_again(&mut self, index: CallIndex, cx: &mut Context<'_>) {
        let Some((call, pinned)) = self.pinned(index) else { return };
        let first = call.suspensions.first().and_then(|(first, _)| first.asked()).cloned().unwrap_or_default();
        let recorded = || {
            // The recorded defaults are those of the submitted arguments.
            let defaults = first.defaults.clone().filter(|_| call.arguments == call.submitted);
            Asked { defaults, ..first.clone() }
        };
        let Asked { title, context_keys, defaults, risk, .. } = (cx.about)(call).unwrap_or_else(recorded);
        let asked = Asked {
            prompt: Some(REPEAT.into()),
            prompt_by: PromptBy::Host,
            title,
            // A rule may know the risk better than the tool.
            risk: first.risk.or(risk),
            context_keys,
            defaults,
            // The people who had to approve it have to approve it again.
            needs: first.needs,
            ..Asked::default()
        };
        let suspension = Suspension {
            id: SuspensionId::from_bits((cx.mint)()),
            created_at: cx.now,
            expires_at: cx.now + pinned.wait.as_ref().map_or(DEFAULT_WAIT, |wait| wait.expires),
            digest: pinned.binding(&call.arguments),
            step: None,
            body: SuspensionBody::Approval(ApprovalRequest {
                in_doubt: Some(call.attempts),
                ..ApprovalRequest::new(asked)
            }),
        };
        self.record(index, CallEvent::Suspended { suspension: Box::new(suspension) });
    }
}
