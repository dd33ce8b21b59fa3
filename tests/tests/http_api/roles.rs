//! Each route and each role. Principals without the right role get no information.

use serde_json::{Value, json};
use toolgate_tests::host::Setup;
use toolgate_tests::http::{Client, path, suspension_of};

/// The expected statuses of a route. If the role is right, the request fails for another reason, so that every role
/// finds the same state.
struct Route<'a> {
    method: &'a str,
    path: &'a str,
    body: &'a str,
    /// In this order: no token, a caller, another caller, an approver, a client, an admin.
    expected: [u16; 6],
}

const WHO: [&str; 6] = ["nobody", "the caller", "another caller", "an approver", "a client", "an admin"];

#[test]
fn each_route_requires_its_role() {
    let host = Setup::with(&["lab"]).start();
    let turn = host.agent.call("c", "gated_echo", json!({"value": 1}));
    let (turn_path, suspension) = (path(&turn), suspension_of(&turn));
    let suspension_path = format!("/v1/suspensions/{suspension}");
    let (resolve, cancel) = (format!("{suspension_path}/resolve"), format!("{turn_path}/cancel"));
    let (links, delegate) = (format!("{suspension_path}/links"), format!("{suspension_path}/delegate"));
    let (progress, defaults) = (format!("{suspension_path}/progress"), format!("{suspension_path}/defaults"));
    let call = turn["calls"][0]["id"].as_str().unwrap();
    let of_call = |part: &str| format!("/v1/conversations/c/calls/{call}/{part}");
    let [resolve_call, call_log, journal] = ["resolve", "log", "journal"].map(of_call);
    let standing = format!("/v1/standing-approvals/standing_{:032x}", 1);
    let route = |method, path, body, expected| Route { method, path, body, expected };
    let routes = [
        route("POST", "/v1/conversations/c/turns", "{}", [401, 422, 422, 422, 422, 422]),
        route("GET", "/v1/conversations/c/turns", "", [401, 200, 404, 200, 200, 200]),
        route("POST", &resolve_call, "{\"decision\":\"maybe\"}", [401, 403, 404, 422, 403, 422]),
        route("GET", &call_log, "", [401, 200, 404, 200, 200, 200]),
        route("GET", &journal, "", [401, 200, 404, 200, 200, 200]),
        route("GET", &turn_path, "", [401, 200, 404, 200, 200, 200]),
        route("GET", "/v1/conversations/c/events", "", [401, 200, 404, 200, 200, 200]),
        route("GET", "/v1/conversations/c/events?client=x", "", [401, 403, 404, 403, 200, 200]),
        route("GET", "/v1/pending", "", [401, 200, 200, 200, 200, 200]),
        route("GET", &suspension_path, "", [401, 200, 404, 200, 200, 200]),
        route("POST", &resolve, "{\"decision\":\"maybe\"}", [401, 403, 409, 422, 403, 422]),
        route("POST", &defaults, "{\"arguments\":{\"value\":2}}", [401, 200, 404, 200, 200, 200]),
        route("POST", &links, "{\"ttl_ms\":0}", [401, 403, 404, 403, 403, 422]),
        route("POST", "/v1/links/none", "1", [401; 6]),
        route("POST", "/v1/conversations/c/signals/none", "1", [401, 404, 404, 404, 404, 404]),
        route("GET", "/v1/pending/counts", "", [401, 200, 200, 200, 200, 200]),
        route("GET", "/v1/pending/events", "", [401, 200, 200, 200, 200, 200]),
        route("POST", "/v1/pending/resolve", "{}", [401, 422, 422, 422, 422, 422]),
        route("GET", "/v1/conversations", "", [401, 200, 200, 200, 200, 200]),
        route("POST", "/v1/session", "{}", [422; 6]),
        route("GET", "/v1/session", "", [401, 200, 200, 200, 200, 200]),
        route("DELETE", "/v1/session", "", [401, 400, 400, 400, 400, 400]),
        route("POST", "/v1/session/link", "{}", [422; 6]),
        route("POST", "/v1/policy/explain", "{}", [401, 403, 403, 403, 403, 422]),
        route("POST", &delegate, "{}", [401, 422, 422, 422, 422, 422]),
        route("POST", &progress, "{\"message\":\"half\"}", [401, 422, 409, 422, 422, 422]),
        route("GET", "/v1/standing-approvals", "", [401, 200, 200, 200, 200, 200]),
        route("DELETE", &standing, "", [401, 404, 404, 404, 404, 404]),
        route("GET", "/v1/tools", "", [401, 200, 200, 200, 200, 200]),
        route("GET", "/v1/plugins", "", [401, 403, 403, 403, 403, 200]),
        route("PUT", "/v1/plugins/new", "no component", [401, 403, 403, 403, 403, 422]),
        route("DELETE", "/v1/plugins/nothing", "", [401, 403, 403, 403, 403, 404]),
        route("GET", "/v1/events", "", [401, 200, 200, 200, 200, 200]),
        route("GET", "/v1/audit", "", [401, 403, 403, 403, 403, 200]),
        route("GET", "/v1/audit/chain", "", [401, 403, 403, 403, 403, 200]),
        route("GET", "/v1/audit/checkpoint", "", [401, 403, 403, 403, 403, 404]),
        route("GET", "/v1/backup", "", [401, 403, 403, 403, 403, 200]),
        route("GET", "/v1/status", "", [401, 200, 200, 200, 200, 200]),
        route("GET", "/v1/hosts", "", [401, 403, 403, 403, 403, 200]),
        route("GET", "/metrics", "", [401, 403, 403, 403, 403, 200]),
        route("GET", "/healthz", "", [200; 6]),
        route("GET", "/readyz", "", [200; 6]),
        route("GET", "/openapi.json", "", [200; 6]),
        // Last, because it ends the turn: an approver may see it and may not cancel it.
        route("POST", &cancel, "", [401, 403, 404, 403, 403, 403]),
        // After it, the host takes no turns.
        route("POST", "/v1/drain", "", [401, 403, 403, 403, 403, 200]),
    ];
    let (other, stranger) = (host.token("other", &["caller"], None), host.stranger());
    let who = [&stranger, &host.agent, &other, &host.approver, &host.page, &host.admin];
    for route in &routes {
        for (n, by) in who.iter().enumerate() {
            let may_cancel = route.path == cancel && (n == 1 || n == 5);
            let expected = if may_cancel { 200 } else { route.expected[n] };
            let found = by.status(route.method, route.path, route.body);
            assert_eq!(found, expected, "{} {} by {}", route.method, route.path, WHO[n]);
        }
    }
    every_documented_route_is_tried(&host.stranger(), &routes);
}

