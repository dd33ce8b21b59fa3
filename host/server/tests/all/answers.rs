//! Suspensions are listed, read and answered, with every possible response.

use expect_test::expect;

use crate::world::TestServer;

const PAY: &str = r#"{"calls":[{"id":"p","tool":"pay","arguments":{"city": "Bern","n":1}}],"context":{"why":"rent"}}"#;

async fn waiting(world: &TestServer, body: &str) -> (String, String) {
    let reply = world.submit("", body).await;
    (reply.at("/turn"), reply.at("/pending/0/suspension"))
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "it is one snapshot of all members")]
async fn suspensions_are_listed_with_everything_for_an_answer() {
    let world = TestServer::new();
    let (_, suspension) = waiting(&world, PAY).await;
    let one = world.get("bob", &format!("/v1/suspensions/{suspension}")).await;
    expect![[r#"
        200
        {
          "suspension": "susp_00000000000000000000000000000003",
          "conversation": "c",
          "turn": "turn_00000000000000000000000000000002",
          "call": "p",
          "number": 1,
          "tool": "pay",
          "plugin": "shelf",
          "executor": "server",
          "kind": "approval",
          "state": "open",
          "prompt": "pay?",
          "prompt_by": "host",
          "arguments": {
            "city": "Bern",
            "n": 1
          },
          "arguments_digest": "sha256:194f1d9e432fc2579704511083b856cd297a20f12d5ddb8012ae16453b6413bb",
          "context": {
            "why": "rent"
          },
          "caller": "alice",
          "allowed": [
            "approve",
            "deny"
          ],
          "editable": [
            "city"
          ],
          "needs": [],
          "standing": {
            "max_ttl_ms": 86400000,
            "max_uses": 100
          },
          "you": {
            "may_answer": true,
            "voted": false,
            "counts_again": false,
            "may_delegate": false
          },
          "created_at": "2026-01-01T00:00:00.000Z",
          "expires_at": "2026-01-01T01:00:00.000Z",
          "on_expiry": "error",
          "digest": "sha256:358c6ebf4415d4954ec1696f4d928cff783ee2ac1592edffe7ed4c75388777fa",
          "component": "sha256:6985ca1f4daa5a584a28eae043a239cb96689af1337ea13afb63e00c2bf512fa",
          "declaration": "sha256:9350872d712a127c494d7dc35e46b0bc9e62e288239708e581dfc3a1400154a4",
          "display": {
            "prompt": "pay?",
            "arguments": "{\"city\": \"Bern\",\"n\":1}",
            "context": "{\"why\":\"rent\"}"
          }
        }
    "#]]
    .assert_eq(&one.pretty());
    let list = world.get("bob", "/v1/pending").await;
    assert_eq!(list.json()["suspensions"][0], one.json());

    world.submit("", r#"{"calls":[{"id":"a","tool":"ask","arguments":{}}]}"#).await;
    world.resolve("bob", &suspension, r#"{"decision":"deny"}"#).await;
    let count = async |who: &str, query: &str| {
        let reply = world.get(who, &format!("/v1/pending?{query}")).await;
        reply.json()["suspensions"].as_array().unwrap().len()
    };
    assert_eq!(count("bob", "").await, 1);
    assert_eq!(count("bob", "state=closed").await, 1);
    assert_eq!(count("bob", "state=all&conversation=c&caller=alice").await, 2);
    assert_eq!(count("bob", "state=all&tool=pay&kind=approval").await, 1);
    assert_eq!(count("bob", "state=all&kind=elicitation").await, 1);
    assert_eq!(count("bob", "conversation=other").await, 0);
    assert_eq!(count("eve", "state=all").await, 0);
    assert_eq!(count("bob", "decision=a-choice-of-a-question").await, 0);
    for (given, decision) in [("approved", "approve"), ("denied", "deny")] {
        let reply = world.get("bob", &format!("/v1/pending?decision={given}")).await;
        let detail = format!("the parameter `decision` is `{given}`: try `{decision}`");
        assert_eq!((reply.status.as_u16(), &reply.json()["detail"]), (422, &detail.into()));
    }
    let first = world.get("bob", "/v1/pending?state=all&limit=1").await;
    let next = world.get("bob", &format!("/v1/pending?state=all&limit=1&after={}", first.at("/next"))).await;
    assert_eq!(next.at("/suspensions/0/tool"), "ask");
}

#[tokio::test]
async fn every_reply_to_an_answer() {
    let world = TestServer::new();
    let (_, suspension) = waiting(&world, PAY).await;
    let asked = async |who: &str, body: &str| {
        let reply = world.resolve(who, &suspension, body).await;
        let mut members = reply.json();
        // Other tests check the members that depend on the code only.
        for name in ["type", "title", "status"] {
            members.as_object_mut().unwrap().shift_remove(name);
        }
        format!("{who} {body}\n  {} {members}\n", reply.status.as_u16())
    };
    let mut output = String::new();
    for (who, body) in [
        ("alice", r#"{"decision":"approve"}"#),
        ("bob", r#"{"decision":"maybe"}"#),
        ("bob", r#"{"decision":"approve","arguments":{"city":"Rome","n":2}}"#),
        ("bob", r#"{"decision":"approve","arguments":{"city":7,"n":1}}"#),
        ("bob", r#"{"decision":"approve","expect_digest":"sha256:0"}"#),
        (
            "bob",
            r#"{"decision":"approve","expect_digest":"0000000000000000000000000000000000000000000000000000000000000000"}"#,
        ),
        ("eve", r#"{"decision":"approve"}"#),
        ("bob", r#"{"decision":"approve","arguments":{"n":1,"city":"Rome"},"comment":"ok"}"#),
        ("bob", r#"{"decision":"approve","arguments":{"n":1,"city":"Rome"}}"#),
        ("bob", r#"{"decision":"deny"}"#),
        ("root", r#"{"decision":"approve"}"#),
    ] {
        output += &asked(who, body).await;
    }
    expect![[r#"
        alice {"decision":"approve"}
          403 {"detail":"only a principal with the role approver answers approvals and questions","code":"not-allowed","role":"approver"}
        bob {"decision":"maybe"}
          422 {"detail":"/decision: \"maybe\" is not allowed here; choose one of: approve, deny","code":"invalid","errors":[{"pointer":"/decision","message":"\"maybe\" is not allowed here; choose one of: approve, deny"}]}
        bob {"decision":"approve","arguments":{"city":"Rome","n":2}}
          422 {"detail":"/arguments: only these may be edited: city","code":"invalid","errors":[{"pointer":"/arguments","message":"only these may be edited: city"}]}
        bob {"decision":"approve","arguments":{"city":7,"n":1}}
          422 {"detail":"/arguments/city: a string is expected","code":"invalid","errors":[{"pointer":"/arguments/city","message":"a string is expected"}]}
        bob {"decision":"approve","expect_digest":"sha256:0"}
          422 {"detail":"/expect_digest: not a digest: expected `sha256:` and 64 lower-case hexadecimal digits","code":"invalid","errors":[{"pointer":"/expect_digest","message":"not a digest: expected `sha256:` and 64 lower-case hexadecimal digits"}]}
        bob {"decision":"approve","expect_digest":"0000000000000000000000000000000000000000000000000000000000000000"}
          409 {"detail":"the call differs from the one that was shown: its digest is sha256:358c6ebf4415d4954ec1696f4d928cff783ee2ac1592edffe7ed4c75388777fa; read it again","code":"digest-mismatch","digest":"sha256:358c6ebf4415d4954ec1696f4d928cff783ee2ac1592edffe7ed4c75388777fa"}
        eve {"decision":"approve"}
          409 {"detail":"there is no such suspension, or you may not see it","code":"stale","state":"unknown"}
        bob {"decision":"approve","arguments":{"n":1,"city":"Rome"},"comment":"ok"}
          200 {"ok":true,"replayed":false,"suspension":"susp_00000000000000000000000000000003","state":"approve","votes_missing":0}
        bob {"decision":"approve","arguments":{"n":1,"city":"Rome"}}
          200 {"ok":true,"replayed":true,"suspension":"susp_00000000000000000000000000000003","state":"approve","votes_missing":0}
        bob {"decision":"deny"}
          409 {"detail":"this approval is no longer open: it was approved","code":"stale","state":"approve","by":"bob","at":"2026-01-01T00:00:00.000Z"}
        root {"decision":"approve"}
          409 {"detail":"this approval is no longer open: it was approved","code":"stale","state":"approve","by":"bob","at":"2026-01-01T00:00:00.000Z"}
    "#]].assert_eq(&output);
}

#[tokio::test]
async fn edit_does_not_change_the_shown_arguments() {
    let world = TestServer::new();
    let (turn, suspension) = waiting(&world, PAY).await;
    let answer = r#"{"decision":"approve","arguments":{"n":1,"city":"Rome"},"comment":"ok"}"#;
    assert_eq!(world.resolve("bob", &suspension, answer).await.status, 200);
    let unknown = world.resolve("bob", &format!("susp_{:032x}", 999), r#"{"decision":"approve"}"#).await;
    assert_eq!((unknown.code(), unknown.at("/state")), ("409 stale".into(), "unknown".into()));
    let turn = world.get("alice", &format!("/v1/conversations/c/turns/{turn}?wait_ms=60000")).await;
    assert_eq!(turn.at("/calls/0/approver"), "bob");
    assert_eq!(turn.json()["calls"][0]["submitted"]["city"], "Bern");
    assert_eq!(turn.json()["calls"][0]["arguments"]["city"], "Rome");
    let closed = world.get("bob", &format!("/v1/suspensions/{suspension}")).await;
    assert_eq!((closed.at("/arguments/city"), closed.at("/closed/comment")), ("Bern".into(), "ok".into()));
}

/// The submitted and the approved arguments.
fn described(suspension: &serde_json::Value) -> String {
    let pointers = [
        "/state",
        "/arguments",
        "/arguments_digest",
        "/display/arguments",
        "/closed/arguments",
        "/closed/arguments_digest",
        "/display/approved_arguments",
    ];
    let said =
        pointers.map(|pointer| format!("{pointer} {}\n", suspension.pointer(pointer).unwrap_or(&"absent".into())));
    said.concat()
}

#[tokio::test]
async fn suspension_has_submitted_and_approved_arguments() {
    let mut said = String::new();
    for answer in [
        r#"{"decision":"approve","arguments":{"n":1,"city":"Rome"}}"#,
        r#"{"decision":"approve"}"#,
        r#"{"decision":"deny"}"#,
    ] {
        let world = TestServer::new();
        let (_, suspension) = waiting(&world, PAY).await;
        assert_eq!(world.resolve("bob", &suspension, answer).await.status, 200);
        let path = format!("/v1/suspensions/{suspension}");
        said += &described(&world.get("bob", &path).await.json());
    }
    let world = TestServer::new();
    let (_, suspension) = waiting(&world, PAY).await;
    said += &described(&world.get("bob", &format!("/v1/suspensions/{suspension}")).await.json());
    expect![[r#"
        /state "approve"
        /arguments {"city":"Bern","n":1}
        /arguments_digest "sha256:194f1d9e432fc2579704511083b856cd297a20f12d5ddb8012ae16453b6413bb"
        /display/arguments "{\"city\": \"Bern\",\"n\":1}"
        /closed/arguments {"n":1,"city":"Rome"}
        /closed/arguments_digest "sha256:c94a3c86a1dc6e47bc43a1c1dd55bd02ac4723ac3f0a2635e91d84c80daca1b6"
        /display/approved_arguments "{\"n\":1,\"city\":\"Rome\"}"
        /state "approve"
        /arguments {"city":"Bern","n":1}
        /arguments_digest "sha256:194f1d9e432fc2579704511083b856cd297a20f12d5ddb8012ae16453b6413bb"
        /display/arguments "{\"city\": \"Bern\",\"n\":1}"
        /closed/arguments "absent"
        /closed/arguments_digest "sha256:194f1d9e432fc2579704511083b856cd297a20f12d5ddb8012ae16453b6413bb"
        /display/approved_arguments "absent"
        /state "deny"
        /arguments {"city":"Bern","n":1}
        /arguments_digest "sha256:194f1d9e432fc2579704511083b856cd297a20f12d5ddb8012ae16453b6413bb"
        /display/arguments "{\"city\": \"Bern\",\"n\":1}"
        /closed/arguments "absent"
        /closed/arguments_digest "absent"
        /display/approved_arguments "absent"
        /state "open"
        /arguments {"city":"Bern","n":1}
        /arguments_digest "sha256:194f1d9e432fc2579704511083b856cd297a20f12d5ddb8012ae16453b6413bb"
        /display/arguments "{\"city\": \"Bern\",\"n\":1}"
        /closed/arguments "absent"
        /closed/arguments_digest "absent"
        /display/approved_arguments "absent"
    "#]]
    .assert_eq(&said);
}

#[tokio::test]
async fn answers_are_checked_and_client_results_are_untrusted() {
    let world = TestServer::new();
    let (turn, ask) = waiting(
        &world,
        r#"{"calls":[{"id":"a","tool":"ask","arguments":{}},{"id":"l","tool":"locate","arguments":{}}]}"#,
    )
    .await;
    let missing = world.resolve("bob", &ask, r#"{"decision":"answer"}"#).await;
    assert_eq!((missing.code(), missing.at("/errors/0/pointer")), ("422 invalid".into(), "/data".into()));
    let null = world.resolve("bob", &ask, r#"{"decision":"answer","data":null}"#).await;
    assert_eq!((null.code(), null.at("/errors/0/message")), ("422 invalid".into(), "a string is expected".into()));
    assert_eq!(world.resolve("bob", &ask, r#"{"decision":"answer","data":"yes"}"#).await.status, 200);

    let path = format!("/v1/conversations/c/turns/{turn}");
    let locate = world.get("alice", &path).await.at("/pending/0/suspension");
    assert_eq!(world.resolve("bob", &locate, r#"{"decision":"result","data":null}"#).await.code(), "403 not-allowed");
    assert_eq!(world.resolve("carol", &locate, r#"{"decision":"result","data":null}"#).await.status, 200);
    let turn = world.get("alice", &path).await;
    assert_eq!(turn.json()["calls"][0]["trusted"], true);
    assert_eq!(turn.json()["calls"][1]["trusted"], false);
    assert!(turn.text.contains(r#""content":{"ok":true,"result":null}"#));
}

#[tokio::test]
async fn late_answers_are_stale_and_the_audit_has_the_decision() {
    let world = TestServer::new();
    let (_, suspension) = waiting(&world, PAY).await;
    world.advance(3600);
    let late = world.resolve("bob", &suspension, r#"{"decision":"approve"}"#).await;
    assert_eq!(
        (late.code(), late.at("/state"), late.at("/by")),
        ("409 stale".into(), "expired".into(), "system".into())
    );
    assert_eq!(late.at("/at"), "2026-01-01T01:00:00.000Z");

    let (_, second) = waiting(&world, r#"{"calls":[{"id":"q","tool":"pay","arguments":{}}]}"#).await;
    world.resolve("bob", &second, r#"{"decision":"deny","comment":"too much"}"#).await;
    let audit = world.get("root", "/v1/audit?limit=500").await;
    let entries = audit.json()["entries"].as_array().unwrap().clone();
    let last = entries.iter().find(|entry| entry["suspension"] == *second).unwrap();
    assert_eq!((&last["by"], &last["action"], &last["comment"]), (&"bob".into(), &"deny".into(), &"too much".into()));
    assert_eq!((&last["subject"], &last["suspension"]), (&"pay".into(), &second.into()));
    assert!(audit.json()["next"].is_null());
}

#[tokio::test]
async fn deceptive_text_is_exact_for_programs_escaped_for_people() {
    let world = TestServer::new();
    let body = "{\"calls\":[{\"id\":\"p\",\"tool\":\"pay\",\"arguments\":{\"city\":\"раураӏ\u{202e}\",\"n\":1}}],\
                \"context\":{\"why\":\"\u{200b}rent\"}}";
    let reply = world.submit("", body).await;
    assert_eq!(reply.json().pointer("/pending/0/display"), None, "a turn is for programs");
    let one = world.get("bob", &format!("/v1/suspensions/{}", reply.at("/pending/0/suspension"))).await;
    assert_eq!(one.at("/arguments/city"), "раураӏ\u{202e}");
    assert_eq!(one.at("/display/arguments"), r#"{"city":"\u0440\u0430\u0443\u0440\u0430\u04cf\u202e","n":1}"#);
    assert_eq!(one.at("/display/context"), r#"{"why":"\u200brent"}"#);

    let refused = world.post("alice", "/v1/conversations/c/turns", "{\"calls\":[],\"\u{202e}\":1}").await;
    assert!(refused.at("/detail").contains(r"\u{202e}"), "{}", refused.at("/detail"));
    assert!(!refused.at("/errors/0/message").contains('\u{202e}'), "{}", refused.at("/errors/0/message"));
}

#[tokio::test]
async fn page_with_many_escapes_is_short() {
    let world = TestServer::new();
    for id in ["a", "b"] {
        // Each of these is shown as six characters and sent as seven bytes.
        let city = "\u{7f}".repeat(700_000);
        let body = format!(r#"{{"calls":[{{"id":"{id}","tool":"pay","arguments":{{"city":"{city}","n":1}}}}]}}"#);
        world.submit("", &body).await;
    }
    let first = world.get("bob", "/v1/pending").await;
    assert_eq!(first.json()["suspensions"].as_array().map(Vec::len), Some(1));
    assert_eq!(first.json()["suspensions"][0]["display"]["arguments"].as_str().map(str::len), Some(4_200_000 + 17));
    let second = world.get("bob", &format!("/v1/pending?after={}", first.at("/next"))).await;
    assert_eq!(second.json()["suspensions"].as_array().map(Vec::len), Some(1));
    assert!(second.json()["next"].is_null());
}
