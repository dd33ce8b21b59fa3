//! Signed texts for cookies and links: only this host can write them. Their content is readable by who holds them, and
//! any change is detected. No clock, no state, no I/O.
//!
//! The text is base64url, without padding, of the payload and its HMAC-SHA256. Each purpose has its own key, derived
//! from the host's, so that a text for one purpose is never accepted for another.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::{Digest, SuspensionId, Timestamp};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// The maximum number of characters that are read. The texts of this host are shorter.
const MAX_TEXT: usize = 512;

/// The bytes of a signature.
const MAC: usize = 32;

/// The bytes of a payload: version, expiry, id, digest, whether it is for one suspension, which suspension.
const PAYLOAD: usize = 1 + 8 + 16 + 32 + 1 + 16;

/// The version of the payload.
const VERSION: u8 = 1;

/// The key that signs sessions and links. Its holder can log in as anybody.
#[derive(Clone)]
pub struct SigningKey([u8; 32]);

impl SigningKey {
    /// A key of 256 random bits.
    #[must_use]
    pub const fn new(bits: [u8; 32]) -> Self {
        Self(bits)
    }

    /// 128 bits derived from this key, these texts and this number. Without the key they cannot be computed.
    pub(crate) fn digest(&self, purpose: Purpose, texts: &[&[u8]], number: u128) -> u128 {
        let mut mac = self.mac(purpose);
        mac.update(&number.to_be_bytes());
        for text in texts {
            // With its length in front, no text runs into the next.
            mac.update(&(text.len() as u64).to_be_bytes());
            mac.update(text);
        }
        let bytes: [u8; MAC] = mac.finalize().into_bytes().into();
        bytes.first_chunk().map_or(0, |first| u128::from_be_bytes(*first))
    }

    fn mac(&self, purpose: Purpose) -> Hmac<Sha256> {
        keyed(&finished(keyed(&self.0), purpose.label()))
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

/// The purpose of a signed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The cookie of a session.
    Session,
    /// A link that opens one suspension.
    Link,
    /// The id of a link in a webhook message.
    LinkId,
    /// The CSRF token that a page sends with each change.
    Csrf,
}

impl Purpose {
    const fn label(self) -> &'static [u8] {
        match self {
            Self::Session => b"toolgate session 1",
            Self::Link => b"toolgate link 1",
            Self::LinkId => b"toolgate link id 1",
            Self::Csrf => b"toolgate csrf 1",
        }
    }
}

/// How a session was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpenedBy {
    /// A log-in with a token.
    LogIn,
    /// A one-time link.
    Link,
}

/// The identity of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionMark {
    /// Unique to this session.
    pub id: u128,
    /// The digest of the token that it represents.
    pub token: Digest,
    pub opened_by: OpenedBy,
    /// When it expires. Of the sessions of one token that were opened in the same way, a later one expires later,
    /// unless the clock was set back.
    pub expires: Timestamp,
}

/// The content of a cookie or a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pass {
    /// Unique to this pass. A session that a link opens has the id of the link.
    pub(crate) id: u128,
    /// The digest of the token that it represents. When the token is revoked, the pass is invalid.
    pub(crate) token: Digest,
    pub(crate) expires: Timestamp,
    /// The only suspension that it gives access to, if it is limited to one.
    pub(crate) only: Option<SuspensionId>,
}

impl Pass {
    /// The signed text.
    pub(crate) fn sign(&self, key: &SigningKey, purpose: Purpose) -> String {
        let mut bytes = Vec::with_capacity(PAYLOAD + MAC);
        bytes.push(VERSION);
        bytes.extend(self.expires.millis().to_be_bytes());
        bytes.extend(self.id.to_be_bytes());
        bytes.extend(self.token.as_bytes());
        bytes.push(u8::from(self.only.is_some()));
        bytes.extend(self.only.map_or(0, SuspensionId::bits).to_be_bytes());
        let mac = finished(key.mac(purpose), &bytes);
        bytes.extend(mac);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads a text that this host signed for this purpose, unless it has expired.
    pub(crate) fn open(text: &str, key: &SigningKey, purpose: Purpose, now: Timestamp) -> Option<Self> {
        Self::written(text, key, purpose).filter(|pass| now < pass.expires)
    }

    /// Reads a text that this host signed for this purpose, even if it has expired.
    pub(crate) fn written(text: &str, key: &SigningKey, purpose: Purpose) -> Option<Self> {
        if text.len() > MAX_TEXT {
            return None;
        }
        // The decoder accepts only the canonical encoding.
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (payload, mac) = bytes.split_last_chunk::<MAC>()?;
        let mut expected = key.mac(purpose);
        expected.update(payload);
        // In constant time.
        expected.verify_slice(mac).ok()?;
        Self::read(payload)
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let (&[version], rest) = payload.split_first_chunk()?;
        let (expires, rest) = rest.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (token, rest) = rest.split_first_chunk()?;
        let (&[is_for_one], rest) = rest.split_first_chunk()?;
        let only = SuspensionId::from_bits(u128::from_be_bytes(rest.try_into().ok()?));
        (version == VERSION).then_some(Self {
            id: u128::from_be_bytes(*id),
            token: Digest::from_bytes(*token),
            expires: Timestamp::from_millis(u64::from_be_bytes(*expires)),
            only: (is_for_one == 1).then_some(only),
        })
    }

    /// The identity of its session.
    /// Only a session from a link is limited to one suspension.
    pub(crate) const fn opened_by(&self) -> OpenedBy {
        if self.only.is_some() { OpenedBy::Link } else { OpenedBy::LogIn }
    }

    pub(crate) fn mark(&self) -> SessionMark {
        SessionMark { id: self.id, token: self.token, opened_by: self.opened_by(), expires: self.expires }
    }

    /// The CSRF token that a page of this session sends with each change.
    pub(crate) fn csrf(&self, key: &SigningKey) -> String {
        URL_SAFE_NO_PAD.encode(finished(key.mac(Purpose::Csrf), &self.id.to_be_bytes()))
    }

    /// Whether a text is [`Pass::csrf`], in constant time.
    pub(crate) fn is_csrf(&self, text: &str, key: &SigningKey) -> bool {
        let mut expected = key.mac(Purpose::Csrf);
        expected.update(&self.id.to_be_bytes());
        let given = if text.len() > MAX_TEXT { None } else { URL_SAFE_NO_PAD.decode(text).ok() };
        given.is_some_and(|given| expected.verify_slice(&given).is_ok())
    }
}

fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    Hmac::new_from_slice(key).expect("a key")
}

