//! Replaces placeholders by secrets in outgoing requests, where they are granted.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::json::{Value, quote};
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::{HeaderMap, Uri};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::{Entry, PREFIX, SecretPlace, Vault};

/// The destination of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Destination<'a> {
    /// The host's name or address in the normal form of the URL standard.
    pub(crate) host: &'a str,
    /// Whether nobody on the way can read the request: TLS, or a network that the operator declares as its own.
    pub(crate) is_confidential: bool,
}

/// A placeholder where its secret is not granted. The text is for the author's log and shows no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Misplaced {
    /// The secret is granted for other places or hosts.
    #[error("the secret {name} is not granted for {place} of requests to {host}")]
    NotGranted { name: String, place: String, host: String },
    #[error("the secret {name} cannot be sent over plain HTTP; use https, or set `private = true` in the rule")]
    InTheClear { name: String },
    /// A placeholder of another call, or a text that looks like one.
    #[error("{place} has a placeholder that is not from this call; read the configuration in each call")]
    Unknown { place: String },
    /// The text beside the secret would let the guest choose how much of it a server shows.
    #[error(
        "{place} has other text beside the placeholder of a secret; send the placeholder alone, or in a header after a scheme such as `Bearer`"
    )]
    NotAlone { place: String },
    /// The place occurs more than once, and servers differ in which one they read.
    #[error("{place} occurs more than once in this request; a secret must be its only value")]
    Twice { place: String },
    /// The request is not what its headers say.
    #[error("no secret can be put into {0}")]
    Malformed(&'static str),
}

impl Vault {
    /// Puts secrets into a request's head. On success no placeholder is left in it.
    ///
    /// # Errors
    /// [`Misplaced`]; the request must not be sent.
    pub(crate) fn fill_head(
        &self,
        to: Destination<'_>,
        uri: &mut Uri,
        headers: &mut HeaderMap,
    ) -> Result<(), Misplaced> {
        let lines: Vec<_> = headers.keys().map(|name| (name.clone(), headers.get_all(name).iter().count())).collect();
        for (name, lines) in lines {
            let filled = headers.get_all(&name).iter().map(|value| self.header(to, &name, value));
            let filled = filled.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().next();
            if let Some(filled) = filled {
                if lines > 1 {
                    return Err(Misplaced::Twice { place: SecretPlace::Header(name.as_str().to_owned()).to_string() });
                }
                headers.insert(name, filled);
            }
        }
        if !mentions(&percent_decode_str(&uri.to_string()).decode_utf8_lossy()) {
            return Ok(());
        }
        if mentions(&percent_decode_str(uri.path()).decode_utf8_lossy()) {
            return Err(self.misplaced("the path", uri.path(), to));
        }
        let query = self.pairs(to, uri.query().unwrap_or_default(), &|name| SecretPlace::Query(name))?;
        let mut parts = uri.clone().into_parts();
        let target = format!("{}?{query}", uri.path());
        parts.path_and_query = Some(target.parse().map_err(|_| Misplaced::Malformed("this query"))?);
        *uri = Uri::from_parts(parts).map_err(|_| Misplaced::Malformed("this query"))?;
        Ok(())
    }

    /// Whether a body for this host may hold a secret, so that the host must read it completely first.
    pub(crate) fn reads_bodies(&self, host: &str) -> bool {
        let body = |place: &SecretPlace| matches!(place, SecretPlace::Body(_));
        self.entries().iter().any(|entry| entry.may_go_to(host) && entry.secret.places.iter().any(body))
    }

    /// Puts secrets into a body.
    ///
    /// # Errors
    /// [`Misplaced`]; the request must not be sent.
    pub(crate) fn fill_body(
        &self,
        to: Destination<'_>,
        headers: &HeaderMap,
        body: Vec<u8>,
    ) -> Result<Vec<u8>, Misplaced> {
        if !mentions(&String::from_utf8_lossy(&body)) {
            return Ok(body);
        }
        let mut kinds = headers.get_all(http::header::CONTENT_TYPE).iter();
        let (Some(kind), None) = (kinds.next(), kinds.next()) else {
            return Err(Misplaced::Malformed("a body of no type, or of several"));
        };
        let kind = kind.to_str().unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let malformed = || Misplaced::Malformed("a body that is not what its content-type says");
        if kind == "application/x-www-form-urlencoded" {
            let text = String::from_utf8(body).map_err(|_| malformed())?;
            return self.pairs(to, &text, &|name| SecretPlace::Body(pointer_to(&name))).map(String::into_bytes);
        }
        if kind == "application/json" || kind.ends_with("+json") {
            let text = String::from_utf8(body).map_err(|_| malformed())?;
            let value = Value::parse(&text).map_err(|error| {
                let twice = Misplaced::Malformed("a body that has a duplicate key");
                if error.is_duplicate() { twice } else { malformed() }
            })?;
            let mut found = Vec::new();
            self.json(to, &value, &mut String::new(), &mut found)?;
            return put(text, &found).map(String::into_bytes).ok_or_else(malformed);
        }
        Err(Misplaced::Malformed("a body that is neither JSON nor a form"))
    }

    fn header(
        &self,
        to: Destination<'_>,
        name: &HeaderName,
        value: &HeaderValue,
    ) -> Result<Option<HeaderValue>, Misplaced> {
        let text = String::from_utf8_lossy(value.as_bytes());
        let place = || SecretPlace::Header(name.as_str().to_owned());
        let filled = if mentions(&text) {
            self.fill(to, &place(), &text)?
        } else if let Some(credentials) = basic(name, &text).filter(|credentials| mentions(credentials)) {
            format!("Basic {}", STANDARD.encode(self.fill(to, &place(), &credentials)?))
        } else {
            return Ok(None);
        };
        let mut filled = HeaderValue::try_from(filled).map_err(|_| Misplaced::Malformed("this header"))?;
        filled.set_sensitive(true);
        Ok(Some(filled))
    }

