//! Rules and the requests that they allow, with one row for each trick.

use super::*;
use crate::host_pattern::HostPattern;
use crate::words::InvalidWord;

fn rule(url: &str) -> Result<HttpRule, InvalidWord> {
    HttpRule::parse(url, ["GET".to_owned()].into(), Reach::Public)
}

fn allowed(by: &str, url: &str) -> Result<(), Misfit> {
    rule(by).expect("a rule").allows("GET", &Url::parse(url).expect("a URL"))
}

#[test]
fn a_rule_is_kept_in_its_normal_form() {
    let rows = [
        ("https://api.example.com", "GET https://api.example.com:443/"),
        ("https://API.Example.COM/v1", "GET https://api.example.com:443/v1"),
        ("http://api.example.com/v1/", "GET http://api.example.com:80/v1/"),
        ("https://api.example.com:8443/", "GET https://api.example.com:8443/"),
        ("https://*.example.com", "GET https://*.example.com:443/"),
        ("https://b\u{fc}cher.example/", "GET https://xn--bcher-kva.example:443/"),
        ("http://127.0.0.1:8080/a", "GET http://127.0.0.1:8080/a"),
        ("https://[2001:DB8::1]/", "GET https://[2001:db8::1]:443/"),
    ];
    for (url, expected) in rows {
        assert_eq!(rule(url).map(|rule| rule.to_string()).as_deref(), Ok(expected), "{url}");
    }
}

#[test]
fn a_wrong_rule_is_refused_with_the_reason() {
    let rows = [
        ("api.example.com", "relative URL"),
        ("ftp://example.com/", "scheme"),
        ("https:example.com", "://"),
        ("https:/evil.example/://api.example.com", "://"),
        ("https:/evil.example/a/../://*.example.com", "://"),
        ("https:////evil.example/://api.example.com", "normal form"),
        ("https://user@example.com/", "user"),
        ("https://user:word@example.com/", "user"),
        ("https://@example.com/", "user"),
        ("https://example.com/?q", "ends with the path"),
        ("https://example.com/#f", "ends with the path"),
        ("https://example.com/a/../b", "/b"),
        ("https://example.com/a/%2e%2E/b", "/b"),
        ("https://example.com/a/..%2fb", "normal form"),
        ("https://example.com/a/%252e%252e/b", "normal form"),
        ("https://example.com\\a", "normal form"),
        ("https://example.com/\u{fc}", "/%C3%BC"),
        ("https://example.com/*", "wildcards"),
        ("https://a.*.example.com/", "not a host"),
        ("https://*example.com/", "not a host"),
        ("https://*.*.example.com/", "not a host"),
        ("https://*.127.0.0.1/", "not a host"),
        ("https://*.[::1]/", "not a host"),
        ("https://example.com./", "not a host"),
        ("https://.example.com/", "not a host"),
        ("https://a..example.com/", "not a host"),
        ("https://example.com:0/", "port"),
        (" https://example.com/", "white space"),
        ("https://exam\tple.com/", "white space"),
        ("https://example.com/\u{0}", "control"),
    ];
    for (url, reason) in rows {
        let error = rule(url).expect_err(url).to_string();
        assert!(error.contains(reason), "{url}: {error}");
    }
}

#[test]
fn methods_are_words_in_upper_case_and_never_a_tunnel() {
    let of = |method: &str| HttpRule::parse("https://example.com", [method.to_owned()].into(), Reach::Public);
    assert_eq!(of("post").map(|rule| rule.methods), Ok(["POST".to_owned()].into()));
    assert!(of("M-SEARCH").is_ok());
    for method in ["CONNECT", "connect", "TRACE", "TRACK", "", "GET ", "GET\r\nX", "*", "G\u{c9}T"] {
        assert!(of(method).is_err(), "{method:?}");
    }
}

#[test]
fn hosts_are_names_or_addresses() {
    let rows = [
        ("Example.COM", Some("example.com")),
        ("*.Example.com", Some("*.example.com")),
        ("localhost", Some("localhost")),
        ("10.0.0.1", Some("10.0.0.1")),
        ("[::1]", Some("[::1]")),
        // Disguised addresses: the configuration must use the normal form.
        ("0x7f.1", None),
        ("127.1", None),
        ("2130706433", None),
        ("[0:0::1]", None),
        ("::1", None),
        ("example.com:443", None),
        ("user@example.com", None),
        ("example.com/", None),
        ("example.com?", None),
        ("exa%6dple.com", None),
        ("example.com.", None),
        ("*.", None),
        ("*", None),
        ("", None),
    ];
    for (text, expected) in rows {
        let pattern = text.parse::<HostPattern>().ok();
        assert_eq!(pattern.as_ref().map(HostPattern::as_str), expected, "{text:?}");
    }
}

