//! The entries that one commit will write, encoded on its caller's thread: the committing thread only checks, stamps
//! and writes.

use dispatch::ports::{Commit, DeliveryRow, Index, Source, StoreFault, SuspensionRow};
use domain::{
    ConversationId, Digest, Due, HostStarted, PluginEvent, StandingId, StandingRevoked, StandingRow, Timestamp, TurnId,
};

use super::blobs;
use super::keys::{self, STAMP, Usage};
use crate::fault::fault;
use crate::record::{self, Record};

/// A key and its value.
pub(super) type Entry = (Vec<u8>, Vec<u8>);

/// One commit, ready to be checked and written.
pub(super) struct Plan {
    /// Where its record will be, for the chain.
    pub(super) source: Source,
    /// The digest of its record, worked out here so that the committing thread hashes no more than a few bytes.
    pub(super) record: Digest,
    /// The log that grows, and how many commits it must have; `None` for a commit that is not a turn's.
    pub(super) expected: Option<(TurnId, u32)>,
    /// Claims that nobody else may hold.
    pub(super) claims: Vec<Claim>,
    /// Changes to the usage of standing approvals.
    pub(super) standing: Vec<(StandingId, StandingChange)>,
    /// The feed's key up to the position, and what stands there.
    pub(super) feed: Entry,
    /// Entries with a stamp, for which each value has room in front.
    pub(super) stamped: Vec<Entry>,
    /// Entries without a stamp.
    pub(super) plain: Vec<Entry>,
    pub(super) removed: Vec<Vec<u8>>,
    /// Records that are too large for the tree. They must be on disk before the commit.
    pub(super) blobs: Vec<(Digest, Vec<u8>)>,
}

/// An entry that belongs to the first who claims it.
pub(super) struct Claim {
    pub(super) of: Claimed,
    pub(super) entry: Entry,
}

/// What happens to a standing approval.
pub(super) enum StandingChange {
    Use,
    Revoke(Timestamp, String),
}

impl StandingChange {
    /// The state after the change; `None` if the change is refused.
    pub(super) fn apply(&self, mut state: Usage) -> Option<Usage> {
        match self {
            Self::Use if state.revoked.is_none() && state.used < state.uses => state.used += 1,
            Self::Revoke(at, by) if state.revoked.is_none() => state.revoked = Some((*at, by.clone())),
            Self::Use | Self::Revoke(..) => return None,
        }
        Some(state)
    }
}

/// What is claimed.
pub(super) enum Claimed {
    /// A conversation, by a principal.
    Conversation,
    /// A call id, by a turn.
    CallId,
}

impl Plan {
    /// What a commit will write.
    pub(super) fn of_commit(commit: &Commit) -> Result<Self, StoreFault> {
        let (turn, number) = (commit.turn, commit.expected);
        let mut plan = Self::new(Source::Turn { turn, number });
        plan.expected = Some((turn, number));
        plan.feed = (keys::feed(&commit.conversation), keys::pointer(turn, number));
        let value = plan.value(STAMP, |out| record::write_events(&commit.events, out))?;
        plan.record = blobs::digest(&value[STAMP..]);
        plan.stamped.push((keys::log(commit.turn, commit.expected), value));
        for index in &commit.index {
            plan.index(commit.turn, &commit.conversation, index)?;
        }
        Ok(plan)
    }

    /// What a fact about a plugin will write.
    pub(super) fn of_plugin(event: &PluginEvent) -> Result<Self, StoreFault> {
        Self::of_host(Source::Plugin, keys::HOST_FEED, event)
    }

    /// What the start of a host will write.
    pub(super) fn of_start(start: &HostStarted) -> Result<Self, StoreFault> {
        Self::of_host(Source::Started, keys::STARTED, start)
    }

    /// What taking a standing approval back will write.
    pub(super) fn of_revocation(revoked: &StandingRevoked) -> Result<Self, StoreFault> {
        let mut plan = Self::of_host(Source::Revoked, keys::REVOKED, revoked)?;
        plan.standing.push((revoked.id, StandingChange::Revoke(revoked.at, revoked.by.to_string())));
        Ok(plan)
    }

    fn of_host(source: Source, index: u8, fact: &impl Record) -> Result<Self, StoreFault> {
        let mut plan = Self::new(source);
        let value = plan.value(0, |out| fact.write(out))?;
        plan.record = blobs::digest(&value);
        plan.feed = (vec![index], value);
        Ok(plan)
    }

    fn new(source: Source) -> Self {
        Self {
            source,
            record: Digest::from_bytes([0; 32]),
            expected: None,
            claims: Vec::new(),
            standing: Vec::new(),
            feed: Entry::default(),
            stamped: Vec::new(),
            plain: Vec::new(),
            removed: Vec::new(),
            blobs: Vec::new(),
        }
    }

