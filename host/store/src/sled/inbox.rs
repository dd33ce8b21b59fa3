//! The indexes of the inbox. A selection is a filter by conversation or caller, and by tool. For each selection that a
//! suspension belongs to, one index has its id, another counts the open suspensions by audience, and a third has their
//! ids by audience. So a filter reads what it returns, however many suspensions there are, and a principal finds those that
//! it may answer.
//!
//! A fourth index has the ids of ended suspensions by how they ended, and by who ended them: of all, and of each caller. A
//! filter by both, or by an end and a conversation or tool, skips through the lists of each. A page ends after a number of
//! skips, and the next one continues there.

use std::collections::BTreeMap;

use dispatch::ports::{Audiences, EndedTurn, Filter, Order, Page, Position, StoreFault, SuspensionRow};
use domain::{
    ConversationId, Digest, PrincipalId, SuspensionId,
    suspension::{Audience, SuspensionKind},
};

use super::blobs;
use super::keys::{self, read_count};
use super::reader::{Reader, damaged, following};
use crate::fault::fault;
use crate::record::{Record, stored_state};

#[cfg(test)]
mod tests;

/// How often a page skips from one list to another.
const MAX_SKIPS: usize = 1_000;

/// The part of a key that names a selection. No selection is a prefix of another.
type Selection = Vec<u8>;

/// The first suspensions in an order, and one more.
struct Ids {
    order: Order,
    after: Option<SuspensionId>,
    limit: usize,
    /// Their ids, each with the key of its entry.
    found: BTreeMap<SuspensionId, sled::IVec>,
    /// The last id of a list that was not read to its end. Later ids may be missing.
    until: Option<SuspensionId>,
}

impl Ids {
    const fn new(order: Order, after: Option<SuspensionId>, limit: usize) -> Self {
        Self { order, after, limit, found: BTreeMap::new(), until: None }
    }

    fn pop_last(&mut self) -> Option<SuspensionId> {
        let last = match self.order {
            Order::OldestFirst => self.found.pop_last(),
            Order::NewestFirst => self.found.pop_first(),
        };
        last.map(|(id, _)| id)
    }

    /// Adds an id. Returns whether later ones of the same index may belong here too.
    fn add(&mut self, id: SuspensionId, key: sled::IVec) -> bool {
        self.found.insert(id, key);
        self.found.len() <= self.limit.saturating_add(1) || self.pop_last() != Some(id)
    }

    /// A list is not read beyond this id.
    fn stop_at(&mut self, id: SuspensionId) {
        let until = self.until.unwrap_or(id);
        self.until = Some(match self.order {
            Order::OldestFirst => until.min(id),
            Order::NewestFirst => until.max(id),
        });
    }

    /// At most `limit` of them, in their order, and the id after which the next page begins.
    fn page(mut self) -> (Vec<(SuspensionId, sled::IVec)>, Option<SuspensionId>) {
        if let Some(until) = self.until {
            self.found.retain(|id, _| match self.order {
                Order::OldestFirst => *id <= until,
                Order::NewestFirst => *id >= until,
            });
        }
        let more = self.found.len() > self.limit;
        if more {
            self.pop_last();
        }
        let mut page: Vec<_> = self.found.into_iter().collect();
        if self.order == Order::NewestFirst {
            page.reverse();
        }
        let next = if more { page.last().map(|(id, _)| *id) } else { self.until };
        (page, next)
    }
}

