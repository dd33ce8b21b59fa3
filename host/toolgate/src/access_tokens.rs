//! Access tokens of an authorization server: connects the table `[oauth]`, the crate `oauth` and the ports of the server.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use dispatch::ports::Principals;
use domain::{PrincipalId, Span, Timestamp, principal::Role};
use oauth::{Algorithm, HttpFetch, IssuerNames, NotAccepted, Scope, Scopes, Settings, Verifier};
use server::{AccessToken, AccessTokens, ProtectedResource, TokenRefusal};

use crate::config::{AlgorithmName, OauthTable, Parsed, ScopeGift};
use crate::tokens::Tokens;

/// The place of the metadata, before the path of the resource.
const METADATA: &str = "/.well-known/oauth-protected-resource";

/// The default difference between two clocks.
const LEEWAY: Span = Span::from_secs(30);

impl OauthTable {
    /// The settings of the verifier.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let algorithm = |name: &AlgorithmName| match name {
            AlgorithmName::RS256 => Algorithm::Rs256,
            AlgorithmName::PS256 => Algorithm::Ps256,
            AlgorithmName::ES256 => Algorithm::Es256,
            AlgorithmName::EdDSA => Algorithm::EdDsa,
        };
        let named = self.algorithms.as_ref().map(|names| names.iter().map(algorithm).collect());
        Settings {
            issuer: self.issuer.0.text.clone(),
            audience: self.audience.0.text.clone(),
            keys: self.jwks.as_ref().map(|keys| keys.0.url.clone()),
            leeway: self.leeway_ms.map_or(LEEWAY, Span::from_millis),
            algorithms: named.unwrap_or_else(|| Algorithm::ALL.into()),
            scopes: self.scopes(),
        }
    }

    fn scopes(&self) -> Scopes {
        let Some(table) = &self.scopes else { return Scopes::default() };
        let mut scopes = BTreeMap::new();
        for (Parsed(name), gifts) in table {
            let scope: &mut Scope = scopes.entry(name.0.clone()).or_default();
            for Parsed(gift) in gifts {
                match gift {
                    ScopeGift::Role(role) => drop(scope.roles.insert(*role)),
                    ScopeGift::Group(group) => drop(scope.groups.insert(group.clone())),
                }
            }
        }
        Scopes(scopes)
    }

    /// The metadata of this host.
    #[must_use]
    pub fn resource(&self) -> ProtectedResource {
        let audience = &self.audience.0;
        let mut url = audience.url.clone();
        url.set_path(&format!("{METADATA}{}", audience.url.path()));
        ProtectedResource {
            resource: audience.text.clone(),
            authorization_servers: vec![self.issuer.0.text.clone()],
            scopes_supported: self.scopes().offered().map(str::to_owned).collect(),
            bearer_methods_supported: ["header"],
            url: url.into(),
        }
    }
}

/// Checks access tokens for the server.
pub(crate) struct OfIssuer {
    verifier: Verifier,
    resource: ProtectedResource,
}

impl OfIssuer {
    pub(crate) fn new(table: &OauthTable) -> Self {
        let verifier = Verifier::new(table.settings(), Arc::new(HttpFetch::default()));
        Self { verifier, resource: table.resource() }
    }

    pub(crate) fn names(&self) -> &IssuerNames {
        self.verifier.names()
    }
}

#[async_trait]
impl AccessTokens for OfIssuer {
    async fn verify(&self, token: &str, now: Timestamp) -> Result<AccessToken, TokenRefusal> {
        let verified = self.verifier.verify(token, now).await;
        let verified = verified.map_err(|refusal| match refusal {
            NotAccepted::Invalid(_) => TokenRefusal::Invalid(refusal.to_string()),
            NotAccepted::NoKeys => TokenRefusal::Unchecked(refusal.to_string()),
        })?;
        Ok(AccessToken { principal: verified.principal, expires: verified.expires })
    }

    fn resource(&self) -> &ProtectedResource {
        &self.resource
    }

    fn scope_with(&self, role: Role) -> Option<String> {
        self.verifier.settings().scopes.with(role).map(str::to_owned)
    }
}

/// The principals of a host: the holders of its tokens, and the subjects of its issuer. Nobody revokes a subject here. Without
/// its issuer in the configuration, its votes no longer count.
pub(crate) struct AllPrincipals {
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) subjects: Option<IssuerNames>,
}

#[async_trait]
impl Principals for AllPrincipals {
    async fn refresh(&self) {
        Principals::refresh(self.tokens.as_ref()).await;
    }

    fn is_current(&self, id: &PrincipalId, since: Timestamp) -> bool {
        let is_subject = self.subjects.as_ref().is_some_and(|names| names.has(id));
        is_subject || self.tokens.is_current(id, since)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    fn table(more: &str) -> OauthTable {
        let begin =
            "[oauth]\nissuer = \"https://login.example.com/realms/a\"\naudience = \"https://host.example/x/mcp\"\n";
        Config::parse(&format!("{begin}{more}"), Path::new("t")).unwrap().oauth.unwrap()
    }

    #[test]
    fn scope_that_approves_is_never_offered() {
        let default = table("").resource();
        assert_eq!(default.scopes_supported, ["tools:call"]);
        assert_eq!(default.url, "https://host.example/.well-known/oauth-protected-resource/x/mcp");
        let more =
            "[oauth.scopes]\n\"a\" = [\"approver\", \"caller\"]\n\"b\" = [\"caller\", \"client\", \"group:finance\"]\n";
        let table = table(more);
        assert_eq!(table.resource().scopes_supported, ["b"]);
        let scopes = table.settings().scopes;
        assert_eq!(
            [Role::Caller, Role::Approver, Role::Admin].map(|role| scopes.with(role)),
            [Some("b"), Some("a"), None]
        );
    }

    #[test]
    fn subject_is_current_while_its_issuer_is_configured() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Arc::new(Tokens::open(folder.path()).unwrap());
        let names = IssuerNames::new("https://a.example");
        let [ours, other, own] = ["https://a.example", "https://b.example", ""].map(|issuer| {
            let text = if issuer.is_empty() { "ann".to_owned() } else { format!("{}ann", beginning(issuer)) };
            PrincipalId::new(&text).unwrap()
        });
        let with = AllPrincipals { tokens: tokens.clone(), subjects: Some(names) };
        let without = AllPrincipals { tokens, subjects: None };
        let now = Timestamp::from_millis(1);
        assert_eq!([&ours, &other, &own].map(|id| with.is_current(id, now)), [true, false, false]);
        assert!(!without.is_current(&ours, now));
    }

    /// The beginning of the names of an issuer's subjects.
    fn beginning(issuer: &str) -> String {
        IssuerNames::new(issuer).to_string()
    }
}
