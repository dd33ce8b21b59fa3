//! The key that a tool with effects hands to whatever it changes.

use domain::{CallId, ConversationId, Digest, PrincipalId};

/// The key of a call: the same at every attempt, after every restart, and for a call that is submitted again under the
/// same id after a kill lost it. It is a digest over whose call it is, so that nobody can guess, or take in advance, the
/// key of another principal's call.
pub(crate) fn key(caller: &PrincipalId, conversation: &ConversationId, call: &CallId) -> String {
    let parts = [caller.as_str().as_bytes(), conversation.as_str().as_bytes(), call.as_str().as_bytes()];
    let mut key = Digest::of_parts(&parts).hex();
    key.truncate(32);
    key
}
