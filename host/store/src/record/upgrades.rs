//! The upgrades of older records.

use serde_json::{Value, json};

/// Commits of version 5. The recovery of a durable tool had no effect, and was `retry` unless the tool said otherwise. A
/// request in doubt ended the call, so it must not be sent again now.
pub(super) fn durable_calls_fail_in_doubt(events: &mut Value) {
    for event in events.as_array_mut().into_iter().flatten() {
        let Some(pinned) = event.pointer_mut("/call_requested/pinned") else { continue };
        if pinned["durable"] == json!(true) && pinned["recovery"] == json!("retry") {
            pinned["recovery"] = json!("fail");
        }
    }
}
