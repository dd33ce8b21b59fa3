//! The operations of a durable call: each result is in the call's journal. A write is committed together with its entry, so
//! no kill can separate the two.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::journal::ValueChange;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::buckets::{BucketError, CommitWrite, Swapped};
use crate::journal::{HostCall, Journal, JournalError};

/// The stored form of a result. Journals of older hosts have it, so a change must read them.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Stored {
    Done,
    /// In Base64.
    Value(Option<String>),
    Exists(bool),
    Keys {
        keys: Vec<String>,
        more: bool,
    },
    Sum(i64),
    /// The value now, in Base64.
    Stale(Option<String>),
    Refused(String),
    Denied,
}

/// A result that can be recorded.
pub(super) trait Recorded: Sized + Send + 'static {
    /// The result of a write that makes this change.
    fn of_write(change: &ValueChange) -> Option<Self>;
    fn store(&self) -> StoredResult;
    /// `None` if the result of another function is stored.
    fn read(stored: StoredResult) -> Option<Self>;
}

/// A [`Stored`] result that is no error.
pub(super) struct StoredResult(Stored);

fn encoded(value: Option<&Vec<u8>>) -> Option<String> {
    value.map(|value| STANDARD.encode(value))
}

/// The outer `None`: it is no Base64.
fn decoded(value: Option<String>) -> Option<Option<Vec<u8>>> {
    value.map(|value| STANDARD.decode(value)).transpose().ok()
}

macro_rules! recorded {
    ($type:ty: |$value:ident| $store:expr, $pattern:pat => $read:expr, |$change:ident| $write:expr) => {
        impl Recorded for $type {
            fn of_write($change: &ValueChange) -> Option<Self> {
                $write
            }

            fn store(&self) -> StoredResult {
                let $value = self;
                StoredResult($store)
            }

            fn read(StoredResult(stored): StoredResult) -> Option<Self> {
                match stored {
                    $pattern => $read,
                    _ => None,
                }
            }
        }
    };
}

recorded!((): |_value| Stored::Done, Stored::Done => Some(()), |_change| Some(()));
recorded!(bool: |value| Stored::Exists(*value), Stored::Exists(value) => Some(value), |_change| None);
recorded!(i64: |value| Stored::Sum(*value), Stored::Sum(value) => Some(value),
    |change| std::str::from_utf8(change.value.as_ref()?).ok()?.parse().ok());
recorded!(Option<Vec<u8>>: |value| Stored::Value(encoded(value.as_ref())),
    Stored::Value(value) => decoded(value), |_change| None);
recorded!((Vec<String>, bool): |value| Stored::Keys { keys: value.0.clone(), more: value.1 },
    Stored::Keys { keys, more } => Some((keys, more)), |_change| None);

impl Recorded for Swapped {
    fn of_write(_: &ValueChange) -> Option<Self> {
        Some(Self::Done)
    }

    fn store(&self) -> StoredResult {
        StoredResult(match self {
            Self::Done => Stored::Done,
            Self::Stale(value) => Stored::Stale(encoded(value.as_ref())),
        })
    }

    fn read(StoredResult(stored): StoredResult) -> Option<Self> {
        match stored {
            Stored::Done => Some(Self::Done),
            Stored::Stale(value) => decoded(value).map(Self::Stale),
            _ => None,
        }
    }
}

/// The text of a result in a journal. A fault of the host is no result.
fn text<T: Recorded>(result: &Result<T, BucketError>) -> Result<Arc<str>, JournalError> {
    let stored = match result {
        Ok(value) => value.store().0,
        Err(BucketError::Refused(why)) => Stored::Refused(why.clone()),
        Err(BucketError::Denied) => Stored::Denied,
        Err(BucketError::Fault(detail)) => {
            tracing::error!(detail, "a plugin's bucket failed");
            return Err(JournalError::Fault("the host's store failed".to_owned()));
        }
    };
    serde_json::to_string(&stored).map(Arc::from).map_err(|error| JournalError::Fault(error.to_string()))
}

