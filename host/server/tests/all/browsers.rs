//! Sessions of browsers, and their protection from other pages.

use axum::body::Body;
use axum::http::{Request, header};
use domain::Span;
use expect_test::expect;
use http_body_util::BodyExt as _;
use toolgate_server::{OpenedBy, ServerSettings};
use tower::ServiceExt as _;

use crate::world::{Reply, TestServer, request};

/// A browser with a session.
pub(crate) struct Browser {
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

impl Browser {
    /// The session from this response.
    pub(crate) fn of(reply: &Reply) -> Self {
        let set = reply.headers[header::SET_COOKIE].to_str().unwrap();
        let cookie = set.split(';').next().unwrap().to_owned();
        Self { cookie, csrf: reply.at("/csrf") }
    }

    pub(crate) async fn log_in(world: &TestServer, token: &str) -> Self {
        Self::of(&log_in(world, token).await)
    }

    /// A request with only the cookie.
    pub(crate) fn bare(&self, method: &str, path: &str, body: Option<&str>) -> Request<Body> {
        with(request(method, path, "", body), "cookie", &self.cookie)
    }

    /// A request of a page of this host, with cookie and CSRF token.
    pub(crate) fn own(&self, method: &str, path: &str, body: Option<&str>) -> Request<Body> {
        let asked = with(self.bare(method, path, body), "sec-fetch-site", "same-origin");
        with(asked, "x-toolgate-csrf", &self.csrf)
    }
}

pub(crate) fn with(mut request: Request<Body>, name: &'static str, value: &str) -> Request<Body> {
    request.headers_mut().append(name, value.parse().unwrap());
    request
}

async fn log_in(world: &TestServer, token: &str) -> Reply {
    world.post("", "/v1/session", &serde_json::json!({ "token": token }).to_string()).await
}

/// A turn to submit.
const TURN: &str = r#"{"calls":[{"id":"1","tool":"pay","arguments":{}}]}"#;
const TURNS: &str = "/v1/conversations/c/turns";

#[tokio::test]
async fn session_has_the_rights_of_its_token() {
    let world = TestServer::new();
    let reply = log_in(&world, "alice").await;
    expect![[r#"
        200
        {
          "principal": "alice",
          "roles": [
            "caller"
          ],
          "groups": [],
          "csrf": "…",
          "expires_at": "2026-01-01T12:00:00.000Z"
        }
    "#]]
    .assert_eq(&reply.pretty().replace(&reply.at("/csrf"), "…"));
    let set = reply.headers[header::SET_COOKIE].to_str().unwrap();
    let (value, attributes) = set.split_once("; ").unwrap();
    assert_eq!(attributes, "Path=/; Max-Age=43200; HttpOnly; SameSite=Strict");
    assert!(!value.contains("alice"), "{value}");
    let browser = Browser::of(&reply);
    assert_eq!(world.send(browser.own("POST", TURNS, Some(TURN))).await.status, 201);
    assert_eq!(world.send(browser.bare("GET", "/v1/pending", None)).await.at("/suspensions/0/tool"), "pay");
    assert_eq!(world.send(browser.bare("GET", "/v1/plugins", None)).await.code(), "403 not-allowed");
    let own = world.send(browser.bare("GET", "/v1/session", None)).await;
    assert_eq!((own.at("/principal"), own.at("/csrf")), ("alice".into(), browser.csrf.clone()));
    let bearer = world.get("alice", "/v1/session").await;
    assert_eq!((bearer.at("/principal"), bearer.json().get("csrf")), ("alice".into(), None));
}

#[tokio::test]
async fn cookie_without_csrf_token_changes_nothing() {
    let world = TestServer::new();
    let (browser, other) = (Browser::log_in(&world, "alice").await, Browser::log_in(&world, "alice").await);
    let turn = || browser.bare("POST", TURNS, Some(TURN));
    let csrf = "x-toolgate-csrf";
    let cut = &browser.csrf[1..];
    let refused = [
        ("without it", turn()),
        ("empty", with(turn(), csrf, "")),
        ("another session's", with(turn(), csrf, &other.csrf)),
        ("the cookie's own value", with(turn(), csrf, browser.cookie.split_once('=').unwrap().1)),
        ("cut", with(turn(), csrf, cut)),
        ("twice", with(with(turn(), csrf, &browser.csrf), csrf, &browser.csrf)),
        ("log-out", browser.bare("DELETE", "/v1/session", None)),
    ];
    for (what, request) in refused {
        assert_eq!(world.send(request).await.code(), "403 not-allowed", "{what}");
    }
    let nothing = world.get("alice", "/v1/pending").await;
    assert_eq!(nothing.json()["suspensions"].as_array().unwrap().len(), 0);
    assert_eq!(world.send(with(turn(), csrf, &browser.csrf)).await.status, 201);
}

#[tokio::test]
async fn request_from_another_site_or_port_is_refused() {
    let world = TestServer::new();
    let browser = Browser::log_in(&world, "root").await;
    let site = "sec-fetch-site";
    for other in ["cross-site", "same-site", "anything"] {
        let read = with(browser.bare("GET", "/v1/tools", None), site, other);
        assert_eq!(world.send(read).await.code(), "403 not-allowed", "{other}");
        let both = with(with(browser.bare("GET", "/v1/tools", None), site, "same-origin"), site, other);
        assert_eq!(world.send(both).await.code(), "403 not-allowed", "{other}");
        // It cannot log a browser in as another principal either.
        let body = r#"{"token":"eve"}"#;
        let login = with(request("POST", "/v1/session", "", Some(body)), site, other);
        assert_eq!(world.send(login).await.code(), "403 not-allowed", "{other}");
        // With a token of its own, the page is a program like any other.
        assert_eq!(world.send(with(request("GET", "/v1/tools", "alice", None), site, other)).await.status, 200);
    }
    for own in ["same-origin", "none"] {
        assert_eq!(world.send(with(browser.bare("GET", "/v1/tools", None), site, own)).await.status, 200, "{own}");
    }
    let mut plain = request("POST", "/v1/session", "", Some(r#"{"token":"eve"}"#));
    for kind in [Some("text/plain"), Some("application/x-www-form-urlencoded"), None] {
        plain.headers_mut().remove(header::CONTENT_TYPE);
        let mut asked = request("POST", "/v1/session", "", Some(r#"{"token":"eve"}"#));
        asked.headers_mut().remove(header::CONTENT_TYPE);
        asked.headers_mut().extend(kind.map(|kind| (header::CONTENT_TYPE, kind.parse().unwrap())));
        assert_eq!(world.send(asked).await.code(), "415 unsupported-media-type", "{kind:?}");
    }
}

#[tokio::test]
async fn session_ends_by_revocation_expiry_and_log_out() {
    let world = TestServer::new();
    let alive = async |browser: &Browser| world.send(browser.bare("GET", "/v1/session", None)).await.code();
    let (revoked, ended, left) = (
        Browser::log_in(&world, "alice").await,
        Browser::log_in(&world, "bob").await,
        Browser::log_in(&world, "bob").await,
    );
    for browser in [&revoked, &ended, &left] {
        assert_eq!(alive(browser).await, "200");
    }
    world.revoke("alice");
    assert_eq!(alive(&revoked).await, "401 unauthorized");

    let out = world.send(ended.own("DELETE", "/v1/session", None)).await;
    assert_eq!(out.status, 200);
    let set = out.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(set.starts_with("toolgate_session=; Path=/; Max-Age=0;"), "{set}");
    // A copy of the cookie is invalid too.
    assert_eq!(alive(&ended).await, "401 unauthorized");
    assert_eq!(alive(&left).await, "200");
    world.advance(12 * 60 * 60 - 1);
    assert_eq!(alive(&left).await, "200");
    world.advance(1);
    assert_eq!(alive(&left).await, "401 unauthorized");
    assert_eq!(world.send(request("DELETE", "/v1/session", "bob", None)).await.code(), "400 bad-request");
}

#[tokio::test]
async fn session_survives_a_restart_and_a_forged_one_is_refused() {
    let mut world = TestServer::new();
    let browser = Browser::log_in(&world, "alice").await;
    world.restart_server();
    assert_eq!(world.send(browser.own("POST", TURNS, Some(TURN))).await.status, 201);
    let (name, value) = browser.cookie.split_once('=').unwrap();
    let changed = format!("{name}={}{}", if value.starts_with('B') { 'C' } else { 'B' }, &value[1..]);
    for cookie in [changed.as_str(), "toolgate_session=", "toolgate_session", "other=1", "TOOLGATE_SESSION=x"] {
        let asked = with(request("GET", "/v1/tools", "", None), "cookie", cookie);
        assert_eq!(world.send(asked).await.code(), "401 unauthorized", "{cookie}");
    }
    let among = format!("a=b; {}; c=d=e", browser.cookie);
    assert_eq!(world.send(with(request("GET", "/v1/tools", "", None), "cookie", &among)).await.status, 200);
}

/// Browsers do not separate cookies by port, so a page of another port can set a cookie of this name on any path.
#[tokio::test]
async fn cookie_of_another_port_logs_nobody_in_or_out() {
    let world = TestServer::new();
    let (browser, before) = (Browser::log_in(&world, "alice").await, Browser::log_in(&world, "alice").await);
    world.send(before.own("DELETE", "/v1/session", None)).await;
    let own = &browser.cookie;
    let whose = async |cookie: &str, csrf: Option<&str>| {
        let bare = with(request("GET", "/v1/session", "", None), "cookie", cookie);
        let asked = if let Some(csrf) = csrf { with(bare, "x-toolgate-csrf", csrf) } else { bare };
        let reply = world.send(asked).await;
        if reply.status == 200 { reply.at("/principal") } else { reply.code() }
    };
    for planted in
        ["toolgate_session=x", "toolgate_session=", "__Host-toolgate_session=x", "toolgate_link=x", &before.cookie, own]
    {
        for cookies in
            [format!("{planted}; {own}"), format!("{own}; {planted}"), format!("{planted}; {own}; {planted}")]
        {
            assert_eq!(whose(&cookies, None).await, "alice", "{cookies}");
        }
    }
    // If another user's session is in the browser too, neither is used.
    let eve = Browser::log_in(&world, "eve").await;
    for cookies in [
        format!("{}; {own}", eve.cookie),
        format!("{own}; {}", eve.cookie),
        format!("__Host-{}; {own}", eve.cookie),
        format!("{own}; __Host-{}", eve.cookie),
    ] {
        assert_eq!(whose(&cookies, None).await, "401 unauthorized", "{cookies}");
        assert_eq!(whose(&cookies, Some(&browser.csrf)).await, "alice", "{cookies}");
        assert_eq!(whose(&cookies, Some(&eve.csrf)).await, "eve", "{cookies}");
    }
    // Two sessions of one token, with TLS and without, are not ambiguous.
    let again = Browser::log_in(&world, "alice").await;
    for cookies in [format!("__Host-{}; {own}", again.cookie), format!("{}; {own}", again.cookie)] {
        for csrf in [None, Some(&*again.csrf), Some(&*browser.csrf)] {
            assert_eq!(whose(&cookies, csrf).await, "alice", "{cookies}");
        }
    }
}

#[tokio::test]
async fn clock_set_back_does_not_end_a_new_session() {
    let world = TestServer::new();
    let alive = async |browser: &Browser| world.send(browser.bare("GET", "/v1/session", None)).await.code();
    let (hours, before) = (60 * 60, Browser::log_in(&world, "bob").await);
    world.revoke_sessions_together("bob", OpenedBy::LogIn, world.host.handle().now() + Span::from_secs(12 * hours));
    world.clock.set_back(Span::from_secs(6 * hours));
    let reply = log_in(&world, "bob").await;
    assert_eq!(reply.at("/expires_at"), "2026-01-01T12:00:00.001Z", "later than the revoked sessions");
    let after = Browser::of(&reply);
    assert_eq!((alive(&before).await, alive(&after).await), ("401 unauthorized".to_owned(), "200".to_owned()));
    assert_eq!(
        log_in(&world, "alice").await.at("/expires_at"),
        "2026-01-01T06:00:00.000Z",
        "other tokens are not affected"
    );
    world.advance(18 * hours);
    assert_eq!(alive(&after).await, "200");
    world.advance(1);
    assert_eq!(alive(&after).await, "401 unauthorized");
}

#[tokio::test]
async fn token_takes_precedence_over_the_cookie() {
    let world = TestServer::new();
    let browser = Browser::log_in(&world, "root").await;
    let as_alice = with(request("GET", "/v1/session", "alice", None), "cookie", &browser.cookie);
    assert_eq!(world.send(as_alice).await.at("/principal"), "alice");
    // A cookie does not help if the token is invalid.
    for wrong in ["nobody", "a b"] {
        let both = with(request("GET", "/v1/session", wrong, None), "cookie", &browser.cookie);
        assert_eq!(world.send(both).await.code(), "401 unauthorized");
    }
    let basic = with(browser.bare("GET", "/v1/session", None), "authorization", "Basic cm9vdDo=");
    assert_eq!(world.send(basic).await.code(), "401 unauthorized");
}

#[tokio::test]
async fn cookie_is_secure_on_other_host_names() {
    let world = TestServer::with(ServerSettings { hosts: toolgate_server::Hosts::Any, ..ServerSettings::default() });
    let page = "https://gate.example.com";
    for (host, origin, secure) in [
        ("localhost:7420", None, false),
        ("127.0.0.1", Some("http://127.0.0.1"), false),
        ("[::1]:1", None, false),
        ("gate.example.com", None, true),
        // A proxy with TLS that sends its own host name.
        ("127.0.0.1:7420", Some(page), true),
    ] {
        let asked = |method: &str, path: &str, body: Option<&str>| {
            let mut asked = request(method, path, "", body);
            asked.headers_mut().insert(header::HOST, host.parse().unwrap());
            asked
        };
        let mut log_in = asked("POST", "/v1/session", Some(r#"{"token":"bob"}"#));
        log_in.headers_mut().extend(origin.map(|origin| (header::ORIGIN, origin.parse().unwrap())));
        let set = world.send(log_in).await.headers[header::SET_COOKIE].to_str().unwrap().to_owned();
        assert_eq!(set.ends_with("; Secure"), secure, "{host}: {set}");
        assert_eq!(set.starts_with("__Host-toolgate_session="), secure, "{host}: {set}");
        let cookie = set.split(';').next().unwrap();
        let own = with(asked("GET", "/v1/session", None), "cookie", cookie);
        assert_eq!(world.send(own).await.at("/principal"), "bob", "{host}");
        // Another name of the domain can set a cookie without the prefix. The server ignores it.
        let planted = cookie.strip_prefix("__Host-").unwrap_or(cookie);
        let planted = world.send(with(asked("GET", "/v1/session", None), "cookie", planted)).await;
        assert_eq!(planted.status == 200, !host.starts_with("gate"), "{host}");
    }
}

#[tokio::test]
async fn wrong_log_ins_are_throttled_with_retry_after() {
    let world = TestServer::new();
    for guess in 0..5 {
        assert_eq!(log_in(&world, &format!("guess-{guess}")).await.code(), "401 unauthorized");
        assert_eq!(world.post("", "/v1/session/link", r#"{"link":"x"}"#).await.code(), "401 unauthorized");
    }
    world.advance(20);
    let refused = log_in(&world, "nobody").await;
    assert_eq!((refused.code().as_str(), refused.json()["retry_after"].as_u64()), ("429 busy", Some(40)));
    assert_eq!(refused.headers[header::RETRY_AFTER], "40");
    assert_eq!(world.post("", "/v1/session/link", r#"{"link":"x"}"#).await.code(), "429 busy");
    assert_eq!(world.post("", "/v1/links/x", "1").await.code(), "429 busy");
    world.advance(40);
    assert_eq!(log_in(&world, "nobody").await.code(), "401 unauthorized");
}

/// On loopback and behind a proxy, all clients are one network.
#[tokio::test]
async fn wrong_log_ins_keep_no_right_token_or_link_out() {
    let world = TestServer::new();
    let wrong = async || {
        for _ in 0..20 {
            log_in(&world, "nobody").await;
        }
        assert_eq!(log_in(&world, "nobody").await.code(), "429 busy");
    };
    wrong().await;
    for _ in 0..20 {
        assert_eq!(log_in(&world, "alice").await.status, 200);
    }
    let suspension = world.post("alice", TURNS, TURN).await.at("/pending/0/suspension");
    let path = format!("/v1/suspensions/{suspension}/links");
    let url = world.post("root", &path, r#"{"principal":"bob"}"#).await.at("/url");
    wrong().await;
    let used = world.post("", "/v1/session/link", &format!(r#"{{"link":"{url}"}}"#)).await;
    assert_eq!((used.status.as_u16(), used.at("/only")), (200, suspension));
    assert_eq!(log_in(&world, "nobody").await.code(), "429 busy", "right attempts take no wrong one back");
}

#[tokio::test]
async fn a_stream_of_a_session_ends_with_it() {
    let world = TestServer::with(ServerSettings { recheck: Span::from_millis(10), ..ServerSettings::default() });
    let open = async |browser: &Browser| {
        let asked = browser.bare("GET", "/v1/conversations/c/events", None);
        let response = world.router.clone().oneshot(asked).await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body()
    };
    let (alice, bob, carol) = (
        Browser::log_in(&world, "alice").await,
        Browser::log_in(&world, "bob").await,
        Browser::log_in(&world, "carol").await,
    );
    let (revoked, ended, mut untouched) = (open(&alice).await, open(&bob).await, open(&carol).await);
    world.revoke("alice");
    world.send(bob.own("DELETE", "/v1/session", None)).await;
    revoked.collect().await.unwrap();
    ended.collect().await.unwrap();
    world.post("root", TURNS, TURN).await;
    assert!(untouched.frame().await.unwrap().is_ok());
}

#[tokio::test]
async fn answers_record_the_channel_of_their_credential() {
    let world = TestServer::new();
    let browser = Browser::log_in(&world, "bob").await;
    for (call, is_session, via) in [("1", false, "api"), ("2", true, "console")] {
        let turn = TURN.replace("\"1\"", &format!("\"{call}\"")).replace("{}", &format!("{{\"n\":{call}}}"));
        let suspension = world.post("alice", TURNS, &turn).await.at("/pending/0/suspension");
        let path = format!("/v1/suspensions/{suspension}/resolve");
        // A body names no channel.
        let claim = r#"{"decision":"deny","via":"link"}"#;
        assert_eq!(world.send(browser.own("POST", &path, Some(claim))).await.status, 422);
        let body = Some(r#"{"decision":"deny"}"#);
        let request = if is_session { browser.own("POST", &path, body) } else { request("POST", &path, "bob", body) };
        assert_eq!(world.send(request).await.status, 200);
        let read = world.send(request_of(&suspension)).await;
        assert_eq!(read.at("/closed/via"), via);
    }
}

fn request_of(suspension: &str) -> Request<Body> {
    request("GET", &format!("/v1/suspensions/{suspension}"), "bob", None)
}
