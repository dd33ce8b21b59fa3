//! Signatures by the Standard Webhooks specification, version 1: HMAC-SHA256 over `id.timestamp.body`, in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// The prefix of a secret in the specification.
const PREFIX: &str = "whsec_";

/// 192 bits, as in the specification.
const MIN_BYTES: usize = 24;

const MAX_BYTES: usize = 256;

/// The key of a webhook's signatures. It is never stored or shown.
#[derive(Clone)]
pub struct SigningSecret(Hmac<Sha256>);

/// Why a text cannot be a secret. It does not quote the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSigningSecret {
    #[error("the text after `{PREFIX}` is not base64")]
    NotBase64,
    #[error(
        "the secret has {0} bytes; it must have {MIN_BYTES} to {MAX_BYTES}. Make one with `openssl rand -base64 32` and put `{PREFIX}` in front"
    )]
    Length(usize),
}

impl SigningSecret {
    /// Reads `whsec_` and base64. The bytes of any other text are the key.
    ///
    /// # Errors
    /// [`InvalidSigningSecret`].
    pub fn new(text: &str) -> Result<Self, InvalidSigningSecret> {
        let key = match text.strip_prefix(PREFIX) {
            Some(encoded) => STANDARD.decode(encoded).map_err(|_| InvalidSigningSecret::NotBase64)?,
            None => text.as_bytes().to_vec(),
        };
        let wrong = InvalidSigningSecret::Length(key.len());
        if !(MIN_BYTES..=MAX_BYTES).contains(&key.len()) {
            return Err(wrong);
        }
        Hmac::new_from_slice(&key).map(Self).map_err(|_| wrong)
    }

    /// The value of the header `webhook-signature`. `timestamp` is in seconds since 1970.
    #[must_use]
    pub fn sign(&self, id: &str, timestamp: u64, body: &str) -> String {
        let mut mac = self.0.clone();
        for part in [id, ".", &timestamp.to_string(), ".", body] {
            mac.update(part.as_bytes());
        }
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl std::fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `openssl dgst -sha256 -mac HMAC` made the last column. The first row is the specification's example.
    #[test]
    fn signatures_match_the_specification() {
        let long = "k".repeat(100);
        for (secret, id, timestamp, body, signature) in [
            (
                "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                "msg_p5jXN8AQM9LWM0D4loKWxJek",
                1_614_265_330,
                r#"{"test": 2432232314}"#,
                "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ),
            (
                "a raw secret of 27 bytes...",
                "susp_00000000000000000000000000000001-opened",
                1_767_225_600,
                r#"{"type":"suspension.opened"}"#,
                "v1,JQND6jZlsyJ6gvyaPO5uNvB4fp03gOjplNcmvTYnQ38=",
            ),
            (&long, "x-closed", 0, "ü", "v1,ZZRqGWeU9fqTjWbPo5cib/e5k2AkjhFVYU5eFhYbifk="),
        ] {
            assert_eq!(SigningSecret::new(secret).unwrap().sign(id, timestamp, body), signature, "{id}");
        }
    }

    #[test]
    fn invalid_secret_is_refused_and_not_shown() {
        let longest = "a".repeat(MAX_BYTES);
        for (text, refused) in [
            ("", Some(InvalidSigningSecret::Length(0))),
            ("a-secret-of-23-bytes...", Some(InvalidSigningSecret::Length(23))),
            ("a-secret-of-24-bytes....", None),
            (&longest, None),
            (&format!("{longest}a"), Some(InvalidSigningSecret::Length(257))),
            ("whsec_not base64, though it is long enough", Some(InvalidSigningSecret::NotBase64)),
            ("whsec_c2hvcnQ=", Some(InvalidSigningSecret::Length(5))),
        ] {
            assert_eq!(SigningSecret::new(text).err(), refused, "{text}");
        }
        assert_eq!(format!("{:?}", SigningSecret::new(&longest).unwrap()), "SigningSecret");
    }
}
