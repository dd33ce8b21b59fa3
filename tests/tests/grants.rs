//! Manifests and grants with the real binary: packing, checking, reviewing, serving. Only the operator's file grants
//! anything.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use expect_test::expect;
use serde_json::{Value, json};
use toolgate_tests::domain::Digest;
use toolgate_tests::guests::{fixture, illegal, plugin, with_section};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::outcomes;

/// The manifest of the example.
const MANIFEST: &str = include_str!("../../plugins/ledger/toolgate-plugin.toml");

/// A manifest with excessive requests.
const GREEDY: &str = r#"
[wants.keyvalue]
bytes = 1000000000000
why = "everything"

[[wants.http]]
url = "https://*.example/"
methods = ["GET", "POST", "DELETE"]
why = "everything"

[[wants.config]]
name = "region"
why = "everything"

[[wants.folders]]
at = "/etc"
write = true
why = "everything\u001b[2K,\n[plugin.packed]\u2028grants.keyvalue = true, and \u202egnihtyreve"

[[wants.secrets]]
name = "token"
hosts = ["evil.example"]
places = ["query:key"]
why = "everything"
"#;

/// Packs a component with a manifest, and returns the packed bytes.
fn packed(host: &Host, component: &[u8], manifest: &str) -> Vec<u8> {
    fs::write(host.folder().join("plain.wasm"), component).unwrap();
    fs::write(host.folder().join("wants.toml"), manifest).unwrap();
    let said = host.cli(None, &["pack", "plain.wasm", "-o", "packed.wasm", "--manifest", "wants.toml"]);
    assert_eq!(said.code, 0, "{said:?}");
    fs::read(host.folder().join("packed.wasm")).unwrap()
}

fn rules(answer: &Value) -> Vec<&str> {
    answer["findings"].as_array().unwrap().iter().map(|finding| finding["rule"].as_str().unwrap()).collect()
}

fn listed(host: &Host, name: &str) -> Value {
    let listed = host.admin.get("/v1/plugins").ok(200);
    listed["plugins"].as_array().unwrap().iter().find(|plugin| plugin["name"] == name).unwrap().clone()
}

fn configure(host: &Host, tables: &str) {
    let head = "plugins = \"plugins\"\ndata = \"data\"\npool = 64\n";
    fs::write(host.folder().join("toolgate.toml"), format!("{head}{tables}")).unwrap();
}

/// The output works as it is, also for a service on the same machine: the request arrives, and its answer too.
#[test]
fn printed_grant_of_a_private_address_allows_it() {
    let (listener, mut host) = (TcpListener::bind("127.0.0.1:0").unwrap(), Setup::default().prepare());
    let at = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(&stream).lines();
        let request = lines.next().unwrap().unwrap();
        while !lines.next().unwrap().unwrap().is_empty() {}
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", request.len());
        (&stream).write_all((head + &request).as_bytes()).unwrap();
    });
    configure(&host, "");
    let wants = format!("[[wants.http]]\nurl = \"http://{at}/\"\nwhy = \"a service beside it\"");
    fs::write(host.plugin_file("near"), packed(&host, &illegal("fetcher"), &wants)).unwrap();
    let said = host.cli(None, &["grants", "near"]);
    assert!(said.code == 0 && said.out.contains("\nprivate = true\n"), "{said:?}");
    configure(&host, &said.out);
    host.start();
    let report: Value = serde_json::from_str(&host.cli(None, &["grants", "near", "--json"]).out).unwrap();
    assert_eq!((&report["requested"][0]["state"], &report["lines"]), (&json!("granted"), &Value::Null), "{report:#}");
    let turn = host.agent.call("c", "fetch", json!({"requests": [{"authority": at, "path": "/state"}]}));
    assert_eq!(outcomes(&turn), ["ok"], "{turn:#}");
    let answer = &turn["calls"][0]["content"]["result"][0];
    assert_eq!((&answer["status"], &answer["body"]), (&json!(200), &json!("GET /state HTTP/1.1")), "{answer:#}");
}

