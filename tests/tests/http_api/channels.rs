//! The channel of each answer is recorded, and a rule can demand channels.

use serde_json::{Value, json};
use toolgate_tests::browser::Browser;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{Client, outcomes, suspension_of};

const RULES: &str = r#"
[[policy]]
name = "by-people"
tools = "gated_echo"
rule = "ask"
needs = [{ via = ["console", "link"] }]

[[policy]]
name = "two-at-the-console"
tools = "echo"
rule = "ask"
needs = [{ who = ["principal:alice", "principal:bob"], quorum = 2, via = ["console"] }]
"#;

fn started() -> Host {
    Setup::with(&["lab"]).tables(RULES).start()
}

fn logged_in(host: &Host, by: &Client) -> Browser {
    Browser::log_in(&host.stranger(), by.token())
}

fn approve() -> Value {
    json!({"decision": "approve"})
}

/// The actions on a suspension in the audit, with their principals and channels.
fn audited(host: &Host, suspension: &str) -> Vec<String> {
    let entries = host.admin.get("/v1/audit?limit=500").ok(200)["entries"].clone();
    let of = |entry: &&Value| entry["suspension"] == suspension && !entry["via"].is_null();
    let word = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let said = |entry: &Value| ["action", "by", "via"].map(|name| word(entry, name)).join(" ");
    entries.as_array().unwrap().iter().filter(of).map(said).collect()
}

#[test]
fn answers_count_only_through_the_channels_of_a_rule() {
    let host = started();
    let call = || host.agent.call("c", "gated_echo", json!({"value": 1}));
    let (turn, linked) = (call(), call());
    let suspension = suspension_of(&turn);
    let to_people =
        "answer it in the console or with a link: the operator's rule does not count answers through the API";
    for decision in ["approve", "deny"] {
        let refused = host.approver.resolve(&suspension, json!({"decision": decision}));
        assert_eq!(refused.problem(403, "not-allowed")["detail"], to_people, "{decision}");
    }
    let seen = host.approver.get(&format!("/v1/suspensions/{suspension}")).ok(200);
    assert_eq!(seen["needs"][0]["via"], json!(["console", "link"]), "{seen:#}");
    assert_eq!((&seen["you"]["may_answer"], &seen["you"]["why_not"]), (&json!(false), &json!(to_people)));
    let mine = host.approver.get("/v1/pending?mine=true").ok(200);
    assert_eq!(mine["suspensions"].as_array().map(Vec::len), Some(2), "it waits for this person: {mine:#}");
    let counts = host.approver.get("/v1/pending/counts?mine=true").ok(200);
    assert_eq!(counts["open"], 2, "{counts}");
    let card = host.cli(Some(&host.approver), &["show", &suspension]);
    assert!(card.out.contains("  must be answered through: console, link\n"), "{card:?}");

    let explained = host.cli(None, &["policy", "explain", "gated_echo", r#"{"value":1}"#, "--config", "toolgate.toml"]);
    assert!(explained.out.ends_with("must be answered through: console, link\n"), "{explained:?}");
    let call = json!({"tool": "gated_echo", "arguments": {"value": 1}});
    let explained = host.admin.post("/v1/policy/explain", &call).ok(200);
    assert_eq!(explained["needs"][0]["via"], json!(["console", "link"]), "{explained:#}");

    let alice = logged_in(&host, &host.approver);
    assert_eq!(alice.resolve(&suspension, &approve()).ok(200)["state"], "approve");
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);
    let closed = host.approver.get(&format!("/v1/suspensions/{suspension}")).ok(200)["closed"].clone();
    assert_eq!((&closed["by"], &closed["via"]), (&json!("alice"), &json!("console")));
    assert_eq!(audited(&host, &suspension), ["approve alice console"]);
    // A repeated answer is no other answer.
    assert_eq!(alice.resolve(&suspension, &approve()).ok(200)["replayed"], true);

    let suspension = suspension_of(&linked);
    let link = host.admin.post(&format!("/v1/suspensions/{suspension}/links"), &json!({"principal": "alice"}));
    let opened = host.stranger().post("/v1/session/link", &json!({"link": link.ok(200)["url"]}));
    let _ = Browser::of(host.stranger(), &opened).resolve(&suspension, &approve()).ok(200);
    assert_eq!(audited(&host, &suspension), ["approve alice link"]);
}

#[test]
fn votes_and_delegations_count_through_their_channel_only() {
    let host = started();
    let [bob, carol] = ["bob", "carol"].map(|name| host.token(name, &["approver"], None));
    let turn = host.agent.call("c", "echo", json!({"value": 1}));
    let suspension = suspension_of(&turn);
    let [alice_at, bob_at, carol_at] = [&host.approver, &bob, &carol].map(|by| logged_in(&host, by));
    let delegate = format!("/v1/suspensions/{suspension}/delegate");
    let to_carol = json!({"to": "carol"});
    let to_console = "answer it in the console: the operator's rule does not count answers through the API";
    let refused = |answer: toolgate_tests::http::Answer| {
        assert_eq!(answer.problem(403, "not-allowed")["detail"], to_console);
    };

    refused(host.approver.resolve(&suspension, approve()));
    assert_eq!(alice_at.resolve(&suspension, &approve()).ok(200)["state"], "open");
    refused(bob.post(&delegate, &to_carol));
    let _ = bob_at.send("POST", &delegate, &to_carol).ok(200);
    refused(carol.resolve(&suspension, approve()));
    assert_eq!(carol_at.resolve(&suspension, &approve()).ok(200)["state"], "approve");
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);
    assert_eq!(audited(&host, &suspension), ["vote alice console", "delegate bob console", "approve carol console"]);
    let seen = host.approver.get(&format!("/v1/suspensions/{suspension}")).ok(200);
    assert_eq!((&seen["votes"][0]["via"], &seen["delegations"][0]["via"]), (&json!("console"), &json!("console")));
}

#[test]
fn standing_approval_of_another_rule_covers_no_call() {
    let mut host = Setup::with(&["lab"])
        .tables("[[policy]]\nname = \"by-people\"\ntools = \"gated_echo\"\nrule = \"ask\"")
        .start();
    let call = |host: &Host| host.agent.call("c", "gated_echo", json!({"value": 1}));
    let first = suspension_of(&call(&host));
    let standing = json!({"decision": "approve", "standing": {"uses": 5, "ttl_ms": 60_000, "pin": "all"}});
    let _ = host.approver.resolve(&first, standing).ok(200);
    assert_eq!(outcomes(&host.agent.settled(&call(&host))), ["ok"], "it is covered");
    host.kill();
    let config = host.folder().join("toolgate.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("rule = \"ask\"", "rule = \"ask\"\nneeds = [{ via = [\"console\"] }]"))
        .unwrap();
    host.start();
    let turn = call(&host);
    assert_eq!(
        turn["pending"][0]["needs"][0]["via"],
        json!(["console"]),
        "an approval through the API does not cover it: {turn:#}"
    );
}
