//! Reading suspensions, open and closed.

use domain::{Json, Principal, SuspensionId, TurnId, principal::Role, suspension::Audience};

use super::{Handle, Inner};
use crate::error::{Error, RequestPart};
use crate::pending::narrowed;
use crate::ports::{Commit, DeliveryRow, Filter, RowChange, StoreFault, SuspensionRow};
use crate::request::{Bounds, SuspensionView};

/// A page with more than this ends early, in bytes of texts from callers and plugins.
pub(super) const PAGE_BYTES: usize = 4 << 20;

/// The maximum number of pages of rows that a listing reads.
const MAX_PAGES: usize = 32;

/// A page of suspensions.
#[derive(Debug, Clone, Default)]
pub struct SuspensionPage {
    /// The suspensions, in the order of the filter.
    pub items: Vec<SuspensionView>,
    /// Where the next page begins, if there may be one.
    pub next: Option<SuspensionId>,
    /// Suspensions that are missing because a stored record is damaged, each with its turn, if that is known.
    pub unreadable: Vec<(SuspensionId, Option<TurnId>)>,
}

/// Which of the suspensions that a principal may see.
enum Selection {
    Visible,
    /// Those that it may answer, which have one of these audiences. `None`: the audiences are unknown.
    Answerable(Option<Vec<Audience>>),
}

impl Handle {
    /// A page of suspensions that this principal may see.
    ///
    /// # Errors
    /// Faults of the store.
    pub async fn suspensions(
        &self,
        by: &Principal,
        filter: Filter,
        after: Option<SuspensionId>,
        limit: usize,
    ) -> Result<SuspensionPage, Error> {
        self.page(by, filter, Selection::Visible, after, limit).await
    }

    /// A page of the open suspensions that this principal may answer now.
    ///
    /// # Errors
    /// Faults of the store.
    pub async fn answerable(
        &self,
        by: &Principal,
        filter: Filter,
        after: Option<SuspensionId>,
        limit: usize,
    ) -> Result<SuspensionPage, Error> {
        // Nobody can answer a suspension that ended.
        if filter.open == Some(false) || filter.is_about_ends() {
            return Ok(SuspensionPage::default());
        }
        let filter = Filter { open: Some(true), ..filter };
        let Some(narrow) = narrowed(by, filter.clone()) else { return Ok(SuspensionPage::default()) };
        let counted = self.inner.readers.indexes.audiences(&narrow).await?;
        // If the delegate was revoked meanwhile, the authority is back, and only the suspension knows.
        let may_include = |audience: &Audience| {
            let has_role = by.may_answer(audience.kind, &by.id, true).is_ok();
            has_role && (audience.includes(by) || audience.without.contains(&by.id))
        };
        let audiences = counted.counts.into_iter().map(|(audience, _)| audience).filter(may_include);
        // Beyond the limit of a count, the store cannot name all audiences.
        let audiences = counted.complete.then(|| audiences.collect());
        self.page(by, filter, Selection::Answerable(audiences), after, limit).await
    }

    async fn page(
        &self,
        by: &Principal,
        filter: Filter,
        selection: Selection,
        mut after: Option<SuspensionId>,
        limit: usize,
    ) -> Result<SuspensionPage, Error> {
        let Some(filter) = narrowed(by, filter) else { return Ok(SuspensionPage::default()) };
        let indexes = &self.inner.readers.indexes;
        let is_mine = matches!(selection, Selection::Answerable(_));
        let cannot_answer =
            |row: &SuspensionRow| is_mine && by.may_answer(row.kind, &row.caller, self.own_calls()).is_err();
        // The owner of a damaged row is unknown, so only principals that may see everything are shown it.
        let sees_all = by.conversation.is_none() && filter.caller.is_none() && by.roles.has(Role::Admin);
        let (mut items, mut unreadable) = (Vec::new(), Vec::new());
        // Rows of one turn are neighbours, because ids sort by time: each turn is loaded once.
        let mut last = None;
        let mut bytes = 0;
        for _ in 0..MAX_PAGES {
            let page = match &selection {
                Selection::Answerable(Some(audiences)) => {
                    indexes.suspensions_of(&filter, audiences, after, limit - items.len()).await?
                }
                Selection::Visible | Selection::Answerable(None) => {
                    indexes.suspensions(&filter, after, limit - items.len()).await?
                }
            };
            unreadable.extend(page.unreadable.iter().filter(|_| sees_all).map(|id| (*id, None)));
            for row in page.rows.iter().filter(|row| !cannot_answer(row)) {
                let item = match self.inner.pending.item(row, &mut last).await {
                    Err(fault) if fault.is_damage() => {
                        unreadable.push((row.id, Some(row.turn)));
                        continue;
                    }
                    item => item?,
                };
                bytes += item.as_ref().map_or(0, size);
                items.extend(item.filter(|item| !is_mine || self.may_answer(by, item)));
                // A short page is better than a large one: each suspension may hold megabytes of arguments.
                if bytes > PAGE_BYTES {
                    return Ok(SuspensionPage { items, next: Some(row.id), unreadable });
                }
            }
            after = page.next;
            if after.is_none() || items.len() >= limit {
                break;
            }
        }
        Ok(SuspensionPage { items, next: after, unreadable })
    }

