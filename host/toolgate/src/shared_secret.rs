//! The secret that all hosts on one database share. Their keys come from it, so a session, a link or a checkpoint of one host is
//! valid at the others.

use ring::hmac;

/// The secret. It never leaves the process, and the keys that come from it do not show it.
#[derive(Debug, Clone)]
pub(crate) struct SharedSecret(hmac::Key);

impl SharedSecret {
    pub(crate) const MIN_BYTES: usize = 32;

    /// `None` if the secret is too short.
    pub(crate) fn new(secret: &[u8]) -> Option<Self> {
        (secret.len() >= Self::MIN_BYTES).then(|| Self(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }

    /// The key for one purpose: the HMAC-SHA-256 of a text that names it.
    pub(crate) fn derived(&self, purpose: &str) -> [u8; 32] {
        let tag = hmac::sign(&self.0, format!("toolgate {purpose} 1").as_bytes());
        let mut key = [0; 32];
        key.copy_from_slice(tag.as_ref());
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_by_purpose_and_by_secret() {
        let [one, other] = [[1; 32], [2; 32]].map(|secret| SharedSecret::new(&secret).unwrap());
        assert!(SharedSecret::new(&[1; 31]).is_none());
        let keys = [one.derived("session-key"), one.derived("mcp-key"), other.derived("session-key")];
        assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2]);
        // Hosts of different versions must derive the same key.
        let expected = "a22b1e03c7ff9c0c30ae7c873207e343cbb61fe2892f78b5bdbca1b12fd98b0a";
        assert_eq!(domain::Digest::from_bytes(keys[0]).hex(), expected);
    }
}
