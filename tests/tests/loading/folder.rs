//! The watched folder: plugins become live, are replaced or removed with their files, and events report it.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use toolgate_tests::guests::fixture;
use toolgate_tests::host::Setup;
use toolgate_tests::http::outcomes;
use toolgate_tests::sse::Events;

use crate::{rules, tools};

fn named(name: &str) -> Vec<u8> {
    fixture(&json!([{"name": name}]))
}

/// The next event about a plugin.
fn next(events: &mut Events, plugin: &str) -> (String, Value) {
    let event = events.until(|event| event.data["plugin"] == plugin).pop().unwrap();
    (event.name, event.data)
}

#[test]
fn misnamed_file_is_listed_under_its_own_name() {
    let host = Setup::default().component("my tool", named("mine")).component("fine", named("fine")).start();
    let listed = host.admin.get("/v1/plugins").ok(200);
    let plugins: Vec<_> = listed["plugins"].as_array().unwrap().iter().map(|plugin| &plugin["name"]).collect();
    assert_eq!(plugins, ["fine", "my tool"], "{listed:#}");
    assert_eq!(rules(&listed["plugins"][1]["findings"]), ["plugin-name"], "{listed:#}");
    assert_eq!(host.admin.get("/v1/status").ok(200)["plugins"]["rejected"], json!(["my tool"]));
    host.admin.put("/v1/plugins/my%20tool", &named("mine")).problem(400, "bad-request");
}

#[test]
fn plugins_follow_the_files_in_the_folder() {
    let host = Setup::default().start();
    let mut events = host.admin.events("/v1/events?after=now");
    host.drop_in("p", &named("one"));
    let (name, loaded) = next(&mut events, "p");
    assert_eq!((name.as_str(), &loaded["tools"]), ("plugin.loaded", &json!(["one"])));
    assert_eq!(outcomes(&host.agent.call("c", "one", json!({"a": 1}))), ["ok"]);

    // Written in place, as compilers and editors do.
    fs::write(host.plugin_file("p"), named("two")).unwrap();
    let (name, replaced) = next(&mut events, "p");
    assert_eq!((name.as_str(), &replaced["tools"]), ("plugin.loaded", &json!(["two"])));
    assert_ne!(replaced["component"], loaded["component"]);
    assert_eq!(tools(&host), BTreeSet::from(["two".to_owned()]));

    host.drop_in("p", &named("a b"));
    let (name, rejected) = next(&mut events, "p");
    assert_eq!((name.as_str(), rejected["findings"].as_array().map(Vec::len)), ("plugin.rejected", Some(1)));
    let listed = host.admin.get("/v1/plugins").ok(200);
    let (state, findings) = (&listed["plugins"][0]["state"], rules(&listed["plugins"][0]["findings"]));
    assert_eq!((state, findings), (&json!("live"), vec!["tool-name".to_owned()]));
    assert_eq!(outcomes(&host.agent.call("c", "two", json!({"a": 1}))), ["ok"]);

    host.drop_in("p", &named("three"));
    assert_eq!(next(&mut events, "p").1["tools"], json!(["three"]));
    fs::remove_file(host.plugin_file("p")).unwrap();
    assert_eq!(next(&mut events, "p").0, "plugin.unloaded");
    assert!(tools(&host).is_empty());
    assert_eq!(outcomes(&host.agent.call("c", "three", json!({}))), ["failed(unknown_tool)"]);

    let whole = host.admin.events("/v1/events").until(|event| event.name == "plugin.unloaded");
    let names = whole.iter().map(|event| event.name.as_str());
    let names: Vec<_> = names.filter(|name| *name != "turn.settled").collect();
    assert_eq!(names, ["plugin.loaded", "plugin.loaded", "plugin.rejected", "plugin.loaded", "plugin.unloaded"]);
}

#[test]
fn tool_name_belongs_to_the_first_plugin_until_it_leaves() {
    let host = Setup::default().component("first", named("search")).start();
    let mut events = host.admin.events("/v1/events?after=now");
    host.drop_in("second", &named("search"));
    assert_eq!(next(&mut events, "second").0, "plugin.rejected");
    let listed = host.admin.get("/v1/plugins").ok(200);
    let second =
        listed["plugins"].as_array().unwrap().iter().find(|plugin| plugin["name"] == "second").unwrap().clone();
    assert_eq!(rules(&second["findings"]), ["tool-name-taken"]);
    fs::remove_file(host.plugin_file("first")).unwrap();
    assert_eq!(next(&mut events, "first").0, "plugin.unloaded");
    host.drop_in("second", &fixture(&json!([{"name": "search", "description": "Searches."}])));
    assert_eq!(next(&mut events, "second").0, "plugin.loaded");
}

#[test]
fn file_that_is_no_plugin_is_reported_also_after_a_restart() {
    let mut host = Setup::default().component("fine", named("fine")).component("broken", named("a b")).start();
    assert_eq!(tools(&host), BTreeSet::from(["fine".to_owned()]));
    host.restart();
    let listed = host.admin.get("/v1/plugins").ok(200);
    let states: Vec<_> =
        listed["plugins"].as_array().unwrap().iter().map(|plugin| (&plugin["name"], &plugin["state"])).collect();
    assert_eq!(states, [(&json!("broken"), &json!("rejected")), (&json!("fine"), &json!("live"))]);
    // Neither is a component. The host continues and ignores the second.
    host.drop_in("note", b"not a component");
    fs::write(host.folder().join("plugins/readme.txt"), "hello").unwrap();
    let mut events = host.admin.events("/v1/events");
    assert_eq!(next(&mut events, "note").0, "plugin.rejected");
    assert_eq!(outcomes(&host.agent.call("c", "fine", json!({}))), ["ok"]);
}
