//! Where an issuer has its keys: in its metadata (RFC 8414, OpenID Connect Discovery).

use serde::Deserialize;
use url::Url;

use crate::fetch::{Fetch, FetchError};

/// The members of the metadata that matter here.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: Option<String>,
}

/// The URL of the issuer's keys.
pub(crate) async fn key_url(fetch: &dyn Fetch, issuer: &str) -> Result<Url, FetchError> {
    let url = Url::parse(issuer).map_err(|error| FetchError(format!("{issuer} is not a URL: {error}")))?;
    let mut failed = Vec::new();
    for place in places(&url) {
        let found = match fetch.get(&place).await {
            Ok(text) => key_url_in(&text, issuer, &url),
            Err(FetchError(error)) => Err(error),
        };
        match found {
            Ok(found) => return Ok(found),
            Err(error) => failed.push(format!("{place}: {error}")),
        }
    }
    Err(FetchError(format!("no metadata of the issuer: {}", failed.join("; "))))
}

/// The places of metadata, in the order in which they are tried.
fn places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
        format!("{path}/.well-known/openid-configuration"),
    ];
    paths.dedup();
    let at = |path: String| {
        let mut place = issuer.clone();
        place.set_path(&path);
        place
    };
    paths.into_iter().map(at).collect()
}

fn key_url_in(text: &[u8], issuer: &str, url: &Url) -> Result<Url, String> {
    let metadata: Metadata = serde_json::from_slice(text).map_err(|error| format!("not metadata: {error}"))?;
    if metadata.issuer != issuer {
        return Err("the metadata is of another issuer".to_owned());
    }
    let keys = metadata.jwks_uri.ok_or("the metadata has no `jwks_uri`")?;
    let keys = Url::parse(&keys).map_err(|error| format!("`jwks_uri` is not a URL: {error}"))?;
    // An issuer without TLS is on this machine.
    if keys.scheme() != "https" && keys.origin() != url.origin() {
        return Err("`jwks_uri` needs https".to_owned());
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_beside_the_path_of_the_issuer() {
        let texts = |issuer: &str| places(&issuer.parse().unwrap()).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            texts("https://a.example/realms/x"),
            [
                "https://a.example/.well-known/oauth-authorization-server/realms/x",
                "https://a.example/.well-known/openid-configuration/realms/x",
                "https://a.example/realms/x/.well-known/openid-configuration",
            ]
        );
        let root = ["oauth-authorization-server", "openid-configuration"];
        assert_eq!(texts("https://a.example/"), root.map(|name| format!("https://a.example/.well-known/{name}")));
    }

    #[test]
    fn metadata_of_others_and_keys_without_tls_are_refused() {
        let issuer = "https://a.example";
        let found = |text: &str| key_url_in(text.as_bytes(), issuer, &issuer.parse().unwrap()).map(String::from);
        let of = |issuer: &str, keys: &str| found(&format!(r#"{{"issuer":"{issuer}","jwks_uri":"{keys}"}}"#));
        assert_eq!(of(issuer, "https://keys.example/k"), Ok("https://keys.example/k".to_owned()));
        assert!(of("https://a.example/", "https://keys.example/k").is_err());
        assert!(of(issuer, "http://169.254.169.254/k").is_err());
        assert!(found(r#"{"issuer":"https://a.example"}"#).is_err());
    }
}
