//! `wasi:http` (0.2: `types`, `outgoing-handler`): requests to what the operator allows, and to nothing else.

mod rule;

pub use self::rule::{HostPattern, HttpRule, InvalidRule, Reach, Scheme};
