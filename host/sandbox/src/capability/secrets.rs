//! Secrets: values that a plugin can send where the operator allows it, and never reads.
//!
//! A guest is given a placeholder for each of its secrets, as a value of `wasi:config`, and puts it wherever the secret
//! belongs in a request. On the way out the host puts the value in its place, if the secret was granted for that host and
//! that place, and refuses the request if it was not. On the way back, and in whatever the guest says to anybody, the value
//! is looked for and masked, in the forms in which a server would echo it (`forms.rs`).

mod forms;
mod mask;
mod outgoing;

use std::fmt;
use std::sync::Arc;

use domain::Digest;

pub(crate) use self::mask::{Mask, Masker, Masking};
pub(crate) use self::outgoing::{Destination, Misplaced};
use super::http::HostPattern;
use crate::call::Job;

/// The least bytes of a secret's value: a shorter one is found in texts that have nothing to do with it, and guessed.
pub const LEAST_SECRET: usize = 8;

/// The most bytes of a secret's value: keys and tokens are shorter, and each answer is searched for it.
pub const MOST_SECRET: usize = 8 << 10;

/// Bytes that are searched at once, before others get on.
const STEP: usize = 16 << 10;

/// A secret that a plugin may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// The name under which `wasi:config` gives the placeholder: letters, digits, `_`, `-` and `.`.
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
    /// In the value of the header of this name, in lower case; in that of `authorization` also within the credentials of
    /// the scheme Basic (RFC 7617).
    Header(String),
    /// In the value of the query parameter of this name.
    Query(String),
    /// In the body: in the string at this pointer (RFC 6901) of a JSON body, or in the field `/NAME` of a form.
    Body(String),
}

/// The value of a secret. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Arc<str>);

/// A text that cannot be the value of a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSecret {
    /// Too short or too long.
    #[error("a secret has {LEAST_SECRET} to {MOST_SECRET} bytes, this one has {0}")]
    Size(usize),
    /// It has a character that no header can carry.
    #[error("a secret has no control characters, and this one does; is it the right file?")]
    Control,
}

impl SecretValue {
    /// Checks a value and keeps it.
    ///
    /// # Errors
    /// [`InvalidSecret`], which does not show it.
    pub fn new(value: &str) -> Result<Self, InvalidSecret> {
        if !(LEAST_SECRET..=MOST_SECRET).contains(&value.len()) {
            return Err(InvalidSecret::Size(value.len()));
        }
        if value.contains(char::is_control) {
            return Err(InvalidSecret::Control);
        }
        Ok(Self(value.into()))
    }

    /// The value itself, for the request that it goes into and for the mask that looks for it.
    fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(…)")
    }
}

impl fmt::Display for SecretPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::Body(pointer) => write!(f, "body:{pointer}"),
        }
    }
}

/// The secrets of one call, each with its placeholder.
#[derive(Clone, Default)]
pub(crate) struct Vault(Option<Arc<Entries>>);

struct Entries {
    entries: Vec<Entry>,
    mask: Mask,
}

struct Entry {
    secret: Secret,
    placeholder: String,
}

impl Vault {
    /// The secrets that a job may use. The placeholders are the same at every attempt at a call and another for each call,
    /// so one that is found somewhere says where it came from, and says nothing of the value.
    pub(crate) fn of(job: &Job) -> Self {
        if job.grants.secrets.is_empty() {
            return Self::default();
        }
        let entry = |secret: &Secret| {
            let parts = [job.plugin.as_str(), &job.idempotency_key, &secret.name].map(str::as_bytes);
            let digest = Digest::of_parts(&[&[b"toolgate secret placeholder".as_slice()], parts.as_slice()].concat());
            Entry { secret: secret.clone(), placeholder: format!("{PREFIX}{}", &digest.hex()[..32]) }
        };
        let mask = Mask::of(job.grants.secrets.iter().map(|secret| (secret.name.as_str(), secret.value.reveal())));
        Self(Some(Arc::new(Entries { entries: job.grants.secrets.iter().map(entry).collect(), mask })))
    }

    /// Whether there is none, so that nothing has to be looked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The names of the secrets, and what the guest is given instead of their values.
    pub(crate) fn placeholders(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries().iter().map(|entry| (entry.secret.name.as_str(), entry.placeholder.as_str()))
    }

    /// A text with every value of a secret masked.
    pub(crate) fn masked(&self, text: String) -> String {
        match &self.0 {
            Some(entries) => entries.mask.text(text),
            None => text,
        }
    }

    /// The beginning of a text with every value of a secret masked, and how many bytes of the text come after it. Of a text
    /// of more than so many bytes at least that many are looked at.
    pub(crate) fn masked_beginning(&self, mut text: String, most: usize) -> (String, usize) {
        let Some(entries) = &self.0 else { return (text, 0) };
        let (size, seen) = (text.len(), text.floor_char_boundary(most.saturating_add(entries.mask.longest())));
        if seen == size {
            return (entries.mask.text(text), 0);
        }
        text.truncate(seen);
        let mut masker = entries.mask.stream();
        let mut masked = masker.push(text.as_bytes());
        let kept = match std::str::from_utf8(&masked) {
            // In the middle of a character.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => masked.len(),
        };
        let rest = size - seen + masker.held() + masked.len() - kept;
        masked.truncate(kept);
        (mask::whole(masked), rest)
    }

    /// A text with every value of a secret masked, in steps between which others get on.
    pub(crate) async fn masked_in_steps(&self, text: String) -> String {
        let Some(mut masker) = self.masker() else { return text };
        let mut masked = Vec::with_capacity(text.len());
        for step in text.as_bytes().chunks(STEP) {
            masked.extend(masker.push(step));
            tokio::task::yield_now().await;
        }
        masked.extend(masker.finish());
        mask::whole(masked)
    }

    /// The bytes that a [`Masker`] holds back at most, besides the last piece.
    pub(crate) fn held_back(&self) -> usize {
        self.0.as_ref().map_or(0, |entries| entries.mask.longest())
    }

    /// Masks what comes in pieces. `None` where there is nothing to look for.
    pub(crate) fn masker(&self) -> Option<Masker> {
        self.0.as_ref().map(|entries| entries.mask.stream())
    }

    fn entries(&self) -> &[Entry] {
        self.0.as_ref().map_or(&[], |entries| &entries.entries)
    }
}

/// How every placeholder begins. Its characters survive the encodings of URLs, forms and JSON as they are.
const PREFIX: &str = "toolgate-secret-";

#[cfg(test)]
mod tests;
