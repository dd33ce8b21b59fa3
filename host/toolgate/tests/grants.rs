//! Grants in the configuration, and the messages about errors. No value of a secret is shown.

use std::path::Path;

use domain::{Digest, PluginName};
use expect_test::{Expect, expect, expect_file};
use registry::GrantHolder;
use toolgate::config::{Config, SecretValues, manifest};

fn said(text: &str) -> String {
    match Config::parse(text, Path::new("toolgate.toml")) {
        Ok(_) => "fine".to_owned(),
        Err(error) => format!("{error}{}", error.hint().map_or_else(String::new, |hint| format!("\n{hint}"))),
    }
}

/// Checks the message about these grants of a plugin, after the line with its component.
fn check(grants: &str, expect: &Expect) {
    expect.assert_eq(&said(&format!("[plugin.a]\ncomponent = \"any\"\n{grants}")));
}

const SECRET: &str = "env = \"T\", hosts = [\"a.example\"], places = [\"header:authorization\"]";

#[test]
fn every_grant_has_a_configuration_form() {
    check(
        &format!(
            "grants.keyvalue = {{ bytes = 1, keys = 2 }}\ngrants.http = [{{ url = \"https://*.a.example/v1/\", methods = \
             [\"POST\"], private = true }}]\ngrants.config = {{ region = \"eu\" }}\ngrants.folders = [{{ path = \"d\", at = \
             \"/data\", write = true }}]\ngrants.secrets.token = {{ {SECRET} }}\ngrants.calls = [\"ledger_*\"]"
        ),
        &expect!["fine"],
    );
}

