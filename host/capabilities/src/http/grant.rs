//! Which HTTP requests a plugin may send.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

use domain::doubt::DoubtfulRequests;
use domain::step::Durable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::{is_public, may_reach, why_unreachable};
use super::doubts::doubtful_requests;
use super::{HttpRule, MaxWait, Method, Reach, Target};
use crate::host_pattern::narrower;
use crate::request::{GrantRequest, InvalidGrant, listing, string, strings};

/// A request to send HTTP requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedHttp {
    pub url: Target,
    /// The methods. Without any, GET and HEAD.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub methods: BTreeSet<Method>,
    pub why: String,
}

/// Requests that a plugin may send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpTable {
    /// Scheme, host, port and the beginning of the path: `https://api.example.com/v1/`, `https://*.example.com`.
    pub url: Target,
    /// The methods. Default: GET and HEAD.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub methods: BTreeSet<Method>,
    /// Whether the name may lead to addresses of this machine and of private networks. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// Whether the server carries out a request only once, even if it gets it again with the same `Idempotency-Key`. If a
    /// kill interrupts such a request of a durable call, the host sends it again. Without this, the `recovery` of the tool
    /// decides. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
    /// Whether a durable call waits when the server answers 429, or 503 to a request that may be repeated. The host sends
    /// the request again after the time in `Retry-After`. Default: the tool gets the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
}

/// How long a durable call waits for a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// The maximum sum of the waits for one request: a number with `s`, `m`, `h` or `d`, from `1s` to `7d`. If the server
    /// asks for more, the tool gets its last answer.
    pub at_most: MaxWait,
}

impl RequestedHttp {
    fn rule(&self) -> HttpRule {
        self.url.rule(&self.methods, Reach::Public)
    }

    fn inline(&self) -> String {
        let HttpTable { url, methods, private, .. } = HttpTable::of(self.url.clone(), self.methods.clone());
        let methods = if methods.is_empty() { String::new() } else { format!(", methods = [{}]", strings(&methods)) };
        format!("{{ url = {}{methods}{} }}", string(&url), if private { ", private = true" } else { "" })
    }
}

impl HttpTable {
    /// The grant of a URL. It allows private addresses if the URL names one, because it would allow nothing otherwise.
    #[must_use]
    pub fn of(url: Target, methods: BTreeSet<Method>) -> Self {
        let private = url.rule(&methods, Reach::Public).needed_reach() == Some(Reach::Private);
        Self { url, methods, private, idempotent: false, retry: None }
    }

    /// Why it would allow no request. `None` if it allows some.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let address = self.rule().address().filter(|address| !may_reach(*address, Reach::Private))?;
        Some(format!("no grant reaches {address}: {}", why_unreachable(address)))
    }

    /// The requests that it allows.
    #[must_use]
    pub fn rule(&self) -> HttpRule {
        let reach = if self.private { Reach::Private } else { Reach::Public };
        let retry = self.retry.as_ref().map(|retry| retry.at_most.span());
        HttpRule { idempotent: self.idempotent, retry, ..self.url.rule(&self.methods, reach) }
    }
}

impl HttpRule {
    /// The address that its URL names. `None` for a name.
    fn address(&self) -> Option<IpAddr> {
        self.host.as_str().trim_matches(['[', ']']).parse().ok()
    }

    /// The smallest reach with which the host of this rule can be reached, as far as its name says so. `None` if it is an
    /// address that no grant reaches.
    pub(super) fn needed_reach(&self) -> Option<Reach> {
        match self.address() {
            Some(address) if is_public(address) => Some(Reach::Public),
            Some(address) => may_reach(address, Reach::Private).then_some(Reach::Private),
            None if self.host.as_str() == "localhost" => Some(Reach::Private),
            None => Some(Reach::Public),
        }
    }
}

impl GrantRequest for RequestedHttp {
    type All = Vec<Self>;
    type Granted = Vec<HttpRule>;
    type Table = Vec<HttpTable>;
    type Opened = ();

    const IS_REPLAYABLE: bool = true;
    const EXAMPLE: Option<&'static str> = Some("grants.http = [{ url = \"https://api.example.com/\" }]");

    fn doubtful_requests(granted: &Self::Granted, durable: &Durable) -> Option<DoubtfulRequests> {
        doubtful_requests(durable, granted)
    }

    fn reaches_outside(granted: &Self::Granted) -> bool {
        !granted.is_empty()
    }

    fn may_change(granted: &Self::Granted) -> bool {
        // A GET can change something too.
        !granted.is_empty()
    }

    fn words(&self) -> String {
        format!("http: {}", self.rule())
    }

    fn refusal(&self) -> Option<String> {
        HttpTable::of(self.url.clone(), BTreeSet::new()).refusal()
    }

    fn lines(requests: &[Self]) -> Vec<String> {
        let possible: Vec<_> = requests.iter().filter(|request| request.refusal().is_none()).cloned().collect();
        listing("http", &possible, Self::inline)
    }

    fn made_up(requests: Option<&[Self]>) -> Self::Granted {
        let Some(requests) = requests else {
            let url = Target::try_from("https://example.invalid/".to_owned());
            return url.iter().map(|url| url.rule(&BTreeSet::new(), Reach::Public)).collect();
        };
        requests.iter().map(Self::rule).collect()
    }

