//! The allow-list: scheme, host, port, path and methods of the requests that a plugin may send.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
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
    /// What the path has to begin with; a segment fits as a whole only. `/` is every path.
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
    /// those of a cloud's metadata, which are link-local or listed.
    Private,
}

/// A host's name or address, or every name below a domain: `*.example.com`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPattern(String);

/// A text that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidRule(String);

/// How near a request came to a rule that does not allow it: the nearest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Misfit {
    /// The rule is for another host.
    Host,
    /// For another scheme.
    Scheme,
    /// For another port.
    Port,
    /// For other paths.
    Path,
    /// For other methods.
    Method,
}

/// Methods that no rule can allow: a tunnel is no request, and the others give back what was sent, secrets included.
const NEVER: [&str; 3] = ["CONNECT", "TRACE", "TRACK"];

impl HttpRule {
    /// Reads the URL of a rule, such as `https://api.example.com/v1/` or `https://*.example.com`. A path that ends with `/`
    /// allows everything below it; another one allows itself and everything below it.
    ///
    /// # Errors
    /// When it is no such URL (another scheme, a user, a query, a fragment, a path with `..` or a wildcard), or one of the
    /// methods is none that can be allowed.
    pub fn parse(url: &str, methods: BTreeSet<String>, reach: Reach) -> Result<Self, InvalidRule> {
        let invalid = |why: &str| InvalidRule(format!("{url:?} is no rule for requests: {why}"));
        if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(invalid("it holds white space or control characters"));
        }
        // A URL has no wildcard, so it is taken off for the parser and put back.
        let (below, plain) = match url.split_once("://*.") {
            Some((scheme, rest)) => (true, format!("{scheme}://{rest}")),
            None => (false, url.to_owned()),
        };
        let parsed = Url::parse(&plain).map_err(|error| invalid(&error.to_string()))?;
        let scheme = Scheme::of(&parsed).ok_or_else(|| invalid("the scheme is http or https"))?;
        let (authority, path) = split(&plain).ok_or_else(|| invalid("after the scheme comes `://`"))?;
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
        Ok(Self { scheme, host: host.parse()?, port, path: parsed.path().to_owned(), methods, reach })
    }

    /// Whether it allows a request, given the URL in the normal form of the URL standard.
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

    /// Whether a path lies within the rule's. A path that servers read in more than one way lies in none but the whole.
    fn covers(&self, path: &str) -> bool {
        let below = |path: &str| match self.path.strip_suffix('/') {
            Some(_) => path.starts_with(&self.path),
            None => path.strip_prefix(&self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        };
        self.path == "/" || (below(path) && !is_ambiguous(path))
    }
}

/// Whether some server may take a path for another one than the URL standard does: after undoing its percent-encoding, as
/// often as that changes anything, a segment leads upwards. `\` divides segments for some, and some leave out what follows
/// a `;`.
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
    // Encoded four times over: nobody means that well.
    true
}

/// Authority and path of a URL as it is written, without query and fragment. `None` for one whose first `://` is not that of
/// its scheme, as in `https:/a/://b`: the URL standard reads the host `a` there, and people the host `b`.
fn split(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    if !scheme.bytes().all(|b| b.is_ascii_alphabetic()) {
        return None;
    }
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let rest = &rest[..end];
    Some(rest.split_at(rest.find(['/', '\\']).unwrap_or(rest.len())))
}

fn known_method(method: &str) -> Result<String, InvalidRule> {
    let upper = method.to_ascii_uppercase();
    let is_token = (1..=32).contains(&upper.len()) && upper.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
    if !is_token {
        return Err(InvalidRule(format!("{method:?} is no method: expected a word such as \"POST\"")));
    }
    if NEVER.contains(&upper.as_str()) {
        return Err(InvalidRule(format!("the method {upper} cannot be allowed")));
    }
    Ok(upper)
}

/// Whether a host's name, in the normal form of the URL standard, is one that can be looked up: no empty part, so no dot at
/// either end, and no part or whole longer than DNS allows.
pub(super) fn is_name(host: &str) -> bool {
    host.len() <= 253 && host.split('.').all(|part| (1..=63).contains(&part.len()))
}

impl FromStr for HostPattern {
    type Err = InvalidRule;

    /// A name in any case and script becomes its normal form; an address has to be in it.
    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let invalid = || InvalidRule(format!("{text:?} is no host: expected a name, an address, or `*.` and a name"));
        let (below, name) = text.strip_prefix("*.").map_or((false, text), |name| (true, name));
        if name.contains(|c: char| c.is_whitespace() || c.is_control() || "*%/\\?#@".contains(c)) {
            return Err(invalid());
        }
        let parsed = Url::parse(&format!("https://{name}/")).map_err(|_| invalid())?;
        let normal = parsed.host_str().filter(|_| parsed.port().is_none()).ok_or_else(invalid)?;
        match parsed.host() {
            Some(url::Host::Domain(_)) if is_name(normal) && !name.contains(':') => {}
            Some(url::Host::Ipv4(_) | url::Host::Ipv6(_)) if !below && normal == name => {}
            _ => return Err(invalid()),
        }
        Ok(Self(if below { format!("*.{normal}") } else { normal.to_owned() }))
    }
}

impl HostPattern {
    /// Whether a host, in the normal form of the URL standard, fits. A wildcard stands for one or more labels, never for
    /// none: `*.example.com` fits `a.example.com` and `a.b.example.com`, not `example.com`.
    #[must_use]
    pub fn matches(&self, host: &str) -> bool {
        let below = |domain: &str| {
            let labels = host.strip_suffix(domain).and_then(|rest| rest.strip_suffix('.'));
            labels.is_some_and(|labels| labels.split('.').all(|label| !label.is_empty()))
        };
        self.0.strip_prefix("*.").map_or(self.0 == host, below)
    }

    /// In its normal form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Scheme {
    /// The scheme of a URL.
    pub(super) fn of(url: &Url) -> Option<Self> {
        match url.scheme() {
            "http" => Some(Self::Http),
            "https" => Some(Self::Https),
            _ => None,
        }
    }

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

#[cfg(test)]
mod tests;
