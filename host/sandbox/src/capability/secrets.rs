//! Secrets: values that a plugin can send where the operator allows it, and never reads.

use std::fmt;
use std::sync::Arc;

use super::http::HostPattern;

/// A secret that a plugin may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// The name under which `wasi:config` gives the placeholder.
    pub name: String,
    /// What stands for the placeholder on the way out.
    pub value: SecretValue,
    /// The hosts that it may be sent to.
    pub hosts: Vec<HostPattern>,
    /// Where in a request it may stand.
    pub places: Vec<SecretPlace>,
}

/// Where in a request a secret may stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPlace {
    /// In the value of the header of this name, in lower case.
    Header(String),
    /// In the value of the query parameter of this name.
    Query(String),
    /// In the JSON body, in the string at this pointer (RFC 6901).
    Body(String),
}

/// The value of a secret. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Arc<str>);

impl SecretValue {
    /// Keeps a value.
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the request that it goes into.
    #[expect(dead_code, reason = "used once requests are sent")]
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(…)")
    }
}
