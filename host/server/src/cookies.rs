//! The cookies of sessions: one for a log-in, and one for a link. They have different names, so that neither replaces
//! the other in a browser.
//!
//! Over TLS their names begin with `__Host-`: then the browser accepts them only from this host and over TLS, and no
//! other name of the same domain can replace them.

use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::Response;
use domain::Span;

use crate::error::{Error, Result};
use crate::guard;

/// The name of a log-in's cookie.
pub(crate) const SESSION: &str = "toolgate_session";

/// The name of a link's cookie.
pub(crate) const LINK: &str = "toolgate_link";

/// The prefix of cookies that browsers accept only over TLS.
const HOST: &str = "__Host-";

/// The values that a browser sends under a name. There may be several: any other program on this machine can set one,
/// on any path of any port. Their signatures show which of them are this host's.
///
/// Under a name that other machines reach, only cookies with the prefix for TLS are read. Under this machine's own
/// names the others are read as well, because a proxy with TLS in front may use them. Neither takes precedence: another
/// port can have set both.
pub(crate) fn read<'a>(name: &str, uri: &Uri, headers: &'a HeaderMap) -> Vec<&'a str> {
    let takes_plain = is_local(uri, headers);
    let is_read = |found: &str| found.strip_prefix(HOST) == Some(name) || takes_plain && found == name;
    pairs(headers).filter(|(found, _)| is_read(found)).map(|(_, value)| value).collect()
}

fn pairs(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='))
}

/// Sets a cookie. Scripts cannot read it, and pages of other sites cannot make the browser send it.
pub(crate) fn set(response: &mut Response, name: &str, value: &str, lasts: Span, is_secure: bool) -> Result<()> {
    let seconds = lasts.millis() / 1_000;
    let (prefix, secure) = if is_secure { (HOST, "; Secure") } else { ("", "") };
    let cookie = format!("{prefix}{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    let cookie = HeaderValue::try_from(cookie).map_err(|error| Error::fault(&error))?;
    response.headers_mut().append(header::SET_COOKIE, cookie);
    Ok(())
}

/// Removes every cookie of this host that the browser sent.
pub(crate) fn clear(response: &mut Response, headers: &HeaderMap) -> Result<()> {
    for (name, is_secure) in [(SESSION, false), (SESSION, true), (LINK, false), (LINK, true)] {
        let prefix = if is_secure { HOST } else { "" };
        if pairs(headers).any(|(found, _)| found.strip_prefix(prefix) == Some(name)) {
            set(response, name, "", Span::ZERO, is_secure)?;
        }
    }
    Ok(())
}

/// Whether a cookie is for TLS only. This server does not serve TLS. A proxy in front of it does, under its own name,
/// or passes on the origin of the page.
pub(crate) fn is_secure(uri: &Uri, headers: &HeaderMap) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    !is_local(uri, headers) || origins.any(|origin| origin.as_bytes().starts_with(b"https://"))
}

/// Whether the request is for a name that always resolves to this machine.
fn is_local(uri: &Uri, headers: &HeaderMap) -> bool {
    guard::asked_for(uri, headers).is_some_and(|asked| guard::is_local(&asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &str, cookies: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        for cookie in cookies {
            headers.append(header::COOKIE, cookie.parse().unwrap());
        }
        headers
    }

    #[test]
    fn on_other_host_names_only_the_tls_cookie_is_read() {
        let (plain, tls) = ("toolgate_session=plain", "a=b; __Host-toolgate_session=tls");
        type Row<'a> = (&'a str, &'a [&'a str], &'a [&'a str]);
        let rows: [Row<'_>; 10] = [
            ("localhost:7420", &[plain], &["plain"]),
            ("localhost:7420", &[tls], &["tls"]),
            ("127.0.0.1", &[plain, tls], &["plain", "tls"]),
            ("localhost", &["toolgate_session=a; toolgate_session=b", plain], &["a", "b", "plain"]),
            ("[::1]:1", &[], &[]),
            ("localhost", &["toolgate_link=x", "xtoolgate_session=x", "TOOLGATE_SESSION=x"], &[]),
            ("gate.example.com", &[plain], &[]),
            ("gate.example.com", &[tls, plain], &["tls"]),
            ("gate.example.com:8443", &[tls], &["tls"]),
            ("gate.example.com", &["__Host-__Host-toolgate_session=x", "__host-toolgate_session=x"], &[]),
        ];
        for (host, cookies, values) in rows {
            let headers = headers(host, cookies);
            assert_eq!(read(SESSION, &Uri::from_static("/"), &headers), values, "{host} {cookies:?}");
        }
    }

    #[test]
    fn cookie_is_secure_for_other_names_or_https_pages() {
        let rows = [
            ("localhost", None, false),
            ("localhost", Some("http://localhost:7420"), false),
            ("localhost", Some("https://gate.example.com"), true),
            ("127.0.0.1:7420", Some("null"), false),
            ("gate.example.com", None, true),
            ("gate.example.com", Some("http://gate.example.com"), true),
        ];
        for (host, origin, secure) in rows {
            let mut headers = headers(host, &[]);
            headers.extend(origin.map(|origin| (header::ORIGIN, HeaderValue::from_static(origin))));
            assert_eq!(is_secure(&Uri::from_static("/"), &headers), secure, "{host} {origin:?}");
        }
    }
}
