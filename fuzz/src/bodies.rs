//! Bodies of requests: a turn in every format, and an answer. Each is accepted or refused as the caller's error. An
//! accepted body is JSON that all later readers can read.

use serde_json::Value;
use server::fuzzing::{resolve, submitted};

/// A body.
pub fn bodies(bytes: &[u8]) {
    match submitted(bytes) {
        Ok(calls) => {
            for call in calls {
                let arguments = serde_json::from_str::<Value>(call.arguments.as_str());
                let arguments = arguments.unwrap_or_else(|error| panic!("{error}: {}", call.arguments.as_str()));
                // A string replaces arguments that are not JSON. It fails the call, which never runs.
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
