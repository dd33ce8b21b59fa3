//! Violations of a JSON Schema.

use std::fmt;

/// One way in which a JSON value breaks a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON Pointer (RFC 6901) into the value; empty for the whole.
    pub pointer: String,
    /// The fault, for a person or a model to correct.
    pub message: String,
}

impl Violation {
    /// The same fault of a value that contains this one at `root`.
    #[must_use]
    pub fn under(&self, root: &str) -> Self {
        Self { pointer: format!("{root}{}", self.pointer), message: self.message.clone() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "at {}: {}", self.pointer, self.message)
        }
    }
}
