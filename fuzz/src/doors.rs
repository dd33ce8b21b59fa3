//! The bodies that the API takes, a turn in every form and an answer: each is taken or refused as the caller's mistake, and
//! what is taken is JSON that every reader behind the door reads.

use serde_json::Value;
use server::fuzzing::{resolve, submitted};

/// A body.
pub fn doors(bytes: &[u8]) {
    match submitted(bytes) {
        Ok(calls) => {
            for call in calls {
                let arguments = serde_json::from_str::<Value>(call.arguments.as_str());
                let arguments = arguments.unwrap_or_else(|error| panic!("{error}: {}", call.arguments.as_str()));
                // A text stands for arguments that were no JSON; it fails the call and never runs it.
                assert!(!arguments.is_string() || !bytes.is_empty());
            }
        }
        Err((status, detail)) => refused(status, &detail),
    }
    if let Err((status, detail)) = resolve(bytes) {
        refused(status, &detail);
    }
}

fn refused(status: u16, detail: &str) {
    assert!((400..500).contains(&status), "{status}: {detail}");
    crate::assert_harmless(detail);
}
