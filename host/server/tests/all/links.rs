//! Links: each opens one suspension, for one principal, once.

use expect_test::expect;

use crate::browsers::{Browser, with};
use crate::world::{Reply, World, request};

const TURN: &str = r#"{"calls":[{"id":"1","tool":"pay","arguments":{}},{"id":"2","tool":"pay","arguments":{}}]}"#;

/// A world with two suspensions.
async fn asked() -> (World, [String; 2]) {
    let world = World::new();
    world.submit("", TURN).await;
    let pending = world.get("root", "/v1/pending").await;
    let ids = ["/suspensions/0/suspension", "/suspensions/1/suspension"].map(|at| pending.at(at));
    (world, ids)
}

async fn make(world: &World, suspension: &str, body: &str) -> Reply {
    world.post("root", &format!("/v1/suspensions/{suspension}/links"), body).await
}

async fn link(world: &World, suspension: &str) -> String {
    make(world, suspension, r#"{"principal":"bob"}"#).await.at("/url")
}

async fn open(world: &World, link: &str) -> Reply {
    world.post("", "/v1/session/link", &serde_json::json!({ "link": link }).to_string()).await
}

#[tokio::test]
async fn an_answer_by_a_link_allows_nothing_beforehand() {
    let (world, [one, _]) = asked().await;
    let browser = Browser::of(&open(&world, &link(&world, &one).await).await);
    let resolve = format!("/v1/suspensions/{one}/resolve");
    let standing = r#"{"decision":"approve","standing":{"ttl_ms":1000,"uses":1,"pin":"all"}}"#;
    assert_eq!(world.send(browser.own("POST", &resolve, Some(standing))).await.status, 403);
    let plain = world.send(browser.own("POST", &resolve, Some(r#"{"decision":"approve"}"#))).await;
    assert_eq!((plain.status.as_u16(), plain.at("/state")), (200, "approve".into()));
}

#[tokio::test]
async fn a_link_opens_its_suspension_and_nothing_else() {
    let (world, [one, two]) = asked().await;
    let link = link(&world, &one).await;
    let reply = open(&world, &link).await;
    assert_eq!((reply.at("/principal"), reply.at("/only")), ("bob".into(), one.clone()));
    assert_eq!(reply.at("/expires_at"), "2026-01-01T01:00:00.000Z");
    let browser = Browser::of(&reply);
    let turn = "/v1/conversations/c/turns";
    let mut table = String::new();
    for (method, path) in [
        ("GET", "/v1/session".to_owned()),
        ("GET", format!("/v1/suspensions/{one}")),
        ("GET", format!("/v1/suspensions/{two}")),
        ("POST", format!("/v1/suspensions/{two}/resolve")),
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
        403 GET /metrics
    "#]]
    .assert_eq(&table);
    let resolve = format!("/v1/suspensions/{one}/resolve");
    let bare = browser.bare("POST", &resolve, Some(r#"{"decision":"approve"}"#));
    assert_eq!(world.send(bare).await.code(), "403 not-allowed", "not without what a page knows");
    let answer = world.send(browser.own("POST", &resolve, Some(r#"{"decision":"approve"}"#))).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let read = world.send(browser.bare("GET", &format!("/v1/suspensions/{one}"), None)).await;
    assert_eq!((read.at("/closed/by"), read.at("/state")), ("bob".into(), "approve".into()));
    assert_eq!(world.get("bob", &format!("/v1/suspensions/{two}")).await.at("/state"), "open");
}

#[tokio::test]
async fn of_two_that_use_a_link_at_once_one_is_let_in() {
    let (world, [one, _]) = asked().await;
    let link = link(&world, &one).await;
    let all = futures::future::join_all((0..8).map(|_| open(&world, &link))).await;
    let mut codes: Vec<String> = all.iter().map(Reply::code).collect();
    codes.sort();
    assert_eq!((codes[0].as_str(), codes[1..].iter().all(|code| code == "409 link-used")), ("200", true), "{codes:?}");
    // Looking at it uses nothing up, and neither does asking in any other way.
    let second = self::link(&world, &one).await;
    for _ in 0..3 {
        assert_eq!(world.get("", &second).await.code(), "404 not-found");
        assert_eq!(world.get("", &format!("/v1/session/link?link={second}")).await.code(), "405 method-not-allowed");
    }
    assert_eq!(open(&world, &second).await.status, 200);
}

#[tokio::test]
async fn a_used_link_stays_used_over_a_restart() {
    let (mut world, [one, _]) = asked().await;
    let (used, unused) = (link(&world, &one).await, link(&world, &one).await);
    assert_eq!(open(&world, &used).await.status, 200);
    world.open_anew();
    assert_eq!(open(&world, &used).await.code(), "409 link-used");
    assert_eq!(open(&world, &unused).await.status, 200);
}

#[tokio::test]
async fn a_link_ends_with_its_time_and_with_the_token_of_its_principal() {
    let (world, [one, _]) = asked().await;
    let short = make(&world, &one, r#"{"principal":"bob","ttl_ms":1000}"#).await;
    assert_eq!(short.at("/expires_at"), "2026-01-01T00:00:01.000Z");
    let (late, revoked) = (link(&world, &one).await, link(&world, &one).await);
    let session = Browser::of(&open(&world, &late).await);
    world.clock.advance(1);
    assert_eq!(open(&world, &short.at("/url")).await.code(), "401 unauthorized");
    assert_eq!(world.send(session.bare("GET", &format!("/v1/suspensions/{one}"), None)).await.status, 200);
    world.revoke("bob");
    assert_eq!(open(&world, &revoked).await.code(), "401 unauthorized");
    assert_eq!(world.send(session.bare("GET", "/v1/session", None)).await.code(), "401 unauthorized");
}

#[tokio::test]
async fn a_link_that_was_changed_or_is_something_else_opens_nothing() {
    let (world, [one, _]) = asked().await;
    let link = link(&world, &one).await;
    let browser = Browser::log_in(&world, "root").await;
    let session = browser.cookie.split_once('=').unwrap().1.to_owned();
    let text = link.strip_prefix("/link/").unwrap();
    let changed = format!("{}{}", &text[..text.len() - 1], if text.ends_with('A') { 'E' } else { 'A' });
    for wrong in ["", "/link/", &changed, &session, &text[1..], &format!("{text}=")] {
        assert_eq!(open(&world, wrong).await.code(), "401 unauthorized", "{wrong}");
    }
    // A link is no session either.
    let asked = with(request("GET", "/v1/session", "", None), "cookie", &format!("toolgate_session={text}"));
    assert_eq!(world.send(asked).await.code(), "401 unauthorized");
    assert_eq!(open(&world, &format!("https://gate.example.com{link}")).await.status, 200, "as it was mailed");
}

#[tokio::test]
async fn a_link_is_made_by_an_admin_for_somebody_who_answers_something_open() {
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
