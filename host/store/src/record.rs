//! The stored form of a commit and of the rows beside it: one version byte, then JSON. No other file of the project
//! knows these bytes.
//!
//! Each type of record counts its own versions. The newest is written, and all are read. Only one form has code (`v1`): it reads the
//! JSON of all versions, and then the value of an older one is upgraded version by version ([`Record::UPGRADES`]). So no record is
//! ever a tree of JSON values, which would take many times the memory of its bytes.
//!
//! A released version never changes. The golden files in `tests/golden/v<n>/` fix what it can hold: they stay readable,
//! and today's values encode to exactly these bytes. A field that a released host does not know needs a new version, or a
//! new format of keys (`sled/folder.rs`). Then that host refuses the record and says that it is too old; otherwise it would
//! call the record damaged. A record of a newer version is refused, because a guess at its meaning could undo a person's
//! decision.

pub(crate) mod field;
mod upgrades;
mod v1;

use dispatch::ports::{DeliveryRow, EndedTurn, NewFacts, RunLog, StoreFault, SuspensionRow};
use domain::{
    Event,
    event::{HostStarted, PluginEvent},
    journal::Entry,
    retention::Removal,
    standing::{StandingRevoked, StandingRow},
    suspension::Audience,
};

use self::field::{Lent, LentSlice, Stored};
pub(crate) use self::v1::stored_state;
use crate::fault::fault;

/// Gives a value that one version wrote its meaning in the next version. `None`: the next version only has more members.
type Upgrade<T> = Option<fn(&mut T)>;

/// The upgrades of a commit's events, as [`Record::UPGRADES`].
/// Version 2 has the steps of durable calls, version 3 their waits for external systems, and version 4 the waits that servers ask for
/// and the summaries of journals. Version 5 has nested turns. Version 6 has requests in doubt, about which the recovery of
/// a durable tool decides. Version 7 has the channels of answers, and of needs. Version 8 has the limits of
/// durable calls.
const EVENTS: &[Upgrade<Vec<Event>>] =
    &[None, None, None, None, Some(upgrades::durable_calls_fail_in_doubt), None, None];

/// The version that is written.
const fn newest<T>(upgrades: &[Upgrade<T>]) -> u8 {
    1 + upgrades.len() as u8
}

/// The version of a commit's events that is written.
#[cfg(test)]
pub(crate) const NEWEST_EVENTS: u8 = newest(EVENTS);

/// The version of this type that is written.
#[cfg(test)]
pub(crate) const fn newest_of<T: Record>() -> u8 {
    newest(T::UPGRADES)
}

/// Why bytes are not a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// A newer host wrote it.
    #[error("it has the format version {found} and this host reads up to {known}; start a newer toolgate")]
    Newer {
        /// The version of the record.
        found: u8,
        /// The newest version that this host knows.
        known: u8,
    },
    /// No host wrote it like this.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// A value with a stored form.
pub(crate) trait Record: Sized + 'static {
    /// The first upgrades from version 1 to version 2, and so on. Without any, version 1 is the newest.
    const UPGRADES: &'static [Upgrade<Self>] = &[];

    /// Appends the stored form of a borrowed value.
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error>;

    /// The value that the bytes hold.
    fn read(bytes: &[u8]) -> Result<Self, Unreadable>;
}

/// Appends the stored form of one commit's events.
pub(crate) fn write_events(events: &[Event], out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    out.push(newest(EVENTS));
    serde_json::to_writer(out, &LentSlice(events))
}

/// The stored form of a commit's facts.
pub(crate) fn facts(facts: &NewFacts) -> Result<Vec<u8>, StoreFault> {
    let mut bytes = Vec::with_capacity(512);
    let written = match facts {
        NewFacts::Turn { events, .. } => write_events(events, &mut bytes),
        NewFacts::Plugin(event) => event.write(&mut bytes),
        NewFacts::Started(start) => start.write(&mut bytes),
        NewFacts::Revoked(revoked) => revoked.write(&mut bytes),
        NewFacts::Removal(removal) => removal.fact().write(&mut bytes),
    };
    written.map_err(fault("encode a commit"))?;
    Ok(bytes)
}

/// The events of one commit.
pub(crate) fn read_events(bytes: &[u8]) -> Result<Vec<Event>, Unreadable> {
    from_json(bytes, EVENTS)
}

macro_rules! record {
    ($($type:ty $(= [$($upgrade:expr),+])?),*) => {$(
        impl Record for $type {
            $(const UPGRADES: &'static [Upgrade<Self>] = &[$($upgrade),+];)?

            fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
                out.push(newest(Self::UPGRADES));
                serde_json::to_writer(out, &Lent(self))
            }

            fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
                from_json(bytes, Self::UPGRADES)
            }
        }
    )*};
}

record!(
    // Version 2 has who ended it, and the signal that it waits for.
    SuspensionRow = [None],
    DeliveryRow,
    PluginEvent,
    HostStarted,
    StandingRow,
    StandingRevoked,
    Removal,
    EndedTurn,
    Audience,
    RunLog,
    // Version 2 has its run and its function, requests that a server refused for now, and in the first entry a salt. Version 3 has
    // the bytes of a request, and key-value accesses that were denied.
    Entry = [None, None]
);

fn from_json<T: field::Field>(bytes: &[u8], upgrades: &[Upgrade<T>]) -> Result<T, Unreadable> {
    let known = newest(upgrades);
    match bytes.split_first() {
        Some((&found, json)) if (1..=known).contains(&found) => {
            let read = serde_json::from_slice::<Stored<T>>(json);
            let mut value = read.map_err(|error| Unreadable::Damaged(error.to_string()))?.0;
            upgrades.iter().skip(usize::from(found) - 1).flatten().for_each(|upgrade| upgrade(&mut value));
            Ok(value)
        }
        Some((&found, _)) if found > known => Err(Unreadable::Newer { found, known }),
        Some((&found, _)) => Err(Unreadable::Damaged(format!("no format has the version {found}"))),
        None => Err(Unreadable::Damaged("it is empty".into())),
    }
}

#[cfg(test)]
pub(crate) mod tests;
