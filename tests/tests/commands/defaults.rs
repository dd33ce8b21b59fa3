//! The schema's defaults for what an edit leaves out: people see them wherever they see the edit.

use serde_json::{Value, json};
use toolgate_tests::guests::fixture;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::suspension_of;

/// A host with a tool whose arguments may be edited.
fn bank(rules: &str) -> Host {
    let parameters = json!({"type": "object", "required": ["to"], "properties": {
        "to": {"type": "string"}, "amount": {"type": "integer", "default": 100}, "note": {"default": "none"},
        "lines": {"type": "array", "items": {"properties": {"text": {"default": "x".repeat(1000)}}}},
    }});
    let tools = json!([{"name": "pay", "approval": "requires-approval", "parameters": parameters, "options": {"editable": "all"}}]);
    Setup::default().component("bank", fixture(&tools)).tables(rules).start()
}

fn read(host: &Host, suspension: &str) -> Value {
    host.approver.get(&format!("/v1/suspensions/{suspension}")).ok(200)
}

fn show(host: &Host, suspension: &str) -> String {
    let said = host.cli(Some(&host.approver), &["show", suspension]);
    assert_eq!(said.code, 0, "{said:?}");
    said.out
}

#[test]
fn an_approved_edit_is_shown_with_its_own_defaults() {
    let host = bank("");
    let both = json!({"/amount": 100, "/note": "none"});
    let note = json!({"/note": "none"});
    for (submitted, of_submitted, edit, of_edit) in [
        (json!({"to": "ann"}), Some(&both), json!({"to": "bob", "amount": 5}), Some(&note)),
        (json!({"to": "ann", "amount": 5, "note": "x"}), None, json!({"to": "ann"}), Some(&both)),
        (json!({"to": "ann"}), Some(&both), json!({"to": "ann", "amount": 1, "note": null}), None),
    ] {
        let turn = host.agent.call("c", "pay", submitted);
        let suspension = suspension_of(&turn);
        assert_eq!(read(&host, &suspension).get("defaults"), of_submitted);
        let preview =
            host.approver.post(&format!("/v1/suspensions/{suspension}/defaults"), &json!({"arguments": edit})).ok(200);
        let text = of_edit.map(|defaults| json!(defaults.to_string()));
        assert_eq!((preview.get("defaults"), preview.get("display")), (of_edit, text.as_ref()));

        let words = ["approve", &suspension, "--arguments", &edit.to_string()];
        let said = host.cli(Some(&host.approver), &words);
        let row = of_edit.map_or_else(String::new, |defaults| format!("  defaults    for this edit: {defaults}\n"));
        let (_, answered) = said.out.split_once("answered ").unwrap();
        assert!(answered.ends_with(&row) && answered.contains("defaults") == of_edit.is_some(), "{said:?}");

        let shown = read(&host, &suspension);
        assert_eq!((shown.get("defaults"), shown["closed"].get("defaults")), (of_submitted, of_edit), "{shown:#}");
        assert_eq!(shown["display"].get("approved_defaults"), text.as_ref());
        let row = of_edit.map(|defaults| format!("  defaults    for the approved arguments: {defaults}\n"));
        let card = show(&host, &suspension);
        assert_eq!(card.matches("  defaults ").count(), row.iter().count(), "{card}");
        assert!(card.contains(row.as_deref().unwrap_or_default()), "{card}");
        assert_eq!(host.agent.settled(&turn)["calls"][0]["arguments"], edit, "the call runs with the edit as written");
    }
}

#[test]
fn second_approver_of_an_edit_sees_its_defaults() {
    let host = bank("[[policy]]\ntools = \"pay\"\nrule = \"ask\"\nneeds = [{ quorum = 2 }]\n");
    let turn = host.agent.call("c", "pay", json!({"to": "ann", "amount": 5}));
    let suspension = suspension_of(&turn);
    let edit = json!({"decision": "approve", "arguments": {"to": "ann"}});
    let _ = host.approver.resolve(&suspension, edit.clone()).ok(200);
    let shown = read(&host, &suspension);
    let defaults = json!({"/amount": 100, "/note": "none"});
    let vote = &shown["votes"][0];
    assert_eq!((&vote["defaults"], &vote["defaults_display"]), (&defaults, &json!(defaults.to_string())), "{shown:#}");
    assert_eq!(shown["defaults"], json!({"/note": "none"}));
    let card = show(&host, &suspension);
    assert!(card.contains(&format!("  removed     amount: 5\n  defaults    for this edit: {defaults}\n")), "{card}");
    assert!(card.contains("  defaults    for the arguments as submitted: {\"/note\":\"none\"}\n"), "{card}");
    let bob = host.token("bob", &["approver"], None);
    let _ = bob.resolve(&suspension, edit).ok(200);
    assert_eq!(read(&host, &suspension)["closed"]["defaults"], defaults);
}

#[test]
fn an_edit_with_more_defaults_than_people_can_see_is_refused() {
    let host = bank("");
    let turn = host.agent.call("c", "pay", json!({"to": "ann"}));
    let suspension = suspension_of(&turn);
    for (edit, expected) in [
        (json!({"to": "ann", "lines": vec![json!({}); 70]}), "send more of the arguments"),
        (json!({"to": 5}), "is not of type"),
    ] {
        let refused =
            host.approver.post(&format!("/v1/suspensions/{suspension}/defaults"), &json!({"arguments": edit}));
        let refused = refused.problem(422, "invalid");
        assert!(refused["errors"][0]["pointer"].as_str().unwrap().starts_with("/arguments"), "{refused:#}");
        let approved = host.approver.resolve(&suspension, json!({"decision": "approve", "arguments": edit}));
        let approved = approved.problem(422, "invalid");
        assert_eq!(approved["errors"], refused["errors"], "the preview and the answer agree");
        assert!(approved["errors"][0]["message"].as_str().unwrap().contains(expected), "{approved:#}");
    }
    let unknown =
        host.approver.post("/v1/suspensions/susp_00000000000000000000000000000001/defaults", &json!({"arguments": {}}));
    unknown.problem(404, "not-found");
    let stranger = host.token("stranger", &["caller"], None);
    let foreign = stranger.post(&format!("/v1/suspensions/{suspension}/defaults"), &json!({"arguments": {}}));
    foreign.problem(404, "not-found");
}

#[test]
fn defaults_of_an_edit_outlive_a_restart_but_not_the_component() {
    let mut host = bank("");
    let turn = host.agent.call("c", "pay", json!({"to": "ann", "amount": 5}));
    let suspension = suspension_of(&turn);
    let _ = host.approver.resolve(&suspension, json!({"decision": "approve", "arguments": {"to": "ann"}})).ok(200);
    let _ = host.agent.settled(&turn);
    host.restart();
    assert_eq!(read(&host, &suspension)["closed"]["defaults"], json!({"/amount": 100, "/note": "none"}));
    let _ = host.admin.delete("/v1/plugins/bank").ok(200);
    host.restart();
    let shown = read(&host, &suspension);
    assert_eq!(
        (shown["closed"].get("defaults"), &shown["closed"]["defaults_unknown"]),
        (None, &json!(true)),
        "{shown:#}"
    );
    let card = show(&host, &suspension);
    assert!(
        card.contains(
            "  defaults    unknown for the approved arguments: the component of the call is no longer loaded\n"
        ),
        "{card}"
    );
}