enum Scope<'a> {
    Everything,
    Conversation(&'a ConversationId),
    Caller(&'a PrincipalId),
}

fn selection(scope: &Scope<'_>, tool: Option<&str>) -> Selection {
    let mut selection = match scope {
        Scope::Everything => vec![0],
        // Nested turns are listed with the conversation of their caller.
        Scope::Conversation(conversation) => keys::named(1, conversation.of_caller().as_str().as_bytes()),
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

fn number(kind: SuspensionKind) -> u8 {
    SuspensionKind::ALL.iter().position(|each| *each == kind).map_or(u8::MAX, |at| at as u8)
}

/// The prefix of the ids of a selection.
fn prefix(is_open: bool, selection: &Selection, kind: SuspensionKind) -> Vec<u8> {
    [&[keys::SELECTED, u8::from(is_open)], selection.as_slice(), &[number(kind)]].concat()
}

/// The shared property of a list of ended suspensions.
#[derive(Clone, Copy)]
enum End<'a> {
    By(&'a PrincipalId),
    How(&'a str),
}

/// The prefix of the ids of the suspensions that ended like this.
/// A choice of a question can be long, so a digest of the end is in the key.
fn closed(of: &Scope<'_>, end: End<'_>, kind: SuspensionKind) -> Vec<u8> {
    let mut prefix = closed_of(of);
    match end {
        End::By(by) => prefix.extend(keys::named(1, by.as_str().as_bytes())),
        End::How(how) => prefix.extend([[0].as_slice(), Digest::of(how).as_bytes().as_slice()].concat()),
    }
    prefix.push(number(kind));
    prefix
}

fn closed_of(of: &Scope<'_>) -> Vec<u8> {
    [&[keys::CLOSED], selection(of, None).as_slice()].concat()
}

fn entry(is_open: bool, selection: &Selection, kind: SuspensionKind, id: SuspensionId) -> Vec<u8> {
    [prefix(is_open, selection, kind).as_slice(), &id.bits().to_be_bytes()].concat()
}

/// The entries of a suspension in the index of ids, as if it were open or not.
pub(super) fn entries(row: &SuspensionRow, is_open: bool) -> [Vec<u8>; 6] {
    selections(&row.conversation, &row.caller, &row.tool).map(|selection| entry(is_open, &selection, row.kind, row.id))
}

/// The entries of a suspension in the index of ends. None if it is open.
pub(super) fn ends(row: &SuspensionRow) -> Vec<Vec<u8>> {
    if row.is_open() {
        return Vec::new();
    }
    let how = End::How(stored_state(&row.state));
    let ends: Vec<_> = row.ended_by.iter().map(End::By).chain([how]).collect();
    let scopes = [Scope::Everything, Scope::Caller(&row.caller)];
    let prefixes = scopes.iter().flat_map(|of| ends.iter().map(move |end| closed(of, *end, row.kind)));
    prefixes.map(|prefix| [prefix.as_slice(), &row.id.bits().to_be_bytes()].concat()).collect()
}

/// The prefix of the entries of [`ends`] that name a principal, of all suspensions.
pub(super) fn all_ends() -> Vec<u8> {
    [closed_of(&Scope::Everything).as_slice(), &[1]].concat()
}

/// Decodes a key under [`all_ends`]: the principal, and the suspension.
pub(super) fn read_end(key: &[u8]) -> Option<(PrincipalId, SuspensionId)> {
    let (&length, rest) = key.get(all_ends().len()..)?.split_first()?;
    let (by, rest) = rest.split_at_checked(usize::from(length))?;
    let [_kind, id @ ..] = rest else { return None };
    let id = SuspensionId::from_bits(u128::from_be_bytes(id.try_into().ok()?));
    Some((PrincipalId::new(std::str::from_utf8(by).ok()?).ok()?, id))
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
    /// The entries in the index of ends that a suspension of an ended turn can have, found without its row. Reads the ends
    /// of its caller.
    pub(super) fn possible_ends(&self, turn: &EndedTurn, id: SuspensionId) -> Result<Vec<Vec<u8>>, StoreFault> {
        let (all, of_caller) = (closed_of(&Scope::Everything), closed_of(&Scope::Caller(&turn.caller)));
        let mut entries = Vec::new();
        for key in self.tree.scan_prefix(&of_caller).keys() {
            let key = key.map_err(fault("read suspensions"))?;
            if let Some(end) = key.get(of_caller.len()..).filter(|_| keys::tail_u128(&key) == Some(id.bits())) {
                entries.push([all.as_slice(), end].concat());
                entries.push(key.to_vec());
            }
        }
        Ok(entries)
    }

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
        let mut found = Ids::new(filter.order, after, limit);
        let kinds = SuspensionKind::ALL.into_iter().filter(|kind| filter.has_kind(*kind));
        let is_asked_for = |is_open: bool| filter.open.is_none_or(|open| open == is_open);
        if filter.is_about_ends() {
            let how = filter.ended.as_ref().map(|how| End::How(how.as_str()));
            let by = filter.ended_by.as_ref().map(End::By);
            let of = filter.caller.as_ref().map_or(Scope::Everything, Scope::Caller);
            // No list of ends is of one conversation or tool.
            let is_narrow = filter.conversation.is_some() || filter.tool.is_some();
            for kind in kinds.filter(|_| is_asked_for(false)) {
                let ends = how.into_iter().chain(by).map(|end| closed(&of, end, kind));
                let lists: Vec<_> = ends.chain(is_narrow.then(|| prefix(false, &selection, kind))).collect();
                self.ids_of_all(&lists, &mut found)?;
            }
            return self.rows(found, filter).await;
        }
        // A suspension that closes meanwhile is found twice rather than never.
        for is_open in [true, false].into_iter().filter(|is_open| is_asked_for(*is_open)) {
            for kind in kinds.clone() {
                self.ids(&prefix(is_open, &selection, kind), &mut found)?;
            }
        }
        self.rows(found, filter).await
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
        let mut found = Ids::new(filter.order, after, limit);
        for audience in audiences.iter().filter(|audience| filter.kind.is_none_or(|kind| kind == audience.kind)) {
            let mut record = Vec::new();
            audience.write(&mut record).map_err(fault("encode an audience"))?;
            self.ids(&counted(&count(&selection, Digest::of(&record))), &mut found)?;
        }
        self.rows(found, &filter).await
    }

    /// Adds the ids of suspensions under a prefix.
    fn ids(&self, prefix: &[u8], found: &mut Ids) -> Result<(), StoreFault> {
        let key = |id: u128| [prefix, &id.to_be_bytes()].concat();
        let after = found.after.map(|after| key(after.bits()));
        let mut keys = match found.order {
            Order::OldestFirst => self.tree.range(after.map_or_else(|| key(0), following)..=key(u128::MAX)),
            Order::NewestFirst => self.tree.range(key(0)..after.unwrap_or_else(|| following(key(u128::MAX)))),
        }
        .keys();
        let order = found.order;
        let mut next = || match order {
            Order::OldestFirst => keys.next(),
            Order::NewestFirst => keys.next_back(),
        };
        while let Some(key) = next() {
            let key = key.map_err(fault("read suspensions"))?;
            let id = keys::tail_u128(&key).map(SuspensionId::from_bits).ok_or_else(|| damaged("an index"))?;
            if !found.add(id, key) {
                break;
            }
        }
        Ok(())
    }

    /// Adds the ids of suspensions that are under all prefixes. It skips those that only some of them have.
    fn ids_of_all(&self, prefixes: &[Vec<u8>], found: &mut Ids) -> Result<(), StoreFault> {
        let (one, others) = match prefixes {
            [] => return Ok(()),
            [only] => return self.ids(only, found),
            [one, others @ ..] => (one, others),
        };
        let order = found.order;
        let beyond = |id: SuspensionId| match order {
            Order::OldestFirst => id.bits().checked_add(1),
            Order::NewestFirst => id.bits().checked_sub(1),
        };
        let start = match order {
            Order::OldestFirst => 0,
            Order::NewestFirst => u128::MAX,
        };
        let (mut from, mut skips) = (found.after.map_or(Some(start), beyond), 0);
        'ids: while let Some(begin) = from {
            let Some((id, key)) = self.first_id(one, begin, order)? else { break };
            let mut next = id;
            for other in others {
                let Some((first, _)) = self.first_id(other, next.bits(), order)? else { break 'ids };
                next = first;
            }
            from = if next != id {
                skips += 1;
                if skips == MAX_SKIPS {
                    found.stop_at(id);
                    break;
                }
                Some(next.bits())
            } else if found.add(id, key) {
                beyond(id)
            } else {
                None
            };
        }
        Ok(())
    }

    /// The first id under a prefix from this one on, with its key.
    fn first_id(
        &self,
        prefix: &[u8],
        from: u128,
        order: Order,
    ) -> Result<Option<(SuspensionId, sled::IVec)>, StoreFault> {
        let key = |id: u128| [prefix, &id.to_be_bytes()].concat();
        let first = match order {
            Order::OldestFirst => self.tree.range(key(from)..=key(u128::MAX)).keys().next(),
            Order::NewestFirst => self.tree.range(key(0)..=key(from)).keys().next_back(),
        };
        let Some(key) = first.transpose().map_err(fault("read suspensions"))? else { return Ok(None) };
        let id = keys::tail_u128(&key).map(SuspensionId::from_bits).ok_or_else(|| damaged("an index"))?;
        Ok(Some((id, key)))
    }

    /// The page of these suspensions.
    async fn rows(&self, found: Ids, filter: &Filter) -> Result<Page, StoreFault> {
        let (found, next) = found.page();
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
    pub(super) async fn kept_bytes(&self, principal: &PrincipalId) -> Result<u64, StoreFault> {
        let value = self.tree.get(keys::kept(principal)).map_err(fault("read what is stored"))?;
        let Some(value) = value else { return Ok(0) };
        let count = keys::stamped(&value).and_then(|(_, count)| read_count(count));
        Ok(count.ok_or_else(|| damaged(format!("the size of the turns of {principal}")))?.0)
    }
}
