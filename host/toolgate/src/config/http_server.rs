//! The table `[server]`: limits on HTTP clients, and the origins of web pages that can use the API.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Parsed;

/// Limits on HTTP clients, and the origins of web pages that can use the API.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerTable {
    /// The maximal number of connections. For a new one beyond it, the host closes the one that has waited longest for its
    /// client, among those whose newest request was authenticated or among the others, whichever are more. Never more than
    /// half of the files that the system lets the host open. Principals that are neither approver nor admin have requests in
    /// flight on at most seven eighths of them, and the last eighth of these is for principals with at most 8 requests. Default:
    /// 1024.
    pub connections: Option<NonZeroUsize>,
    /// The maximal number of connections of one peer: of an IPv4 address, or of the first 64 bits of an IPv6 address. For a
    /// new one beyond it, the host closes one of this peer in the same way. Loopback is not limited. A proxy on another machine
    /// is one peer: set this to the value of `connections` behind one. Default: half of `connections`.
    pub connections_per_peer: Option<NonZeroUsize>,
    /// How long a client can take to send the head of a request, in milliseconds, after it has connected or received the
    /// previous answer. An idle connection is kept for the same time. Default: 10000.
    pub head_ms: Option<NonZeroU64>,
    /// The maximal size of a request's head, in bytes. Default: 32768, 32 KiB.
    pub head_bytes: Option<NonZeroUsize>,
    /// The maximal size of the body of a submitted turn, in bytes. A call's arguments have their own limit, `arguments_bytes`
    /// in `[limits]`. Default: 4194304, 4 MiB.
    pub turn_bytes: Option<NonZeroUsize>,
    /// The maximal size of the body of an answer, or of another request that is neither a turn nor a plugin, in bytes. The data
    /// of an answer has a fixed limit of 1 MiB, and edited arguments have `arguments_bytes`. Default: 2097152, 2 MiB.
    pub answer_bytes: Option<NonZeroUsize>,
    /// How long a client can take to send the body of a request, in milliseconds, and one second more for each 16 KiB that has
    /// arrived. Default: 30000.
    pub body_ms: Option<NonZeroU64>,
    /// The same for the body of a request that carries no token: it opens a session, or sends a result to a link.
    /// Default: 5000.
    pub log_in_body_ms: Option<NonZeroU64>,
    /// How long a client can read none of its answer, in milliseconds. Default: 30000.
    pub stall_ms: Option<NonZeroU64>,
    /// The maximal number of event streams of all principals together. Default: 1024.
    pub event_streams: Option<NonZeroUsize>,
    /// The maximal number of long requests of all principals together: event streams, requests that wait for a turn, and
    /// ephemeral turns. Each occupies a connection. Default: three quarters of `connections`.
    pub long_requests: Option<NonZeroUsize>,
    /// How many of these only approvers and admins can have. Less than `long_requests`. The last eighth of the others is for
    /// principals with at most 8 long requests. Default: a quarter of `long_requests`.
    pub long_requests_reserved: Option<usize>,
    /// The maximal number of long requests of one principal. Default: a third of `long_requests`.
    pub long_requests_per_principal: Option<NonZeroUsize>,
    /// The maximal size of the answers and events that one principal has requested and not read yet, in bytes. One answer of
    /// any size is allowed. Beyond it, reads and submissions are refused as `busy`, and a stream waits before it reads more.
    /// Default: 67108864, 64 MiB.
    pub unread_bytes: Option<NonZeroUsize>,
    /// The maximal size of the bodies that one principal is sending at the same time, in bytes. One body of an allowed size is
    /// always accepted. Beyond it, a request is refused as `busy`. A component counts until it is loaded. Default: 67108864, 64
    /// MiB.
    pub bodies_bytes: Option<NonZeroUsize>,
    /// How often an open event stream checks whether its token is still valid, in milliseconds. Default: 2000.
    pub recheck_ms: Option<NonZeroU64>,
    /// How long a host that must stop waits for the calls that run, in seconds. It takes no new turns meanwhile. Default: 10.
    pub drain_seconds: Option<u32>,
    /// Origins whose pages can use the API with a token of their own, but never with a session of this host. Write them as
    /// browsers do: `https://app.example.com`, `http://localhost:5173`. Default: none.
    #[schemars(with = "Vec<String>")]
    pub origins: Vec<Parsed<WebOrigin>>,
    /// The certificate with which the host serves HTTPS, and nothing else. Default: none, the host serves HTTP.
    pub tls: Option<TlsTable>,
    /// Whether a proxy in front of the host serves HTTPS. Without it and without `tls`, the host refuses an address that other
    /// machines can reach. Default: false.
    pub behind_proxy: bool,
}

/// The files of a certificate. The host reads them again when they change.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsTable {
    /// The file with the certificate and then those of its authorities, in PEM.
    pub certificate: PathBuf,
    /// The file with its private key, in PEM.
    pub key: PathBuf,
}

/// An origin as browsers write it: a scheme, a host name, and a port if it is not the default port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebOrigin(String);

impl FromStr for WebOrigin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = |why: &str| Err(format!("{text:?} is not an origin: {why}"));
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let default_port = match scheme {
            "https" => ":443",
            "http" => ":80",
            _ => {
                return refused(
                    "write it with its scheme, such as \"https://app.example.com\"; `*` and `null` are not allowed",
                );
            }
        };
        if rest.contains(['/', '?', '#', '@', '*']) {
            return refused("an origin must have a scheme, one host name and a port, and nothing else");
        }
        let allowed =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-' | b':' | b'[' | b']');
        if rest.is_empty() || !rest.bytes().all(allowed) {
            return refused("write the host name in lower case, and other letters as browsers do (xn--…)");
        }
        if rest.ends_with(default_port) {
            return refused("remove the port: browsers omit the default port of the scheme");
        }
        Ok(Self(text.to_owned()))
    }
}

impl WebOrigin {
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
            assert!(good.parse::<WebOrigin>().is_ok(), "{good}");
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
            assert!(wrong.parse::<WebOrigin>().is_err(), "{wrong}");
        }
    }
}
