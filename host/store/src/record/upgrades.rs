//! The upgrades of older records.

use serde_json::{Value, json};

/// Commits of version 4. The recovery of a durable tool had no effect, and all of them had `retry` unless they said
/// otherwise. Their requests in doubt must not be sent again without a decision.
pub(super) fn asks_about_requests(events: &mut Value) {
    for event in events.as_array_mut().into_iter().flatten() {
        let Some(pinned) = event.pointer_mut("/call_requested/pinned") else { continue };
        if pinned["durable"] == json!(true) && pinned["recovery"] == json!("retry") {
            pinned["recovery"] = json!("ask");
        }
    }
}

/// Entries of version 2. The text of an effect that was begun is its name.
pub(super) fn names_the_begun(entry: &mut Value) {
    if let Some(begun) = entry.pointer_mut("/record/begun") {
        *begun = json!({"name": begun.take()});
    }
}