#[test]
fn a_host_rule_matches_whole_names() {
    let rows = [
        ("https://example.com", "https://EXAMPLE.com/x", Ok(())),
        ("https://example.com", "https://example.com:443/x", Ok(())),
        ("https://example.com", "https://www.example.com/", Err(Misfit::Host)),
        ("https://example.com", "https://example.com.evil.org/", Err(Misfit::Host)),
        ("https://example.com", "https://evil-example.com/", Err(Misfit::Host)),
        ("https://example.com", "https://example.com./", Err(Misfit::Host)),
        ("https://example.com", "https://evil.org/https://example.com/", Err(Misfit::Host)),
        ("https://example.com", "https://example.com@evil.org/", Err(Misfit::Host)),
        ("https://example.com", "https://evil.org\\@example.com/", Err(Misfit::Host)),
        // Letters of another script that look similar, and letters that the standard treats as equal.
        ("https://example.com", "https://ex\u{430}mple.com/", Err(Misfit::Host)),
        ("https://example.com", "https://\u{ff45}xample.com/", Ok(())),
        ("https://example.com", "https://%65xample.com/", Ok(())),
        ("https://*.example.com", "https://a.example.com/", Ok(())),
        ("https://*.example.com", "https://a.b.example.com/", Ok(())),
        ("https://*.example.com", "https://example.com/", Err(Misfit::Host)),
        ("https://*.example.com", "https://.example.com/", Err(Misfit::Host)),
        ("https://*.example.com", "https://a..example.com/", Err(Misfit::Host)),
        ("https://*.example.com", "https://aexample.com/", Err(Misfit::Host)),
        ("https://*.example.com", "https://a.example.com.evil.org/", Err(Misfit::Host)),
        ("https://*.example.com", "https://a.example.com./", Err(Misfit::Host)),
        // All spellings of an address are equal.
        ("http://127.0.0.1", "http://2130706433/", Ok(())),
        ("http://127.0.0.1", "http://0x7f.1/", Ok(())),
        ("http://127.0.0.1", "http://0177.0.0.1/", Ok(())),
        ("http://127.0.0.1", "http://[::ffff:127.0.0.1]/", Err(Misfit::Host)),
        ("http://[::1]", "http://[0:0:0:0:0:0:0:1]/", Ok(())),
    ];
    for (by, url, expected) in rows {
        assert_eq!(allowed(by, url), expected, "{by} {url}");
    }
}

#[test]
fn scheme_port_and_method_match_exactly() {
    assert_eq!(allowed("https://example.com", "http://example.com/"), Err(Misfit::Scheme));
    assert_eq!(allowed("https://example.com", "http://example.com:443/"), Err(Misfit::Scheme));
    assert_eq!(allowed("http://127.0.0.1:8080", "httpp://127.0.0.1:8080/"), Err(Misfit::Scheme));
    assert_eq!(allowed("https://example.com", "https://example.com:80/"), Err(Misfit::Port));
    assert_eq!(allowed("https://example.com:8443", "https://example.com/"), Err(Misfit::Port));
    let reads = rule("https://example.com").expect("a rule");
    let url = Url::parse("https://example.com/").expect("a URL");
    for method in ["POST", "get", "CONNECT", ""] {
        assert_eq!(reads.allows(method, &url), Err(Misfit::Method), "{method}");
    }
}

#[test]
fn a_path_matches_by_whole_segments_in_every_reading() {
    const OUT: Result<(), Misfit> = Err(Misfit::Path);
    let rows = [
        ("/v1/", "/v1/", Ok(())),
        ("/v1/", "/v1/a/b", Ok(())),
        ("/v1/", "/v1/a%2Fb", Ok(())),
        ("/v1/", "/v1//a", Ok(())),
        ("/v1/", "/v1/a/../b", Ok(())),
        ("/v1/", "/v1/...", Ok(())),
        ("/v1/", "/v1/a..b/.c", Ok(())),
        ("/v1/", "/v1", OUT),
        ("/v1/", "/v1x/", OUT),
        ("/v1/", "/V1/", OUT),
        ("/v1/", "/%76%31/", OUT),
        ("/v1/", "/v1%2Fa", OUT),
        ("/v1/", "//v1/", OUT),
        ("/v1/", "/v1/../v2", OUT),
        ("/v1/", "/v1/%2e%2e/v2", OUT),
        ("/v1/", "/v1/.%2E/v2", OUT),
        ("/v1/", "/v1/..%2fv2", OUT),
        ("/v1/", "/v1/..%5cv2", OUT),
        ("/v1/", "/v1/%252e%252e/v2", OUT),
        ("/v1/", "/v1/%25252e%25252e/v2", OUT),
        ("/v1/", "/v1/%2525252525", OUT),
        ("/v1/", "/v1/..;x=1/v2", OUT),
        ("/v1/", "/v1/a%00", OUT),
        ("/v1/", "/v1\\..\\v2", OUT),
        ("/v1", "/v1", Ok(())),
        ("/v1", "/v1/", Ok(())),
        ("/v1", "/v1/a", Ok(())),
        ("/v1", "/v1?q=/../..", Ok(())),
        ("/v1", "/v10", OUT),
        ("/v1", "/v1;x", OUT),
        ("/", "/%2e%2e%2f", Ok(())),
    ];
    for (by, path, expected) in rows {
        let (by, url) = (format!("https://example.com{by}"), format!("https://example.com{path}"));
        assert_eq!(allowed(&by, &url), expected, "{by} {url}");
    }
}