fn finished(mut mac: Hmac<Sha256>, bytes: &[u8]) -> [u8; 32] {
    mac.update(bytes);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: SigningKey = SigningKey::new([7; 32]);

    fn pass(only: Option<u128>) -> Pass {
        Pass {
            id: 0x1234,
            token: Digest::of("a token"),
            expires: Timestamp::from_millis(1_000),
            only: only.map(SuspensionId::from_bits),
        }
    }

    fn open(text: &str) -> Option<Pass> {
        Pass::open(text, &KEY, Purpose::Link, Timestamp::from_millis(999))
    }

    #[test]
    fn signed_text_is_valid_until_it_expires() {
        for pass in [pass(None), pass(Some(0)), pass(Some(u128::MAX))] {
            let text = pass.sign(&KEY, Purpose::Link);
            assert_eq!(open(&text), Some(pass));
            for (now, counts) in [(0, true), (999, true), (1_000, false), (u64::MAX, false)] {
                let opened = Pass::open(&text, &KEY, Purpose::Link, Timestamp::from_millis(now));
                assert_eq!(opened.is_some(), counts, "{now}");
            }
        }
    }

    #[test]
    fn changed_or_truncated_text_is_refused() {
        let text = pass(Some(9)).sign(&KEY, Purpose::Link);
        let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                assert_eq!(open(&URL_SAFE_NO_PAD.encode(changed)), None, "bit {bit} of byte {at}");
            }
            assert_eq!(open(&URL_SAFE_NO_PAD.encode(&bytes[..at])), None, "cut at {at}");
            assert_eq!(open(&URL_SAFE_NO_PAD.encode(&bytes[at + 1..])), None, "cut until {at}");
        }
        for more in [vec![0], vec![0; 600]] {
            assert_eq!(open(&URL_SAFE_NO_PAD.encode([bytes.clone(), more].concat())), None);
        }
    }

    #[test]
    fn only_the_canonical_encoding_is_accepted() {
        let text = pass(None).sign(&KEY, Purpose::Link);
        assert!(open(&text).is_some());
        for (at, _) in text.char_indices() {
            for other in "AB_-z9=+/ .\n".chars().filter(|other| !text[at..].starts_with(*other)) {
                let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                assert_eq!(open(&changed), None, "{changed}");
            }
        }
        for other in [format!("{text}="), format!(" {text}"), format!("{text}\n"), text.to_lowercase(), String::new()] {
            assert_eq!(open(&other), None, "{other:?}");
        }
    }

    #[test]
    fn text_of_another_key_or_purpose_is_refused() {
        let at = Timestamp::from_millis(0);
        let text = pass(None).sign(&KEY, Purpose::Session);
        assert!(Pass::open(&text, &KEY, Purpose::Session, at).is_some());
        assert_eq!(Pass::open(&text, &SigningKey::new([8; 32]), Purpose::Session, at), None);
        assert_eq!(Pass::open(&text, &KEY, Purpose::Link, at), None);
        assert_eq!(Pass::open(&text, &KEY, Purpose::Csrf, at), None);
    }

    #[test]
    fn csrf_token_is_valid_for_one_session_only() {
        let (one, two) = (pass(None), Pass { id: 0x1235, ..pass(None) });
        assert!(one.is_csrf(&one.csrf(&KEY), &KEY));
        for wrong in [two.csrf(&KEY), one.csrf(&SigningKey::new([8; 32])), one.sign(&KEY, Purpose::Csrf), String::new()]
        {
            assert!(!one.is_csrf(&wrong, &KEY), "{wrong}");
        }
        assert!(!one.is_csrf(&one.csrf(&KEY)[1..], &KEY));
    }

    #[test]
    fn different_inputs_have_different_digests() {
        let of = |texts: &[&str], number| {
            let texts: Vec<_> = texts.iter().map(|text| text.as_bytes()).collect();
            KEY.digest(Purpose::LinkId, &texts, number)
        };
        assert_eq!(of(&["pager", "ann"], 7), of(&["pager", "ann"], 7));
        let all =
            [of(&["pager", "ann"], 7), of(&["pagera", "nn"], 7), of(&["ann", "pager"], 7), of(&["pager", "ann"], 8)];
        let other = SigningKey::new([8; 32]).digest(Purpose::LinkId, &[b"pager", b"ann"], 7);
        let distinct: std::collections::HashSet<u128> = all.into_iter().chain([other]).collect();
        assert_eq!(distinct.len(), 5);
    }

    #[test]
    fn key_is_not_printed() {
        assert_eq!(format!("{KEY:?}"), "SigningKey(…)");
    }
}
