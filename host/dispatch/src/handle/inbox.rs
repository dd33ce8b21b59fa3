//! A principal's open suspensions: as a stream, as counts, and those that it may answer. Also the conversations that it
//! may see.

use domain::{ConversationId, Principal, PrincipalId, SuspensionId, suspension::SuspensionKind};

use super::Handle;
use crate::error::Error;
use crate::inbox::InboxFollower;
use crate::pending::narrowed;
use crate::ports::Filter;
use crate::request::SuspensionView;

/// How many rows a count reads at a time.
const PAGE: usize = 500;

/// The most pages that a count reads.
const PAGES: usize = 40;

/// The most suspensions that a count loads if their rows are not enough.
const CLOSELY: usize = 500;

/// The most conversations that a listing reads.
const EXAMINED: usize = 4_000;

/// How many suspensions are open, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Open {
    pub approvals: usize,
    pub elicitations: usize,
    pub client_execs: usize,
    /// Whether all were counted: a count reads a bounded number.
    pub complete: bool,
}

impl Handle {
    /// Follows the suspensions that this principal may see, or only one of them. Read the list after this call, not
    /// before.
    #[must_use]
    pub fn follow_inbox(&self, by: &Principal, only: Option<SuspensionId>) -> InboxFollower {
        InboxFollower::new(self.inner.pending.clone(), by.clone(), only, &self.inner.readers.inbox)
    }

    /// Whether a principal may answer a suspension as it is now.
    #[must_use]
    pub fn may_answer(&self, by: &Principal, item: &SuspensionView) -> bool {
        let suspension = &item.suspension;
        item.closed.is_none()
            && by.may_answer(suspension.kind(), &item.caller, self.own_calls()).is_ok()
            && suspension.counts_for(by).is_ok()
    }

    /// Counts the open suspensions that this principal may see; with `mine`, only those that it may answer.
    ///
    /// # Errors
    /// Faults of the store.
    pub async fn count_open(&self, by: &Principal, filter: Filter, mine: bool) -> Result<Open, Error> {
        let filter = Filter { open: Some(true), ..filter };
        let mut open = Open { complete: true, ..Open::default() };
        let Some(filter) = narrowed(by, filter) else { return Ok(open) };
        let (mut after, mut closely) = (None, 0);
        for _ in 0..PAGES {
            let page = self.inner.readers.indexes.suspensions(&filter, after, PAGE).await?;
            open.complete &= page.unreadable.is_empty();
            for row in &page.rows {
                if mine {
                    closely += 1;
                    if closely > CLOSELY {
                        return Ok(Open { complete: false, ..open });
                    }
                    let item = match self.suspension(by, row.id).await {
                        Err(error) if error.is_damage() => {
                            open.complete = false;
                            continue;
                        }
                        item => item?,
                    };
                    if !self.may_answer(by, &item) {
                        continue;
                    }
                }
                *match row.kind {
                    SuspensionKind::Approval => &mut open.approvals,
                    SuspensionKind::Elicitation => &mut open.elicitations,
                    SuspensionKind::ClientExec => &mut open.client_execs,
                } += 1;
            }
            after = page.next;
            if after.is_none() {
                return Ok(open);
            }
        }
        Ok(Open { complete: false, ..open })
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
        while examined < EXAMINED {
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
