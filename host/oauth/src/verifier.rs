//! From a token to a principal.

use std::sync::Arc;

use domain::{Principal, Span, Timestamp};
use url::Url;

use crate::fetch::Fetch;
use crate::keys::{Keys, NoKeys};
use crate::scope::Scopes;
use crate::signature;
use crate::subject::IssuerNames;
use crate::token::{Algorithm, Invalid, Unverified};

/// The issuer, and what its tokens must be.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The issuer, exactly as its tokens name it.
    pub issuer: String,
    /// The identifier of this host as a resource, exactly as tokens name it.
    pub audience: String,
    /// The URL of the issuer's keys. `None`: the issuer's metadata has it.
    pub keys: Option<Url>,
    /// By how much the clocks of the issuer and the host may differ.
    pub leeway: Span,
    pub algorithms: Vec<Algorithm>,
    pub scopes: Scopes,
}

/// A valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Its holder, with the roles and groups of its scopes.
    pub principal: Principal,
    /// The time at which it is no longer valid.
    pub expires: Timestamp,
}

/// Why a token is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAccepted {
    #[error("the access token is invalid: {0}")]
    Invalid(#[from] Invalid),
    /// It may be valid.
    #[error("the keys of the authorization server cannot be fetched, so no access token can be checked now")]
    NoKeys,
}

impl From<NoKeys> for NotAccepted {
    fn from(NoKeys: NoKeys) -> Self {
        Self::NoKeys
    }
}

/// Checks the access tokens of one issuer.
pub struct Verifier {
    settings: Settings,
    names: IssuerNames,
    keys: Arc<Keys>,
}

impl Verifier {
    #[must_use]
    pub fn new(settings: Settings, fetch: Arc<dyn Fetch>) -> Self {
        signature::install();
        let keys = Keys::new(settings.issuer.clone(), settings.keys.clone(), fetch);
        Self { names: IssuerNames::new(&settings.issuer), settings, keys }
    }

    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The names of the issuer's subjects.
    #[must_use]
    pub fn names(&self) -> &IssuerNames {
        &self.names
    }

    /// The holder of a token. May wait some seconds for the keys of the issuer.
    ///
    /// # Errors
    /// [`NotAccepted`].
    pub async fn verify(&self, token: &str, now: Timestamp) -> Result<Verified, NotAccepted> {
        let Settings { issuer, audience, leeway, algorithms, scopes, .. } = &self.settings;
        let unverified = Unverified::read(token, algorithms)?;
        let key = self.keys.find(unverified.key.as_deref(), unverified.algorithm, now).await?.ok_or(Invalid::Key)?;
        let claims = unverified.verify(&key.decoding, issuer, audience)?;
        let expires = claims.expires(now, *leeway)?;
        let name = self.names.of(&claims.sub).ok_or(Invalid::Subject)?;
        let principal = scopes.give(claims.scopes(), Principal::new(name, []));
        Ok(Verified { principal, expires })
    }
}
