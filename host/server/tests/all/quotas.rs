//! Responses to requests beyond the quota of a principal.

use dispatch::Quota;
use domain::rate::Rate;
use toolgate_server::ServerSettings;

use crate::world::TestServer;

#[tokio::test]
async fn full_quota_gives_retry_after_and_affects_nobody_else() {
    let world = TestServer::with_quota(ServerSettings::default(), Quota { open_turns: 1, ..Quota::default() });
    let gated = |id: &str| format!(r#"{{"calls":[{{"id":"{id}","tool":"pay","arguments":{{}}}}]}}"#);
    let first = world.submit("", &gated("1")).await;
    assert_eq!(first.code(), "201");
    let refused = world.submit("", &gated("2")).await;
    assert_eq!((refused.code().as_str(), refused.headers["retry-after"].to_str().unwrap()), ("429 busy", "10"));
    assert_eq!(refused.json()["retry_after"], 10);
    assert!(
        refused.at("/detail").contains("alice has 1 open turns") && refused.at("/detail").contains("quota.open_turns")
    );
    // A repeated submission returns the recorded turn, and the refused turn was not stored.
    assert_eq!(world.submit("", &gated("1")).await.code(), "200");
    let pending = world.get("alice", "/v1/pending").await.json();
    assert_eq!(pending["suspensions"].as_array().map(Vec::len), Some(1));
    assert_eq!(world.post("eve", "/v1/conversations/hers/turns", &gated("2")).await.code(), "201");

    let text = world.get("root", "/metrics").await.text;
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or_else(|| panic!("{text}"));
        line.rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!(value("toolgate_open_turns"), "2");
    assert_eq!(value("toolgate_pending_suspensions"), "2");
    assert_eq!(value("toolgate_running_calls"), "0");
    assert_eq!(value(r#"toolgate_refused_busy_total{bound="open_turns"}"#), "1");
    let cancel = format!("/v1/conversations/c/turns/{}/cancel", first.at("/turn"));
    assert_eq!(world.post("alice", &cancel, "").await.code(), "200");
    assert_eq!(world.submit("", &gated("2")).await.code(), "201");
    let text = world.get("root", "/metrics").await.text;
    assert!(text.contains(r#"toolgate_calls_ended_total{outcome="cancelled",code=""} 1"#), "{text}");
}

#[tokio::test]
async fn rate_of_new_turns_gives_the_time_to_wait() {
    let turn_rate = Rate { per_second: 1, burst: 3 };
    let world = TestServer::with_quota(ServerSettings::default(), Quota { turn_rate, ..Quota::default() });
    let gated = |id: usize| format!(r#"{{"calls":[{{"id":"{id}","tool":"pay","arguments":{{}}}}]}}"#);
    for id in 0..3 {
        assert_eq!(world.submit("", &gated(id)).await.code(), "201");
    }
    let refused = world.submit("", &gated(3)).await;
    assert_eq!((refused.code().as_str(), refused.headers["retry-after"].to_str().unwrap()), ("429 busy", "1"));
    assert!(refused.at("/detail").contains("quota.turns_per_second"), "{}", refused.text);
    let metrics = world.get("root", "/metrics").await.text;
    assert!(metrics.contains(r#"toolgate_refused_busy_total{bound="turns_per_second"} 1"#), "{metrics}");
    world.advance(1);
    assert_eq!(world.submit("", &gated(3)).await.code(), "201");
}
