//! The form of an access token: a signed JWT (RFC 7519, RFC 9068). Nothing of it is believed before its signature is checked,
//! except which key that needs.

use domain::Timestamp;
use jsonwebtoken::{DecodingKey, Header, Validation, decode, decode_header};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The maximum size of a token, in bytes.
const MAX_TOKEN: usize = 16 << 10;

domain::names! {
    /// The algorithms of signatures. None has a secret that the host would share with the issuer.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Algorithm {
        Rs256 = "RS256",
        Ps256 = "PS256",
        Es256 = "ES256",
        EdDsa = "EdDSA",
    }
}

impl Algorithm {
    pub(crate) const fn name(self) -> &'static str {
        self.as_str()
    }

    fn of(header: &Header) -> Option<Self> {
        match header.alg {
            jsonwebtoken::Algorithm::RS256 => Some(Self::Rs256),
            jsonwebtoken::Algorithm::PS256 => Some(Self::Ps256),
            jsonwebtoken::Algorithm::ES256 => Some(Self::Es256),
            jsonwebtoken::Algorithm::EdDSA => Some(Self::EdDsa),
            _ => None,
        }
    }

    const fn in_library(self) -> jsonwebtoken::Algorithm {
        match self {
            Self::Rs256 => jsonwebtoken::Algorithm::RS256,
            Self::Ps256 => jsonwebtoken::Algorithm::PS256,
            Self::Es256 => jsonwebtoken::Algorithm::ES256,
            Self::EdDsa => jsonwebtoken::Algorithm::EdDSA,
        }
    }
}

/// Why a token is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("it is not a signed JWT of at most {MAX_TOKEN} bytes")]
    Malformed,
    #[error("its signature has an algorithm that this host does not accept")]
    Algorithm,
    #[error("its type is not that of an access token")]
    Type,
    #[error("no key of the issuer signed it")]
    Key,
    #[error("its signature is wrong")]
    Signature,
    #[error("another issuer made it")]
    Issuer,
    #[error("it is for another audience")]
    Audience,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet")]
    NotYet,
    #[error("it has no subject")]
    Subject,
    #[error("it is bound to a key, which this host cannot check")]
    Bound,
}

/// The header of a token, before its signature is checked.
pub(crate) struct Unverified<'a> {
    text: &'a str,
    pub(crate) key: Option<String>,
    pub(crate) algorithm: Algorithm,
    /// Whether the header says that it is an access token.
    is_typed: bool,
}

/// The claims of a token with a right signature, issuer and audience.
#[derive(Deserialize)]
pub(crate) struct Claims {
    #[expect(dead_code, reason = "one issuer: the library would also accept a list that contains the right one")]
    iss: String,
    #[serde(default)]
    pub(crate) sub: String,
    exp: NumericDate,
    nbf: Option<NumericDate>,
    #[serde(default)]
    scope: Words,
    /// The same under the name that some issuers use.
    #[serde(default)]
    scp: Words,
    /// A proof of possession that must come with the token.
    cnf: Option<IgnoredAny>,
    /// Members of ID tokens (OpenID Connect).
    nonce: Option<IgnoredAny>,
    at_hash: Option<IgnoredAny>,
    c_hash: Option<IgnoredAny>,
}

/// Seconds since 1970, maybe with a fraction.
#[derive(Deserialize)]
struct NumericDate(f64);

/// Names in one text or in a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    Text(String),
    List(Vec<String>),
}

impl Default for Words {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl Words {
    fn iter(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Text(text) => Box::new(text.split(' ')),
            Self::List(words) => Box::new(words.iter().map(String::as_str)),
        }
    }
}

impl NumericDate {
    /// A date before 1970 is 1970, and one beyond the range of the host's times is the last of them.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates, as the text says")]
    fn timestamp(&self) -> Timestamp {
        Timestamp::from_millis((self.0 * 1_000.0) as u64)
    }
}

