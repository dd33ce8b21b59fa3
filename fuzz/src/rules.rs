//! The rules for requests: for every rule and every URL, the rule allows only the host that it names.

use std::collections::BTreeSet;

use capabilities::http::{HttpRule, Reach};
use url::{Host, Url};

/// A rule on the first line, and a URL on the second.
pub fn rules(bytes: &[u8]) {
    let given = String::from_utf8_lossy(bytes);
    let Some((written, requested)) = given.split_once('\n') else { return };
    let methods = BTreeSet::from(["GET".to_owned()]);
    let rule = match HttpRule::parse(written, methods.clone(), Reach::Public) {
        Ok(rule) => rule,
        Err(error) => return crate::assert_harmless(&escape::line(&error.to_string())),
    };
    let pattern = rule.host.as_str();
    // People read the host between the first `://` and the next slash.
    let (scheme, rest) = written.split_once("://").unwrap_or_default();
    assert!(scheme.eq_ignore_ascii_case(rule.scheme.as_str()), "{written:?} begins with its scheme");
    let authority = rest.split('/').next().unwrap_or_default();
    assert!(!authority.is_empty() && !authority.contains(['@', '\\', '?', '#']), "{written:?} names its host plainly");
    let normal = format!("{}://{pattern}:{}{}", rule.scheme.as_str(), rule.port, rule.path);
    assert_eq!(
        HttpRule::parse(&normal, methods, Reach::Public).as_ref(),
        Ok(&rule),
        "the normal form is an equal rule"
    );
    let named = named(written);
    assert_eq!(pattern.trim_start_matches("*."), named.to_string(), "{written:?} names this host");

    // No rule allows another scheme. The hosts of such URLs have other rules: an address is a name.
    let asked = Url::parse(requested.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some(url) = asked else { return };
    let (Some(host), Some(text)) = (url.host(), url.host_str()) else { return };
    if rule.host.matches(text) {
        let is_named = host.to_owned() == named;
        let below = matches!(host, Host::Domain(name) if name.ends_with(&format!(".{named}")));
        assert!(if pattern.starts_with("*.") { below && !is_named } else { is_named }, "{pattern} allows {url}");
    }
}

/// The host of an accepted rule without the wildcard, as the URL standard reads it.
fn named(written: &str) -> Host<String> {
    let parsed = Url::parse(&written.replacen("://*.", "://", 1));
    let host = parsed.ok().and_then(|url| url.host().map(|host| host.to_owned()));
    host.unwrap_or_else(|| panic!("{written:?} was accepted but is not a URL"))
}
