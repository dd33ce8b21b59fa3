//! A principal's open suspensions: as a stream, as counts, and those that it may answer. Also the conversations that it
//! may see.

use domain::{
    ConversationId, Principal, PrincipalId, SuspensionId,
    suspension::{Audience, SuspensionKind},
};

use super::Handle;
use crate::error::Error;
use crate::inbox::InboxFollower;
use crate::pending::narrowed;
use crate::ports::Filter;
use crate::request::SuspensionView;

/// The maximum number of conversations that a listing reads.
const MAX_EXAMINED: usize = 4_000;

/// How many suspensions are open, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Open {
    pub approvals: u64,
    pub elicitations: u64,
    pub client_execs: u64,
    /// Whether all were counted: a count reads a limited number of audiences.
    pub complete: bool,
}

impl Open {
    /// Changes the count of a kind. Where nobody is asked, nothing is counted.
    fn count(&mut self, kind: SuspensionKind, change: impl FnOnce(u64) -> u64) {
        let counted = match kind {
            SuspensionKind::Approval => &mut self.approvals,
            SuspensionKind::Elicitation => &mut self.elicitations,
            SuspensionKind::ClientExec => &mut self.client_execs,
            SuspensionKind::Timer | SuspensionKind::External | SuspensionKind::Nested | SuspensionKind::RateLimit => {
                return;
            }
        };
        *counted = change(*counted);
    }
}

impl Handle {
    /// Follows the suspensions that this principal may see, or only one of them. Read the list after this call, not
    /// before.
    #[must_use]
    pub fn follow_inbox(&self, by: &Principal, only: Option<SuspensionId>) -> InboxFollower {
        InboxFollower::new(self.inner.pending.clone(), by.clone(), only, &self.inner.readers.inbox)
    }

    /// Whether a principal may answer a suspension as it is now, if need be through another channel.
    #[must_use]
    pub fn may_answer(&self, by: &Principal, item: &SuspensionView) -> bool {
        let suspension = &item.suspension;
        item.closed.is_none()
            && by.may_answer(suspension.kind(), &item.caller, self.own_calls()).is_ok()
            && suspension.authority_of(by).is_ok()
    }

    /// Counts the open suspensions that this principal may see; with `mine`, only those that it may answer.
    ///
    /// # Errors
    /// Faults of the store.
    pub async fn count_open(&self, by: &Principal, filter: Filter, mine: bool) -> Result<Open, Error> {
        let mut open = Open { complete: true, ..Open::default() };
        let Some(filter) = narrowed(by, filter) else { return Ok(open) };
        let indexes = &self.inner.readers.indexes;
        let counted = indexes.audiences(&filter).await?;
        open.complete = counted.complete;
        let counts = |audience: &Audience, own_calls| {
            !mine || (audience.includes(by) && by.may_answer(audience.kind, &by.id, own_calls).is_ok())
        };
        for (audience, count) in &counted.counts {
            if counts(audience, true) {
                open.count(audience.kind, |counted| counted + count);
            }
            // If the delegate was revoked meanwhile, the authority is back, and only the suspension knows.
            open.complete &= !(mine && audience.without.contains(&by.id));
        }
        if mine && !self.own_calls() && filter.caller.as_ref().is_none_or(|caller| *caller == by.id) {
            // They were counted as if everybody could answer for their own calls.
            let own = indexes.audiences(&Filter { caller: Some(by.id.clone()), ..filter }).await?;
            open.complete &= own.complete;
            for (audience, count) in &own.counts {
                if counts(audience, true) && !counts(audience, false) {
                    open.count(audience.kind, |counted| counted.saturating_sub(*count));
                }
            }
        }
        Ok(open)
    }

    /// A page of the conversations that this principal may see, in the order of their ids, with their owners; and where
    /// the next page begins. A page may be empty and still have a next one.
    ///
    /// # Errors
    /// Faults of the store.
    pub async fn conversations(
        &self,
        by: &Principal,
        after: Option<ConversationId>,
        limit: usize,
    ) -> Result<(Vec<(ConversationId, PrincipalId)>, Option<ConversationId>), Error> {
        let indexes = &self.inner.readers.indexes;
        if let Some(only) = &by.conversation {
            let is_after = after.is_none_or(|after| *only > after);
            let owner = if is_after { indexes.owner(only).await? } else { None };
            let owner = owner.filter(|owner| by.may_see(only, owner));
            return Ok((owner.into_iter().map(|owner| (only.clone(), owner)).collect(), None));
        }
        let (mut seen, mut after, mut examined) = (Vec::new(), after, 0);
        while examined < MAX_EXAMINED {
            let page = indexes.conversations(after.as_ref(), limit).await?;
            examined += page.len();
            for (conversation, owner) in &page {
                after = Some(conversation.clone());
                if by.may_see(conversation, owner) {
                    seen.push((conversation.clone(), owner.clone()));
                    if seen.len() == limit {
                        return Ok((seen, after));
                    }
                }
            }
            if page.len() < limit {
                return Ok((seen, None));
            }
        }
        Ok((seen, after))
    }
}
