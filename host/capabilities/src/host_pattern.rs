//! Patterns over the names of hosts, for the rules of requests and for secrets.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::words::{InvalidWord, shown, written};

/// A host's name or address, or every name below a domain, such as `*.example.com`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern(String);

shown!(HostPattern: |word| &word.0,);

written!(HostPattern);

impl TryFrom<String> for HostPattern {
    type Error = InvalidWord;

    fn try_from(text: String) -> Result<Self, InvalidWord> {
        text.parse()
    }
}

impl FromStr for HostPattern {
    type Err = InvalidWord;

    /// A name in any case and script becomes its normal form; an address must be in its normal form.
    fn from_str(text: &str) -> Result<Self, InvalidWord> {
        let invalid =
            || InvalidWord(format!("{text:?} is not a host: expected a name, an address, or `*.` and a name"));
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
    /// Whether a host in the normal form of the URL standard matches. A wildcard matches one or more labels:
    /// `*.example.com` matches `a.example.com` and `a.b.example.com`, but not `example.com`.
    #[must_use]
    pub fn matches(&self, host: &str) -> bool {
        let below = |suffix: &str| {
            let labels = host.strip_suffix(suffix).and_then(|rest| rest.strip_suffix('.'));
            labels.is_some_and(|labels| labels.split('.').all(|label| !label.is_empty()))
        };
        self.0.strip_prefix("*.").map_or(self.0 == host, below)
    }

    /// The hosts that both patterns match, if one pattern contains the other.
    pub(crate) fn intersection(&self, other: &Self) -> Option<Self> {
        narrower(self, other, Self::is_within)
    }

    /// Whether the other pattern matches every host that this one matches.
    pub(crate) fn is_within(&self, outer: &Self) -> bool {
        if self == outer {
            return true;
        }
        match self.0.strip_prefix("*.") {
            // `*.a.b` is within `*.b` if one name below `a.b`, here `x.a.b`, matches it.
            Some(suffix) => outer.0.starts_with("*.") && outer.matches(&format!("x.{suffix}")),
            None => outer.matches(&self.0),
        }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The narrower of two, if one contains the other.
pub(crate) fn narrower<T: Clone>(one: &T, other: &T, within: fn(&T, &T) -> bool) -> Option<T> {
    if within(one, other) { Some(one.clone()) } else { within(other, one).then(|| other.clone()) }
}

/// Whether DNS can look up a host's name in the normal form of the URL standard: no label is empty, so no dot is at either
/// end, and no label and no name is too long.
pub(crate) fn is_name(host: &str) -> bool {
    host.len() <= 253 && host.split('.').all(|part| (1..=63).contains(&part.len()))
}
