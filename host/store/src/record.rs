//! The stored form of a commit and of the rows beside it: one version byte, then JSON. No other file of the project
//! knows these bytes.
//!
//! A released version never changes. The golden files in `tests/golden/v<n>/` fix what it can hold: they stay readable,
//! and today's values encode to exactly these bytes. So a new field in the domain fails a test until it has a version
//! of its own. A record of an unknown version is refused. A guess at what a newer host wrote could undo a person's
//! decision.

mod field;
mod v1;

#[cfg(test)]
mod tests;

use dispatch::ports::{DeliveryRow, EndedTurn, RunLog, SuspensionRow};
use domain::{
    Event,
    event::{HostStarted, PluginEvent},
    retention::Removal,
    standing::{StandingRevoked, StandingRow},
    suspension::Audience,
};

use self::field::{Lent, LentSlice, Stored};

/// The version that is written. All up to this one are read.
pub(crate) const VERSION: u8 = 1;

/// Why bytes are not a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// A newer host wrote it.
    #[error("it has the format version {found} and this host reads up to {VERSION}; start a newer toolgate")]
    Newer {
        /// The version of the record.
        found: u8,
    },
    /// No host wrote it like this.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// A value of which there is a stored form.
pub(crate) trait Record: Sized {
    /// Appends the stored form of a borrowed value.
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error>;

    /// The value that the bytes hold.
    fn read(bytes: &[u8]) -> Result<Self, Unreadable>;
}

/// Appends the stored form of one commit's events.
pub(crate) fn write_events(events: &[Event], out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    out.push(VERSION);
    serde_json::to_writer(out, &LentSlice(events))
}

/// The events of one commit.
pub(crate) fn read_events(bytes: &[u8]) -> Result<Vec<Event>, Unreadable> {
    Ok(from_json::<Stored<Vec<Event>>>(bytes)?.0)
}

macro_rules! record {
    ($($type:ty),*) => {$(
        impl Record for $type {
            fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
                out.push(VERSION);
                serde_json::to_writer(out, &Lent(self))
            }

            fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
                Ok(from_json::<Stored<Self>>(bytes)?.0)
            }
        }
    )*};
}

record!(
    SuspensionRow,
    DeliveryRow,
    PluginEvent,
    HostStarted,
    StandingRow,
    StandingRevoked,
    Removal,
    EndedTurn,
    Audience,
    RunLog
);

fn from_json<'a, T: serde::Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Unreadable> {
    match bytes.split_first() {
        Some((&VERSION, json)) => serde_json::from_slice(json).map_err(|error| Unreadable::Damaged(error.to_string())),
        Some((&found, _)) if found > VERSION => Err(Unreadable::Newer { found }),
        Some((&found, _)) => Err(Unreadable::Damaged(format!("no format has the version {found}"))),
        None => Err(Unreadable::Damaged("it is empty".into())),
    }
}