/// The result that a journal has for this call, if an earlier run made it.
pub(super) fn recorded<T: Recorded>(
    journal: &Journal,
    call: &HostCall,
) -> Result<Option<Result<T, BucketError>>, JournalError> {
    let Some(text) = journal.recorded(call)? else { return Ok(None) };
    let result = match serde_json::from_str(&text) {
        Ok(Stored::Refused(why)) => Some(Err(BucketError::Refused(why))),
        Ok(Stored::Denied) => Some(Err(BucketError::Denied)),
        Ok(stored) => T::read(StoredResult(stored)).map(Ok),
        Err(_) => None,
    };
    let damaged = || JournalError::Fault("the journal has a result of another form".to_owned());
    result.map(Some).ok_or_else(damaged)
}

/// Records a result that changed nothing.
pub(super) fn record<T: Recorded>(
    journal: &Journal,
    call: &HostCall,
    result: &Result<T, BucketError>,
) -> Result<(), JournalError> {
    journal.record(call, text(result)?)
}

/// Commits a write together with its entry.
pub(super) struct Committing {
    journal: Journal,
    call: HostCall,
    text: fn(&ValueChange) -> Result<Arc<str>, JournalError>,
    /// Whether it was committed. `None`: nothing was written.
    done: Mutex<Option<Result<(), JournalError>>>,
}

impl Committing {
    pub(super) fn new<T: Recorded>(journal: Journal, call: HostCall) -> Self {
        let of = |change: &ValueChange| {
            let result = T::of_write(change).ok_or_else(|| JournalError::Fault("a read that writes".to_owned()))?;
            text(&Ok(result))
        };
        Self { journal, call, text: of, done: Mutex::default() }
    }

    /// Whether the write was committed. `None`: nothing was written.
    pub(super) fn done(&self) -> Option<Result<(), JournalError>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl CommitWrite for Committing {
    fn commit(&self, change: ValueChange) -> Result<bool, BucketError> {
        let written = (self.text)(&change)
            .and_then(|text| Handle::current().block_on(self.journal.write(&self.call, text, vec![change])));
        if written != Ok(false) {
            *self.done.lock().unwrap_or_else(PoisonError::into_inner) = Some(written.clone().map(drop));
        }
        written.map_err(|error| BucketError::Fault(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Journals keep these texts, so they never change.
    #[test]
    fn stored_results_have_these_forms() {
        let value = || Some(b"v\xff".to_vec());
        let forms = [
            (text(&Ok(())), r#""done""#),
            (text(&Ok(value())), r#"{"value":"dv8="}"#),
            (text(&Ok(None::<Vec<u8>>)), r#"{"value":null}"#),
            (text(&Ok(true)), r#"{"exists":true}"#),
            (text(&Ok((vec!["k".to_owned()], false))), r#"{"keys":{"keys":["k"],"more":false}}"#),
            (text(&Ok(-5_i64)), r#"{"sum":-5}"#),
            (text(&Ok(Swapped::Done)), r#""done""#),
            (text(&Ok(Swapped::Stale(value()))), r#"{"stale":"dv8="}"#),
            (text::<()>(&Err(BucketError::Refused("full".to_owned()))), r#"{"refused":"full"}"#),
            (text::<()>(&Err(BucketError::Denied)), r#""denied""#),
        ];
        for (text, form) in forms {
            assert_eq!(text.as_deref(), Ok(form));
        }
        let read = |text| serde_json::from_str(text).map(StoredResult).ok();
        assert_eq!(read(r#"{"value":"dv8="}"#).and_then(Option::<Vec<u8>>::read), Some(value()));
        assert_eq!(read(r#"{"stale":null}"#).and_then(Swapped::read), Some(Swapped::Stale(None)));
        assert_eq!(read(r#"{"sum":-5}"#).and_then(bool::read), None);
    }
}
