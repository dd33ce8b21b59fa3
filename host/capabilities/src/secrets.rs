//! Secrets: values that a plugin can send where the operator allows it, and never reads.
//!
//! A guest gets a placeholder for each of its secrets, as a value of `wasi:config`, and puts it into a request. The host
//! replaces the placeholder by the value if the secret is granted for that host and that place, and refuses the request
//! otherwise. The host redacts the value in answers and in everything that the guest says, in the forms in which a server
//! would echo it (`forms.rs`).

mod forms;
mod grant;
mod outgoing;
mod place;
mod redact;

use std::fmt;
use std::sync::Arc;

use domain::{Digest, PluginName};

pub use self::grant::{RequestedSecret, SecretTable};
pub(crate) use self::outgoing::{Destination, Misplaced};
pub use self::place::SecretPlace;
use self::redact::Redaction;
pub(crate) use self::redact::Redactor;
use crate::host_pattern::HostPattern;

/// A shorter value can be guessed, and the host would find it in unrelated texts.
pub const MIN_SECRET: usize = 8;

/// Keys and tokens are shorter, and the host searches each answer for the value.
pub const MAX_SECRET: usize = 8 << 10;

/// Bytes that are searched before other tasks run.
const STEP: usize = 16 << 10;

/// A secret that a plugin may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// The name under which `wasi:config` gives the placeholder: letters, digits, `_`, `-` and `.`.
    pub name: String,
    pub value: SecretValue,
    /// The hosts that may receive it.
    pub hosts: Vec<HostPattern>,
    /// The places in a request that may hold it.
    pub places: Vec<SecretPlace>,
}

impl Secret {
    /// The secret with no place to send it to. The host redacts it in what a call says.
    #[must_use]
    pub fn withdrawn(self) -> Self {
        Self { hosts: Vec::new(), places: Vec::new(), ..self }
    }
}

/// The value of a secret. Its `Debug` form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Arc<str>);

/// The reason why a text cannot be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSecret {
    #[error("a secret has {MIN_SECRET} to {MAX_SECRET} bytes, this one has {0}")]
    Size(usize),
    #[error("a secret must not contain control characters")]
    Control,
}

impl SecretValue {
    /// # Errors
    /// [`InvalidSecret`], which does not show the value.
    pub fn new(value: &str) -> Result<Self, InvalidSecret> {
        if !(MIN_SECRET..=MAX_SECRET).contains(&value.len()) {
            return Err(InvalidSecret::Size(value.len()));
        }
        if value.contains(char::is_control) {
            return Err(InvalidSecret::Control);
        }
        Ok(Self(value.into()))
    }

    /// The value itself, for requests and for the search.
    fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(…)")
    }
}

/// The secrets of one call, each with its placeholder.
#[derive(Clone, Default)]
pub struct Vault(Option<Arc<Entries>>);

struct Entries {
    entries: Vec<Entry>,
    redaction: Redaction,
}

struct Entry {
    secret: Secret,
    placeholder: String,
}

impl Vault {
    /// The placeholders of a call are the same at each attempt and differ between calls, so a placeholder that is found
    /// somewhere tells its origin and nothing of the value.
    #[must_use]
    pub fn new(plugin: &PluginName, idempotency_key: &str, secrets: &[Secret]) -> Self {
        if secrets.is_empty() {
            return Self::default();
        }
        let entry = |secret: &Secret| {
            let parts = [plugin.as_str(), idempotency_key, &secret.name].map(str::as_bytes);
            let digest = Digest::of_parts(&[&[b"toolgate secret placeholder".as_slice()], parts.as_slice()].concat());
            Entry { secret: secret.clone(), placeholder: format!("{PREFIX}{}", &digest.hex()[..32]) }
        };
        let redaction = Redaction::of(secrets.iter().map(|secret| (secret.name.as_str(), secret.value.reveal())));
        Self(Some(Arc::new(Entries { entries: secrets.iter().map(entry).collect(), redaction })))
    }

    /// The secrets of a call with these grants.
    #[must_use]
    pub fn of(plugin: &PluginName, idempotency_key: &str, granted: &impl AsRef<Vec<Secret>>) -> Self {
        Self::new(plugin, idempotency_key, granted.as_ref())
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The names of the secrets with their placeholders.
    pub(crate) fn placeholders(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries().iter().map(|entry| (entry.secret.name.as_str(), entry.placeholder.as_str()))
    }

    /// A text without the values.
    #[must_use]
    pub fn redacted(&self, text: String) -> String {
        match &self.0 {
            Some(entries) => entries.redaction.text(text),
            None => text,
        }
    }

    /// The beginning of a text without the values, and how many bytes of the text come after it. The search covers at least
    /// `min` bytes of a longer text.
    #[must_use]
    pub fn redacted_beginning(&self, mut text: String, min: usize) -> (String, usize) {
        let Some(entries) = &self.0 else { return (text, 0) };
        let (size, seen) = (text.len(), text.floor_char_boundary(min.saturating_add(entries.redaction.longest())));
        if seen == size {
            return (entries.redaction.text(text), 0);
        }
        text.truncate(seen);
        let mut redactor = entries.redaction.stream();
        let mut redacted = redactor.push(text.as_bytes());
        let kept = match std::str::from_utf8(&redacted) {
            // In the middle of a character.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => redacted.len(),
        };
        let rest = size - seen + redactor.held() + redacted.len() - kept;
        redacted.truncate(kept);
        (redact::whole(redacted), rest)
    }

    /// A text without the values. Other tasks run between the steps of the search.
    pub async fn redacted_in_steps(&self, text: String) -> String {
        let Some(mut redactor) = self.redactor() else { return text };
        let mut redacted = Vec::with_capacity(text.len());
        for step in text.as_bytes().chunks(STEP) {
            redacted.extend(redactor.push(step));
            tokio::task::yield_now().await;
        }
        redacted.extend(redactor.finish());
        redact::whole(redacted)
    }

    /// The maximum number of bytes that a [`Redactor`] holds back, besides the last piece.
    pub(crate) fn held_back(&self) -> usize {
        self.0.as_ref().map_or(0, |entries| entries.redaction.longest())
    }

    /// Redacts a text that comes in pieces. `None` if there is no secret.
    pub(crate) fn redactor(&self) -> Option<Redactor> {
        self.0.as_ref().map(|entries| entries.redaction.stream())
    }

    fn entries(&self) -> &[Entry] {
        self.0.as_ref().map_or(&[], |entries| &entries.entries)
    }
}

/// The beginning of every placeholder. URLs, forms and JSON do not escape its characters.
const PREFIX: &str = "toolgate-secret-";

#[cfg(test)]
mod tests;
