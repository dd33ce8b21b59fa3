//! The table `[oauth]`: the authorization server whose access tokens the host accepts.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use domain::ids::Group;
use domain::principal::Role;
use schemars::JsonSchema;
use serde::Deserialize;
use url::{Host, Url};

use super::source::Source;
use super::{ConfigError, Parsed};

/// The beginning of a word that gives a group.
const GROUP: &str = "group:";

/// The largest difference between two clocks, in milliseconds.
const MAX_LEEWAY: u64 = 5 * 60 * 1_000;

/// The end of the identifier of this host as a resource.
const RESOURCE: &str = "/mcp";

/// The authorization server whose access tokens the host accepts beside its own tokens (OAuth 2.1, RFC 9068).
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OauthTable {
    /// The issuer, exactly as its tokens name it in `iss`. https, except on this machine.
    #[schemars(with = "String")]
    pub issuer: Parsed<ServerUrl>,
    /// The identifier of this host as a resource, which tokens must name in `aud`: the URL of `/mcp` that clients use, such as
    /// `https://toolgate.example.com/mcp`.
    #[schemars(with = "String")]
    pub audience: Parsed<ServerUrl>,
    /// The URL of the issuer's keys. Default: the issuer's metadata has it.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub jwks: Option<Parsed<ServerUrl>>,
    /// The roles and groups that each scope gives: "caller", "client", "approver", and "group:NAME". Clients are offered the
    /// scopes without "approver". Default: `"tools:call" = ["caller"]`.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, BTreeSet<String>>>")]
    pub scopes: Option<BTreeMap<Parsed<ScopeName>, BTreeSet<Parsed<ScopeGift>>>>,
    /// By how much the clocks of the issuer and the host may differ, in milliseconds. Default: 30000. Maximum: 300000.
    #[serde(default)]
    pub leeway_ms: Option<u64>,
    /// The algorithms of signatures that the host accepts. Default: all of them.
    #[serde(default)]
    pub algorithms: Option<BTreeSet<AlgorithmName>>,
}

/// An algorithm of signatures. Those with a shared secret are not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
pub enum AlgorithmName {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    RS256,
    /// RSASSA-PSS with SHA-256.
    PS256,
    /// ECDSA with P-256 and SHA-256.
    ES256,
    /// Ed25519.
    EdDSA,
}

/// A URL that an eavesdropper cannot answer for: https, or http on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    /// Exactly as it was written. Tokens must name it in the same way.
    pub text: String,
    /// The same, parsed.
    pub url: Url,
}

impl FromStr for ServerUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = |why: &str| Err(format!("{text:?} cannot be used: {why}"));
        let Ok(url) = Url::parse(text) else { return refused("it is not a URL such as \"https://login.example.com\"") };
        let is_here = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        };
        match url.scheme() {
            "https" => {}
            "http" if is_here => {}
            _ => return refused("it needs https, except for a server on this machine"),
        }
        let is_plain = url.query().is_none() && url.fragment().is_none();
        if !is_plain || !url.username().is_empty() || url.password().is_some() || text.contains(['"', '\\']) {
            return refused("remove the query, the fragment and the user");
        }
        Ok(Self { text: text.to_owned(), url })
    }
}

/// The name of a scope (RFC 6749).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScopeName(pub String);

impl FromStr for ScopeName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let allowed = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\');
        if text.is_empty() || text.len() > 128 || !text.bytes().all(allowed) {
            return Err(format!(
                "{text:?} is not a scope: expected 1 to 128 visible ASCII characters other than \" and \\"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

/// A role or a group that a scope gives.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScopeGift {
    /// A role other than `admin`.
    Role(Role),
    /// A group.
    Group(Group),
}

impl FromStr for ScopeGift {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(group) = text.strip_prefix(GROUP) {
            return Group::new(group).map(Self::Group).map_err(|error| error.to_string());
        }
        match text.parse() {
            Ok(Role::Admin) => Err("no scope can give the role admin; use a token of the host".to_owned()),
            Ok(role) => Ok(Self::Role(role)),
            Err(_) => Err(format!("{text:?} must be \"caller\", \"client\", \"approver\" or \"group:NAME\"")),
        }
    }
}

/// Checks what one value alone does not show.
pub(super) fn check(table: Option<&OauthTable>, source: &Source) -> Result<(), ConfigError> {
    let Some(table) = table else { return Ok(()) };
    let fail =
        |key: &str, message: String, hint: &str| Err(source.error(&["oauth", key], message, Some(hint.to_owned())));
    if !table.audience.0.url.path().ends_with(RESOURCE) {
        let message = format!("{:?} is not the URL of {RESOURCE} of this host", table.audience.0.text);
        return fail(
            "audience",
            message,
            "write the URL that clients use: `audience = \"https://toolgate.example.com/mcp\"`",
        );
    }
    if table.leeway_ms.is_some_and(|leeway| leeway > MAX_LEEWAY) {
        let message = format!("`leeway_ms` is above {MAX_LEEWAY}, and expired tokens would be accepted as long");
        return fail("leeway_ms", message, "set the clocks, and write a small number");
    }
    if table.algorithms.as_ref().is_some_and(BTreeSet::is_empty) {
        return fail(
            "algorithms",
            "no algorithm is left, so no token would be accepted".to_owned(),
            "name at least one",
        );
    }
    let calls = |gifts: &BTreeSet<Parsed<ScopeGift>>| {
        let has = |role| gifts.contains(&Parsed(ScopeGift::Role(role)));
        has(Role::Caller) && !has(Role::Approver)
    };
    if table.scopes.as_ref().is_some_and(|scopes| !scopes.values().any(calls)) {
        let message = "no scope gives `caller` without `approver`, so MCP clients could not ask for a scope".to_owned();
        return fail("scopes", message, "add `\"tools:call\" = [\"caller\"]`");
    }
    Ok(())
}