    fn intersection(granted: &Self::Granted, requests: &[Self]) -> Self::Granted {
        let mut rules = Vec::new();
        for requested in requests.iter().map(Self::rule) {
            for both in granted.iter().filter_map(|granted| intersection(granted, &requested)) {
                if !rules.contains(&both) {
                    rules.push(both);
                }
            }
        }
        rules
    }

    fn is_covered(&self, granted: &Self::Granted) -> bool {
        let rule = self.rule();
        rule.methods.iter().all(|method| {
            let one = HttpRule { methods: [method.clone()].into(), ..rule.clone() };
            let covers =
                |both: HttpRule| HttpRule { reach: Reach::Public, idempotent: false, retry: None, ..both } == one;
            granted.iter().any(|granted| intersection(granted, &one).is_some_and(covers))
        })
    }

    fn each(granted: &Self::Granted, _shown: fn(&str) -> String) -> Vec<(Self::Granted, String)> {
        let text = |rule: &HttpRule| {
            let reach = if rule.reach == Reach::Private { ", private addresses too" } else { "" };
            let again = if rule.idempotent { ", sent again after a kill" } else { "" };
            let waits = rule.retry.map_or_else(String::new, |most| {
                format!(", waits up to {} s before a request is sent again", most.millis() / 1000)
            });
            format!("http: {rule}{reach}{again}{waits}")
        };
        granted.iter().map(|rule| (vec![rule.clone()], text(rule))).collect()
    }

    fn granted(table: &Self::Table, _beside: &Path, _opened: &()) -> Self::Granted {
        table.iter().map(HttpTable::rule).collect()
    }

    fn check_table(table: &Self::Table) -> Result<(), InvalidGrant> {
        let mut rules = Vec::new();
        for (position, table) in table.iter().enumerate() {
            let rule = table.rule();
            if rules.contains(&rule) {
                let message = format!("requests to {} are granted twice", table.url);
                return Err(InvalidGrant::at([position.to_string()], message, "remove one of the two"));
            }
            rules.push(rule);
        }
        Ok(())
    }

    fn add_to(&self, table: &mut Self::Table) {
        let grant = HttpTable::of(self.url.clone(), self.methods.clone());
        if !table.contains(&grant) {
            table.push(grant);
        }
    }
}

/// The requests that both rules allow. Only the operator decides which addresses a name may resolve to.
fn intersection(granted: &HttpRule, requested: &HttpRule) -> Option<HttpRule> {
    if (granted.scheme, granted.port) != (requested.scheme, requested.port) {
        return None;
    }
    let methods: BTreeSet<String> = granted.methods.intersection(&requested.methods).cloned().collect();
    if methods.is_empty() {
        return None;
    }
    let path = narrower(&granted.path, &requested.path, is_below)?;
    let host = granted.host.intersection(&requested.host)?;
    let HttpRule { scheme, port, reach, idempotent, retry, .. } = *granted;
    Some(HttpRule { scheme, host, port, path, methods, reach, idempotent, retry })
}

/// Whether every path below the first is below the second. Segments match only as a whole.
#[expect(clippy::ptr_arg, reason = "both comparisons need the same signature")]
fn is_below(inner: &String, outer: &String) -> bool {
    let rest = inner.strip_prefix(outer.as_str());
    rest.is_some_and(|rest| rest.is_empty() || outer.ends_with('/') || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_of_a_private_address_allows_private_addresses() {
        for (url, private) in [
            ("https://api.example.com/", false),
            ("http://127.0.0.1:8080/", true),
            ("http://localhost:8080/", true),
            ("http://[::1]/", true),
            ("http://192.168.1.4/", true),
            ("http://8.8.8.8/", false),
        ] {
            let url = Target::try_from(url.to_owned()).expect("a URL");
            let grant = HttpTable::of(url, BTreeSet::new());
            assert_eq!((grant.private, grant.refusal()), (private, None), "{}", grant.url);
            // The remedy of a finding is such a grant.
            let requested = RequestedHttp { url: grant.url, methods: BTreeSet::new(), why: String::new() };
            assert_eq!(requested.inline().contains("private = true"), private, "{}", requested.inline());
        }
    }

    #[test]
    fn address_that_no_grant_reaches_has_a_reason_and_no_lines() {
        for (url, reason) in [
            ("http://169.254.169.254/", "no grant reaches 169.254.169.254: it is a link-local address"),
            ("http://100.64.0.1/", "no grant reaches 100.64.0.1: it is a shared address of carriers and clouds"),
            ("http://[fe80::1]/", "no grant reaches fe80::1: it is a link-local address"),
            ("http://[fd00:ec2::254]/", "no grant reaches fd00:ec2::254: a cloud serves the metadata of its machines"),
            ("http://168.63.129.16/", "no grant reaches 168.63.129.16: a cloud serves the metadata of its machines"),
            ("http://[::ffff:10.0.0.1]/", "it carries an IPv4 address; name 10.0.0.1 itself"),
            ("http://[64:ff9b::1]/", "it is reserved"),
            ("http://0.0.0.0/", "it is reserved"),
        ] {
            let url = Target::try_from(url.to_owned()).expect("a URL");
            let requested = RequestedHttp { url, methods: BTreeSet::new(), why: String::new() };
            let refusal = requested.refusal().unwrap_or_default();
            assert!(refusal.contains(reason), "{}: {refusal}", requested.url);
            assert!(RequestedHttp::lines(&[requested]).is_empty());
        }
    }
}