/// Clouds serve the credentials of a machine at such addresses.
#[test]
fn address_that_no_grant_reaches_is_said_to_be_impossible() {
    let host = Setup::default().prepare();
    configure(&host, "");
    let wants = |urls: &[&str]| {
        let one = |url: &&str| format!("[[wants.http]]\nurl = \"{url}\"\nwhy = \"a\"\n");
        urls.iter().map(one).collect::<String>()
    };
    let metadata = ["http://169.254.169.254/", "http://100.64.0.1/", "http://[fe80::1]/", "http://[fd00:ec2::254]/"];
    let _ = packed(&host, &plugin("forge"), &wants(&[&metadata[..], &["http://10.0.0.1/"]].concat()));
    let said = host.cli(None, &["grants", "packed.wasm", "--json"]);
    let report: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    let requests = report["requested"].as_array().unwrap();
    for request in &requests[..4] {
        let refusal = request["refusal"].as_str().unwrap();
        assert!(request["state"] == "impossible" && refusal.starts_with("no grant reaches "), "{request}");
    }
    assert_eq!((&requests[4]["state"], &requests[4]["refusal"]), (&json!("missing"), &Value::Null));
    let said = host.cli(None, &["grants", "packed.wasm"]);
    assert!(
        said.out.contains("(impossible)\n#       no grant reaches 169.254.169.254: it is a link-local"),
        "{said:?}"
    );
    let lines = report["lines"].as_str().unwrap();
    assert_eq!(lines.matches("url = ").count(), 1, "{lines}");
    assert!(lines.contains("url = \"http://10.0.0.1/\"\nprivate = true"), "{lines}");
    // Nothing is left to grant, and the refusal says why.
    let _ = packed(&host, &plugin("forge"), &wants(&metadata[..1]));
    let said = host.cli(None, &["grants", "packed.wasm", "--json"]);
    let report: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    assert_eq!(report["lines"], Value::Null);
    let said = host.cli(None, &["check", "packed.wasm"]);
    let expected = "where clouds serve the credentials of a machine; request another address in the plugin's manifest";
    assert!(said.code == 1 && said.out.contains(expected), "{said:?}");
    let said = host.cli(None, &["call", "packed.wasm", "{}", "--grant", "http=http://169.254.169.254/"]);
    assert!(said.code == 2 && said.err.contains("no grant reaches 169.254.169.254"), "{said:?}");
}

#[test]
fn refused_call_names_the_options_that_grant_what_it_requests() {
    let host = Setup::default().prepare();
    let wants = "[wants.keyvalue]\nwhy = \"a\"\n[[wants.http]]\nurl = \"https://api.example.com/v1/\"\nwhy = \"b\"\n";
    let writes = format!("{wants}[[wants.http]]\nurl = \"https://b.example/\"\nmethods = [\"POST\"]\nwhy = \"c\"\n");
    for (wants, expected) in [
        (wants, "add --grant keyvalue --grant http=https://api.example.com/v1/\n"),
        (
            writes.as_str(),
            "add --grant keyvalue --grant http=https://api.example.com/v1/, and for the rest a configuration with --config; \
             `toolgate grants FILE` prints its lines\n",
        ),
    ] {
        let _ = packed(&host, &plugin("ledger"), wants);
        let said = host.cli(None, &["call", "packed.wasm", "{}"]);
        assert!(said.code == 1 && said.err.contains(expected), "{said:?}");
    }
}