    /// One suspension.
    ///
    /// # Errors
    /// [`Refusal::Unknown`](domain::Refusal::Unknown) if this principal may not see it.
    pub async fn suspension(&self, by: &Principal, id: SuspensionId) -> Result<SuspensionView, Error> {
        self.inner.pending.suspension(by, id).await
    }

    /// The schema's defaults for what an edit of the arguments of a suspension would leave out: what an approver needs to know
    /// before approving it.
    ///
    /// # Errors
    /// As [`Handle::suspension`]. [`Refusal::Invalid`](domain::Refusal::Invalid) for arguments that an approval would not
    /// accept.
    pub async fn edit_defaults(
        &self,
        by: &Principal,
        id: SuspensionId,
        arguments: Json,
    ) -> Result<Option<Json>, Error> {
        let Inner { pending, pipeline, shared, .. } = self.inner.as_ref();
        Bounds::check(RequestPart::AnswerArguments, arguments.size(), shared.bounds.arguments)?;
        let _memory = pipeline.tracker.values(&by.id, [arguments.size()].into_iter().collect()).await;
        let _value = arguments.value();
        pending.edit_defaults(by, id, &arguments).await
    }

    /// The deliveries about a suspension, made or pending. For approvers and admins; others see none.
    ///
    /// # Errors
    /// As [`Handle::suspension`].
    pub async fn deliveries(&self, by: &Principal, id: SuspensionId) -> Result<Vec<DeliveryRow>, Error> {
        if !may_see_deliveries(by) {
            return Ok(Vec::new());
        }
        self.inner.pending.row(by, id).await?;
        Ok(self.inner.readers.outbox.deliveries(id.into()).await?)
    }

    /// The deliveries about the end of a turn that this principal has read. For approvers and admins; others see none.
    ///
    /// # Errors
    /// Faults of the store.
    pub async fn turn_deliveries(&self, by: &Principal, id: TurnId) -> Result<Vec<DeliveryRow>, StoreFault> {
        if !may_see_deliveries(by) {
            return Ok(Vec::new());
        }
        self.inner.readers.outbox.deliveries(id.into()).await
    }

    /// Records the progress of a delivery.
    ///
    /// # Errors
    /// [`StoreFault`]; nothing is recorded.
    pub async fn record_delivery(&self, row: DeliveryRow) -> Result<(), StoreFault> {
        let recorded = self.inner.pipeline.committer.record(Commit::rows(vec![RowChange::Delivery(row)])).await;
        recorded.map_err(|error| error.into_fault("record a delivery"))
    }
}

/// Whether this principal learns of webhooks at all.
fn may_see_deliveries(by: &Principal) -> bool {
    by.roles.has(Role::Admin) || by.roles.has(Role::Approver)
}

/// About the memory of a view, in bytes.
pub(super) fn size(item: &SuspensionView) -> usize {
    let json = |json: &Option<Json>| json.as_ref().map_or(0, Json::size);
    // A view has the whole call, with all of its steps.
    let steps = item.call.suspensions.len() * size_of::<(domain::Suspension, Option<domain::suspension::Closed>)>();
    let submitted = item.call.edited_before(item.suspension.id).map_or(0, Json::size);
    let arguments = item.call.arguments.size() + submitted;
    let defaults: usize = item.edits.iter().filter_map(|edit| edit.defaults.known()).map(Json::size).sum();
    steps + arguments + defaults + json(&item.context) + crate::feed::suspension_size(&item.suspension)
}
