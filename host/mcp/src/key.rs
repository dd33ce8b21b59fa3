//! The ids under which the host records the calls of MCP clients.
//!
//! A client may send a request again, because its connection broke or because a model repeats a call. The id of a call
//! follows from what the request asks for. So the host itself makes the same request the same call, also after a restart and for
//! requests that arrive at once.

use std::fmt;
use std::str::FromStr;

use domain::ids::InvalidId;
use domain::{CallId, ConversationId, Digest, Json, Principal};

/// Arguments up to this size are compared as values, and larger ones as texts. A value takes several times the memory of its
/// text.
const MAX_VALUE: usize = 64 << 10;

/// The beginning of the ids that this crate makes.
const PREFIX: &str = "mcp-";

/// The conversation of a principal's calls. If its token is for one conversation, it is that one. Otherwise only the holder of
/// the key can compute its name, so that no other caller can submit to it first and own it.
pub(crate) fn conversation(key: &[u8; 32], by: &Principal) -> Result<ConversationId, InvalidId> {
    if let Some(only) = &by.conversation {
        return Ok(only.clone());
    }
    let digest = Digest::of_parts(&[b"toolgate mcp conversation 1", key, by.id.as_str().as_bytes()]);
    ConversationId::new(&format!("mcp:{:032x}", half(digest)))
}

/// The tool and the arguments of a request. Requests with the same key ask for the same call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RequestKey(u128);

impl RequestKey {
    pub(crate) fn new(tool: &str, arguments: &Json) -> Self {
        let value = Some(arguments).filter(|arguments| arguments.size() <= MAX_VALUE).and_then(|it| it.value().ok());
        let text = value.map(|value| value.to_json());
        let text = text.as_deref().unwrap_or(arguments.as_str());
        Self(half(Digest::of_parts(&[tool.as_bytes(), text.as_bytes()])))
    }
}

impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// One of the calls that asked for the same. The first has the number 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallKey {
    pub(crate) request: RequestKey,
    pub(crate) number: u64,
}

impl CallKey {
    pub(crate) fn id(self) -> Result<CallId, InvalidId> {
        CallId::new(&self.to_string())
    }
}

impl fmt::Display for CallKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}-{}", self.request, self.number)
    }
}

/// This crate does not make such an id.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotMade;

impl FromStr for CallKey {
    type Err = NotMade;

    fn from_str(text: &str) -> Result<Self, NotMade> {
        let (digits, number) = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')).ok_or(NotMade)?;
        let request = RequestKey(u128::from_str_radix(digits, 16).map_err(|_| NotMade)?);
        let key = Self { request, number: number.parse().map_err(|_| NotMade)? };
        // Only the form that was written.
        if key.to_string() == text { Ok(key) } else { Err(NotMade) }
    }
}

/// The first 128 bits.
fn half(digest: Digest) -> u128 {
    digest.as_bytes().first_chunk().map_or(0, |first| u128::from_be_bytes(*first))
}

#[cfg(test)]
mod tests {
    use domain::{PrincipalId, principal::Role};

    use super::*;

    fn principal(name: &str) -> Principal {
        Principal::new(PrincipalId::new(name).unwrap(), [Role::Caller])
    }

    #[test]
    fn same_requests_have_the_same_key() {
        let key = |tool: &str, text: &str| RequestKey::new(tool, &Json::unchecked(text));
        assert_eq!(key("t", r#"{"a":1,"b":2}"#), key("t", r#" { "b":2, "a":1 }"#));
        assert_ne!(key("t", r#"{"a":1}"#), key("u", r#"{"a":1}"#));
        assert_ne!(key("t", r#"{"a":1}"#), key("t", r#"{"a":1.0}"#));
    }

    #[test]
    fn ids_are_read_back_in_one_form_only() {
        let key = CallKey { request: RequestKey(0xab), number: 3 };
        let text = key.to_string();
        assert_eq!(text, "mcp-000000000000000000000000000000ab-3");
        assert_eq!(text.parse(), Ok(key));
        assert_eq!(key.id().unwrap().as_str(), text);
        for other in
            ["mcp-ab-3", "mcp-000000000000000000000000000000AB-3", "mcp-000000000000000000000000000000ab-03", "x"]
        {
            assert_eq!(other.parse::<CallKey>(), Err(NotMade), "{other}");
        }
    }

    #[test]
    fn conversations_follow_from_the_key_and_the_principal() {
        let name = |key: u8, by: &Principal| conversation(&[key; 32], by).unwrap();
        let (alice, eve) = (principal("alice"), principal("eve"));
        assert_eq!(name(1, &alice), name(1, &alice));
        assert_ne!(name(1, &alice), name(1, &eve));
        assert_ne!(name(1, &alice), name(2, &alice));
        let only = ConversationId::new("theirs").unwrap();
        assert_eq!(name(1, &Principal { conversation: Some(only.clone()), ..alice }), only);
    }
}