#[test]
fn packed_plugin_runs_with_the_printed_grants() {
    let mut host = Setup::default().prepare();
    configure(&host, "require_declaration = true\n");
    let bytes = packed(&host, &plugin("ledger"), MANIFEST);
    fs::write(host.plugin_file("books"), &bytes).unwrap();

    let said = host.cli(None, &["grants", "books", "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    let said: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(said["requested"][0]["state"], "missing");
    assert_eq!((&said["granted"], &said["effective"], &said["replaces"]), (&json!([]), &json!([]), &json!(false)));
    let lines = said["lines"].as_str().unwrap();
    expect![[r#"
        [plugin.books]
        component = "sha256:DIGEST"

        [plugin.books.grants.keyvalue]
        bytes = 4194304
        keys = 20000
    "#]]
    .assert_eq(&lines.replace(&Digest::of(&bytes).hex(), "DIGEST"));

    configure(&host, &format!("require_declaration = true\n{lines}"));
    let said = host.cli(None, &["check", "plugins/books.wasm", "--config", "toolgate.toml"]);
    assert_eq!(said.code, 0, "{said:?}");
    expect![[r#"
        fine plugins/books.wasm: ledger_open (server, auto), ledger_transfer (server, requires-approval), ledger_balance (server, auto), ledger_audit (server, auto)
          built against toolgate:plugin@0.1.2
          requests
            keyvalue: up to 4194304 bytes in 20000 keys (granted)
              | keeps the accounts and the transfers between them
          may use
            keyvalue: up to 4194304 bytes in 20000 keys
    "#]]
    .assert_eq(&said.out);
    host.start();
    let opened = host.agent.call("c", "ledger_open", json!({"account": "a", "opening_balance": 5}));
    assert_eq!(outcomes(&opened), ["ok"]);
    let access = &listed(&host, "books")["access"];
    assert_eq!(access["granted_to"], json!([Digest::of(&bytes).to_string()]));
    assert_eq!(access["effective"], json!(["keyvalue: up to 4194304 bytes in 20000 keys"]));
    assert_eq!(access["requested"][0]["why"], "keeps the accounts and the transfers between them");

    // A component without its section is not run.
    let refused = host.admin.put("/v1/plugins/plain", &fixture(&json!([{}]))).problem(422, "plugin-refused");
    assert_eq!(rules(&refused), ["declaration-missing"]);
}

#[test]
fn plugin_with_folders_is_marked_as_not_replayable() {
    let mut host = Setup::default().prepare();
    configure(
        &host,
        "[plugin.filer]\ncomponent = \"any\"\n[[plugin.filer.grants.folders]]\npath = \"files\"\nat = \"/data\"\n",
    );
    fs::create_dir(host.folder().join("files")).unwrap();
    host.start();
    for (name, replayable) in [("filer", false), ("plain", true)] {
        let _ = host.admin.put(&format!("/v1/plugins/{name}"), &fixture(&json!([{"name": name}]))).ok(200);
        assert_eq!(listed(&host, name)["access"]["replayable"], replayable, "{name}");
    }
    let said = host.cli(None, &["grants", "filer", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap()["replayable"], false);
}

#[test]
fn a_changed_component_needs_review_and_the_old_one_stays_live() {
    let mut host = Setup::default().prepare();
    let old = packed(&host, &plugin("ledger"), MANIFEST);
    let new = packed(&host, &plugin("ledger"), &MANIFEST.replace("4194304", "5000000"));
    configure(&host, &format!("[plugin.ledger]\ncomponent = \"{}\"\ngrants.keyvalue = true\n", Digest::of(&old)));
    fs::write(host.plugin_file("ledger"), &old).unwrap();
    host.start();
    let refused = host.admin.put("/v1/plugins/ledger", &new).problem(422, "plugin-refused");
    assert_eq!(rules(&refused), ["needs-review"]);
    let finding = format!("{} {}", refused["findings"][0]["message"], refused["findings"][0]["remedy"]);
    for said in [Digest::of(&old).to_string(), Digest::of(&new).to_string(), "toolgate grants ledger".to_owned()] {
        assert!(finding.contains(&said), "{finding}");
    }
    let listed = listed(&host, "ledger");
    assert_eq!((&listed["state"], &listed["needs_review"]), (&json!("live"), &json!(true)));
    assert_eq!(listed["digest"], Digest::of(&old).to_string());
    let opened = host.agent.call("c", "ledger_open", json!({"account": "a", "opening_balance": 5}));
    assert_eq!(outcomes(&opened), ["ok"]);

    // A component that requests nothing loads under the name and gets no grants.
    let loaded = host.admin.put("/v1/plugins/ledger", &fixture(&json!([{"name": "plain"}]))).ok(200);
    assert_eq!((&loaded["access"]["effective"], &loaded["needs_review"]), (&json!([]), &json!(false)));

    // The operator reviews it and adds its digest to the grant. It is live after the next start.
    host.kill();
    fs::write(host.plugin_file("ledger"), &new).unwrap();
    let said = host.cli(None, &["grants", "ledger", "--json"]);
    let said: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&said["replaces"], &said["is_granted_to_this"]), (&json!(true), &json!(false)));
    configure(&host, said["lines"].as_str().unwrap());
    host.start();
    let summed = host.agent.call("c", "ledger_balance", json!({"account": "a"}));
    assert_eq!(outcomes(&summed), ["ok"], "and reads the stored data of the plugin");
}

#[test]
fn plugin_gets_only_what_is_requested_and_granted() {
    let host = Setup::default().start();
    let before = fs::read_to_string(host.folder().join("toolgate.toml")).unwrap();
    let greedy = packed(&host, &fixture(&json!([{"name": "greedy"}])), GREEDY);
    let loaded = host.admin.put("/v1/plugins/greedy", &greedy).ok(200);
    let access = &loaded["access"];
    assert_eq!((&access["granted"], &access["effective"]), (&json!([]), &json!([])));
    assert_eq!(access["requested"].as_array().unwrap().len(), 5);
    assert_eq!(fs::read_to_string(host.folder().join("toolgate.toml")).unwrap(), before);

    // Granted to every component named ledger, and not requested by this one.
    let modest = packed(&host, &plugin("ledger"), "");
    let refused = host.admin.put("/v1/plugins/ledger", &modest).problem(422, "plugin-refused");
    assert_eq!(rules(&refused), ["import-not-granted"]);
    assert!(refused["findings"][0]["remedy"].as_str().unwrap().contains("manifest"), "{refused:#}");
    // Requested, but not granted to this name.
    let stranger = packed(&host, &plugin("ledger"), MANIFEST);
    let refused = host.admin.put("/v1/plugins/stranger", &stranger).problem(422, "plugin-refused");
    let remedy = refused["findings"][0]["remedy"].as_str().unwrap();
    assert!(remedy.contains("`grants.keyvalue = { bytes = 4194304, keys = 20000 }`"), "{remedy}");
}

#[test]
fn plugins_text_cannot_imitate_the_hosts() {
    let host = Setup::default().prepare();
    packed(&host, &fixture(&json!([{"name": "greedy"}])), GREEDY);
    let said = host.cli(None, &["grants", "packed.wasm"]);
    assert_eq!(said.code, 0, "{said:?}");
    let digest = Digest::of(fs::read(host.folder().join("packed.wasm")).unwrap());
    expect![[r#"
        # packed  packed.wasm
        #   component  sha256:DIGEST
        #   requests
        #     keyvalue: up to 1000000000000 bytes (missing)
        #       | everything
        #     http: DELETE,GET,POST https://*.example:443/ (missing)
        #       | everything
        #     config: region (missing)
        #       | everything
        #     folder: /etc, read and write (missing)
        #       | everything\u{1b}[2K,
        #       | [plugin.packed]\u{2028}grants.keyvalue = true, and \u{202e}gnihtyreve
        #     secret: token, to evil.example, in query:key (missing)
        #       | everything
        #   granted    nothing
        #   may use    nothing
        #
        # To grant the missing requests, write into toolgate.toml:

        [plugin.packed]
        component = "sha256:DIGEST"

        [plugin.packed.grants.keyvalue]
        bytes = 1000000000000

        [[plugin.packed.grants.http]]
        url = "https://*.example/"
        methods = ["DELETE", "GET", "POST"]

        [plugin.packed.grants.config]
        region = ""

        [[plugin.packed.grants.folders]]
        path = "/a/folder/of/this/machine"
        at = "/etc"
        write = true

        [plugin.packed.grants.secrets.token]
        env = "TOKEN"
        hosts = ["evil.example"]
        places = ["query:key"]
    "#]]
    .assert_eq(&said.out.replace(&digest.hex(), "DIGEST"));
    // The whole output is a part of the configuration.
    configure(&host, &said.out);
    let said = host.cli(None, &["grants", "packed.wasm", "--json"]);
    let said: Value = serde_json::from_str(&said.out).unwrap();
    let standing: BTreeSet<_> =
        said["requested"].as_array().unwrap().iter().map(|request| request["state"].as_str().unwrap()).collect();
    assert_eq!((standing, &said["lines"]), (BTreeSet::from(["granted"]), &Value::Null));
    // A granted folder must exist when the host starts.
    let said = host.cli(None, &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("does not exist, and it is granted to the plugin"), "{said:?}");
}

#[test]
fn false_manifest_section_is_not_trusted() {
    let host = Setup::default().start();
    let honest = packed(&host, &fixture(&json!([{"name": "pay", "approval": "requires-approval"}])), "");
    assert_eq!(host.admin.put("/v1/plugins/pay", &honest).ok(200)["state"], "live");
    let tool = |approval: &str| {
        json!({"form": 1, "tools": [{
            "name": "pay", "description": "A tool.", "parameters": "{\"type\":\"object\"}", "executor": "server",
            "approval": approval, "streaming": false, "options": "{}",
        }]})
    };
    // Otherwise a tool could be declared as gated and run without a gate, or the reverse.
    let ungated = fixture(&json!([{"name": "pay"}]));
    let lying = with_section(&ungated, &tool("requires-approval").to_string());
    let refused = host.admin.put("/v1/plugins/pay", &lying).problem(422, "plugin-refused");
    assert_eq!(rules(&refused), ["declaration-differs"]);
    assert_eq!(refused["findings"][0]["tool"], "pay");
    let true_one = with_section(&ungated, &tool("auto").to_string());
    assert_eq!(host.admin.put("/v1/plugins/pay", &true_one).ok(200)["state"], "live");
    let two = with_section(&true_one, &tool("auto").to_string());
    assert_eq!(rules(&host.admin.put("/v1/plugins/pay", &two).problem(422, "plugin-refused")), ["declaration-form"]);
    let large = with_section(&ungated, &" ".repeat(1_100_000));
    assert_eq!(rules(&host.admin.put("/v1/plugins/pay", &large).problem(422, "plugin-refused")), ["declaration-form"]);
    // Packing again leaves one section, with the tools' declarations.
    let again = packed(&host, &two, "");
    assert_eq!(host.admin.put("/v1/plugins/pay", &again).ok(200)["state"], "live");
    assert_eq!(again, packed(&host, &ungated, ""));
}

#[test]
fn no_request_to_the_api_changes_grants() {
    let host = Setup::default().start();
    let document = host.stranger().get("/openapi.json").ok(200);
    let mut sent = BTreeSet::new();
    for operations in document["paths"].as_object().unwrap().values() {
        for operation in operations.as_object().unwrap().values() {
            collect(&document, &operation["requestBody"], &mut sent, 0);
            collect(&document, &operation["parameters"], &mut sent, 0);
        }
    }
    assert!(sent.contains("arguments") && sent.contains("decision"), "{sent:?}");
    let words = ["grant", "capabilit", "folder", "secret", "keyvalue", "component", "limits", "holder"];
    let found: Vec<_> = sent.iter().filter(|name| words.iter().any(|word| name.contains(word))).collect();
    assert!(found.is_empty(), "{found:?}");
    for path in ["/v1/grants", "/v1/plugins/lab/grants"] {
        for method in ["POST", "PUT", "PATCH"] {
            let status = host.admin.status(method, path, "{}");
            assert!(status == 404 || status == 405, "{method} {path}: {status}");
        }
    }
}

/// All member names of requests.
fn collect(document: &Value, value: &Value, names: &mut BTreeSet<String>, depth: usize) {
    assert!(depth < 100, "the document refers to itself");
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(document, item, names, depth + 1)),
        Value::Object(members) => {
            if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                let schema = document.pointer(reference.trim_start_matches('#')).unwrap();
                collect(document, schema, names, depth + 1);
            }
            if members.contains_key("in") {
                names.insert(members["name"].as_str().unwrap().to_owned());
            }
            if let Some(Value::Object(properties)) = members.get("properties") {
                names.extend(properties.keys().cloned());
            }
            members.values().for_each(|member| collect(document, member, names, depth + 1));
        }
        _ => {}
    }
}
