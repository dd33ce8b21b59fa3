//! Reading suspensions: what waits, and what waited.

use domain::{Principal, Refusal, Role, SuspensionId};

use super::Handle;
use crate::error::Error;
use crate::ports::{Filter, SuspensionRow};
use crate::request::PendingItem;

/// How many pages of rows a listing looks through before it returns what it has.
const PAGES: usize = 32;

impl Handle {
    /// A page of suspensions that this principal may see, oldest first, and where the next page begins.
    ///
    /// # Errors
    /// What the store says.
    pub async fn suspensions(
        &self,
        by: &Principal,
        filter: Filter,
        mut after: Option<SuspensionId>,
        limit: usize,
    ) -> Result<(Vec<PendingItem>, Option<SuspensionId>), Error> {
        let Some(filter) = narrowed(by, filter) else { return Ok((Vec::new(), None)) };
        let mut items = Vec::new();
        for _ in 0..PAGES {
            let page = self.inner.parts.store.suspensions(&filter, after, limit - items.len()).await?;
            for row in &page.rows {
                items.extend(self.item(row).await?);
            }
            after = page.next;
            if after.is_none() || items.len() >= limit {
                break;
            }
        }
        Ok((items, after))
    }

    /// One suspension.
    ///
    /// # Errors
    /// [`Error::Refused`] as `stale` when it does not exist for this principal.
    pub async fn suspension(&self, by: &Principal, id: SuspensionId) -> Result<PendingItem, Error> {
        let unknown = || Error::from(Refusal::Stale { state: "unknown".into(), by: None, at: None });
        let row = self.inner.parts.store.suspension(id).await?.ok_or_else(unknown)?;
        if !by.may_see(&row.conversation, &row.caller) {
            return Err(unknown());
        }
        self.item(&row).await?.ok_or_else(unknown)
    }

    async fn item(&self, row: &SuspensionRow) -> Result<Option<PendingItem>, Error> {
        let entered = self.inner.turns.enter(row.turn);
        let Some(turn) = self.inner.read(&entered, row.turn).await? else { return Ok(None) };
        Ok(turn.suspension(row.id).map(|(index, call, suspension, closed)| PendingItem {
            conversation: turn.conversation.clone(),
            turn: turn.id,
            caller: turn.caller.clone(),
            context: turn.context.clone(),
            index,
            call: call.clone(),
            suspension: suspension.clone(),
            closed: closed.cloned(),
        }))
    }
}

/// The filter with what the principal may not see taken out; `None` if nothing is left.
fn narrowed(by: &Principal, mut filter: Filter) -> Option<Filter> {
    if let Some(only) = &by.conversation {
        if filter.conversation.as_ref().is_some_and(|asked| asked != only) {
            return None;
        }
        filter.conversation = Some(only.clone());
    }
    let sees_all = [Role::Admin, Role::Approver, Role::Client].into_iter().any(|role| by.roles.has(role));
    if !sees_all {
        if filter.caller.as_ref().is_some_and(|asked| *asked != by.id) {
            return None;
        }
        filter.caller = Some(by.id.clone());
    }
    Some(filter)
}