/// Fails for a documented route without a row.
fn every_documented_route_is_tried(stranger: &Client, routes: &[Route<'_>]) {
    let document = stranger.get("/openapi.json").ok(200);
    for (template, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let fits = |route: &Route<'_>| {
                let path: Vec<_> = route.path.split('?').next().unwrap().split('/').collect();
                let parts: Vec<_> = template.split('/').collect();
                let same = |(part, path): (&&str, &&str)| part.starts_with('{') || part == path;
                route.method.eq_ignore_ascii_case(method)
                    && parts.len() == path.len()
                    && parts.iter().zip(&path).all(same)
            };
            assert!(routes.iter().any(fits), "no row for {method} {template}");
        }
    }
}

#[test]
fn only_owners_with_the_role_caller_submit() {
    let host = Setup::with(&["lab"]).start();
    let body = |id: &str| json!({"calls": [{"id": id, "tool": "echo", "arguments": {"value": 1}}]});
    let other = host.token("other", &["caller"], None);
    assert_eq!(host.agent.post("/v1/conversations/c/turns", &body("a")).ok(201)["caller"], "agent");
    host.approver.post("/v1/conversations/c/turns", &body("b")).problem(403, "not-allowed");
    host.page.post("/v1/conversations/c/turns", &body("b")).problem(403, "not-allowed");
    other.post("/v1/conversations/c/turns", &body("b")).problem(404, "not-found");
    assert_eq!(host.admin.post("/v1/conversations/d/turns", &body("a")).ok(201)["caller"], "root");
    // Nobody sees another caller's suspensions.
    let turn = host.agent.call("c", "gated_echo", json!({"value": 1}));
    let sees = |by: &Client| by.get("/v1/pending").ok(200)["suspensions"].as_array().unwrap().len();
    assert_eq!([sees(&host.agent), sees(&other), sees(&host.approver)], [1, 0, 1]);
    other.resolve(&suspension_of(&turn), json!({"decision": "approve"})).problem(409, "stale");
}

#[test]
fn token_for_one_conversation_cannot_access_another() {
    let host = Setup::with(&["browser"]).settings("client_grace_ms = 600000").start();
    let page = host.token("page-c", &["client"], Some("c"));
    let [here, elsewhere] = ["c", "d"].map(|conversation| host.agent.call(conversation, "get_location", json!({})));
    let seen = page.get("/v1/pending").ok(200)["suspensions"].clone();
    assert_eq!(seen.as_array().unwrap().iter().map(|open| open["conversation"].clone()).collect::<Vec<Value>>(), ["c"]);
    page.get(&path(&elsewhere)).problem(404, "not-found");
    assert_eq!(page.status("GET", "/v1/conversations/d/events?client=get_location", ""), 404);
    let place = json!({"decision": "result", "data": {"latitude": 1, "longitude": 1, "accuracy": 1}});
    page.resolve(&suspension_of(&elsewhere), place.clone()).problem(409, "stale");
    assert_eq!(page.resolve(&suspension_of(&here), place).ok(200)["ok"], true);
}

#[test]
fn revoked_and_new_tokens_apply_immediately() {
    let host = Setup::with(&[]).start();
    let brief = host.token("brief", &["caller"], None);
    assert_eq!(brief.get("/v1/tools").status, 200);
    assert_eq!(host.cli(None, &["token", "revoke", "brief"]).code, 0);
    brief.get("/v1/tools").problem(401, "unauthorized");
}
