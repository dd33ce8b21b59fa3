//! The allow-list: scheme, host, port, path and methods of the requests that a plugin may send.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use url::Url;

/// What one rule allows. A request has to fit one rule in everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRule {
    /// The scheme.
    pub scheme: Scheme,
    /// The hosts.
    pub host: HostPattern,
    /// The port.
    pub port: u16,
    /// What the path has to begin with; a segment fits as a whole only.
    pub path: String,
    /// The methods, in upper case.
    pub methods: BTreeSet<String>,
    /// Which addresses the host's name may lead to.
    pub reach: Reach,
}

/// How a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Under TLS.
    Https,
}

/// Which addresses may be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Reach {
    /// Those of the public internet.
    #[default]
    Public,
    /// Those of the operator's own network and of this machine besides: loopback, private and unique local ones. Never
    /// link-local ones, where clouds keep their metadata.
    Private,
}

/// A host's name or address, or every name below a domain: `*.example.com`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPattern(String);

/// A text that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidRule(String);

impl HttpRule {
    /// Reads the URL of a rule, such as `https://api.example.com/v1/` or `https://*.example.com`.
    ///
    /// # Errors
    /// When it is no such URL: another scheme, a user, a query, a fragment, a `..`.
    pub fn parse(url: &str, methods: BTreeSet<String>, reach: Reach) -> Result<Self, InvalidRule> {
        let invalid = |why: &str| InvalidRule(format!("{url:?} is no rule for requests: {why}"));
        // A URL has no wildcard, so it is taken off for the parser and put back.
        let (below, plain) = match url.split_once("://*.") {
            Some((scheme, rest)) => (true, format!("{scheme}://{rest}")),
            None => (false, url.to_owned()),
        };
        let parsed = Url::parse(&plain).map_err(|error| invalid(&error.to_string()))?;
        let scheme = match parsed.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(invalid("the scheme is http or https")),
        };
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(invalid("a user has no place in it; use a secret"));
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(invalid("it ends with the path"));
        }
        let host = parsed.host_str().ok_or_else(|| invalid("it names no host"))?;
        let host = if below { format!("*.{host}") } else { host.to_owned() };
        let port = parsed.port_or_known_default().ok_or_else(|| invalid("it has no port"))?;
        Ok(Self { scheme, host: host.parse()?, port, path: parsed.path().to_owned(), methods, reach })
    }
}

impl FromStr for HostPattern {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let name = text.strip_prefix("*.").unwrap_or(text);
        let invalid = || InvalidRule(format!("{text:?} is no host: expected a name, an address, or `*.` and a name"));
        let parsed = Url::parse(&format!("https://{name}/")).map_err(|_| invalid())?;
        let host = parsed.host_str().filter(|host| *host == name).ok_or_else(invalid)?;
        if text.starts_with("*.") && !matches!(parsed.host(), Some(url::Host::Domain(_))) {
            return Err(invalid());
        }
        let _ = host;
        Ok(Self(text.to_owned()))
    }
}

impl HostPattern {
    /// Whether a host, in the normal form of the URL standard, fits.
    #[must_use]
    pub fn matches(&self, host: &str) -> bool {
        match self.0.strip_prefix("*.") {
            Some(domain) => host.strip_suffix(domain).is_some_and(|below| below.len() > 1 && below.ends_with('.')),
            None => self.0 == host,
        }
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Scheme {
    /// As it stands in a URL.
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
