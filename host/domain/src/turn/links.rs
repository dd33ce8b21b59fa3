//! Links to suspensions: that one was made, and that it was used. Both are facts, so that the audit has them, a use is a use
//! over a kill, and of many at once exactly one counts.

use super::decide::Draft;
use super::resolve::is_open;
use super::{Context, Refusal};
use crate::{
    Call, CallEvent, CallIndex, Link, LinkId, MOST_LINKS, PrincipalId, SentLink, Suspension, SuspensionId, Timestamp,
};

impl Draft {
    /// Makes a link, unless there is one of this id that counts for about as long: then nothing changes, and that one is as
    /// good. One that was used stays used.
    pub(super) fn make_link(&mut self, id: SuspensionId, link: Link, cx: &Context<'_>) -> Result<(), Refusal> {
        let (index, call, _) = self.open(id, cx)?;
        match call.link(id, link.id) {
            Some(SentLink { used_at: Some(_), .. }) => return Err(Refusal::Replayed),
            Some(known) if known.link.to == link.to && lasts(known.link.expires_at, link.expires_at, cx.now) => {
                return Ok(());
            }
            Some(_) => {}
            None if call.links.iter().filter(|known| known.suspension == id).count() >= MOST_LINKS => {
                let why = format!("{MOST_LINKS} links to this were made, and that is how many there may be");
                return Err(Refusal::NotAllowed(why));
            }
            None => {}
        }
        self.record(index, CallEvent::LinkMade { suspension: id, link: Box::new(link), at: cx.now });
        Ok(())
    }

    /// Uses a link up. One that was not made here, for this principal and this suspension, is not known.
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
            None => Err(unknown()),
            Some(SentLink { used_at: Some(_), .. }) => Err(Refusal::Replayed),
            Some(_) => {
                self.record(index, CallEvent::LinkUsed { suspension: id, link, by: by.clone(), at: cx.now });
                Ok(())
            }
        }
    }

    fn open(&self, id: SuspensionId, cx: &Context<'_>) -> Result<(CallIndex, &Call, &Suspension), Refusal> {
        let (index, call, suspension, closed) = self.turn.suspension(id).ok_or_else(unknown)?;
        is_open(suspension, closed, cx)?;
        Ok((index, call, suspension))
    }
}

/// Whether a link has at least half the time left that is wanted: then it is handed out again as it is.
fn lasts(until: Timestamp, wanted: Timestamp, now: Timestamp) -> bool {
    (until - now).millis() >= (wanted - now).millis().div_ceil(2).max(1)
}

fn unknown() -> Refusal {
    Refusal::Stale { state: "unknown".into(), by: None, at: None }
}

impl Call {
    /// A link to one of its suspensions.
    #[must_use]
    pub fn link(&self, suspension: SuspensionId, link: LinkId) -> Option<&SentLink> {
        self.links.iter().find(|known| known.suspension == suspension && known.link.id == link)
    }

    pub(super) fn link_made(&mut self, suspension: SuspensionId, link: &Link) {
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
