//! The key that a tool with effects hands to whatever it changes.

use domain::{Call, Digest, Turn};

/// The key of a call: the same at every attempt, after every restart, after an approver's edit, and for a call that is
/// submitted again under the same id after a kill lost it. It is a digest over whose call it is, so that nobody can take the
/// key of another principal's call in advance; and over what was submitted, so that an id which a caller uses twice, as it
/// can where nothing was recorded, is no reason to take one call for the other.
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
