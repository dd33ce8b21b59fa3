//! The keys in a JWK set (RFC 7517). A key that this host cannot use is left out.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::DecodingKey;
use serde::Deserialize;

use crate::token::Algorithm;

/// The maximum number of keys of an issuer.
const MAX_KEYS: usize = 64;

/// The bytes of a coordinate on the curves P-256 and Ed25519.
const COORDINATE: usize = 32;

/// The keys of an issuer.
#[derive(Debug, Default)]
pub(crate) struct KeySet(Vec<Key>);

/// A key for signatures.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    id: Option<String>,
    /// The algorithms that it may be used with.
    algorithms: Vec<Algorithm>,
    pub(crate) decoding: DecodingKey,
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Jwk {
    #[serde(flatten)]
    material: Material,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
}

/// Symmetric keys are not among them.
#[derive(Deserialize)]
#[serde(tag = "kty")]
enum Material {
    #[serde(rename = "RSA")]
    Rsa { n: String, e: String },
    #[serde(rename = "EC")]
    Curve { crv: String, x: String, y: String },
    #[serde(rename = "OKP")]
    Octets { crv: String, x: String },
}

impl KeySet {
    /// Reads a set. The error says what is wrong.
    pub(crate) fn read(text: &[u8]) -> Result<Self, String> {
        let set: Set = serde_json::from_slice(text).map_err(|error| format!("not a JWK set: {error}"))?;
        let keys: Vec<Key> = set.keys.into_iter().take(MAX_KEYS).filter_map(Key::read).collect();
        if keys.is_empty() {
            // The issuer may have withdrawn all keys, so the earlier ones must not stay.
            tracing::warn!("the JWK set of the issuer has no key that this host can use");
        }
        Ok(Self(keys))
    }

    /// The key of this id for this algorithm. Without an id, the only key for the algorithm.
    pub(crate) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&Key> {
        let mut fitting = self.0.iter().filter(|key| key.algorithms.contains(&algorithm));
        match id {
            Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)),
            None => fitting.next().filter(|_| fitting.next().is_none()),
        }
    }
}

impl Key {
    fn read(value: serde_json::Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        let verifies = jwk.purpose.is_none_or(|purpose| purpose == "sig")
            && jwk.key_ops.is_none_or(|uses| uses.iter().any(|one| one == "verify"));
        if !verifies {
            return None;
        }
        let (mut algorithms, decoding) = match jwk.material {
            Material::Rsa { n, e } => {
                (vec![Algorithm::Rs256, Algorithm::Ps256], DecodingKey::from_rsa_components(&n, &e).ok()?)
            }
            Material::Curve { crv, x, y } if crv == "P-256" && is_coordinate(&x) && is_coordinate(&y) => {
                (vec![Algorithm::Es256], DecodingKey::from_ec_components(&x, &y).ok()?)
            }
            Material::Octets { crv, x } if crv == "Ed25519" && is_coordinate(&x) => {
                (vec![Algorithm::EdDsa], DecodingKey::from_ed_components(&x).ok()?)
            }
            Material::Curve { .. } | Material::Octets { .. } => return None,
        };
        algorithms.retain(|algorithm| jwk.alg.as_ref().is_none_or(|name| name == algorithm.name()));
        (!algorithms.is_empty()).then_some(Self { id: jwk.kid, algorithms, decoding })
    }
}

fn is_coordinate(text: &str) -> bool {
    URL_SAFE_NO_PAD.decode(text).is_ok_and(|bytes| bytes.len() == COORDINATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_for_other_uses_are_left_out() {
        let x = URL_SAFE_NO_PAD.encode([1; COORDINATE]);
        let rows = [
            (format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}","kid":"k"}}"#), true),
            (format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}","kid":"k","use":"sig","alg":"EdDSA"}}"#), true),
            (format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}","kid":"k","use":"enc"}}"#), false),
            (format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}","kid":"k","key_ops":["sign"]}}"#), false),
            (format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}","kid":"k","alg":"ES256"}}"#), false),
            (format!(r#"{{"kty":"OKP","crv":"X25519","x":"{x}","kid":"k"}}"#), false),
            (r#"{"kty":"OKP","crv":"Ed25519","x":"AQ","kid":"k"}"#.to_owned(), false),
            (format!(r#"{{"kty":"EC","crv":"secp256k1","x":"{x}","y":"{x}","kid":"k"}}"#), false),
            (format!(r#"{{"kty":"oct","k":"{x}","kid":"k"}}"#), false),
            ("7".to_owned(), false),
        ];
        for (key, is_used) in rows {
            let set = KeySet::read(format!(r#"{{"keys":[{key}]}}"#).as_bytes());
            let found = set.as_ref().is_ok_and(|set| set.find(Some("k"), Algorithm::EdDsa).is_some());
            assert_eq!(found, is_used, "{key}: {set:?}");
        }
    }

    #[test]
    fn token_without_a_key_id_needs_the_only_key() {
        let key = |byte: u8| {
            let x = URL_SAFE_NO_PAD.encode([byte; COORDINATE]);
            format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}"}}"#)
        };
        let set = |keys: &str| KeySet::read(format!(r#"{{"keys":[{keys}]}}"#).as_bytes()).unwrap();
        assert!(set(&key(1)).find(None, Algorithm::EdDsa).is_some());
        assert!(set(&key(1)).find(None, Algorithm::Es256).is_none());
        assert!(set(&format!("{},{}", key(1), key(2))).find(None, Algorithm::EdDsa).is_none());
    }
}
