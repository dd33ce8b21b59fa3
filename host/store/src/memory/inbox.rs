//! Pages and counts of suspensions.

use std::collections::BTreeMap;
use std::ops::Bound;

use dispatch::ports::{AudienceChange, Audiences, Filter, Order, Page, SuspensionRow};
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
        order: Order,
        after: Option<SuspensionId>,
        limit: usize,
    ) -> Page {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let within = match order {
            Order::OldestFirst => (after, Bound::Unbounded),
            Order::NewestFirst => (Bound::Unbounded, after),
        };
        let rows = self.suspensions.range(within).map(|(_, row)| row).filter(|row| matches(row)).cloned();
        let at_most = limit.saturating_add(1);
        let mut rows: Vec<_> = match order {
            Order::OldestFirst => rows.take(at_most).collect(),
            Order::NewestFirst => rows.rev().take(at_most).collect(),
        };
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().map(|row| row.id).filter(|_| more);
        Page { rows, next, ..Page::default() }
    }

    pub(super) fn audiences(&self, filter: &Filter) -> Audiences {
        let mut counts: BTreeMap<Audience, u64> = BTreeMap::new();
        for change in self.waiting.values() {
            let matches = filter.conversation.as_ref().is_none_or(|of| of.is_with(&change.conversation))
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
