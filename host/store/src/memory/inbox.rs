//! Pages and counts of suspensions.

use std::collections::BTreeMap;
use std::ops::Bound;

use dispatch::ports::{AudienceChange, Audiences, Filter, Page, SuspensionRow};
use domain::{SuspensionId, suspension::Audience};

use super::State;

impl State {
    pub(super) fn audience(&mut self, change: AudienceChange) {
        if change.after.is_some() {
            self.waiting.insert(change.suspension, change);
        } else {
            self.waiting.remove(&change.suspension);
        }
    }

    pub(super) fn page(
        &self,
        matches: impl Fn(&SuspensionRow) -> bool,
        after: Option<SuspensionId>,
        limit: usize,
    ) -> Page {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self.suspensions.range((start, Bound::Unbounded)).map(|(_, row)| row);
        let mut rows: Vec<_> = rows.filter(|row| matches(row)).take(limit.saturating_add(1)).cloned().collect();
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().map(|row| row.id).filter(|_| more);
        Page { rows, next, ..Page::default() }
    }

    pub(super) fn audiences(&self, filter: &Filter) -> Audiences {
        let mut counts: BTreeMap<Audience, u64> = BTreeMap::new();
        for change in self.waiting.values() {
            let matches = filter.conversation.as_ref().is_none_or(|conversation| *conversation == change.conversation)
                && filter.caller.as_ref().is_none_or(|caller| *caller == change.caller)
                && filter.tool.as_ref().is_none_or(|tool| *tool == change.tool);
            let audience = change.after.as_ref().filter(|_| matches);
            if let Some(audience) = audience.filter(|audience| filter.kind.is_none_or(|kind| kind == audience.kind)) {
                *counts.entry(audience.clone()).or_default() += 1;
            }
        }
        Audiences { counts: counts.into_iter().collect(), complete: true }
    }
}
