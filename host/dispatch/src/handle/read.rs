//! Reading suspensions: what waits, and what waited.

use domain::{Kind, Principal, Refusal, Role, SuspensionId, Turn};

use super::Handle;
use crate::error::Error;
use crate::ports::{DeliveryRow, Filter, SuspensionRow};
use crate::request::PendingItem;

/// A page with more than this ends early, in bytes of what callers and plugins had their words in.
const PAGE_BYTES: usize = 4 << 20;

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
        // Rows of one turn are neighbours, because ids sort by time: each turn is loaded once.
        let mut last = None;
        let mut bytes = 0;
        for _ in 0..PAGES {
            let page = self.inner.parts.store.suspensions(&filter, after, limit - items.len()).await?;
            for row in &page.rows {
                let item = self.item(row, &mut last).await?;
                bytes += item.as_ref().map_or(0, size);
                items.extend(item);
                // A page is short rather than heavy: what waits may hold megabytes of arguments each.
                if bytes > PAGE_BYTES {
                    return Ok((items, Some(row.id)));
                }
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
        self.item(&row, &mut None).await?.ok_or_else(unknown)
    }

    /// What webhooks were told of a suspension, or are still to be told. For approvers and admins; others see none.
    ///
    /// # Errors
    /// As [`Handle::suspension`].
    pub async fn deliveries(&self, by: &Principal, id: SuspensionId) -> Result<Vec<DeliveryRow>, Error> {
        if !by.roles.has(Role::Admin) && !by.roles.has(Role::Approver) {
            return Ok(Vec::new());
        }
        let unknown = || Error::from(Refusal::Stale { state: "unknown".into(), by: None, at: None });
        let row = self.inner.parts.store.suspension(id).await?.ok_or_else(unknown)?;
        if !by.may_see(&row.conversation, &row.caller) {
            return Err(unknown());
        }
        Ok(self.inner.parts.store.deliveries(id).await?)
    }

    async fn item(&self, row: &SuspensionRow, last: &mut Option<Turn>) -> Result<Option<PendingItem>, Error> {
        if last.as_ref().is_none_or(|turn| turn.id != row.turn) {
            let entered = self.inner.turns.enter(row.turn);
            *last = self.inner.read(&entered, row.turn).await?;
        }
        let Some(turn) = last.as_ref() else { return Ok(None) };
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
pub(super) fn narrowed(by: &Principal, mut filter: Filter) -> Option<Filter> {
    if let Some(only) = &by.conversation {
        if filter.conversation.as_ref().is_some_and(|asked| asked != only) {
            return None;
        }
        filter.conversation = Some(only.clone());
    }
    let sees_all = by.roles.has(Role::Admin) || by.roles.has(Role::Approver);
    if !sees_all && by.roles.has(Role::Client) && !by.roles.has(Role::Caller) {
        // A client is at the user's end. It sees what it may carry out, and no question that is meant for approvers.
        if filter.kind.is_some_and(|asked| asked != Kind::ClientExec) {
            return None;
        }
        filter.kind = Some(Kind::ClientExec);
    } else if !sees_all {
        if filter.caller.as_ref().is_some_and(|asked| *asked != by.id) {
            return None;
        }
        filter.caller = Some(by.id.clone());
    }
    Some(filter)
}

fn size(item: &PendingItem) -> usize {
    let json = |json: &Option<domain::Json>| json.as_ref().map_or(0, domain::Json::size);
    let prompt = item.suspension.prompt.as_ref().map_or(0, String::len);
    item.call.arguments.size() + json(&item.context) + json(&item.suspension.response) + prompt
}
