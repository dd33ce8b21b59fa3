//! A commit with its records in their stored form, encoded on the thread of its caller.

use dispatch::ports::{Commit, NewFacts, RowChange, Source, StoreFault};
use domain::{Digest, TurnId, journal::ValueChange, suspension::Audience};

use crate::fault::fault;
use crate::record::{self, Record};

/// One commit, ready to be checked and written.
pub(super) struct Plan {
    pub(super) commit: Commit,
    /// The record of its facts.
    pub(super) fact: Option<Fact>,
    /// The records of its rows, one for each.
    pub(super) stored: Vec<Stored>,
    /// The size of its records and values, in bytes.
    pub(super) bytes: usize,
}

pub(super) struct Fact {
    pub(super) source: Source,
    pub(super) record: Vec<u8>,
    pub(super) digest: Digest,
}

/// The record of a row.
pub(super) enum Stored {
    /// The row has no record.
    None,
    Record(Vec<u8>),
    /// The records of two audiences.
    Audiences {
        before: Option<Vec<u8>>,
        after: Option<Vec<u8>>,
    },
}

impl Stored {
    /// The record. Empty if the row has none.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Record(bytes) => bytes,
            Self::None | Self::Audiences { .. } => &[],
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Record(bytes) => bytes.len(),
            Self::Audiences { before, after } => [before, after].into_iter().flatten().map(Vec::len).sum(),
        }
    }
}

impl Plan {
    pub(super) fn of(commit: Commit) -> Result<Self, StoreFault> {
        let fact = commit.facts.as_ref().map(Fact::of).transpose()?;
        let stored = commit.rows.iter().map(stored).collect::<Result<Vec<_>, _>>()?;
        let values = commit.rows.iter().map(|row| match row {
            RowChange::Value(ValueChange { key, value, .. }) => key.len() + value.as_ref().map_or(0, Vec::len),
            _ => 0,
        });
        let records = fact.iter().map(|fact| fact.record.len()).chain(stored.iter().map(Stored::size));
        let bytes = records.chain(values).sum();
        Ok(Self { commit, fact, stored, bytes })
    }

    /// The turn that the commit ends.
    pub(super) fn ends(&self) -> Option<TurnId> {
        self.commit.rows.iter().find_map(|row| match row {
            RowChange::Ended(ended, _) => Some(ended.turn),
            _ => None,
        })
    }

    /// Whether it removes what retention does not keep. It is the only commit of its batch.
    pub(super) fn is_removal(&self) -> bool {
        matches!(self.commit.facts, Some(NewFacts::Removal(_)))
            || self.commit.rows.iter().any(|row| matches!(row, RowChange::Forget(..)))
    }

    /// The turns whose size the commit changes, or may.
    pub(super) fn turns(&self) -> impl Iterator<Item = TurnId> {
        let of_facts = match &self.commit.facts {
            Some(NewFacts::Turn { turn, .. }) => Some(*turn),
            Some(NewFacts::Plugin(_) | NewFacts::Started(_) | NewFacts::Revoked(_) | NewFacts::Removal(_)) | None => {
                None
            }
        };
        let of_rows = self.commit.rows.iter().filter_map(|row| match row {
            RowChange::Ended(ended, _) => Some(ended.turn),
            RowChange::RunLog(log) => Some(log.turn),
            RowChange::JournalRun { turn, .. } => Some(*turn),
            RowChange::JournalEntry(row) => Some(row.turn),
            _ => None,
        });
        of_facts.into_iter().chain(of_rows)
    }
}

impl Fact {
    fn of(facts: &NewFacts) -> Result<Self, StoreFault> {
        let record = record::facts(facts)?;
        let source = match facts {
            NewFacts::Turn { turn, expected, .. } => Source::Turn { turn: *turn, number: *expected },
            NewFacts::Plugin(_) => Source::Plugin,
            NewFacts::Started(_) => Source::Started,
            NewFacts::Revoked(_) => Source::Revoked,
            NewFacts::Removal(_) => Source::Removal,
        };
        let digest = Digest::of(&record);
        Ok(Self { source, record, digest })
    }
}

fn stored(row: &RowChange) -> Result<Stored, StoreFault> {
    Ok(match row {
        RowChange::Ended(row, _) => Stored::Record(encoded(row)?),
        RowChange::Suspension(row) => Stored::Record(encoded(row)?),
        RowChange::Delivery(row) => Stored::Record(encoded(row)?),
        RowChange::RunLog(log) => Stored::Record(encoded(log)?),
        RowChange::JournalEntry(row) => Stored::Record(encoded(&row.entry)?),
        RowChange::Audience(change) => {
            let record = |audience: &Option<Audience>| audience.as_ref().map(encoded).transpose();
            Stored::Audiences { before: record(&change.before)?, after: record(&change.after)? }
        }
        RowChange::Owner { .. }
        | RowChange::Call { .. }
        | RowChange::Due { .. }
        | RowChange::Kept(_)
        | RowChange::Open { .. }
        | RowChange::Length { .. }
        | RowChange::RetentionTime(_)
        | RowChange::Forget(..)
        | RowChange::JournalRun { .. }
        | RowChange::Value(_)
        | RowChange::Standing(_)
        | RowChange::StandingUse(_)
        | RowChange::ForgetStanding(_)
        | RowChange::Denied(_)
        | RowChange::ForgetDenial(_) => Stored::None,
    })
}

/// The stored form of a value.
pub(super) fn encoded(value: &impl Record) -> Result<Vec<u8>, StoreFault> {
    let mut record = Vec::new();
    value.write(&mut record).map_err(fault("encode a commit"))?;
    Ok(record)
}
