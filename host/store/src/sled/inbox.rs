//! The indexes of the inbox. A selection is a filter by conversation or caller, and by tool. For each selection that a
//! suspension belongs to, one index has its id, another counts the open suspensions by audience, and a third has their
//! ids by audience. So a filter reads what it returns, however many suspensions wait, and a principal finds those that
//! it may answer.

use std::collections::BTreeMap;

use dispatch::ports::{Audiences, EndedTurn, Filter, Page, Position, StoreFault, SuspensionRow};
use domain::{
    ConversationId, Digest, PrincipalId, SuspensionId,
    suspension::{Audience, SuspensionKind},
};

use super::blobs;
use super::keys::{self, read_count};
use super::reader::{Reader, damaged, following};
use crate::fault::fault;
use crate::record::Record;

#[cfg(test)]
mod tests;

/// The part of a key that names a selection. No selection is a prefix of another.
type Selection = Vec<u8>;

/// Ids of suspensions, each with the key of its entry.
type Ids = BTreeMap<SuspensionId, sled::IVec>;

enum Scope<'a> {
    Everything,
    Conversation(&'a ConversationId),
    Caller(&'a PrincipalId),
}

fn selection(scope: &Scope<'_>, tool: Option<&str>) -> Selection {
    let mut selection = match scope {
        Scope::Everything => vec![0],
        Scope::Conversation(conversation) => keys::named(1, conversation.as_str().as_bytes()),
        Scope::Caller(caller) => keys::named(2, caller.as_str().as_bytes()),
    };
    match tool {
        None => selection.push(0),
        Some(tool) => selection.extend(keys::named(1, tool.as_bytes())),
    }
    selection
}

/// Every selection that a suspension belongs to.
fn selections(conversation: &ConversationId, caller: &PrincipalId, tool: &str) -> [Selection; 6] {
    let scopes = [Scope::Everything, Scope::Conversation(conversation), Scope::Caller(caller)];
    let [[a, b], [c, d], [e, f]] = scopes.map(|scope| [None, Some(tool)].map(|tool| selection(&scope, tool)));
    [a, b, c, d, e, f]
}

/// The prefix of the ids of a selection.
fn prefix(is_open: bool, selection: &Selection, kind: SuspensionKind) -> Vec<u8> {
    let kind = SuspensionKind::ALL.iter().position(|each| *each == kind).map_or(u8::MAX, |at| at as u8);
    [&[keys::SELECTED, u8::from(is_open)], selection.as_slice(), &[kind]].concat()
}

fn entry(is_open: bool, selection: &Selection, kind: SuspensionKind, id: SuspensionId) -> Vec<u8> {
    [prefix(is_open, selection, kind).as_slice(), &id.bits().to_be_bytes()].concat()
}

/// The entries of a suspension in the index of ids, as if it were open or not.
pub(super) fn entries(row: &SuspensionRow, is_open: bool) -> [Vec<u8>; 6] {
    selections(&row.conversation, &row.caller, &row.tool).map(|selection| entry(is_open, &selection, row.kind, row.id))
}

/// All entries that a suspension of an ended turn can have.
pub(super) fn possible_entries(turn: &EndedTurn, id: SuspensionId) -> Vec<Vec<u8>> {
    let selections = turn.tools.iter().flat_map(|tool| selections(&turn.conversation, &turn.caller, tool));
    selections.flat_map(|selection| SuspensionKind::ALL.map(|kind| entry(false, &selection, kind, id))).collect()
}

/// The counts that include a suspension, by the record of its audience.
pub(super) fn counts(
    (conversation, caller, tool): (&ConversationId, &PrincipalId, &str),
    audience: &[u8],
) -> [Vec<u8>; 6] {
    let digest = blobs::digest(audience);
    selections(conversation, caller, tool).map(|selection| count(&selection, digest))
}

/// The key of a count.
fn count(selection: &Selection, audience: Digest) -> Vec<u8> {
    [&[keys::AUDIENCE], selection.as_slice(), audience.as_bytes()].concat()
}

/// The prefix of the ids of the suspensions that the count under a key includes.
fn counted(count: &[u8]) -> Vec<u8> {
    [&[keys::WAITING], count.get(1..).unwrap_or_default()].concat()
}

/// The entry of a suspension that the count under a key includes.
pub(super) fn waiting(count: &[u8], id: SuspensionId) -> Vec<u8> {
    [counted(count).as_slice(), &id.bits().to_be_bytes()].concat()
}

impl Reader {
    /// The selection of a filter. `None`: it selects nothing.
    async fn selected(&self, filter: &Filter) -> Result<Option<Selection>, StoreFault> {
        let scope = match (&filter.conversation, &filter.caller) {
            (None, None) => Scope::Everything,
            (None, Some(caller)) => Scope::Caller(caller),
            (Some(conversation), None) => Scope::Conversation(conversation),
            (Some(conversation), Some(caller)) => {
                // All turns of a conversation have the same caller.
                if self.owner(conversation).await?.is_some_and(|owner| owner != *caller) {
                    return Ok(None);
                }
                Scope::Conversation(conversation)
            }
        };
        Ok(Some(selection(&scope, filter.tool.as_deref())))
    }

    pub(super) async fn suspensions(
        &self,
        filter: &Filter,
        after: Option<SuspensionId>,
        limit: usize,
    ) -> Result<Page, StoreFault> {
        let Some(selection) = self.selected(filter).await? else { return Ok(Page::default()) };
        let mut found = Ids::new();
        // A suspension that closes meanwhile is found twice rather than never.
        for is_open in [true, false].into_iter().filter(|is_open| filter.open.is_none_or(|open| open == *is_open)) {
            for kind in SuspensionKind::ALL.into_iter().filter(|kind| filter.kind.is_none_or(|only| only == *kind)) {
                self.ids(&prefix(is_open, &selection, kind), after, limit, &mut found)?;
            }
        }
        self.rows(found, filter, limit).await
    }

    pub(super) async fn suspensions_of(
        &self,
        filter: &Filter,
        audiences: &[Audience],
        after: Option<SuspensionId>,
        limit: usize,
    ) -> Result<Page, StoreFault> {
        let filter = Filter { open: Some(true), ..filter.clone() };
        let Some(selection) = self.selected(&filter).await? else { return Ok(Page::default()) };
        let mut found = Ids::new();
        for audience in audiences.iter().filter(|audience| filter.kind.is_none_or(|kind| kind == audience.kind)) {
            let mut record = Vec::new();
            audience.write(&mut record).map_err(fault("encode an audience"))?;
            self.ids(&counted(&count(&selection, Digest::of(&record))), after, limit, &mut found)?;
        }
        self.rows(found, &filter, limit).await
    }

    /// Adds ids of suspensions under a prefix, so that the first ones of all prefixes remain, and one more.
    fn ids(&self, prefix: &[u8], after: Option<SuspensionId>, limit: usize, found: &mut Ids) -> Result<(), StoreFault> {
        let ends = |id: u128| [prefix, &id.to_be_bytes()].concat();
        let from = after.map_or_else(|| ends(0), |id| following(ends(id.bits())));
        for key in self.tree.range(from..=ends(u128::MAX)).keys() {
            let key = key.map_err(fault("read suspensions"))?;
            let id = keys::tail_u128(&key).map(SuspensionId::from_bits).ok_or_else(|| damaged("an index"))?;
            found.insert(id, key);
            if found.len() > limit.saturating_add(1) && found.pop_last().is_some_and(|(last, _)| last == id) {
                break;
            }
        }
        Ok(())
    }

    /// The page of these suspensions.
    async fn rows(&self, mut found: Ids, filter: &Filter, limit: usize) -> Result<Page, StoreFault> {
        let more = found.len() > limit;
        if more {
            found.pop_last();
        }
        let next = found.last_key_value().map(|(id, _)| *id).filter(|_| more);
        let mut page = Page { next, ..Page::default() };
        for (id, key) in found {
            let row = match self.suspension(id).await {
                // It was written by a commit that did not reach the disk.
                Err(_) if self.has_failed(&keys::suspension(id))? => continue,
                // The turn may have been removed since the key was read.
                Ok(None) if !self.tree.contains_key(&key).map_err(fault("read suspensions"))? => continue,
                Ok(row) => row.ok_or_else(|| damaged(format!("the row of {id}"))),
                Err(fault) => Err(fault),
            };
            match row {
                Ok(row) => page.rows.extend(filter.matches(&row).then_some(row)),
                Err(fault) => {
                    self.set_aside.take(&key, fault)?;
                    page.unreadable.push(id);
                }
            }
        }
        Ok(page)
    }

    pub(super) async fn audiences(&self, filter: &Filter) -> Result<Audiences, StoreFault> {
        let mut audiences = Audiences { counts: Vec::new(), complete: true };
        let Some(selection) = self.selected(filter).await? else { return Ok(audiences) };
        let (seen, mut newest) = (self.recoveries(), Position::default());
        let what = || "the count of an audience".to_owned();
        let prefix = [&[keys::AUDIENCE], selection.as_slice()].concat();
        for entry in self.tree.scan_prefix(prefix) {
            let (key, value) = entry.map_err(fault("count suspensions"))?;
            if audiences.counts.len() == Audiences::MAX {
                audiences.complete = false;
                break;
            }
            let counted = keys::stamped(&value).and_then(|(at, rest)| Some((at, read_count(rest)?)));
            let Some((position, (count, record))) = counted else {
                audiences.complete = false;
                self.set_aside.take(&key, damaged(what()))?;
                continue;
            };
            newest = newest.max(position);
            match self.decode(record, Audience::read, &what).await {
                Ok(audience) if filter.kind.is_none_or(|kind| kind == audience.kind) => {
                    audiences.counts.push((audience, count));
                }
                Ok(_) => {}
                // The last suspension of it closed meanwhile, and its large record was removed.
                Err(_) if self.tree.get(&key).map_err(fault("count suspensions"))? != Some(value) => {}
                Err(fault) => {
                    audiences.complete = false;
                    self.set_aside.take(&key, fault)?;
                }
            }
        }
        self.on_disk(newest, seen).await?;
        Ok(audiences)
    }

    /// Does not wait for the disk: the last commit of the principal may be under way, and a quota need not be exact.
    pub(super) fn kept_bytes(&self, principal: &PrincipalId) -> Result<u64, StoreFault> {
        let value = self.tree.get(keys::kept(principal)).map_err(fault("read what is stored"))?;
        let Some(value) = value else { return Ok(0) };
        let count = keys::stamped(&value).and_then(|(_, count)| read_count(count));
        Ok(count.ok_or_else(|| damaged(format!("the size of the turns of {principal}")))?.0)
    }
}