#[test]
fn impossible_grant_is_reported_with_its_place() {
    check(
        "grants.http = [{ url = \"gopher://a\" }]",
        &expect![[r#"toolgate.toml:3:24: "gopher://a" is not a rule for requests: the scheme must be http or https"#]],
    );
    check(
        "grants.http = [{ url = \"https://a/../b\" }]",
        &expect![[
            r#"toolgate.toml:3:24: "https://a/../b" is not a rule for requests: its path has a step `.` or `..`"#
        ]],
    );
    check(
        "grants.http = [{ url = \"https://a/\", methods = [\"get\"] }]",
        &expect![[r#"toolgate.toml:3:48: "get" is not a method: expected upper-case letters, as in `POST`"#]],
    );
    check(
        "grants.http = [{ url = \"https://a/\", methods = [\"CONNECT\"] }]",
        &expect!["toolgate.toml:3:48: the method CONNECT is granted to no plugin"],
    );
    check(
        "grants.http = [{ url = \"https://a/\" }, { url = \"https://a\" }]",
        &expect![[r#"
        toolgate.toml:3:40: requests to https://a are granted twice
        remove one of the two"#]],
    );
    check(
        "grants.config = { \"a b\" = \"x\" }",
        &expect![[r#"toolgate.toml:3:19: "a b" is not a name: expected 1 to 64 of the characters a-z A-Z 0-9 _ . -"#]],
    );
    check(
        "grants.folders = [{ path = \"d\", at = \"data\" }]",
        &expect![[r#"toolgate.toml:3:38: "data" is no path for a folder: expected an absolute one such as `/data`"#]],
    );
    check(
        "grants.folders = [{ path = \"d\", at = \"/d\" }, { path = \"e\", at = \"/d\" }]",
        &expect![[r#"
        toolgate.toml:3:60: two folders are at /d
        give one of them another path"#]],
    );
    check(
        "grants.keyvalue = 5",
        &expect![
            "toolgate.toml:3:19: `grants.keyvalue` is 5, and it must be true, false, or a table of `bytes` and `keys`"
        ],
    );
}

#[test]
fn a_secret_has_one_source_hosts_and_places() {
    let secret = |table: &str| format!("grants.secrets.token = {{ {table} }}");
    let rest = "hosts = [\"a.example\"], places = [\"query:key\"]";
    check(
        &secret(rest),
        &expect![[r#"
        toolgate.toml:3:16: nothing says where the secret comes from
        write `env = "VARIABLE"` or `file = "PATH"`; its value has no place in this file"#]],
    );
    check(
        &secret(&format!("env = \"T\", file = \"f\", {rest}")),
        &expect![[r#"
        toolgate.toml:3:16: a secret has one source, not both
        remove `env` or `file`"#]],
    );
    check(
        &secret(&format!("value = \"hunter2hunter2\", {rest}")),
        &expect!["toolgate.toml:3:26: there is no key `value` here; the keys are `env`, `file`, `hosts`, `places`"],
    );
    check(
        &secret("env = \"T\", hosts = [], places = [\"query:key\"]"),
        &expect![[r#"
        toolgate.toml:3:16: the secret may be sent nowhere
        write `hosts = ["api.example.com"]`"#]],
    );
    check(
        &secret("env = \"T\", hosts = [\"https://a\"], places = [\"query:key\"]"),
        &expect![[r#"toolgate.toml:3:45: "https://a" is not a host: expected a name, an address, or `*.` and a name"#]],
    );
    check(
        &secret("env = \"T\", hosts = [\"a.example\"], places = [\"cookie:a\"]"),
        &expect![[
            r#"toolgate.toml:3:69: "cookie:a" is no place for a secret: expected `header:name` in lower case, `query:name` or `body:/json/pointer`"#
        ]],
    );
    check(
        &format!("grants.config.token = \"x\"\n{}", secret(SECRET)),
        &expect![[r#"
        toolgate.toml:4:16: `token` is a value and a secret
        a plugin asks for both by name; rename one of them"#]],
    );
}

#[test]
fn grants_name_their_component() {
    expect![[r#"
        toolgate.toml:3:9: the plugin a has grants, and nothing says which component of that name they are for
        write `component = "sha256:…"` under `[plugin.a]`, with what `sha256sum` prints of its file; or `component = "any"` to grant it to any component of that name"#]].assert_eq(&said("listen = \"127.0.0.1:1\"\n\n[plugin.a]\ngrants.keyvalue = true"));
    expect![[r#"toolgate.toml:2:13: "sha256:abc" is no component: expected "sha256:" and 64 digits, or "any""#]]
        .assert_eq(&said("[plugin.a]\ncomponent = \"sha256:abc\"\ngrants.keyvalue = true"));
    expect![[
        r#"toolgate.toml:2:13: `component` is 5, and it must be the digest of a component, a list of digests, or "any""#
    ]]
    .assert_eq(&said("[plugin.a]\ncomponent = 5"));
    assert_eq!(said("[plugin.a]\nlimits.time_ms = 5\ngrants.keyvalue = false"), "fine", "limits are bound to none");

    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("plugins")).expect("a folder");
    std::fs::write(folder.path().join("plugins/a.wasm"), "its bytes").expect("a file");
    let file = folder.path().join("toolgate.toml");
    std::fs::write(&file, "[plugin.a]\ngrants.keyvalue = true").expect("a file");
    let error = Config::read(Some(&file)).expect_err("says no component");
    let line = format!("`component = \"{}\"` under `[plugin.a]`", Digest::of("its bytes"));
    assert!(error.hint().is_some_and(|hint| hint.contains(&line)), "{error:?}");
}

#[test]
fn grants_take_one_digest_several_or_any() {
    let (one, other) = (Digest::of("one"), Digest::of("other"));
    let name = PluginName::new("a").expect("a name");
    for (text, holder) in [
        ("\"any\"".to_owned(), GrantHolder::AnyComponent),
        (format!("\"{one}\""), GrantHolder::Components([one].into())),
        (format!("[\"{one}\", \"{other}\"]"), GrantHolder::Components([one, other].into())),
    ] {
        let text = format!("[plugin.a]\ncomponent = {text}\ngrants.keyvalue = true");
        let config = Config::parse(&text, Path::new("t")).expect("fine");
        assert_eq!(config.registry(Path::new("d"), &SecretValues::default()).holder(&name), holder);
        // A table that is written reads back as the same table.
        let table = config.plugin.values().next().expect("a table");
        let again = Config::parse(&table.to_toml(&name), Path::new("t")).expect("fine");
        assert_eq!(again.plugin.values().next(), Some(table));
    }
}

#[test]
fn secret_is_read_at_start_and_never_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("toolgate.toml");
    let config = |source: &str| {
        let secret = SECRET.replace("env = \"T\"", source);
        let text = format!("\n[plugin.a]\ncomponent = \"any\"\ngrants.secrets.token = {{ {secret} }}");
        std::fs::write(&file, text).expect("a file");
        Config::read(Some(&file)).expect("fine")
    };
    let wrong = |source: &str| {
        let error = config(source).secrets().expect_err("is missing").to_string();
        error.replace(&folder.path().display().to_string(), "FOLDER")
    };
    expect!["FOLDER/toolgate.toml:4:16: the secret `token` of the plugin a: the environment variable TOOLGATE_TEST_OF_A_VARIABLE_THAT_NOBODY_SETS is not set"].assert_eq(&wrong("env = \"TOOLGATE_TEST_OF_A_VARIABLE_THAT_NOBODY_SETS\""));
    expect!["FOLDER/toolgate.toml:4:16: the secret `token` of the plugin a: cannot read the file FOLDER/token: No such file or directory (os error 2)"].assert_eq(&wrong("file = \"token\""));
    for content in ["", "\n", "short", "hunter2\u{1}hunter2", &"hunter2".repeat(20_000)] {
        std::fs::write(folder.path().join("token"), content).expect("a file");
        let said = wrong("file = \"token\"");
        assert!(said.contains("FOLDER/toolgate.toml:4:16: the secret `token` of the plugin a: "), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
    std::fs::write(folder.path().join("token"), "hunter2hunter2\r\n").expect("a file");
    let config = config("file = \"token\"");
    let values = config.secrets().expect("is there");
    let settings = config.registry(folder.path(), &values);
    let grants = settings.grants(&PluginName::new("a").expect("a name"));
    let expected = capabilities::secrets::SecretValue::new("hunter2hunter2").expect("a secret");
    assert_eq!(grants.secrets[0].value, expected);
    assert!(grants.capabilities().holds(capabilities::Capability::Config));
    for shown in [format!("{config:?}"), format!("{values:?}"), format!("{settings:?}")] {
        assert!(shown.contains("token") && !shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn overlapping_folders_are_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let at = |path: &str| place.path().join(path);
    for folder in [
        "work/in", "read/in", "data", "plugins", "policies", "keys", "conf", "tls", "own", "modules", "tokens",
        "search", "bin", "scripts",
    ] {
        std::fs::create_dir_all(at(folder)).expect("a folder");
    }
    std::fs::write(at("keys/token"), "hunter2hunter2").expect("a file");
    for file in ["policies/rules.toml", "scripts/script.js"] {
        std::fs::write(at(file), "").expect("a file");
    }
    for (link, target) in [
        ("alias", "work"),
        ("work/out", "../read"),
        ("read/in/more", "../.."),
        ("conf/script.js", "../scripts/script.js"),
    ] {
        std::os::unix::fs::symlink(target, at(link)).expect("a link");
    }
    let (read, write) = ("write = false", "write = true");
    let said = |grants: &[(&str, &str)]| {
        let folders = grants.iter().enumerate().map(|(n, (path, write))| {
            format!("[[plugin.p{n}.grants.folders]]\npath = \"../{path}\"\nat = \"/d\"\n{write}\n[plugin.p{n}]\ncomponent = \"any\"\n")
        });
        let text = format!(
            "data = \"../data\"\nplugins = \"../plugins\"\npolicies.files = [\"../policies/rules.toml\"]\n\
             server.tls = {{ certificate = \"../tls/c.pem\", key = \"../tls/k.pem\" }}\n\
             [upstream.own]\ncommand = [\"node\", \"server.js\", \"--import=../modules/more.mjs\"]\nfolder = \"../own\"\n\
             env.TOKEN.file = \"../tokens/token\"\nenv.PATH.value = \"/bin:../search\"\n\
             [upstream.here]\ncommand = [\"../bin/server\", \"script.js\"]\n[plugin.keys]\n\
             component = \"any\"\ngrants.secrets.token = {{ {} }}\n{}",
            SECRET.replace("env = \"T\"", "file = \"../keys/token\""),
            folders.collect::<String>()
        );
        std::fs::write(at("conf/toolgate.toml"), text).expect("a file");
        let read = Config::read(Some(&at("conf/toolgate.toml")));
        let opened = read.and_then(|config| config.secrets().map(drop));
        opened.map_or_else(|error| error.to_string(), |()| "fine".to_owned())
    };
    for (grants, expected) in [
        (&[("read", read), ("read/in", read)][..], "fine"),
        (&[("work", write), ("read", read)], "fine"),
        (&[("work", write), ("work/in", read)], "of the plugin p0, and p0 may write"),
        (&[("work/in", read), ("work", write)], "of the plugin p0, and p1 may write"),
        (&[("work", write), ("work", write)], "of the plugin p0, and p0 may write"),
        (&[("work", write), ("alias/in", read)], "of the plugin p0, and p0 may write"),
        // Its target is elsewhere, but the plugin can change the link before the next start.
        (&[("work", write), ("work/out", read)], "of the plugin p0, and p0 may write"),
        (&[("data", read)], "overlaps the data folder"),
        (&[("data/components", read)], "overlaps the data folder"),
        (&[("plugins", read)], "overlaps the plugins folder"),
        (&[("policies", read)], "overlaps the rules in"),
        (&[("keys", read)], "overlaps the secret in"),
        (&[("tls", read)], "overlaps the TLS file"),
        (&[("conf", read)], "overlaps the configuration file"),
        (&[("tokens", write)], "overlaps the secret in"),
        (&[("own", write)], "overlaps the folder of the upstream own"),
        (&[("own/modules", write)], "overlaps the folder of the upstream own"),
        (&[("bin", write)], "overlaps the command of the upstream here, which names"),
        (&[("scripts", write)], "overlaps the command of the upstream here, which names"),
        (&[("modules", write)], "overlaps the command of the upstream own, which names"),
        (&[("search", write)], "overlaps the command of the upstream own, which names"),
        (&[("", read)], "overlaps the data folder"),
        (&[("read/in/more", write)], "overlaps the data folder"),
        (&[("none", read)], "does not exist, and it is granted to the plugin p0"),
    ] {
        let said = said(grants);
        assert!(said.contains(expected), "{grants:?}: {said}");
    }
}

/// Who writes to it chooses the server that gets the password and keeps the turns.
#[cfg(feature = "postgres")]
#[test]
fn folder_with_the_authorities_of_the_store_is_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("toolgate.toml");
    std::fs::create_dir(place.path().join("authorities")).expect("a folder");
    let read = |authorities: &str| {
        let authorities = place.path().join(authorities);
        let url =
            format!("postgres://u@db/t?sslmode=verify-full&sslrootcert={}&connect_timeout=3", authorities.display());
        let folder = "[[plugin.p.grants.folders]]\npath = \"authorities\"\nat = \"/d\"\nwrite = true\n[plugin.p]\ncomponent = \"any\"\n";
        std::fs::write(&file, format!("store = \"{url}\"\n{folder}")).expect("a file");
        let mut config = Config::read(Some(&file))?;
        (config.data, config.plugins) = (Some(place.path().join("data")), Some(place.path().join("plugins")));
        config.secrets().map(drop)
    };
    read("elsewhere/ca.pem").expect("nothing overlaps");
    for file in ["authorities/ca.pem", "%61uthorities%2Fca.pem"] {
        let said = read(file).expect_err("it overlaps").to_string();
        assert!(said.contains("overlaps the authorities of the store in"), "{said}");
    }
}

#[test]
fn folder_with_a_secret_of_the_store_is_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("toolgate.toml");
    std::fs::create_dir(place.path().join("granted")).expect("a folder");
    for key in ["password_file", "key_file"] {
        let read = |secret: &str| {
            let store = format!("[store]\nurl = \"postgres://u@db/t\"\n{key} = \"{secret}\"\n");
            let folder =
                "[[plugin.p.grants.folders]]\npath = \"granted\"\nat = \"/d\"\n[plugin.p]\ncomponent = \"any\"\n";
            std::fs::write(&file, format!("{store}{folder}")).expect("a file");
            let mut config = Config::read(Some(&file))?;
            (config.data, config.plugins) = (Some(place.path().join("data")), Some(place.path().join("plugins")));
            config.secrets().map(drop)
        };
        read("elsewhere/secret").expect("nothing overlaps");
        let said = read("granted/secret").expect_err("it overlaps").to_string();
        assert!(said.contains("overlaps the secret in"), "{key}: {said}");
    }
}

#[test]
fn a_folder_that_reaches_compiled_code_is_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("toolgate.toml");
    std::fs::create_dir(place.path().join("home")).expect("a folder");
    let text =
        "[[plugin.p.grants.folders]]\npath = \"home\"\nat = \"/d\"\nwrite = true\n[plugin.p]\ncomponent = \"any\"\n";
    std::fs::write(&file, text).expect("a file");
    let mut config = Config::read(Some(&file)).expect("a configuration");
    config.data = Some(place.path().join("data"));
    config.plugins = Some(place.path().join("plugins"));
    config.secrets().expect("nothing overlaps");
    config.user_cache = Some(place.path().join("home/.cache/toolgate/compiled"));
    let said = config.secrets().expect_err("the plugin could write code that the host runs").to_string();
    assert!(said.contains("overlaps the folder of compiled code"), "{said}");
}

#[test]
fn a_folder_with_accepted_upstream_tools_is_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let at = |path: &str| place.path().join(path);
    for folder in ["conf", "pins"] {
        std::fs::create_dir(at(folder)).expect("a folder");
    }
    std::fs::write(at("pins/pins.json"), "{}").expect("a file");
    std::os::unix::fs::symlink("../pins/pins.json", at("conf/toolgate.upstreams.json")).expect("a link");
    let said = |upstream: &str| {
        let grant = "[[plugin.p.grants.folders]]\npath = \"../pins\"\nat = \"/d\"\nwrite = true\n[plugin.p]\ncomponent = \"any\"\n";
        std::fs::write(at("conf/toolgate.toml"), format!("{grant}{upstream}")).expect("a file");
        let config = Config::read(Some(&at("conf/toolgate.toml"))).and_then(|config| config.secrets().map(drop));
        config.map_or_else(|error| error.to_string(), |()| "fine".to_owned())
    };
    assert_eq!(said(""), "fine");
    let said = said("[upstream.a]\ncommand = [\"a\"]\n");
    assert!(said.contains("overlaps the accepted tools of upstreams in"), "{said}");
}

#[test]
fn wrong_manifest_is_reported_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = |text: &str| {
        let file = folder.path().join("toolgate-plugin.toml");
        std::fs::write(&file, text).expect("a file");
        let said = manifest(&file).map_or_else(|error| error.to_string(), |_| "fine".to_owned());
        said.replace(&folder.path().display().to_string(), "FOLDER")
    };
    assert_eq!(said(""), "fine");
    expect!["FOLDER/toolgate-plugin.toml:3:7: `why` is 5, and it must be a text in quotes"]
        .assert_eq(&said("[[wants.http]]\nurl = \"https://a.example/\"\nwhy = 5"));
    expect![[
        r#"FOLDER/toolgate-plugin.toml:2:7: "ftp://a.example/" is not a rule for requests: the scheme must be http or https"#
    ]]
    .assert_eq(&said("[[wants.http]]\nurl = \"ftp://a.example/\"\nwhy = \"a\""));
    expect!["FOLDER/toolgate-plugin.toml:2:1: there is no key `sockets` here; the keys are `keyvalue`, `http`, `config`, `folders`, `secrets`, `calls`"].assert_eq(&said("[wants]\nsockets = true"));
    expect!["FOLDER/toolgate-plugin.toml:2:2: config: a has no `why`; add the reason, which the operator reads"]
        .assert_eq(&said("\n[[wants.config]]\nname = \"a\"\nwhy = \"\""));
}

/// The page of limits: the tables of the configuration that have limits, with the texts of its schema.
#[expect(clippy::expect_used, reason = "tests fail by panicking")]
fn limits_page() -> String {
    const TABLES: [&str; 7] = ["catalog", "compile", "limits", "quota", "server", "retention", "approvals"];
    let schema = serde_json::to_value(Config::schema()).expect("JSON");
    let text = |of: &serde_json::Value| of["description"].as_str().unwrap_or_default().replace('\n', " ");
    let rows = |of: &serde_json::Value| {
        let keys = of["properties"].as_object().expect("an object").iter();
        let limits = keys.filter(|(_, key)| key["type"].to_string().contains("integer"));
        limits.map(|(name, key)| format!("| `{name}` | {} |\n", text(key))).collect::<String>()
    };
    let mut page = format!("{LIMITS}\n## Keys outside of tables\n\n| key | limit |\n|---|---|\n{}", rows(&schema));
    for name in TABLES {
        let reference = schema["properties"][name].to_string();
        let (_, inside) = reference.split_once("#/$defs/").expect("a reference");
        let table = &schema["$defs"][inside.split('"').next().expect("a name")];
        page += &format!("\n## `[{name}]`\n\n{}\n\n| key | limit |\n|---|---|\n{}", text(table), rows(table));
    }
    let upstream = &schema["$defs"]["UpstreamTable"];
    page += &format!("\n## `[upstream.NAME]`\n\n{UPSTREAM}\n\n| key | limit |\n|---|---|\n{}", rows(upstream));
    page
}

const UPSTREAM: &str =
    "The limits of one upstream MCP server. Its messages, answers and log lines have limits that nobody can
change: [the how-to](how-to/use-upstream-mcp-servers.md#limits) lists them.";

/// The beginning of the page of limits.
const LIMITS: &str = "# Limits

Everything that a plugin, a caller or a client can make the host do has a limit. The operator sets limits in `toolgate.toml`:

```toml
[catalog]
schema_bytes = 131072

[limits]
time_ms = 60000
```

A table `[plugin.NAME.limits]` sets limits of one plugin. A message about a limit names its key, such as `catalog.schema_bytes`. A
declaration also has limits that the operator cannot change, such as 32 levels of a schema: [the interface](../wit/v0.1/plugin.wit)
lists them. The name of a tool in a call (256 bytes), a turn's context (64 KiB), the data of an answer (1 MiB), a comment (8 KiB), a log-in (4 KiB) and
a component (64 MiB) have fixed limits too; the message says so. A test writes this page from the configuration.

In the schemas of a plugin, `format` is a description: models and clients get it, and the host checks no value against it. The host checks `pattern`.

The cost of checking one value against a schema is limited too, and nobody can change this limit. Ordinary records of 1 MiB are far below it. A `pattern` that looks
ahead, such as that of many libraries for e-mail addresses, costs more: 80,000 of the shortest addresses pass, and 100,000 are refused as too large to check.
";

#[test]
fn page_of_limits_matches_the_configuration() {
    expect_file!["../../../docs/limits.md"].assert_eq(&limits_page());
}

#[test]
fn published_schema_matches_the_configuration() {
    let schema = serde_json::to_string_pretty(&Config::schema()).expect("JSON");
    expect_file!["../../../docs/toolgate.schema.json"].assert_eq(&format!("{schema}\n"));
}
