//! Streams and counts of open suspensions, several answers at once, and the list of conversations.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use dispatch::Quota;
use expect_test::expect;
use futures::StreamExt as _;
use serde_json::{Value, json};
use toolgate_server::ServerSettings;
use toolgate_tests::faults::MortalStore;
use tower::ServiceExt as _;

use crate::browsers::Browser;
use crate::world::{TestServer, request};

/// A stream of `/v1/pending/events`, read event by event.
struct Inbox {
    body: axum::body::BodyDataStream,
    rest: String,
}

impl Inbox {
    async fn open(world: &TestServer, request: Request<Body>) -> Self {
        let response = world.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let mut inbox = Self { body: response.into_body().into_data_stream(), rest: String::new() };
        assert_eq!(inbox.next().await.0, "pending.ready", "now the list can be read");
        inbox
    }

    async fn of(world: &TestServer, who: &str) -> Self {
        Self::open(world, request("GET", "/v1/pending/events", who, None)).await
    }

    /// The name and data of the next event.
    async fn next(&mut self) -> (String, Value) {
        loop {
            if let Some((event, rest)) = self.rest.split_once("\n\n") {
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                let received =
                    field("event:").map(|name| (name.to_owned(), field("data:").unwrap_or("null").to_owned()));
                self.rest = rest.to_owned();
                if let Some((name, data)) = received {
                    return (name, serde_json::from_str(&data).unwrap());
                }
                continue;
            }
            let chunk = self.body.next().await.unwrap().unwrap();
            self.rest.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next event in short: name, suspension, state, and the principal that closed it.
    async fn line(&mut self) -> String {
        let (name, data) = self.next().await;
        let text = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
        format!("{name} {} {} {}", text("suspension").trim_start_matches("susp_0"), text("state"), text("by"))
    }
}

const TURNS: &str = "/v1/conversations/c/turns";

fn calls(tools: &[&str]) -> String {
    let calls = tools.iter().enumerate().map(|(n, tool)| json!({"id": n.to_string(), "tool": tool, "arguments": {}}));
    json!({ "calls": calls.collect::<Vec<_>>() }).to_string()
}

/// The open suspensions, in the order of the list.
async fn waiting(world: &TestServer) -> Vec<String> {
    let list = world.get("root", "/v1/pending").await.json();
    let ids =
        list["suspensions"].as_array().unwrap().iter().map(|open| open["suspension"].as_str().unwrap().to_owned());
    ids.collect()
}

#[tokio::test]
async fn every_end_of_a_suspension_is_sent_once() {
    let world = TestServer::new();
    let mut inbox = Inbox::of(&world, "bob").await;
    // One is answered, which withdraws its sibling; one expires; one is cancelled.
    let siblings = json!({"calls": [{"id": "a", "tool": "pay", "arguments": {}}, {"id": "b", "tool": "pay", "arguments": {}}],
        "rejection": "cancel_siblings"});
    world.submit("", &siblings.to_string()).await;
    let (name, opened) = inbox.next().await;
    assert_eq!((name.as_str(), &opened["state"], &opened["call"]), ("pending.opened", &json!("open"), &json!("a")));
    assert_eq!(
        opened,
        world.get("bob", &format!("/v1/suspensions/{}", opened["suspension"].as_str().unwrap())).await.json()
    );
    assert_eq!(inbox.next().await.1["call"], "b");
    let both = waiting(&world).await;
    world.resolve("bob", &both[0], r#"{"decision":"deny"}"#).await;
    let mut ends = [inbox.next().await, inbox.next().await];
    ends.sort_by_key(|(_, data)| data["suspension"].to_string());
    let received: Vec<_> =
        ends.iter().map(|(name, data)| json!([name, data["suspension"], data["state"], data["by"]])).collect();
    assert_eq!(received[0], json!(["pending.closed", both[0], "deny", "bob"]));
    assert_eq!(received[1], json!(["pending.closed", both[1], "withdrawn", "system"]));
    assert_eq!(ends[0].1["conversation"], "c");

    world.submit("", &json!({"calls": [{"id": "c", "tool": "ask", "arguments": {}}]}).to_string()).await;
    let asked = inbox.next().await.1["suspension"].clone();
    world.advance(100 * 24 * 60 * 60);
    let (name, ended) = inbox.next().await;
    assert_eq!((name.as_str(), &ended["suspension"], &ended["state"]), ("pending.closed", &asked, &json!("expired")));
    assert_eq!(ended["by"], "system");

    let reply = world.submit("", &json!({"calls": [{"id": "d", "tool": "pay", "arguments": {}}]}).to_string()).await;
    let asked = inbox.next().await.1["suspension"].clone();
    world.post("alice", &format!("{TURNS}/{}/cancel", reply.at("/turn")), "").await;
    let (_, ended) = inbox.next().await;
    assert_eq!((&ended["suspension"], &ended["state"], &ended["by"]), (&asked, &json!("withdrawn"), &json!("system")));
    assert!(waiting(&world).await.is_empty());
}

#[tokio::test]
async fn closed_event_shows_the_channel() {
    let world = TestServer::new();
    world.submit("", &calls(&["pay", "pay"])).await;
    let both = waiting(&world).await;
    let link =
        world.post("root", &format!("/v1/suspensions/{}/links", both[0]), r#"{"principal":"bob"}"#).await.at("/url");
    let opened = world.post("", "/v1/session/link", &json!({ "link": link }).to_string()).await;
    let mut inbox = Inbox::of(&world, "root").await;
    let answer = Some(r#"{"decision":"approve"}"#);
    let resolve = |id: &str| format!("/v1/suspensions/{id}/resolve");
    let given = world.send(Browser::of(&opened).own("POST", &resolve(&both[0]), answer)).await;
    assert_eq!(given.status, 200, "{}", given.text);
    world.resolve("bob", &both[1], r#"{"decision":"approve"}"#).await;
    let mut received = Vec::new();
    for _ in &both {
        let (_, end) = inbox.next().await;
        received.push(json!([end["suspension"], end["by"], end.get("via")]));
    }
    assert_eq!(received, [json!([both[0], "bob", "link"]), json!([both[1], "bob", "api"])]);
}

#[tokio::test]
async fn stream_has_only_what_its_principal_may_see() {
    let world = TestServer::new();
    let mut received = Vec::new();
    for who in ["alice", "eve", "bob", "carol", "root", "scoped"] {
        received.push((who, Inbox::of(&world, who).await));
    }
    world.submit("", &calls(&["pay"])).await;
    world.post("eve", "/v1/conversations/eves/turns", &calls(&["pay"])).await;
    world.post("scoped", "/v1/conversations/theirs/turns", &calls(&["pay"])).await;
    // At last a suspension for a client. It is the first event for a principal that may see none of the others.
    world.post("root", "/v1/conversations/clients/turns", &calls(&["locate"])).await;
    let mut table = String::new();
    for (who, mut inbox) in received {
        let expected = if matches!(who, "bob" | "root") { 4 } else { 1 };
        let mut row = who.to_owned();
        for _ in 0..expected {
            row += &format!(" {}", inbox.next().await.1["conversation"].as_str().unwrap());
        }
        table += &format!("{row}\n");
    }
    expect![[r#"
        alice c
        eve eves
        bob c eves theirs clients
        carol clients
        root c eves theirs clients
        scoped theirs
    "#]]
    .assert_eq(&table);
}

#[tokio::test]
async fn stream_of_a_link_has_only_its_suspension() {
    let world = TestServer::new();
    world.submit("", &calls(&["pay", "pay"])).await;
    let both = waiting(&world).await;
    let made = world.post("root", &format!("/v1/suspensions/{}/links", both[1]), r#"{"principal":"bob"}"#).await;
    let opened = world.post("", "/v1/session/link", &json!({"link": made.at("/url")}).to_string()).await;
    let browser = Browser::of(&opened);
    let mut inbox = Inbox::open(&world, browser.bare("GET", "/v1/pending/events", None)).await;
    world.resolve("bob", &both[0], r#"{"decision":"approve"}"#).await;
    world.resolve("bob", &both[1], r#"{"decision":"approve"}"#).await;
    let received = inbox.line().await;
    assert!(received.starts_with("pending.closed ") && received.contains(&both[1][6..]), "{received}");
}

#[tokio::test]
async fn slow_reader_gets_a_reset_event() {
    let world = TestServer::with(ServerSettings { turn_bytes: 8 << 20, ..ServerSettings::default() });
    let mut inbox = Inbox::of(&world, "bob").await;
    for turn in 0..20 {
        let calls: Vec<_> =
            (0..100).map(|n| json!({"id": format!("{turn}-{n}"), "tool": "pay", "arguments": {}})).collect();
        let conversation = format!("/v1/conversations/c{turn}/turns");
        let reply = world.post("alice", &conversation, &json!({ "calls": calls }).to_string()).await;
        assert_eq!(reply.status, 201, "{}", reply.text);
    }
    let mut names = Vec::new();
    while names.last().is_none_or(|name| name != "pending.reset") {
        names.push(inbox.next().await.0);
    }
    assert!(names.len() < 2_000, "missed events are not sent");
    assert_eq!(inbox.next().await.0, "pending.opened", "the stream continues");
}

#[tokio::test]
async fn open_suspensions_are_counted_also_for_mine() {
    let world = TestServer::new();
    world.submit("", &calls(&["pay", "pay", "ask"])).await;
    world.post("root", "/v1/conversations/d/turns", &calls(&["pay"])).await;
    let _client = Inbox::of(&world, "carol").await;
    let count = async |who: &str, query: &str| world.get(who, &format!("/v1/pending/counts{query}")).await.json();
    let all = count("bob", "").await;
    let expected = json!({"open": 4, "by_kind": {"approval": 3, "elicitation": 1, "client_exec": 0}, "complete": true});
    assert_eq!(all, expected);
    for (who, query, open) in [
        ("alice", "", 3),
        ("eve", "", 0),
        ("bob", "?kind=approval", 3),
        ("bob", "?conversation=d", 1),
        ("bob", "?caller=alice&tool=pay", 2),
        ("bob", "?mine=true", 4),
        ("alice", "?mine=true", 0),
        ("root", "?mine=true", 3),
        ("carol", "", 0),
    ] {
        assert_eq!(count(who, query).await["open"], open, "{who} {query}");
    }
    assert_eq!(world.get("bob", "/v1/pending/counts?state=open").await.code(), "400 bad-request");
    let mine = world.get("root", "/v1/pending?mine=true").await.json();
    let callers = mine["suspensions"].as_array().unwrap().iter().map(|open| open["caller"].as_str().unwrap());
    assert_eq!(callers.collect::<Vec<_>>(), ["alice"; 3], "not its own calls");
    assert_eq!(world.get("alice", "/v1/pending?mine=true").await.json()["suspensions"], json!([]));
}

#[tokio::test]
async fn own_list_is_whole_when_audiences_are_too_many_to_count() {
    let store = Arc::new(MortalStore::new(Arc::new(store::MemoryStore::new())));
    let world = TestServer::over(store.clone(), ServerSettings::default(), Quota::default());
    // More than one request reads in pages of one, and root may answer none of them.
    world.post("root", "/v1/conversations/d/turns", &calls(&["pay"; 40])).await;
    world.submit("", &calls(&["pay", "ask"])).await;
    let listed = async |who: &str, limit: usize| {
        let (mut listed, mut pages, mut after) = (Vec::new(), 0, String::new());
        loop {
            let page = world.get(who, &format!("/v1/pending?mine=true&limit={limit}{after}")).await.json();
            let rows = page["suspensions"].as_array().unwrap().iter();
            listed.extend(rows.map(|row| row["suspension"].as_str().unwrap().to_owned()));
            pages += 1;
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return (listed, pages),
            }
        }
    };
    let everybody = [("root", 2), ("bob", 42), ("alice", 0)];
    let mut expected = Vec::new();
    for (who, open) in everybody {
        let (all, pages) = listed(who, 100).await;
        assert_eq!((all.len(), pages), (open, 1), "{who}");
        expected.push(all);
    }
    store.hide_audiences();
    assert_eq!(world.get("root", "/v1/pending/counts?mine=true").await.json()["complete"], false);
    for ((who, open), expected) in everybody.into_iter().zip(expected) {
        assert_eq!(listed(who, 100).await, (expected.clone(), 1), "{who}");
        let (all, pages) = listed(who, 1).await;
        assert!(all == expected && pages >= open, "{who}: {pages} pages");
    }
}

#[tokio::test]
async fn ended_suspensions_are_listed_newest_first_and_by_turn() {
    let world = TestServer::new();
    let mut turns = Vec::new();
    for turn in 0..3 {
        let body =
            calls(&["pay", "pay"]).replace("\"0\"", &format!("\"{turn}a\"")).replace("\"1\"", &format!("\"{turn}b\""));
        turns.push(world.submit("", &body).await.at("/turn"));
    }
    let ids = waiting(&world).await;
    for id in &ids[1..] {
        assert_eq!(world.resolve("bob", id, r#"{"decision":"approve"}"#).await.status, 200);
    }
    let mut newest = ids.clone();
    newest.reverse();
    let turn = &turns[1];
    for (query, expected) in [
        ("state=closed&order=newest".to_owned(), &newest[..5]),
        ("state=closed&order=oldest".to_owned(), &ids[1..]),
        ("state=all&order=newest".to_owned(), &newest[..]),
        (format!("state=closed&order=newest&turn={turn}"), &newest[2..4]),
        (format!("state=closed&turn={turn}"), &ids[2..4]),
        (format!("state=closed&order=newest&after={}", newest[1]), &newest[2..5]),
        (format!("state=closed&order=newest&turn={turn}&after={}", newest[2]), &newest[3..4]),
        (format!("state=closed&turn={turn}&call=1b&conversation=c"), &ids[3..4]),
        (format!("turn={turn}"), &[]),
        (format!("state=all&turn=turn_{:032x}", 999), &[]),
    ] {
        let list = world.get("root", &format!("/v1/pending?{query}")).await.json();
        let listed = list["suspensions"].as_array().unwrap().iter().map(|item| item["suspension"].as_str().unwrap());
        assert_eq!(listed.collect::<Vec<_>>(), expected, "{query}");
    }
    let first = world.get("root", "/v1/pending?state=closed&order=newest&limit=2").await.json();
    assert_eq!(first["next"].as_str(), Some(newest[1].as_str()));
    for (query, expected, next) in [
        (format!("state=all&turn={turn}&limit=1"), &ids[2], Some(&ids[2])),
        (format!("state=all&turn={turn}&limit=1&after={}", ids[2]), &ids[3], None),
        (format!("state=all&turn={turn}&limit=1&order=newest"), &ids[3], Some(&ids[3])),
        ("state=closed&conversation=c&call=1b&limit=1".to_owned(), &ids[3], None),
    ] {
        let page = world.get("root", &format!("/v1/pending?{query}")).await.json();
        assert_eq!(page["suspensions"].as_array().map(Vec::len), Some(1), "{query}");
        assert_eq!(page["suspensions"][0]["suspension"], expected.as_str(), "{query}");
        assert_eq!(page["next"].as_str(), next.map(String::as_str), "{query}");
    }
    let stranger = world.get("eve", &format!("/v1/pending?state=all&turn={turn}")).await.json();
    assert_eq!(stranger["suspensions"], json!([]), "eve may not see the turn");
}

#[tokio::test]
async fn several_answers_are_independent() {
    let world = TestServer::new();
    world.submit("", &calls(&["pay", "pay", "ask"])).await;
    let ids = waiting(&world).await;
    let answers = json!({"answers": [
        {"suspension": ids[0], "decision": "approve"},
        {"suspension": ids[0], "decision": "deny"},
        {"suspension": ids[1], "decision": "maybe"},
        {"suspension": "susp_1", "decision": "approve"},
        {"suspension": ids[1], "decision": "approve", "expect_digest": "sha256:00"},
        {"suspension": "susp_00000000000000000000000000000099", "decision": "approve"},
        {"suspension": ids[1], "decision": "deny", "comment": "no"},
        {"suspension": ids[0], "decision": "approve"},
    ]});
    let reply = world.post("bob", "/v1/pending/resolve", &answers.to_string()).await.json();
    let rows = reply["answers"].as_array().unwrap().iter().map(|one| {
        let (ok, problem) = (&one["ok"], &one["problem"]);
        format!("{} {} {}\n", one["status"], ok["replayed"], problem["code"].as_str().unwrap_or("-"))
    });
    expect![[r#"
        200 false -
        409 null stale
        422 null invalid
        422 null invalid
        422 null invalid
        409 null stale
        200 false -
        200 true -
    "#]]
    .assert_eq(&rows.collect::<String>());
    assert_eq!(waiting(&world).await, ids[2..], "one is left");
    let refused = world.post("alice", "/v1/pending/resolve", &answers.to_string()).await.json();
    assert!(refused["answers"].as_array().unwrap().iter().all(|one| one["status"] != 200), "{refused:#}");
    for wrong in [json!({"answers": []}), json!({"answers": vec![&answers["answers"][0]; 101]}), json!({})] {
        assert_eq!(world.post("bob", "/v1/pending/resolve", &wrong.to_string()).await.code(), "422 invalid");
    }
}

#[tokio::test]
async fn conversations_are_listed_if_the_principal_may_see_them() {
    let world = TestServer::new();
    for (who, conversation) in [("alice", "b"), ("alice", "a"), ("eve", "e"), ("scoped", "theirs")] {
        world.post(who, &format!("/v1/conversations/{conversation}/turns"), &calls(&["echo"])).await;
    }
    let list = async |who: &str, query: &str| {
        let page = world.get(who, &format!("/v1/conversations{query}")).await.json();
        let ids = page["conversations"].as_array().unwrap().iter().map(|one| one["conversation"].as_str().unwrap());
        format!("{} next {}", ids.collect::<Vec<_>>().join(" "), page["next"])
    };
    assert_eq!(list("alice", "").await, "a b next null");
    assert_eq!(list("eve", "").await, "e next null");
    assert_eq!(list("scoped", "").await, "theirs next null");
    assert_eq!(list("scoped", "?after=theirs").await, " next null");
    for who in ["bob", "carol", "root"] {
        assert_eq!(list(who, "").await, "a b e theirs next null", "{who}");
    }
    assert_eq!(list("root", "?limit=2").await, "a b next \"b\"");
    assert_eq!(list("root", "?limit=2&after=b").await, "e theirs next \"theirs\"");
    assert_eq!(list("root", "?limit=2&after=theirs").await, " next null");
    assert_eq!(world.get("root", "/v1/conversations").await.at("/conversations/0/owner"), "alice");
    assert_eq!(world.get("root", "/v1/conversations?limit=0").await.code(), "400 bad-request");
}

#[tokio::test]
async fn audit_is_filtered_by_conversation_plugin_and_principal() {
    let world = TestServer::new();
    for (who, conversation) in [("alice", "a"), ("eve", "e")] {
        world.post(who, &format!("/v1/conversations/{conversation}/turns"), &calls(&["echo"])).await;
    }
    let find = async |query: &str| {
        let page = world.get("root", &format!("/v1/audit?{query}")).await.json();
        page["entries"].as_array().unwrap().clone()
    };
    let of_a = find("conversation=a").await;
    assert!(!of_a.is_empty() && of_a.iter().all(|entry| entry["conversation"] == "a"), "{of_a:?}");
    assert!(find("conversation=none").await.is_empty());
    assert_eq!(find("by=eve").await, find("principal=eve").await);
    assert_eq!(find("action=turn.started").await, find("event=turn.started").await);
    assert_eq!(find("event=turn.started").await.len(), 2);
    let of_plugin = find("plugin=shelf").await;
    assert!(!of_plugin.is_empty() && of_plugin.iter().all(|entry| entry["plugin"] == "shelf"), "{of_plugin:?}");
    assert!(find("plugin=other").await.is_empty() && find("plugin=echo").await.is_empty());
    assert_eq!(world.get("root", "/v1/audit?by=eve&principal=alice").await.code(), "400 bad-request");
    assert_eq!(find("by=eve&principal=eve").await, find("by=eve").await);
}