    /// Fills the values of `name=value&…`.
    fn pairs(
        &self,
        to: Destination<'_>,
        text: &str,
        place: &dyn Fn(String) -> SecretPlace,
    ) -> Result<String, Misplaced> {
        let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        let named = |pair: &str| decoded(pair.split_once('=').map_or(pair, |(name, _)| name));
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (plain, place) = (decoded(value), place(decoded(name)));
            if mentions(&decoded(name)) {
                return Err(self.misplaced("a parameter's name", &decoded(name), to));
            }
            if !mentions(&plain) {
                return Ok(pair.to_owned());
            }
            let filled = self.fill(to, &place, &plain)?;
            if text.split('&').filter(|other| named(other) == decoded(name)).count() > 1 {
                return Err(Misplaced::Twice { place: place.to_string() });
            }
            Ok(format!("{name}={}", utf8_percent_encode(&filled, NON_ALPHANUMERIC)))
        };
        text.split('&').map(pair).collect::<Result<Vec<_>, _>>().map(|pairs| pairs.join("&"))
    }

    /// Checks the strings of a JSON value, and collects their replacements. `pointer` leads to the value.
    fn json(
        &self,
        to: Destination<'_>,
        value: &Value,
        pointer: &mut String,
        found: &mut Vec<(String, String)>,
    ) -> Result<(), Misplaced> {
        let length = pointer.len();
        match value {
            Value::Text(text) if mentions(text) => {
                let filled = self.fill(to, &SecretPlace::Body(pointer.clone()), text)?;
                found.push((text.to_string(), filled));
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    pointer.push_str(&format!("/{index}"));
                    self.json(to, item, pointer, found)?;
                    pointer.truncate(length);
                }
            }
            Value::Object(members) => {
                for (name, member) in members.iter() {
                    if mentions(name) {
                        return Err(self.misplaced("a member's name", name, to));
                    }
                    pointer.push_str(&pointer_to(name));
                    self.json(to, member, pointer, found)?;
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A text with its placeholder replaced by the secret. The guest may not choose the text around the secret: it
    /// could then control which part a server cuts off.
    fn fill(&self, to: Destination<'_>, place: &SecretPlace, text: &str) -> Result<String, Misplaced> {
        let (before, found) = text.split_at(text.find(PREFIX).unwrap_or_default());
        let entry = self.entries().iter().find(|entry| found.starts_with(&entry.placeholder));
        let entry = entry.ok_or_else(|| Misplaced::Unknown { place: place.to_string() })?;
        if !entry.may_go_to(to.host) || !entry.secret.places.contains(place) {
            return Err(entry.not_granted(&place.to_string(), to));
        }
        let after = &found[entry.placeholder.len()..];
        let scheme = if matches!(place, SecretPlace::Header(_)) { MAX_SCHEME } else { 0 };
        if before.len() > scheme || !after.is_empty() {
            return Err(Misplaced::NotAlone { place: place.to_string() });
        }
        if !to.is_confidential {
            return Err(Misplaced::InTheClear { name: entry.secret.name.clone() });
        }
        Ok(format!("{before}{}", entry.secret.value.reveal()))
    }

    /// A placeholder at a place where no secret can be granted.
    fn misplaced(&self, place: &str, text: &str, to: Destination<'_>) -> Misplaced {
        let plain = percent_decode_str(text).decode_utf8_lossy();
        match self.entries().iter().find(|entry| plain.contains(&entry.placeholder)) {
            Some(entry) => entry.not_granted(place, to),
            None => Misplaced::Unknown { place: place.to_owned() },
        }
    }
}

impl Entry {
    fn may_go_to(&self, host: &str) -> bool {
        self.secret.hosts.iter().any(|pattern| pattern.matches(host))
    }

    fn not_granted(&self, place: &str, to: Destination<'_>) -> Misplaced {
        Misplaced::NotGranted { name: self.secret.name.clone(), place: place.to_owned(), host: to.host.to_owned() }
    }
}

/// Bytes before a secret in a header: the name of a scheme or of a user.
const MAX_SCHEME: usize = 64;

/// A JSON text with these strings replaced and everything else unchanged. `None` if the text holds one of them in
/// another form, for example with an unnecessary escape.
fn put(mut text: String, found: &[(String, String)]) -> Option<String> {
    if text.matches(PREFIX).count() != found.len() {
        return None;
    }
    for (placeholder, filled) in found {
        let quoted = quote(placeholder);
        let at = text.find(&quoted)?;
        text.replace_range(at..at + quoted.len(), &quote(filled));
    }
    Some(text)
}

/// Whether a text may hold a placeholder.
fn mentions(text: &str) -> bool {
    text.contains(PREFIX)
}

/// The credentials of the scheme Basic: the guest does not know the secret, so it encodes the placeholder.
fn basic(name: &HeaderName, text: &str) -> Option<String> {
    let (scheme, credentials) = text.split_once(' ')?;
    let is_basic = *name == AUTHORIZATION && scheme.eq_ignore_ascii_case("basic");
    let decoded = STANDARD.decode(is_basic.then(|| credentials.trim())?).ok()?;
    String::from_utf8(decoded).ok()
}

/// The pointer to a member of this name (RFC 6901).
fn pointer_to(name: &str) -> String {
    format!("/{}", domain::json::pointer_step(name))
}
