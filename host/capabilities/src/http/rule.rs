//! The rules that allow requests, by scheme, host, port, path and method.

use std::collections::BTreeSet;
use std::fmt;

use domain::Span;
use percent_encoding::percent_decode_str;
use url::Url;

use crate::host_pattern::HostPattern;
use crate::words::InvalidWord;

/// A rule that allows requests. A request must match one rule in every field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRule {
    pub scheme: Scheme,
    pub host: HostPattern,
    pub port: u16,
    /// The path, or the beginning of it up to a whole segment. `/` is every path.
    pub path: String,
    /// In upper case.
    pub methods: BTreeSet<String>,
    /// The addresses that the host's name may resolve to.
    pub reach: Reach,
    /// Whether the server carries out a request once, even if it gets it again with the same `Idempotency-Key`.
    pub idempotent: bool,
    /// The longest time that a durable call waits for the server before a request is sent again. `None`: it is not.
    pub retry: Option<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    Http,
    Https,
}

/// The addresses that a request may connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Reach {
    #[default]
    Public,
    /// The public internet, this machine and the operator's own network: loopback, private and unique local addresses. Never
    /// the addresses of a cloud's metadata, which are link-local or listed.
    Private,
}

/// The first field in which a request does not match a rule. Later variants match the rule better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Misfit {
    Host,
    Scheme,
    Port,
    Path,
    Method,
}

/// Methods that no rule can allow: CONNECT opens a tunnel, and the others send the request back, secrets included.
pub(super) const NEVER: [&str; 3] = ["CONNECT", "TRACE", "TRACK"];

impl HttpRule {
    /// Reads the URL of a rule, such as `https://api.example.com/v1/` or `https://*.example.com`. A path that ends with `/`
    /// allows everything below it; another one allows itself and everything below it.
    ///
    /// # Errors
    /// If the URL has another scheme, a user, a query, a fragment, or a path with `..` or a wildcard, or if no rule can allow
    /// one of the methods.
    pub fn parse(url: &str, methods: BTreeSet<String>, reach: Reach) -> Result<Self, InvalidWord> {
        let invalid = |why: &str| InvalidWord(format!("{url:?} is not a rule for requests: {why}"));
        if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(invalid("it holds white space or control characters"));
        }
        // A URL has no wildcard, so the parser gets the URL without it.
        let (below, plain) = match url.split_once("://*.") {
            Some((scheme, rest)) => (true, format!("{scheme}://{rest}")),
            None => (false, url.to_owned()),
        };
        let parsed = Url::parse(&plain).map_err(|error| invalid(&error.to_string()))?;
        let scheme = Scheme::of(&parsed).ok_or_else(|| invalid("the scheme must be http or https"))?;
        let (authority, path) = split(&plain).ok_or_else(|| invalid("`://` must follow the scheme"))?;
        if authority.contains('@') {
            return Err(invalid("a user has no place in it; use a secret"));
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(invalid("it ends with the path"));
        }
        if path.contains('*') {
            return Err(invalid("a path has no wildcards; everything below it is allowed"));
        }
        if !path.is_empty() && (path != parsed.path() || is_ambiguous(path)) {
            return Err(invalid(&format!("the path is not in its normal form, which is {}", parsed.path())));
        }
        let host = parsed.host_str().ok_or_else(|| invalid("it names no host"))?;
        let host = if below { format!("*.{host}") } else { host.to_owned() };
        let port = parsed.port_or_known_default().filter(|port| *port != 0).ok_or_else(|| invalid("it has no port"))?;
        let methods = methods.iter().map(|method| known_method(method)).collect::<Result<_, _>>()?;
        Ok(Self {
            scheme,
            host: host.parse()?,
            port,
            path: parsed.path().to_owned(),
            methods,
            reach,
            idempotent: false,
            retry: None,
        })
    }

    /// Whether the rule allows a request. The URL is in the normal form of the URL standard.
    pub(super) fn allows(&self, method: &str, url: &Url) -> Result<(), Misfit> {
        let fits = [
            (url.host_str().is_some_and(|host| self.host.matches(host)), Misfit::Host),
            (Scheme::of(url) == Some(self.scheme), Misfit::Scheme),
            (url.port_or_known_default() == Some(self.port), Misfit::Port),
            (self.covers(url.path()), Misfit::Path),
            (self.methods.contains(method), Misfit::Method),
        ];
        fits.into_iter().find(|(fits, _)| !fits).map_or(Ok(()), |(_, misfit)| Err(misfit))
    }

    /// Whether a path lies within the rule's path. A path that servers read in different ways lies only within `/`.
    fn covers(&self, path: &str) -> bool {
        let below = |path: &str| match self.path.strip_suffix('/') {
            Some(_) => path.starts_with(&self.path),
            None => path.strip_prefix(&self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        };
        self.path == "/" || (below(path) && !is_ambiguous(path))
    }
}

/// Whether some server may read a path differently from the URL standard: a segment leads upwards after its percent-encoding
/// is undone, once or several times. Some servers divide segments at `\`, and some ignore the rest of a segment after `;`.
fn is_ambiguous(path: &str) -> bool {
    let mut plain = path.to_owned();
    for _ in 0..4 {
        let leads_up = |segment: &str| matches!(segment.split(';').next(), Some("." | ".."));
        if plain.split(['/', '\\']).any(leads_up) || plain.contains('\0') {
            return true;
        }
        let decoded = percent_decode_str(&plain).decode_utf8_lossy().into_owned();
        if decoded == plain {
            return false;
        }
        plain = decoded;
    }
    // No honest client encodes a path four times.
    true
}

/// Authority and path of a URL as written, without query and fragment. `None` if the first `://` does not follow the scheme,
/// as in `https:/a/://b`: the URL standard reads the host `a`, and people read the host `b`.
fn split(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    if !scheme.bytes().all(|b| b.is_ascii_alphabetic()) {
        return None;
    }
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let rest = &rest[..end];
    Some(rest.split_at(rest.find(['/', '\\']).unwrap_or(rest.len())))
}

fn known_method(method: &str) -> Result<String, InvalidWord> {
    let upper = method.to_ascii_uppercase();
    let is_token = (1..=32).contains(&upper.len()) && upper.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
    if !is_token {
        return Err(InvalidWord(format!("{method:?} is not a method: expected a word such as \"POST\"")));
    }
    if NEVER.contains(&upper.as_str()) {
        return Err(InvalidWord(format!(
            "the method {upper} cannot be allowed, because it opens a tunnel or returns the request with its secrets"
        )));
    }
    Ok(upper)
}

impl Scheme {
    pub(super) fn of(url: &Url) -> Option<Self> {
        match url.scheme() {
            "http" => Some(Self::Http),
            "https" => Some(Self::Https),
            _ => None,
        }
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl fmt::Display for HttpRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let methods: Vec<_> = self.methods.iter().map(String::as_str).collect();
        let Self { scheme, host, port, path, .. } = self;
        write!(f, "{} {}://{}:{port}{path}", methods.join(","), scheme.as_str(), host.as_str())
    }
}

#[cfg(test)]
mod tests;
