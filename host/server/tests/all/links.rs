//! One-time links: each gives one principal access to one suspension, once.

use domain::{PrincipalId, Span, SuspensionId};
use expect_test::expect;
use toolgate_server::OpenedBy;

use crate::browsers::{Browser, with};
use crate::world::{Reply, TestServer, request};

const TURN: &str = r#"{"calls":[{"id":"1","tool":"pay","arguments":{}},{"id":"2","tool":"pay","arguments":{}}]}"#;

/// A world with two suspensions.
async fn asked() -> (TestServer, [String; 2]) {
    let world = TestServer::new();
    world.submit("", TURN).await;
    let pending = world.get("root", "/v1/pending").await;
    let ids = ["/suspensions/0/suspension", "/suspensions/1/suspension"].map(|at| pending.at(at));
    (world, ids)
}

async fn make(world: &TestServer, suspension: &str, body: &str) -> Reply {
    world.post("root", &format!("/v1/suspensions/{suspension}/links"), body).await
}

async fn link(world: &TestServer, suspension: &str) -> String {
    make(world, suspension, r#"{"principal":"bob"}"#).await.at("/url")
}

async fn open(world: &TestServer, link: &str) -> Reply {
    world.post("", "/v1/session/link", &serde_json::json!({ "link": link }).to_string()).await
}

#[tokio::test]
async fn answer_through_a_link_gives_no_standing_approval() {
    let (world, [one, _]) = asked().await;
    let browser = Browser::of(&open(&world, &link(&world, &one).await).await);
    let path = format!("/v1/suspensions/{one}");
    let offered = world.get("bob", &path).await.json();
    assert!(offered["standing"].is_object(), "{offered}");
    let by_link = world.send(browser.own("GET", &path, None)).await.json();
    assert!(by_link["suspension"] == *one && by_link.get("standing").is_none(), "{by_link}");
    let resolve = format!("{path}/resolve");
    let standing = r#"{"decision":"approve","standing":{"ttl_ms":1000,"uses":1,"pin":"all"}}"#;
    assert_eq!(world.send(browser.own("POST", &resolve, Some(standing))).await.status, 403);
    let plain = world.send(browser.own("POST", &resolve, Some(r#"{"decision":"approve"}"#))).await;
    assert_eq!((plain.status.as_u16(), plain.at("/state")), (200, "approve".into()));
}

#[tokio::test]
async fn link_gives_access_to_its_suspension_only() {
    let (world, [one, two]) = asked().await;
    let link = link(&world, &one).await;
    let reply = open(&world, &link).await;
    assert_eq!((reply.at("/principal"), reply.at("/only")), ("bob".into(), one.clone()));
    assert_eq!(reply.at("/expires_at"), "2026-01-01T01:00:00.000Z");
    let browser = Browser::of(&reply);
    let own = world.send(browser.bare("GET", "/v1/session", None)).await;
    assert_eq!((own.at("/only"), own.json().get("link").is_none()), (one.clone(), true), "there is no second session");
    let turn = "/v1/conversations/c/turns";
    let mut table = String::new();
    for (method, path) in [
        ("GET", "/v1/session".to_owned()),
        ("GET", format!("/v1/suspensions/{one}")),
        ("GET", format!("/v1/suspensions/{two}")),
        ("POST", format!("/v1/suspensions/{two}/resolve")),
        ("POST", format!("/v1/suspensions/{two}/defaults")),
        ("POST", format!("/v1/suspensions/{one}/links")),
        ("GET", "/v1/pending".into()),
        ("POST", turn.into()),
        ("GET", format!("{turn}/turn_{:032x}", 2)),
        ("POST", format!("{turn}/turn_{:032x}/cancel", 2)),
        ("GET", "/v1/conversations/c/events".into()),
        ("GET", "/v1/events".into()),
        ("GET", "/v1/tools".into()),
        ("GET", "/v1/plugins".into()),
        ("PUT", "/v1/plugins/x".into()),
        ("DELETE", "/v1/plugins/x".into()),
        ("GET", "/v1/audit".into()),
        ("GET", "/v1/audit/chain".into()),
        ("GET", "/v1/audit/checkpoint".into()),
        ("GET", "/v1/status".into()),
        ("GET", "/metrics".into()),
    ] {
        let body = (method == "POST").then_some(r#"{"decision":"approve"}"#);
        let status = world.send(browser.own(method, &path, body)).await.status;
        table += &format!("{} {method} {path}\n", status.as_u16()).replace(&format!("{:031x}", 0), "");
    }
    expect![[r#"
        200 GET /v1/session
        200 GET /v1/suspensions/susp_3
        403 GET /v1/suspensions/susp_4
        403 POST /v1/suspensions/susp_4/resolve
        403 POST /v1/suspensions/susp_4/defaults
        403 POST /v1/suspensions/susp_3/links
        403 GET /v1/pending
        403 POST /v1/conversations/c/turns
        403 GET /v1/conversations/c/turns/turn_2
        403 POST /v1/conversations/c/turns/turn_2/cancel
        403 GET /v1/conversations/c/events
        403 GET /v1/events
        403 GET /v1/tools
        403 GET /v1/plugins
        403 PUT /v1/plugins/x
        403 DELETE /v1/plugins/x
        403 GET /v1/audit
        403 GET /v1/audit/chain
        403 GET /v1/audit/checkpoint
        403 GET /v1/status
        403 GET /metrics
    "#]]
    .assert_eq(&table);
    let resolve = format!("/v1/suspensions/{one}/resolve");
    let bare = browser.bare("POST", &resolve, Some(r#"{"decision":"approve"}"#));
    assert_eq!(world.send(bare).await.code(), "403 not-allowed", "not without the CSRF token");
    let answer = world.send(browser.own("POST", &resolve, Some(r#"{"decision":"approve"}"#))).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let read = world.send(browser.bare("GET", &format!("/v1/suspensions/{one}"), None)).await;
    assert_eq!((read.at("/closed/by"), read.at("/state")), ("bob".into(), "approve".into()));
    assert_eq!(world.get("bob", &format!("/v1/suspensions/{two}")).await.at("/state"), "open");
}

#[tokio::test]
async fn link_gives_no_access_to_hosts() {
    let (world, [one, _]) = asked().await;
    let link = link(&world, &one).await;
    let browser = Browser::of(&open(&world, &link).await);
    for (method, path) in [("GET", "/v1/hosts"), ("POST", "/v1/drain")] {
        assert_eq!(world.send(browser.own(method, path, None)).await.status, 403, "{path}");
    }
}

#[tokio::test]
async fn of_two_concurrent_uses_of_a_link_one_succeeds() {
    let (world, [one, _]) = asked().await;
    let link = link(&world, &one).await;
    let all = futures::future::join_all((0..8).map(|_| open(&world, &link))).await;
    let mut codes: Vec<String> = all.iter().map(Reply::code).collect();
    codes.sort();
    assert_eq!((codes[0].as_str(), codes[1..].iter().all(|code| code == "409 link-used")), ("200", true), "{codes:?}");
    // Opening its page or sending another method does not use it up.
    let second = self::link(&world, &one).await;
    for _ in 0..3 {
        assert_eq!(world.get("", &second).await.code(), "404 not-found");
        assert_eq!(world.get("", &format!("/v1/session/link?link={second}")).await.code(), "405 method-not-allowed");
    }
    assert_eq!(open(&world, &second).await.status, 200);
}

#[tokio::test]
async fn used_link_stays_used_after_a_restart() {
    let (mut world, [one, _]) = asked().await;
    let (used, unused) = (link(&world, &one).await, link(&world, &one).await);
    assert_eq!(open(&world, &used).await.status, 200);
    world.restart_server();
    assert_eq!(open(&world, &used).await.code(), "409 link-used");
    assert_eq!(open(&world, &unused).await.status, 200);
}

#[tokio::test]
async fn link_ends_by_expiry_and_by_revocation_of_the_token() {
    let (world, [one, _]) = asked().await;
    let short = make(&world, &one, r#"{"principal":"bob","ttl_ms":1000}"#).await;
    assert_eq!(short.at("/expires_at"), "2026-01-01T00:00:01.000Z");
    let (late, revoked) = (link(&world, &one).await, link(&world, &one).await);
    let session = Browser::of(&open(&world, &late).await);
    world.advance(1);
    assert_eq!(open(&world, &short.at("/url")).await.code(), "401 unauthorized");
    assert_eq!(world.send(session.bare("GET", &format!("/v1/suspensions/{one}"), None)).await.status, 200);
    world.revoke("bob");
    assert_eq!(open(&world, &revoked).await.code(), "401 unauthorized");
    assert_eq!(world.send(session.bare("GET", "/v1/session", None)).await.code(), "401 unauthorized");
}

#[tokio::test]
async fn forged_link_or_another_text_is_refused() {
    let (world, [one, _]) = asked().await;
    let link = link(&world, &one).await;
    let browser = Browser::log_in(&world, "root").await;
    let session = browser.cookie.split_once('=').unwrap().1.to_owned();
    let text = link.strip_prefix("/link/").unwrap();
    let changed = format!("{}{}", &text[..text.len() - 1], if text.ends_with('A') { 'E' } else { 'A' });
    for wrong in ["", "/link/", &changed, &session, &text[1..], &format!("{text}=")] {
        assert_eq!(open(&world, wrong).await.code(), "401 unauthorized", "{wrong}");
    }
    // A link is not a session either.
    for name in ["toolgate_session", "toolgate_link"] {
        let asked = with(request("GET", "/v1/session", "", None), "cookie", &format!("{name}={text}"));
        assert_eq!(world.send(asked).await.code(), "401 unauthorized");
    }
    assert_eq!(
        open(&world, &format!("https://gate.example.com{link}")).await.status,
        200,
        "the address from a mail works"
    );
}

#[tokio::test]
async fn admin_makes_a_link_for_an_approver_of_an_open_suspension() {
    let (world, [one, two]) = asked().await;
    let path = format!("/v1/suspensions/{one}/links");
    for who in ["alice", "bob", "carol"] {
        assert_eq!(world.post(who, &path, r#"{"principal":"bob"}"#).await.code(), "403 not-allowed", "{who}");
    }
    for (body, place) in [
        (r#"{"principal":"nobody"}"#, "/principal"),
        (r#"{"principal":"alice"}"#, "/principal"),
        (r#"{"principal":"a b"}"#, "/principal"),
        (r#"{"principal":"bob","ttl_ms":0}"#, "/ttl_ms"),
        (r#"{"principal":"bob","ttl_ms":604800001}"#, "/ttl_ms"),
    ] {
        let refused = make(&world, &one, body).await;
        assert_eq!(
            (refused.code().as_str(), refused.at("/errors/0/pointer").as_str()),
            ("422 invalid", place),
            "{body}"
        );
    }
    let unknown = make(&world, "susp_00000000000000000000000000000009", r#"{"principal":"bob"}"#).await;
    assert_eq!(unknown.code(), "404 not-found");
    world.resolve("bob", &two, r#"{"decision":"deny"}"#).await;
    assert_eq!(make(&world, &two, r#"{"principal":"bob"}"#).await.code(), "409 stale");
}

#[tokio::test]
async fn link_to_a_closed_suspension_opens_no_session() {
    let (world, [one, two]) = asked().await;
    let (answered, expired) = (link(&world, &one).await, link(&world, &two).await);
    let unused = link(&world, &one).await;
    let browser = Browser::of(&open(&world, &answered).await);
    world.resolve("root", &one, r#"{"decision":"approve"}"#).await;
    for late in [&answered, &unused] {
        let refused = open(&world, late).await;
        expect![[r#"
            409
            {
              "type": "/problems/stale",
              "title": "The suspension is no longer open",
              "status": 409,
              "detail": "this was already answered (approve, by root), so the link is no longer valid",
              "code": "stale",
              "state": "approve",
              "by": "root",
              "at": "2026-01-01T00:00:00.000Z"
            }
        "#]]
        .assert_eq(&refused.pretty());
        assert!(!refused.headers.contains_key("set-cookie"));
    }
    // A session that the link opened before can read how the suspension ended.
    let read = world.send(browser.bare("GET", &format!("/v1/suspensions/{one}"), None)).await;
    assert_eq!((read.at("/state"), read.at("/closed/by")), ("approve".into(), "root".into()));
    assert_eq!(make(&world, &one, r#"{"principal":"bob"}"#).await.code(), "409 stale");
    world.advance(59 * 60);
    let in_time = open(&world, &expired).await;
    assert_eq!(in_time.status, 200, "{}", in_time.text);
}

#[tokio::test]
async fn audit_has_making_use_and_actions_of_a_link() {
    let (world, [one, two]) = asked().await;
    let link = link(&world, &one).await;
    let browser = Browser::of(&open(&world, &link).await);
    world.send(browser.own("POST", &format!("/v1/suspensions/{one}/resolve"), Some(r#"{"decision":"approve"}"#))).await;
    world.resolve("bob", &two, r#"{"decision":"approve"}"#).await;
    let audit = world.get("root", "/v1/audit?limit=500").await;
    let secret = link.strip_prefix("/link/").unwrap();
    assert!(
        !audit.text.contains(secret) && !audit.text.contains(&secret[..40]),
        "the audit does not contain the secret of the link"
    );
    let mut said = String::new();
    for entry in audit.json()["entries"].as_array().unwrap() {
        let word = |name: &str| entry[name].as_str().unwrap_or("-").replace(&format!("{:031x}", 0), "");
        if ["link.made", "link.used", "approve"].contains(&entry["action"].as_str().unwrap()) {
            let words = ["action", "by", "to", "via", "link", "suspension", "until"].map(word);
            said += &format!("{}\n", words.join(" "));
        }
    }
    expect![[r#"
        link.made root bob - link_5 susp_3 2026-01-01T01:00:00.000Z
        link.used bob - - link_5 susp_3 -
        approve bob - link link_5 susp_3 -
        approve bob - api - susp_4 -
    "#]]
    .assert_eq(&said);
    for (suspension, via) in [(one, "link"), (two, "api")] {
        let read = world.get("root", &format!("/v1/suspensions/{suspension}")).await.json();
        assert_eq!(read["closed"]["via"], via);
    }
}

#[tokio::test]
async fn webhook_gets_one_link_per_suspension_and_principal() {
    let (world, [one, two]) = asked().await;
    let (links, bob, hour) = (world.links(), PrincipalId::new("bob").unwrap(), Span::from_secs(3_600));
    let id = |text: &str| text.parse::<SuspensionId>().unwrap();
    let of =
        async |webhook: &str, suspension: &str| links.of_webhook(webhook, id(suspension), &bob, hour).await.unwrap();
    let first = of("pager", &one).await.unwrap();
    world.advance(1_800);
    assert_eq!(of("pager", &one).await.as_ref(), Some(&first), "half of its time is left, so it is the same text");
    world.advance(1);
    let longer = of("pager", &one).await.unwrap();
    assert!(longer.expires > first.expires && longer.path != first.path);
    let (other, elsewhere) = (of("chat", &one).await.unwrap(), of("pager", &two).await.unwrap());
    // All messages have the same link, and it is used once.
    assert_eq!(open(&world, &first.path).await.status, 200);
    for again in [&first, &longer] {
        assert_eq!(open(&world, &again.path).await.code(), "409 link-used");
    }
    assert_eq!(of("pager", &one).await, None, "a used link is not sent");
    for more in [&other, &elsewhere] {
        assert_eq!(open(&world, &more.path).await.status, 200);
    }
    let made = world.get("root", "/v1/audit?action=link.made").await;
    let words = |entry: &serde_json::Value| format!("{} {} {}", entry["by"], entry["webhook"], entry["until"]);
    let made: Vec<String> = made.json()["entries"].as_array().unwrap().iter().map(words).collect();
    assert_eq!(
        made.join("\n").replace('"', ""),
        "system pager 2026-01-01T01:00:00.000Z\n\
        system pager 2026-01-01T01:30:01.000Z\nsystem chat 2026-01-01T01:30:01.000Z\n\
        system pager 2026-01-01T01:30:01.000Z"
    );
    world.resolve("bob", &one, r#"{"decision":"deny"}"#).await;
    assert!(links.of_webhook("chat", id(&one), &bob, hour).await.is_err());
}

#[tokio::test]
async fn number_of_links_to_one_suspension_is_limited() {
    let (world, [one, two]) = asked().await;
    for n in 0..100 {
        assert_eq!(make(&world, &one, r#"{"principal":"bob"}"#).await.status, 200, "{n}");
    }
    assert_eq!(make(&world, &one, r#"{"principal":"bob"}"#).await.code(), "403 not-allowed");
    assert_eq!(make(&world, &two, r#"{"principal":"bob"}"#).await.status, 200);
}

#[tokio::test]
async fn link_session_coexists_with_log_in_and_log_out_ends_both() {
    let (world, [one, two]) = asked().await;
    let full = Browser::log_in(&world, "root").await;
    let opened = open(&world, &link(&world, &one).await).await;
    let set = opened.headers["set-cookie"].to_str().unwrap().to_owned();
    assert!(set.starts_with("toolgate_link=") && set.ends_with("; Path=/; Max-Age=3600; HttpOnly; SameSite=Strict"));
    let narrow = Browser::of(&opened);
    let both = |csrf: &str| Browser { cookie: format!("{}; {}", full.cookie, narrow.cookie), csrf: csrf.into() };
    let (as_root, as_bob) = (both(&full.csrf), both(&narrow.csrf));
    let whose = async |request| world.send(request).await.at("/principal");
    assert_eq!(whose(as_root.bare("GET", "/v1/session", None)).await, "root");
    assert_eq!(whose(as_root.own("GET", "/v1/session", None)).await, "root");
    assert_eq!(whose(as_bob.own("GET", "/v1/session", None)).await, "bob");
    let session = world.send(as_root.bare("GET", "/v1/session", None)).await;
    let beside = ["principal", "only", "csrf"].map(|name| session.at(&format!("/link/{name}")));
    assert_eq!(beside, ["bob".to_owned(), one.clone(), narrow.csrf.clone()]);
    // A request about the suspension belongs to the link's session, unless it has the CSRF token of the other one.
    let read = async |browser: &Browser, of: &str, own: bool| {
        let path = format!("/v1/suspensions/{of}");
        let asked = if own { browser.own("GET", &path, None) } else { browser.bare("GET", &path, None) };
        let reply = world.send(asked).await;
        (reply.status.as_u16(), reply.json()["you"]["may_answer"].clone())
    };
    for (browser, of, own, status) in [
        (&as_root, &one, false, 200),
        (&as_root, &two, false, 200),
        (&as_bob, &two, true, 403),
        (&as_root, &two, true, 200),
    ] {
        assert_eq!(read(browser, of, own).await.0, status, "{of} {own}");
    }
    assert_eq!(world.send(as_bob.own("GET", "/v1/audit", None)).await.code(), "403 not-allowed");
    assert_eq!(world.send(as_root.own("GET", "/v1/audit", None)).await.status, 200);
    let resolve = |of: &str| format!("/v1/suspensions/{of}/resolve");
    let approve = Some(r#"{"decision":"approve"}"#);
    assert_eq!(world.send(as_bob.own("POST", &resolve(&two), approve)).await.code(), "403 not-allowed");
    assert_eq!(world.send(as_root.bare("POST", &resolve(&one), approve)).await.code(), "403 not-allowed");
    assert_eq!(world.send(as_bob.own("POST", &resolve(&one), approve)).await.status, 200);
    assert_eq!(world.send(as_root.own("POST", &resolve(&two), approve)).await.status, 200);
    for (of, by, via) in [(&one, "bob", "link"), (&two, "root", "console")] {
        let closed = world.get("root", &format!("/v1/suspensions/{of}")).await.json()["closed"].clone();
        assert_eq!((closed["by"].as_str(), closed["via"].as_str()), (Some(by), Some(via)));
    }
    let out = world.send(as_root.own("DELETE", "/v1/session", None)).await;
    let cleared: Vec<_> = out.headers.get_all("set-cookie").iter().map(|set| set.to_str().unwrap()).collect();
    assert_eq!(cleared.len(), 2);
    assert!(cleared.iter().all(|set| set.contains("=; Path=/; Max-Age=0;")), "{cleared:?}");
    for browser in [&full, &narrow, &as_root] {
        assert_eq!(world.send(browser.bare("GET", "/v1/session", None)).await.code(), "401 unauthorized");
    }
}

#[tokio::test]
async fn cookie_of_one_session_kind_is_refused_as_the_other() {
    let (world, [one, _]) = asked().await;
    let (full, narrow) =
        (Browser::log_in(&world, "root").await, Browser::of(&open(&world, &link(&world, &one).await).await));
    let value = |browser: &Browser| browser.cookie.split_once('=').unwrap().1.to_owned();
    for cookie in [format!("toolgate_session={}", value(&narrow)), format!("toolgate_link={}", value(&full))] {
        let asked = with(request("GET", "/v1/session", "", None), "cookie", &cookie);
        assert_eq!(world.send(asked).await.code(), "401 unauthorized", "{cookie}");
    }
}

/// A page whose session has ended must not use the other session of the browser.
#[tokio::test]
async fn csrf_token_of_an_ended_session_is_refused() {
    for end in ["its time", "its token", "a log-out"] {
        for link_ends in [true, false] {
            let world = TestServer::new();
            let full = Browser::log_in(&world, "root").await;
            world.advance(if link_ends { 0 } else { 11 * 60 * 60 + 30 * 60 });
            world.submit("", TURN).await;
            let one = world.get("root", "/v1/pending").await.at("/suspensions/0/suspension");
            let narrow = Browser::of(&open(&world, &link(&world, &one).await).await);
            let (dead, living) = if link_ends { (&narrow, &full) } else { (&full, &narrow) };
            match end {
                "its time" => world.advance(if link_ends { 60 * 60 } else { 30 * 60 }),
                "its token" => world.revoke(if link_ends { "bob" } else { "root" }),
                _ => drop(world.send(dead.own("DELETE", "/v1/session", None)).await),
            }
            let both =
                |of: &Browser| Browser { cookie: format!("{}; {}", full.cookie, narrow.cookie), csrf: of.csrf.clone() };
            let read = format!("/v1/suspensions/{one}");
            let answer = format!("{read}/resolve");
            for (method, path, body) in [
                ("GET", "/v1/session", None),
                ("GET", read.as_str(), None),
                ("POST", answer.as_str(), Some(r#"{"decision":"approve"}"#)),
                ("DELETE", "/v1/session", None),
            ] {
                let refused = world.send(both(dead).own(method, path, body)).await;
                assert_eq!(refused.code(), "401 unauthorized", "{end} {link_ends} {method} {path}");
                assert!(refused.at("/detail").contains("the session of this page has ended"), "{}", refused.text);
            }
            let name = if link_ends { "root" } else { "bob" };
            let whose = async |request| world.send(request).await.at("/principal");
            // A browser drops the cookie of an expired session.
            let dropped = Browser { cookie: living.cookie.clone(), csrf: dead.csrf.clone() };
            for (method, path, body) in
                [("POST", answer.as_str(), Some(r#"{"decision":"approve"}"#)), ("DELETE", "/v1/session", None)]
            {
                let refused = world.send(dropped.own(method, path, body)).await;
                assert_eq!(refused.code(), "403 not-allowed", "{end} {link_ends} {method} {path}");
            }
            for path in ["/v1/session", &read, "/v1/pending/events"] {
                let refused = world.send(dropped.own("GET", path, None)).await;
                assert_eq!(refused.code(), "401 unauthorized", "{end} {link_ends} {path}");
                assert!(refused.at("/detail").contains("the session of this page has ended"), "{}", refused.text);
                assert_eq!(world.send(dropped.bare("HEAD", &read, None)).await.status, 200, "without a CSRF token");
            }
            assert_eq!(whose(both(living).own("GET", "/v1/session", None)).await, name, "{end}");
            assert_eq!(whose(both(living).bare("GET", "/v1/session", None)).await, name, "{end}");
        }
    }
}

#[tokio::test]
async fn clock_set_back_does_not_end_a_new_link_session() {
    let (world, [one, _]) = asked().await;
    world.revoke_sessions_together("bob", OpenedBy::Link, world.host.handle().now() + Span::from_secs(60 * 60));
    world.clock.set_back(Span::from_secs(30 * 60));
    let opened = open(&world, &link(&world, &one).await).await;
    assert_eq!(opened.at("/expires_at"), "2026-01-01T01:00:00.001Z");
    let read = Browser::of(&opened).bare("GET", &format!("/v1/suspensions/{one}"), None);
    assert_eq!(world.send(read).await.status, 200);
}
