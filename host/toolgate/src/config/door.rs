//! The table `[door]`: how long the HTTP door waits for its clients, how many it lets in, and whose pages.

use std::num::{NonZeroU64, NonZeroUsize};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Parsed;

/// Bounds on connections and on what clients keep waiting.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DoorTable {
    /// Connections at once. When one more comes, the one that has waited longest for its client is closed. Never more than
    /// half of the files that the system lets the host open. Default: 1024.
    pub connections: Option<NonZeroUsize>,
    /// How long a client may take until the head of a request has arrived, from the opening of its connection or from the
    /// end of the answer before, in milliseconds. So it is also how long an unused connection is kept. Default: 10000.
    pub head_ms: Option<NonZeroU64>,
    /// The most bytes of a request's head. Default: 32768, 32 KiB.
    pub head_bytes: Option<NonZeroUsize>,
    /// How long the body of a request may take to arrive, in milliseconds; one second more for each 16 KiB of it that has.
    /// Default: 30000.
    pub body_ms: Option<NonZeroU64>,
    /// How long a client may take to read some of its answer, in milliseconds. Default: 30000.
    pub stall_ms: Option<NonZeroU64>,
    /// Event streams of all principals together. Default: 1024.
    pub event_streams: Option<NonZeroUsize>,
    /// How often an open event stream looks whether its token still counts, in milliseconds. Default: 2000.
    pub recheck_ms: Option<NonZeroU64>,
    /// Origins whose pages may use the API, each with a token of its own and never with a session of this host, as browsers
    /// write them: `https://app.example.com`, `http://localhost:5173`. Default: none.
    #[schemars(with = "Vec<String>")]
    pub origins: Vec<Parsed<Origin>>,
}

/// An origin as browsers write it: a scheme, a name, and a port where it is not the scheme's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = |why: &str| Err(format!("{text:?} is no origin: {why}"));
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let own = match scheme {
            "https" => ":443",
            "http" => ":80",
            _ => {
                return refused("write it with its scheme, as in \"https://app.example.com\"; `*` and `null` are none");
            }
        };
        if rest.contains(['/', '?', '#', '@', '*']) {
            return refused("an origin is a scheme, one name and a port, and nothing behind them");
        }
        let allowed =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-' | b':' | b'[' | b']');
        if rest.is_empty() || !rest.bytes().all(allowed) {
            return refused("write the name in lower case, and one with other letters as browsers do (xn--…)");
        }
        if rest.ends_with(own) {
            return refused("browsers leave out the port that is the scheme's own; so must this");
        }
        Ok(Self(text.to_owned()))
    }
}

impl Origin {
    /// The origin, as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_written_as_a_browser_sends_it() {
        for good in ["https://app.example.com", "http://localhost:5173", "https://[::1]:8443", "http://a:443"] {
            assert!(good.parse::<Origin>().is_ok(), "{good}");
        }
        for wrong in [
            "",
            "*",
            "null",
            "app.example.com",
            "https://",
            "https://*.example.com",
            "https://App.example.com",
            "https://app.example.com/",
            "https://app.example.com:443",
            "http://localhost:80",
            "ftp://a",
            "https://a b",
            "https://user@a",
            "https://a?b",
        ] {
            assert!(wrong.parse::<Origin>().is_err(), "{wrong}");
        }
    }
}
