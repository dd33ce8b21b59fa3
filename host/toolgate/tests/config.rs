//! The configuration: its keys and the messages about errors.

use std::path::Path;

use domain::{CatalogLimits, Limits, PluginName, Span, gate::RuleEffect, rate::Rate};
use expect_test::{Expect, expect};
use toolgate::config::{Config, ConfigError, SecretValues};

fn check(text: &str, expect: &Expect) {
    let said = match Config::parse(text, Path::new("toolgate.toml")) {
        Ok(_) => "fine".to_owned(),
        Err(error) => format!("{error}{}", error.hint().map_or_else(String::new, |hint| format!("\n{hint}"))),
    };
    expect.assert_eq(&said);
}

#[test]
fn empty_configuration_is_valid() {
    check("", &expect!["fine"]);
    let config = Config::parse("", Path::new("")).expect("fine");
    assert_eq!(config.registry(Path::new("d"), &SecretValues::default()).limits, Limits::default());
    assert_eq!(config.turn_settings(), domain::turn::TurnSettings::default());
    assert_eq!(config.plugins_folder(), Path::new("plugins"));
    assert_eq!(config.data_folder(), Path::new("toolgate-data"));
}

#[test]
fn unknown_key_is_reported_with_place_and_suggestion() {
    check(
        "listen = \"127.0.0.1:1\"\nplugns = \"p\"\n",
        &expect![[r#"
            toolgate.toml:2:1: there is no key `plugns` here; the keys are `listen`, `plugins`, `data`, `store`, `hosts`, `approve_own_calls`, `questions_in_clients`, `approve_on_expiry`, `client_grace_ms`, `expires_ms`, `queue_ms`, `max_attempts`, `max_steps`, `step_bytes`, `nesting_depth`, `nested_calls`, `journal_entries`, `journal_bytes`, `max_calls`, `turn_results_bytes`, `ephemeral`, `pool`, `guest_memory_bytes`, `disk_reserve_bytes`, `database_cache_bytes`, `require_declaration`, `compile`, `catalog`, `limits`, `quota`, `retention`, `approvals`, `door`, `server`, `oauth`, `plugin`, `upstream`, `policy`, `policies`, `webhook`
            did you mean `plugins`?"#]],
    );
    check(
        "[limits]\n  memory = 5\n",
        &expect![[r#"
            toolgate.toml:2:3: there is no key `memory` here; the keys are `time_ms`, `replay_ms`, `linger_ms`, `stop_grace_ms`, `memory_bytes`, `table_elements`, `instances`, `hostcall_bytes`, `handles`, `arguments_bytes`, `result_bytes`, `progress_updates`, `progress_bytes`, `log_bytes`, `concurrency`, `queue`, `host_bytes`, `host_calls`, `host_call_ms`, `files_written_bytes`, `keyvalue_written_bytes`, `keyvalue_bytes_per_second`, `http_requests`, `http_concurrent`, `http_ms`, `http_sent_bytes`, `http_received_bytes`
            did you mean `memory_bytes`?"#]],
    );
}

#[test]
fn wrong_value_is_reported_with_its_place() {
    check(
        "listen = 7420",
        &expect![[
            r#"toolgate.toml:1:10: `listen` is 7420, and it must be an IP address and a port, such as "127.0.0.1:7420""#
        ]],
    );
    check(
        "listen = \"localhost\"",
        &expect![[
            r#"toolgate.toml:1:10: `listen` is "localhost", and it must be an IP address and a port, such as "127.0.0.1:7420""#
        ]],
    );
    check(
        "[limits]\ntime_ms = 0",
        &expect!["toolgate.toml:2:11: `time_ms` is 0, and it must be a whole number above 0"],
    );
    check(
        "[plugin.ledger.grants]\nkeyvalu = true",
        &expect![[r#"
            toolgate.toml:2:1: there is no key `keyvalu` here; the keys are `keyvalue`, `http`, `config`, `folders`, `secrets`, `calls`
            did you mean `keyvalue`?"#]],
    );
    check(
        "[plugin.\"a.b\"]\ngrants = {}",
        &expect![[
            r#"toolgate.toml:1:9: "a.b" is not a plugin name: expected 1 to 64 of the characters a-z A-Z 0-9 _ -"#
        ]],
    );
    check(
        "[[policy]]\ntools = \"pay.*\"\nrule = \"ask\"",
        &expect!["toolgate.toml:2:9: not a pattern of names: expected 1 to 64 of the characters a-z A-Z 0-9 _ - * ?"],
    );
    check(
        "[[policy]]\ntools = \"pay*\"\nrule = \"aks\"",
        &expect![[r#"
        toolgate.toml:3:8: `rule` is "aks", and it must be one of `allow`, `ask`, `deny`
        did you mean `ask`?"#]],
    );
    check("[[policy]]\ntools = \"pay*\"", &expect!["toolgate.toml:1:1: the key `rule` is missing"]);
    check(
        "approve_on_expiry = [\"a b\"]",
        &expect![[
            r#"toolgate.toml:1:21: "a b" is not a tool name: expected 1 to 64 of the characters a-z A-Z 0-9 _ -"#
        ]],
    );
    check("data = \"x", &expect![[r#"toolgate.toml:1:10: invalid basic string, expected `"`"#]]);
}

const EVERY_KEY: &str = r#"
        listen = "127.0.0.1:8080"
        approve_own_calls = true
        approve_on_expiry = ["backup"]
        client_grace_ms = 1
        expires_ms = 2
        queue_ms = 3
        max_attempts = 4
        ephemeral = false
        max_calls = 5
        disk_reserve_bytes = 30
        database_cache_bytes = 31
        guest_memory_bytes = 32
        turn_results_bytes = 33

        [catalog]
        tools = 40
        declaration_bytes = 41
        description_bytes = 42
        schema_bytes = 43
        options_bytes = 44
        time_ms = 45
        memory_bytes = 46
        table_elements = 47
        instances = 48
        handles = 49
        host_bytes = 50
        host_calls = 51

        [limits]
        time_ms = 6
        memory_bytes = 7
        concurrency = 8

        [quota]
        open_turns = 10
        open_bytes = 11
        running_calls = 12
        waiting_calls = 13
        turns_per_second = 34
        turns_burst = 35
        bytes_per_second = 36
        bytes_burst = 37
        kept_bytes = 39
        event_streams = 14
        requests = 15

        [quota.principal."ci@example"]
        open_turns = 16
        turns_per_second = 38

        [server]
        connections = 17
        head_ms = 18
        head_bytes = 19
        body_ms = 20
        stall_ms = 21
        event_streams = 22
        recheck_ms = 23
        connections_per_peer = 24
        log_in_body_ms = 25
        long_requests = 28
        long_requests_reserved = 26
        long_requests_per_principal = 27
        unread_bytes = 29
        bodies_bytes = 41
        turn_bytes = 40
        answer_bytes = 42

        [plugin.ledger]
        component = "any"
        grants.keyvalue = true
        limits.time_ms = 9

        [[policy]]
        tools = "pay*"
        rule = "ask"
    "#;

#[test]
fn every_key_reaches_the_host() {
    let config = Config::parse(EVERY_KEY, Path::new("t")).expect("fine");
    let settings = config.registry(Path::new("d"), &SecretValues::default());
    let [ledger, other] = ["ledger", "other"].map(|name| PluginName::new(name).expect("a name"));
    assert!(settings.grants(&ledger).keyvalue.is_some() && settings.grants(&other).keyvalue.is_none());
    let limits = Limits { time: Span::from_millis(6), memory: 7, concurrency: 8, ..Limits::default() };
    assert_eq!(settings.limits(&other), limits);
    assert_eq!(settings.limits(&ledger), Limits { time: Span::from_millis(9), ..limits });
    assert_eq!(["payment", "read"].map(|tool| settings.effect(&ledger, tool)), [RuleEffect::Ask, RuleEffect::Allow]);
    let catalog = CatalogLimits {
        tools: 40,
        declaration: 41,
        description: 42,
        schema: 43,
        options: 44,
        time: Span::from_millis(45),
        memory: 46,
        table_elements: 47,
        instances: 48,
        handles: 49,
        host_bytes: 50,
        host_calls: 51,
    };
    assert_eq!(settings.catalog, catalog);
    assert_eq!(settings.approve_on_expiry.len(), 1);
    assert_eq!((settings.default_expires, settings.queue), (Span::from_millis(2), Span::from_millis(3)));
    let quotas = config.quota.quotas();
    let each = dispatch::Quota {
        open_turns: 10,
        open_bytes: 11,
        running_calls: 12,
        waiting_calls: 13,
        turn_rate: Rate { per_second: 34, burst: 35 },
        byte_rate: Rate { per_second: 36, burst: 37 },
        kept_bytes: 39,
        event_streams: 14,
        requests: 15,
    };
    let turn_rate = Rate { per_second: 38, burst: 35 };
    let [ci, ann] = ["ci@example", "ann"].map(|name| domain::PrincipalId::new(name).expect("a name"));
    assert_eq!((quotas.of(&ann), quotas.of(&ci)), (each, dispatch::Quota { open_turns: 16, turn_rate, ..each }));
    #[cfg(feature = "server")]
    {
        let (bounds, table) = (config.server.connections(), config.server.settings());
        assert_eq!((bounds.max, bounds.head, bounds.head_bytes), (17, Span::from_millis(18), 19));
        assert_eq!((table.body, bounds.stall), (Span::from_millis(20), Span::from_millis(21)));
        assert_eq!((table.event_streams, table.recheck), (22, Span::from_millis(23)));
        assert_eq!((bounds.max_per_peer, table.log_in_body), (24, Span::from_millis(25)));
        let default = Config::default().server.settings();
        assert_eq!(default.long_requests, server::ServerSettings::default().long_requests);
        let long = server::LongRequests { max: 28, reserved: 26, max_per_principal: 27 };
        assert_eq!((table.long_requests, table.unread_bytes), (long, 29));
        assert_eq!((table.turn_bytes, table.bodies_bytes, table.answer_bytes), (40, 41, 42));
        let table = Config::parse("[server]\nconnections = 40", Path::new("t")).expect("fine").server.settings();
        let long = server::LongRequests { max: 30, reserved: 7, max_per_principal: 10 };
        assert_eq!(table.long_requests, long);
    }
    let settings = config.turn_settings();
    assert_eq!(
        (settings.own_calls, settings.grace, settings.queue),
        (true, Span::from_millis(1), Span::from_millis(3))
    );
    assert_eq!((settings.max_attempts, settings.max_calls, settings.ephemeral), (4, 5, false));
    assert_eq!((settings.turn_results, config.guest_memory_bytes.map(|bytes| bytes.get())), (33, Some(32)));
    assert_eq!((config.bounds(31).disk_reserve, config.bounds(31).arguments), (30, 31));
}

const ISSUER: &str = "[oauth]\nissuer = \"https://a.example/\"\naudience = \"https://b.example/mcp\"\n";

#[test]
fn authorization_server_is_read_from_the_configuration() {
    let more = |more: &str| format!("{ISSUER}{more}\n");
    let config =
        Config::parse(&more("leeway_ms = 7\nalgorithms = [\"ES256\"]\njwks = \"https://a.example/k\""), Path::new("t"));
    let table = config.expect("fine").oauth.expect("a table");
    // Tokens name it with the slash.
    assert_eq!((table.issuer.0.text.as_str(), table.leeway_ms), ("https://a.example/", Some(7)));
    check(
        &more("isuer = 1"),
        &expect![[r#"
        toolgate.toml:4:1: there is no key `isuer` here; the keys are `issuer`, `audience`, `jwks`, `scopes`, `leeway_ms`, `algorithms`
        did you mean `issuer`?"#]],
    );
    check(
        &more("algorithms = [\"HS256\"]"),
        &expect![[r#"
        toolgate.toml:4:15: `algorithms` is "HS256", and it must be one of `RS256`, `PS256`, `ES256`, `EdDSA`
        did you mean `ES256`?"#]],
    );
    check(
        &more("algorithms = [\"none\"]"),
        &expect![[
            r#"toolgate.toml:4:15: `algorithms` is "none", and it must be one of `RS256`, `PS256`, `ES256`, `EdDSA`"#
        ]],
    );
    check(
        &more("algorithms = []"),
        &expect![[r#"
        toolgate.toml:4:1: no algorithm is left, so no token would be accepted
        name at least one"#]],
    );
    check(
        &more("leeway_ms = 300001"),
        &expect![[r#"
        toolgate.toml:4:1: `leeway_ms` is above 300000, and expired tokens would be accepted as long
        set the clocks, and write a small number"#]],
    );
    check(
        &more("jwks = \"http://a.example/k\""),
        &expect![[
            r#"toolgate.toml:4:8: "http://a.example/k" cannot be used: it needs https, except for a server on this machine"#
        ]],
    );
}

#[test]
fn scopes_and_places_of_an_authorization_server_are_checked() {
    let more = |more: &str| format!("{ISSUER}{more}\n");
    check(
        &more("scopes = { \"a\" = [\"admin\"] }"),
        &expect!["toolgate.toml:4:18: no scope can give the role admin; use a token of the host"],
    );
    check(
        &more("scopes = { \"a\" = [\"callr\"] }"),
        &expect![[r#"toolgate.toml:4:18: "callr" must be "caller", "client", "approver" or "group:NAME""#]],
    );
    check(
        &more("scopes = { \"a b\" = [\"caller\"] }"),
        &expect![[
            r#"toolgate.toml:4:12: "a b" is not a scope: expected 1 to 128 visible ASCII characters other than " and \"#
        ]],
    );
    check(
        &more("scopes = { \"a\" = [\"caller\", \"approver\"] }"),
        &expect![[r#"
        toolgate.toml:4:1: no scope gives `caller` without `approver`, so MCP clients could not ask for a scope
        add `"tools:call" = ["caller"]`"#]],
    );
    check(&more("scopes = { \"a\" = [\"caller\"], \"b\" = [\"approver\", \"group:finance\"] }"), &expect!["fine"]);
    check(
        "[oauth]\nissuer = \"https://a.example\"\naudience = \"https://b.example\"",
        &expect![[r#"
        toolgate.toml:3:1: "https://b.example" is not the URL of /mcp of this host
        write the URL that clients use: `audience = "https://toolgate.example.com/mcp"`"#]],
    );
    check(
        "[oauth]\nissuer = \"http://192.168.1.2\"\naudience = \"https://b.example/mcp\"",
        &expect![[
            r#"toolgate.toml:2:10: "http://192.168.1.2" cannot be used: it needs https, except for a server on this machine"#
        ]],
    );
    check("[oauth]\nissuer = \"http://127.0.0.1:9\"\naudience = \"http://localhost:7420/mcp\"", &expect!["fine"]);
    check("[oauth]\nissuer = \"https://a.example\"", &expect!["toolgate.toml:1:1: the key `audience` is missing"]);
}

#[test]
fn callers_get_some_of_the_long_requests() {
    let table = |reserved| format!("[server]\nlong_requests = 4\nlong_requests_reserved = {reserved}\n");
    assert!(Config::parse(&table(3), Path::new("t")).is_ok());
    let refused = Config::parse(&table(4), Path::new("t")).expect_err("nothing is left").to_string();
    assert!(refused.contains("all 4 long requests are reserved"), "{refused}");
    let more_than_the_default = "[server]\nconnections = 40\nlong_requests_reserved = 30\n";
    let refused = Config::parse(more_than_the_default, Path::new("t")).expect_err("nothing is left").to_string();
    assert!(refused.contains("all 30 long requests are reserved"), "{refused}");
}

#[test]
fn folders_are_relative_and_a_named_file_must_exist() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("toolgate.toml");
    std::fs::write(&file, "plugins = \"p\"\ndata = \"/elsewhere\"").expect("a file");
    let config = Config::read(Some(&file)).expect("fine");
    assert_eq!(config.plugins_folder(), folder.path().join("p"));
    assert_eq!(config.data_folder(), Path::new("/elsewhere"));
    let missing = Config::read(Some(&folder.path().join("no.toml")));
    assert!(matches!(missing, Err(ConfigError::Unreadable { .. })));
}

#[test]
fn the_schema_knows_every_key_and_no_other() {
    let schema = Config::schema();
    assert_eq!(schema["additionalProperties"], false);
    let keys: Vec<&String> = schema["properties"].as_object().expect("properties").keys().collect();
    assert_eq!(keys.len(), 39, "{keys:?}");
    for key in keys {
        assert!(
            schema["properties"][key]["description"].is_string() || schema["properties"][key]["$ref"].is_string(),
            "{key}"
        );
    }
}

#[test]
fn retention_is_read_from_the_configuration() {
    let rules = |text: &str| Config::parse(text, Path::new("")).expect("fine").retention.rules();
    assert_eq!(rules(""), dispatch::RetentionRules::default());
    let text = "[retention]\nturns_days = 2\nturns_bytes = 3\nturns_bytes_minutes = 4\ninterval_ms = 4\ntools_days.pay = 1\ndeclared_days_min = 1\ncall_logs_days = 5\njournals_days = 6\nhold.callers = [\"ann\"]\nhold.conversations = [\"support:42\"]";
    let day = Span::from_secs(24 * 60 * 60);
    let expected = dispatch::RetentionRules {
        turns: Some(Span::from_millis(day.millis() * 2)),
        bytes: Some(3),
        bytes_after: Span::from_secs(4 * 60),
        logs: Some(Span::from_millis(day.millis() * 5)),
        journals: Some(Span::from_millis(day.millis() * 6)),
        tools: [("pay".to_owned(), day)].into(),
        declared_min: Some(day),
        hold: dispatch::Hold {
            conversations: ["support:42".parse().expect("legal")].into(),
            callers: ["ann".parse().expect("legal")].into(),
        },
        interval: Span::from_millis(4),
    };
    assert_eq!(rules(text), expected);
    check(
        "[retention]\nturns_days = 0",
        &expect!["toolgate.toml:2:14: `turns_days` is 0, and it must be a whole number above 0"],
    );
    check(
        "[retention.tools_days]\n\"a b\" = 1",
        &expect![[
            r#"toolgate.toml:1:1: "a b" is not a tool name: expected 1 to 64 of the characters a-z A-Z 0-9 _ -"#
        ]],
    );
    check(
        "[retention]\nhold.callers = [\"a b\"]",
        &expect![[
            r#"toolgate.toml:2:16: "a b" is not a principal: expected 1 to 128 of the characters A-Z a-z 0-9 _ . : - @ /"#
        ]],
    );
}

#[test]
fn compile_limits_are_read_from_the_configuration() {
    let bounds = |text: &str| Config::parse(text, Path::new("")).expect("fine").compile;
    let default = bounds("");
    assert_eq!(default.bounds(), sandbox::CompileBounds::default());
    assert_eq!(default.component(), 64 << 20);
    let own = bounds("[compile]\ntime_ms = 5\nmemory_bytes = 6\noutput_bytes = 7\ncomponent_bytes = 8");
    let millis = std::time::Duration::from_millis;
    let expected = sandbox::CompileBounds { time: millis(5), wall: millis(50), memory: 6, output: 7 };
    assert_eq!((own.bounds(), own.component()), (expected, 8));
    assert_eq!(bounds("[compile]\nwall_ms = 9").bounds().wall, millis(9));
    check(
        "[compile]\ncomponent_bytes = 67108865",
        &expect!["toolgate.toml:2:19: `component_bytes` is 67108865, and it must be from 1 to 67108864"],
    );
    let parts = bounds("[compile]\ncore_instances = 9\nmemories = 10\ntables = 11").parts();
    assert_eq!(parts, sandbox::ComponentParts { core_instances: 9, memories: 10, tables: 11 });
    assert_eq!(default.parts(), sandbox::ComponentParts::default());
    check("[compile]\nmemories = 101", &expect!["toolgate.toml:2:12: `memories` is 101, and it must be from 1 to 100"]);
}

#[test]
fn more_steps_than_a_call_can_have_are_refused() {
    check("max_steps = 1000", &expect!["fine"]);
    check(
        "max_steps = 1001",
        &expect![[r#"
            toolgate.toml:1:1: `max_steps` allows 1001 steps, but no durable call can have more than 1000
            write a number from 1 to 1000"#]],
    );
}

#[test]
fn catalog_limits_have_a_smallest_and_a_largest_value() {
    for (value, says) in [
        ("0", "`tools` is 0, and it must be from 1 to 4096"),
        ("4097", "`tools` is 4097, and it must be from 1 to 4096"),
        ("-1", "`tools` is -1, and it must be from 1 to 4096"),
        ("1.5", "`tools` is 1.5, and it must be a whole number"),
    ] {
        let error = Config::parse(&format!("[catalog]\ntools = {value}"), Path::new("t")).expect_err(value).to_string();
        assert_eq!(error, format!("t:2:9: {says}"));
    }
    check("[catalog]\ntools = 4096\ninstances = 64", &expect!["fine"]);
    for table in ["catalog", "limits", "plugin.ledger.limits"] {
        let text = format!("[{table}]\ninstances = 65");
        let error = Config::parse(&text, Path::new("t")).expect_err(table);
        let says = format!(
            "t:2:1: `{table}.instances` allows 65 core instances, but the host loads no component with more than 64 \
             (`compile.core_instances`)"
        );
        assert_eq!((error.to_string(), error.hint()), (says, Some("lower it, or raise `compile.core_instances`")));
        assert!(Config::parse(&format!("{text}\n[compile]\ncore_instances = 65"), Path::new("t")).is_ok());
    }
}

#[test]
fn faulty_table_of_an_upstream_is_reported() {
    for (table, why) in [
        ("[upstream.a__b]\ncommand = [\"x\"]", "is not a name for an upstream"),
        ("[upstream.a_]\ncommand = [\"x\"]", "is not a name for an upstream"),
        ("[upstream.\"a.b\"]\ncommand = [\"x\"]", "is not a name for an upstream"),
        ("[upstream.a]\ncommand = []", "the command names no program"),
        ("[upstream.a]\ncommand = [\"x\"]\nenv = { T = {} }", "the variable T has 0 sources"),
        (
            "[upstream.a]\ncommand = [\"x\"]\nenv = { T = { value = \"v\", env = \"E\" } }",
            "the variable T has 2 sources",
        ),
        ("[upstream.a]\ncommand = [\"x\"]\nenv = { \"A=B\" = { value = \"v\" } }", "is not an environment variable"),
        ("[upstream.a]\ncommand = [\"x\"]\napproval = \"never\"", "must be one of `auto`, `requires-approval`"),
        ("[upstream.a]\nfolder = \"f\"", "the command names no program"),
        ("[upstream.a]\ncommand = [\"x\"]\ntoken_file = \"t\"", "a program gets no token"),
        ("[upstream.a]\ncommand = [\"x\"]\nurl = \"https://x.example/\"", "a server at a URL has no `command`"),
        ("[upstream.a]\nurl = \"https://x.example/\"\nfolder = \"f\"", "a server at a URL has no `folder`"),
        ("[upstream.a]\nurl = \"https://x.example/\"\nenv.T = { value = \"v\" }", "a server at a URL has no `env`"),
        ("[upstream.a]\nurl = \"http://x.example/\"", "http does not encrypt the calls and the token"),
        ("[upstream.a]\nurl = \"http://localhost.x.example/\"", "http does not encrypt the calls and the token"),
        ("[upstream.a]\nurl = \"file:///etc/passwd\"", "an MCP server is at an https URL, not file"),
        ("[upstream.a]\nurl = \"https://u:p@x.example/\"", "the URL contains a name or a password"),
        ("[upstream.a]\nurl = \"https://x.example/#f\"", "the URL has a fragment"),
        (
            "[upstream.a]\nurl = \"https://x.example/\"\ntoken_file = \"t\"\ntoken_env = \"T\"",
            "the token has two sources",
        ),
        ("[upstream.a]\nurl = \"https://x.example/\"\ntoken_env = \"A=B\"", "is not an environment variable"),
        ("[plugin.\"mcp:a\"]\ncomponent = \"any\"", "is an upstream MCP server, which has no grants"),
    ] {
        let error = Config::parse(table, Path::new("toolgate.toml")).expect_err(table).to_string();
        assert!(error.contains(why), "{table}: {error}");
    }
    for url in ["https://x.example/mcp?a=1", "http://127.0.0.1:1/", "http://[::1]/mcp", "http://localhost:3000/mcp"] {
        let table = format!("[upstream.a]\nurl = \"{url}\"\ntoken_file = \"t\"");
        Config::parse(&table, Path::new("toolgate.toml")).expect(url);
    }
    let fine = Config::parse("[upstream.a_b-1]\ncommand = [\"x\"]", Path::new("some/toolgate.toml")).expect("fine");
    assert_eq!(fine.upstream_pins(), Path::new("some/toolgate.upstreams.json"));
}