    fn index(&mut self, turn: TurnId, conversation: &ConversationId, index: &Index) -> Result<(), StoreFault> {
        match index {
            Index::Owner(principal) => {
                let entry = (keys::owner(conversation), principal.as_str().as_bytes().to_vec());
                self.claims.push(Claim { of: Claimed::Conversation, entry });
            }
            Index::Call(call) => {
                let entry = (keys::call(conversation, call), turn.bits().to_be_bytes().to_vec());
                self.claims.push(Claim { of: Claimed::CallId, entry });
            }
            Index::Due { before, after } => self.due(turn, *before, *after),
            Index::Suspension(row) => self.suspension(row)?,
            Index::Delivery(row) => self.delivery(row)?,
            Index::Standing(row) => self.standing(row)?,
            Index::StandingUse(id) => self.standing.push((*id, StandingChange::Use)),
            Index::Denied(alike, at) => {
                let value = [[0; STAMP], at.millis().to_be_bytes()].concat();
                self.stamped.push((keys::denied(conversation, *alike), value));
            }
        }
        Ok(())
    }

    fn due(&mut self, turn: TurnId, before: Option<Due>, after: Option<Due>) {
        if before == after {
            return;
        }
        if let Some(before) = before {
            self.removed.push(keys::due(before.at, turn));
        }
        match after {
            Some(after) => {
                // The same key may be in `removed`; these entries are written after that.
                self.plain.push((keys::due(after.at, turn), vec![u8::from(after.running)]));
                self.plain.push((keys::unfinished(turn), keys::due_value(after).to_vec()));
            }
            None => self.removed.push(keys::unfinished(turn)),
        }
    }

    fn suspension(&mut self, row: &SuspensionRow) -> Result<(), StoreFault> {
        let value = self.value(STAMP, |out| row.write(out))?;
        self.stamped.push((keys::suspension(keys::SUSPENSION, row.id), value));
        let of = |prefix: Vec<u8>| [prefix.as_slice(), &row.id.bits().to_be_bytes()].concat();
        self.plain.push((of(keys::of_conversation(&row.conversation)), Vec::new()));
        let open = [keys::suspension(keys::OPEN, row.id), of(keys::open_of_conversation(&row.conversation))];
        if row.is_open() {
            self.plain.extend(open.map(|key| (key, Vec::new())));
        } else {
            self.removed.extend(open);
        }
        Ok(())
    }

    fn delivery(&mut self, row: &DeliveryRow) -> Result<(), StoreFault> {
        let Entries { stamped, due } = Entries::of_delivery(row)?;
        self.stamped.push(stamped);
        self.plain.extend(due.map(|key| (key, Vec::new())));
        Ok(())
    }

    fn standing(&mut self, row: &StandingRow) -> Result<(), StoreFault> {
        let value = self.value(STAMP, |out| row.write(out))?;
        self.stamped.push((keys::standing(keys::STANDING, row.standing.id), value));
        let usage = Usage { uses: row.standing.uses, used: row.used, revoked: None };
        let value = [[0; STAMP].as_slice(), &usage.to_bytes()].concat();
        self.stamped.push((keys::standing(keys::STANDING_STATE, row.standing.id), value));
        Ok(())
    }

    /// A record after `room` bytes for a stamp. If it is too large for the tree, a reference to a blob with it.
    fn value(
        &mut self,
        room: usize,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
    ) -> Result<Vec<u8>, StoreFault> {
        let mut value = Vec::with_capacity(512);
        value.resize(room, 0);
        write(&mut value).map_err(fault("encode a commit"))?;
        if value.len() > blobs::LARGEST_INLINE {
            let record = value.split_off(room);
            let digest = Digest::of(&record);
            value.extend_from_slice(&blobs::reference(digest));
            self.blobs.push((digest, record));
        }
        Ok(value)
    }
}

/// What is written of a delivery. Small whatever happens: nothing in it is from outside and unbounded.
pub(super) struct Entries {
    /// Its row, with room for a stamp.
    pub(super) stamped: Entry,
    /// Its key among what is still to be delivered, if it is.
    pub(super) due: Option<Vec<u8>>,
}

impl Entries {
    pub(super) fn of_delivery(row: &DeliveryRow) -> Result<Self, StoreFault> {
        let number = row.occasion.number();
        let mut value = vec![0; STAMP];
        row.write(&mut value).map_err(fault("encode a delivery"))?;
        let due = row.next().map(|next| keys::to_deliver_at(&row.webhook, next, row.suspension, number));
        Ok(Self { stamped: (keys::delivery(row.suspension, number, &row.webhook), value), due })
    }
}