impl<'a> Unverified<'a> {
    /// Reads the header of a token.
    pub(crate) fn read(text: &'a str, accepted: &[Algorithm]) -> Result<Self, Invalid> {
        if text.len() > MAX_TOKEN {
            return Err(Invalid::Malformed);
        }
        let header = decode_header(text).map_err(|_| Invalid::Malformed)?;
        let algorithm = Algorithm::of(&header).filter(|algorithm| accepted.contains(algorithm));
        let algorithm = algorithm.ok_or(Invalid::Algorithm)?;
        // Nothing that a token calls critical is known here.
        if header.crit.is_some() || header.enc.is_some() || header.zip.is_some() {
            return Err(Invalid::Malformed);
        }
        let typ = header.typ.map(|typ| typ.to_ascii_lowercase());
        let is_typed = match typ.as_deref() {
            Some("at+jwt" | "application/at+jwt") => true,
            // Many issuers do not say more. The claims decide.
            Some("jwt") | None => false,
            Some(_) => return Err(Invalid::Type),
        };
        Ok(Self { text, key: header.kid, algorithm, is_typed })
    }

    /// Checks the signature, and then the claims.
    pub(crate) fn verify(self, key: &DecodingKey, issuer: &str, audience: &str) -> Result<Claims, Invalid> {
        let mut validation = Validation::new(self.algorithm.in_library());
        validation.set_required_spec_claims(&["iss", "aud"]);
        validation.set_issuer(&[issuer]);
        validation.set_audience(&[audience]);
        // The library has a clock of its own: `Claims::expires` checks the times.
        (validation.validate_exp, validation.validate_nbf) = (false, false);
        let claims = decoded(self.text, key, &validation)?;
        claims.is_of_access_token(self.is_typed)?;
        Ok(claims)
    }
}

fn decoded(text: &str, key: &DecodingKey, validation: &Validation) -> Result<Claims, Invalid> {
    use jsonwebtoken::errors::ErrorKind;
    decode::<Claims>(text, key, validation).map(|token| token.claims).map_err(|error| match error.kind() {
        ErrorKind::InvalidSignature => Invalid::Signature,
        ErrorKind::InvalidIssuer => Invalid::Issuer,
        ErrorKind::InvalidAudience => Invalid::Audience,
        ErrorKind::MissingRequiredClaim(claim) if claim == "iss" => Invalid::Issuer,
        ErrorKind::MissingRequiredClaim(_) => Invalid::Audience,
        ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => Invalid::Algorithm,
        ErrorKind::InvalidKeyFormat => Invalid::Key,
        _ => Invalid::Malformed,
    })
}

impl Claims {
    /// Refuses an ID token, which its client may show to anybody, and a token that must come with a proof.
    fn is_of_access_token(&self, is_typed: bool) -> Result<(), Invalid> {
        let is_id_token = self.nonce.is_some() || self.at_hash.is_some() || self.c_hash.is_some();
        if is_id_token || (!is_typed && self.scopes().next().is_none()) {
            return Err(Invalid::Type);
        }
        if self.cnf.is_some() {
            return Err(Invalid::Bound);
        }
        if self.sub.is_empty() { Err(Invalid::Subject) } else { Ok(()) }
    }

    /// The time until which it is valid, if it is valid now. Clocks may differ by `leeway`.
    pub(crate) fn expires(&self, now: Timestamp, leeway: domain::Span) -> Result<Timestamp, Invalid> {
        let expires = Timestamp::from_millis(self.exp.timestamp().millis().saturating_add(leeway.millis()));
        if now >= expires {
            return Err(Invalid::Expired);
        }
        if self.nbf.as_ref().is_some_and(|nbf| nbf.timestamp() > now + leeway) {
            return Err(Invalid::NotYet);
        }
        Ok(expires)
    }

    /// The scopes.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = &str> {
        self.scope.iter().chain(self.scp.iter()).filter(|scope| !scope.is_empty())
    }
}
