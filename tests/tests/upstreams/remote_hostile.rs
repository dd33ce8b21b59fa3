//! Servers at a URL that misbehave or refuse. Each ends its own calls, and the host goes on.

use serde_json::json;
use toolgate_tests::remote::Remote;

use super::remote::started;
use super::{called, cli, error};

#[test]
fn url_that_breaks_a_rule_ends_its_call() {
    for (tool, code, why) in [
        ("endless", "tool_failed", "sent a message of more than"),
        ("endless-events", "tool_failed", "sent an event of more than"),
        ("comments", "tool_failed", "bytes that nobody asked for within a minute"),
        ("flood", "tool_failed", "messages that nobody asked for within a minute"),
        ("malformed", "tool_failed", "sent a malformed message"),
        ("malformed-event", "tool_failed", "sent a malformed message"),
        ("other-id", "tool_failed", "answered with another message than the answer"),
        ("packed", "tool_failed", "compresses its answers"),
        ("html", "tool_failed", "with neither JSON nor events"),
        ("accepted", "tool_failed", "with neither JSON nor events"),
        ("cut", "tool_failed", "has broken its answer off"),
    ] {
        let server = Remote::start();
        let host = started(&server, "");
        let (said, message) = error(&host, &format!("fake__{tool}"));
        assert!(message.contains(why) && message.contains("may or may not have taken effect"), "{tool}: {message}");
        assert_eq!(said, code, "{tool}");
        assert_eq!(server.count("tools/call"), 1, "{tool}");
        for _ in 0..10_000 {
            let result = called(&host, "fake__echo", json!({}));
            if result["ok"] == true {
                break;
            }
            assert!(result.to_string().contains("after a pause"), "{result}");
        }
        assert_eq!(server.count("tools/call"), 2, "{tool}: it works again");
    }
}

#[test]
fn broken_rule_ends_the_other_calls_of_a_url() {
    let server = Remote::start();
    let host = started(&server, "");
    let turn = super::submit(&host, "hang");
    server.wait_for(r#""name":"hang""#);
    let (_, message) = error(&host, "fake__malformed");
    assert!(message.contains("sent a malformed message"), "{message}");
    let settled = host.agent.settled(&turn);
    let ended = settled["calls"][0]["content"]["error"].to_string();
    assert!(ended.contains("malformed message") && ended.contains("may or may not have taken effect"), "{ended}");
}

#[test]
fn redirection_is_not_followed_and_gets_no_token() {
    let (server, other) = (Remote::start(), Remote::start());
    let host = started(&server, "");
    let same = server.url().replace("/mcp", "/mcp/");
    for (to, why) in [
        (other.url(), "redirects to another origin, http://127.0.0.1:"),
        ("http://169.254.169.254/latest".to_owned(), "redirects to another origin, http://169.254.169.254"),
        (same, "redirects to the path /mcp/"),
        ("//[".to_owned(), "redirects to nowhere"),
    ] {
        server.become_(&format!("redirect {to}"));
        let before = server.count("tools/call");
        let (code, message) = error(&host, "fake__echo");
        assert!(code == "tool_failed" && message.contains(why), "{message}");
        // Some servers redirect after they have carried out a request.
        assert!(!message.contains("nothing was carried out"), "{message}");
        assert_eq!(server.count("tools/call"), before + 1);
    }
    assert!(other.requests().is_empty());
}

#[test]
fn refusal_of_a_url_says_what_to_do() {
    let server = Remote::start();
    let host = started(&server, "");
    for (mode, code, why) in [
        ("401", "tool_unavailable", "refuses the token of the file token (HTTP 401); nothing was carried out"),
        ("403", "tool_unavailable", "does not allow this with the token of the file token (HTTP 403)"),
        ("405", "tool_unavailable", "answered with HTTP 405; nothing was carried out"),
        ("503", "tool_failed", "is busy (HTTP 503) and asks for a pause of 7 seconds while this call ran"),
    ] {
        server.become_(mode);
        let (said, message) = error(&host, "fake__echo");
        assert!(message.contains(why), "{mode}: {message}");
        assert_eq!(said, code, "{mode}");
    }
    server.become_("");
    let (code, message) = error(&host, "fake__echo");
    assert!(code == "tool_unavailable" && message.contains("has asked for a pause"), "{message}");
    let host = started(&server, "");
    server.become_("429");
    let (code, message) = error(&host, "fake__echo");
    assert!(
        code == "tool_unavailable" && message.contains("is busy (HTTP 429) and asks for a pause of 7 s"),
        "{message}"
    );
}

#[test]
fn url_that_refuses_the_start_is_reported() {
    for (mode, why) in [
        ("401", "it refuses the token of the file token (HTTP 401)"),
        ("404", "it has no MCP endpoint at this URL (HTTP 404)"),
        ("redirect https://evil.example/", "it redirects to another origin, https://evil.example"),
    ] {
        let server = Remote::start();
        server.become_(mode);
        let host = super::remote::prepared(&server, "");
        let said = cli(&host, &["upstream", "review", "fake"]);
        assert!(said.code == 1 && said.err.contains(why), "{mode}: {said:?}");
    }
    let server = Remote::start();
    let host = super::remote::prepared(&server, "");
    let file = host.folder().join("toolgate.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, config.replace("url = \"http:", "url = \"https:")).unwrap();
    let said = cli(&host, &["upstream", "review", "fake"]);
    assert!(said.code == 1 && said.err.contains("it cannot be reached over TLS: "), "{said:?}");
    assert!(server.requests().is_empty(), "the token is sent to nobody without a certificate");
}
