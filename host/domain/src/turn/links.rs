//! Links to suspensions. Making and using a link are events: the audit shows them, a kill does not undo a use, and of
//! several uses at once exactly one counts.

use super::decide::Draft;
use super::resolve::invalid;
use super::{CheckedAnswer, Context};
use crate::{
    Call, CallIndex, LinkId, PrincipalId, Refusal, Suspension, SuspensionId, Timestamp,
    event::CallEvent,
    link::{LinkRecord, MAX_LINKS, SentLink},
    refusal::NotAllowed,
    suspension::SuspensionKind,
};

impl Draft {
    /// Makes a link. If one with this id is valid for about as long, nothing changes. A used link stays used.
    pub(super) fn make_link(&mut self, id: SuspensionId, link: LinkRecord, cx: &Context<'_>) -> Result<(), Refusal> {
        let (index, call, _) = self.open(id, cx)?;
        match call.link(id, link.id) {
            Some(SentLink { used_at: Some(_), .. }) => return Err(Refusal::LinkUsed),
            Some(known) if known.link.to == link.to && lasts(known.link.expires_at, link.expires_at, cx.now) => {
                return Ok(());
            }
            Some(_) => {}
            None if call.links.iter().filter(|known| known.suspension == id).count() >= MAX_LINKS => {
                return Err(NotAllowed::TooManyLinks.into());
            }
            None => {}
        }
        self.record(index, CallEvent::LinkMade { suspension: id, link: Box::new(link), at: cx.now });
        Ok(())
    }

    /// Uses a link. A link that was not made for this principal and this suspension is unknown.
    pub(super) fn use_link(
        &mut self,
        id: SuspensionId,
        link: LinkId,
        by: &PrincipalId,
        cx: &Context<'_>,
    ) -> Result<(), Refusal> {
        let (index, call, _) = self.open(id, cx)?;
        let known = call.link(id, link).filter(|known| known.link.to == *by && cx.now < known.link.expires_at);
        match known {
            None => Err(Refusal::Unknown),
            Some(SentLink { used_at: Some(_), .. }) => Err(Refusal::LinkUsed),
            Some(_) => {
                self.record(index, CallEvent::LinkUsed { suspension: id, link, by: by.clone(), at: cx.now });
                Ok(())
            }
        }
    }

    /// Sends the result of an external wait with a link to it, and without a session. The use and the answer are one commit,
    /// so a refused answer uses nothing up.
    pub(super) fn resolve_by_link(
        &mut self,
        answer: CheckedAnswer,
        link: LinkId,
        cx: &mut Context<'_>,
    ) -> Result<(), Refusal> {
        let (.., suspension, _) = self.turn.suspension(answer.suspension).ok_or(Refusal::Unknown)?;
        if suspension.kind() != SuspensionKind::External {
            let message = "a link takes a result for an external wait only; open its page";
            return Err(invalid("/decision", message.into()));
        }
        match self.use_link(answer.suspension, link, &answer.by.id, cx) {
            // The answer may be the one that ended it.
            Ok(()) | Err(Refusal::Stale { .. }) => {}
            Err(refusal) => return Err(refusal),
        }
        self.resolve(answer, cx)
    }

    fn open(&self, id: SuspensionId, cx: &Context<'_>) -> Result<(CallIndex, &Call, &Suspension), Refusal> {
        let (index, call, suspension, closed) = self.turn.suspension(id).ok_or(Refusal::Unknown)?;
        suspension.is_open(closed, cx.now)?;
        Ok((index, call, suspension))
    }
}

/// Whether a link has at least half of the requested time left. Then it is given out again as it is.
fn lasts(until: Timestamp, requested: Timestamp, now: Timestamp) -> bool {
    (until - now).millis() >= (requested - now).millis().div_ceil(2).max(1)
}

impl Call {
    /// A link to one of its suspensions.
    #[must_use]
    pub fn link(&self, suspension: SuspensionId, link: LinkId) -> Option<&SentLink> {
        self.links.iter().find(|known| known.suspension == suspension && known.link.id == link)
    }

    pub(super) fn link_made(&mut self, suspension: SuspensionId, link: &LinkRecord) {
        match self.links.iter_mut().find(|known| known.link.id == link.id) {
            Some(known) => known.link = link.clone(),
            None => self.links.push(SentLink { suspension, link: link.clone(), used_at: None }),
        }
    }

    pub(super) fn link_used(&mut self, link: LinkId, at: Timestamp) {
        if let Some(known) = self.links.iter_mut().find(|known| known.link.id == link) {
            known.used_at = known.used_at.or(Some(at));
        }
    }
}
