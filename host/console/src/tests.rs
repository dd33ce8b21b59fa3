//! Responses to browsers and programs, with and without the embedded console.

use std::borrow::Cow;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use super::*;

/// A console of four files.
struct Four;

impl Files for Four {
    fn get(name: &str) -> Option<Cow<'static, [u8]>> {
        let text: &[u8] = match name {
            "index.html" => b"<!doctype html>",
            "assets/index-1a2b.js" => b"script",
            "assets/index-1a2b.js.gz" => b"packed",
            "assets/notes.txt" => b"not for the world",
            _ => return None,
        };
        Some(Cow::Borrowed(text))
    }
}

/// A binary without the console.
struct Nothing;

impl Files for Nothing {
    fn get(_: &str) -> Option<Cow<'static, [u8]>> {
        None
    }
}

async fn ask(router: Router, request: &str, headers: &[(&str, &str)]) -> (Response<()>, String) {
    let (method, path) = request.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (parts, body) = router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (Response::from_parts(parts, ()), String::from_utf8(body.to_vec()).unwrap())
}

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

#[tokio::test]
async fn browsers_get_the_page_and_programs_do_not() {
    let rows = [
        ("GET /", BROWSER, 200),
        ("HEAD /", BROWSER, 200),
        ("GET /audit", BROWSER, 200),
        ("GET /conversations/a%20b/", BROWSER, 200),
        ("GET /link/abc.def", "TEXT/HTML;q=0.1", 200),
        ("GET /v10", BROWSER, 200),
        ("GET /", "*/*", 404),
        ("GET /audit", "application/json", 404),
        ("GET /", "", 404),
        ("POST /", BROWSER, 404),
        ("DELETE /audit", BROWSER, 404),
        ("GET /v1", BROWSER, 404),
        ("GET /v1/nothing", BROWSER, 404),
        ("GET /healthz", BROWSER, 404),
        ("GET /readyz", BROWSER, 404),
        ("GET /metrics", BROWSER, 404),
        ("GET /openapi.json", BROWSER, 404),
    ];
    for (request, accept, status) in rows {
        let (response, body) = ask(router_of::<Four>(), request, &[("accept", accept)]).await;
        assert_eq!(response.status(), status, "{request} {accept}");
        let is_page = response.status() == StatusCode::OK;
        let has_body = is_page && !request.starts_with("HEAD");
        assert_eq!(body, if has_body { "<!doctype html>" } else { "" }, "{request} {accept}");
        if is_page {
            assert_eq!(response.headers()["cache-control"], "no-store", "{request}");
            assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8", "{request}");
        }
    }
}

#[tokio::test]
async fn files_are_cached_and_only_known_types_are_served() {
    let rows = [
        ("/assets/index-1a2b.js", "", Some(("script", None))),
        ("/assets/index-1a2b.js", "gzip, br", Some(("packed", Some("gzip")))),
        ("/assets/index-1a2b.js", "br, gzip;q=0", Some(("script", None))),
        ("/assets/index-1a2b.js.gz", "", None),
        ("/assets/notes.txt", "", None),
        ("/assets/missing.js", "", None),
        ("/assets/../index.html", "", None),
        ("/assets/%2e%2e/index.html", "", None),
        ("/assets/", "", None),
    ];
    for (path, encoding, expected) in rows {
        let headers = [("accept", BROWSER), ("accept-encoding", encoding)];
        let (response, body) = ask(router_of::<Four>(), &format!("GET {path}"), &headers).await;
        let Some((text, coding)) = expected else {
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
            continue;
        };
        assert_eq!((response.status(), body.as_str()), (StatusCode::OK, text), "{path} {encoding}");
        assert_eq!(response.headers().get("content-encoding").map(HeaderValue::as_bytes), coding.map(str::as_bytes));
        assert_eq!(response.headers()["cache-control"], "public, max-age=31536000, immutable");
        assert_eq!(response.headers()["content-type"], "text/javascript; charset=utf-8");
        assert_eq!(response.headers()["vary"], "accept-encoding");
    }
}

#[tokio::test]
async fn response_shares_the_bytes_of_its_file() {
    for (path, name) in [("/assets/index-1a2b.js", "assets/index-1a2b.js"), ("/", "index.html")] {
        let request = Request::builder().uri(path).header("accept", BROWSER).body(Body::empty()).unwrap();
        let body = router_of::<Four>().oneshot(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body.as_ptr(), Four::get(name).unwrap().as_ptr(), "{path}");
    }
}

#[tokio::test]
async fn every_response_has_the_security_headers() {
    for path in ["/", "/assets/index-1a2b.js", "/assets/missing.js"] {
        let (response, _) = ask(router_of::<Four>(), &format!("GET {path}"), &[("accept", BROWSER)]).await;
        let policy = response.headers()["content-security-policy"].to_str().unwrap();
        for directive in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"] {
            assert!(policy.split("; ").any(|one| one == directive), "{path}: {directive}");
        }
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(response.headers()["referrer-policy"], "no-referrer", "{path}");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(response.headers()["cross-origin-opener-policy"], "same-origin", "{path}");
        assert!(response.headers().contains_key("permissions-policy"), "{path}");
    }
}

#[tokio::test]
async fn a_page_says_that_the_console_is_missing() {
    let (response, body) = ask(router_of::<Nothing>(), "GET /", &[("accept", BROWSER)]).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert!(body.contains("built without its console"), "{body}");
    assert!(body.contains("cargo xtask build"), "{body}");
    let (response, _) = ask(router_of::<Nothing>(), "GET /assets/index.js", &[]).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}

/// The page's policy refuses inline scripts and styles, so a page with them would stay empty.
#[test]
fn the_embedded_page_has_nothing_inline() {
    let Some(page) = Dist::get("index.html") else { return };
    let page = String::from_utf8(page.into_owned()).unwrap();
    assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains(" onload="), "{page}");
    let scripts = page.split("<script").skip(1);
    for script in scripts {
        let (attributes, rest) = script.split_once('>').unwrap();
        assert!(attributes.contains("src=\"/assets/") && rest.starts_with("</script>"), "{script}");
    }
    let linked = page.split('"').filter_map(|text| text.strip_prefix('/')).filter(|text| text.contains('.'));
    for name in linked {
        assert!(Dist::get(name).is_some(), "{name} is not embedded");
    }
}
