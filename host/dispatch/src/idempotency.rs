//! The idempotency key that a tool passes to the systems it changes.

use domain::{Call, Digest, Turn};

/// The key of a call. It is the same at every attempt, after every restart, after an approver's edit, and for a call
/// that is submitted again under the same id after a kill lost it. It covers the caller, so that nobody can take the
/// key of another principal's call in advance. It covers the submission, so that two different calls with the same id
/// have different keys: a caller can use an id twice where nothing was recorded.
pub(crate) fn key(turn: &Turn, call: &Call) -> String {
    let parts = [
        turn.caller.as_str().as_bytes(),
        turn.conversation.as_str().as_bytes(),
        call.id.as_str().as_bytes(),
        call.tool.as_bytes(),
        call.submitted.as_str().as_bytes(),
    ];
    let mut key = Digest::of_parts(&parts).hex();
    key.truncate(32);
    key
}
