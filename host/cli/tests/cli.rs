//! The binary without a plugin and without a host: what it refuses, how it says so, and with which exit code.

#![expect(clippy::expect_used, reason = "tests fail by panicking")]

#[path = "cli/json.rs"]
mod json;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use expect_test::{Expect, expect, expect_file};

fn toolgate(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    // Variables that a developer has set for another host.
    for name in ["URL", "TOKEN", "DATA", "CONFIG", "CONVERSATION", "LOG", "CACHE"] {
        command.env_remove(format!("TOOLGATE_{name}"));
    }
    command.args(arguments).current_dir(folder).env("NO_COLOR", "1").output().expect("the binary runs")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn check(arguments: &[&str], code: i32, expect: &Expect) {
    let output = toolgate(folder().path(), arguments);
    expect.assert_eq(&String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code));
}

/// The help of a command and of its subcommands.
fn help(folder: &Path, command: &[&str], said: &mut Vec<(String, String)>) {
    let output = toolgate(folder, &[command, &["--help"]].concat());
    assert!(output.status.success(), "{command:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let below = text.split("\nCommands:\n").nth(1).unwrap_or_default();
    let below: Vec<_> =
        below.lines().take_while(|line| !line.is_empty()).filter(|line| line.starts_with("  ")).collect();
    let names = below.iter().filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    let names: Vec<_> = names.filter(|name| *name != "help").collect();
    said.push((["toolgate"].iter().chain(command).copied().collect::<Vec<_>>().join("-"), text.clone()));
    for name in names {
        help(folder, &[command, &[name]].concat(), said);
    }
}

/// The help is committed, so that a review shows changed options. `UPDATE_EXPECT=1 cargo test -p toolgate-cli --test
/// cli` writes the files again.
#[test]
fn help_of_every_command_matches_the_page() {
    let (folder, mut said) = (folder(), Vec::new());
    help(folder.path(), &[], &mut said);
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    for (name, text) in &said {
        expect_file![written.join(format!("{name}.txt"))].assert_eq(text);
    }
    let names: BTreeSet<_> = said.iter().map(|(name, _)| format!("{name}.txt")).collect();
    let files = std::fs::read_dir(&written).expect("a folder");
    let files: BTreeSet<_> = files.map(|file| file.expect("a file").file_name().into_string().expect("text")).collect();
    assert_eq!(files, names, "there is one file for each command and no other file");
    assert!(names.len() > 20 && names.contains("toolgate-token-create.txt"), "{names:?}");
}

#[test]
fn unreachable_host_is_reported() {
    check(
        &["pending", "--url", "http://127.0.0.1:1"],
        3,
        &expect![[r#"
        error: cannot reach a host at http://127.0.0.1:1
          because: io: Connection refused (os error 111)
        hint: start one with `toolgate serve`, or name its address with --url or TOOLGATE_URL
    "#]],
    );
    check(
        &["pending", "--url", "nonsense url"],
        2,
        &expect![[r#"
        error: "nonsense url" is not the address of a host
          because: invalid uri character
    "#]],
    );
    check(
        &["pending", "--url", "127.0.0.1:7420"],
        2,
        &expect![[r#"
        error: "127.0.0.1:7420" is not the address of a host
          because: it does not begin with http:// or https://
        hint: try http://127.0.0.1:7420
    "#]],
    );
}

/// Listens in place of a host, and runs a command with the token `secret` that finds its address in a data folder.
/// Returns what the command said, and what the listener heard.
fn token_for(address: impl FnOnce(u16) -> Option<String>, mode: u32, url: bool, runs: bool) -> (Output, String) {
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::PermissionsExt as _;

    let (folder, listener) = (folder(), std::net::TcpListener::bind("127.0.0.1:0").expect("a port"));
    let port = listener.local_addr().expect("an address").port();
    let data = folder.path().join("toolgate-data");
    std::fs::create_dir(&data).expect("a folder");
    let file = address(port).map(|address| {
        let mut file = std::fs::File::create(data.join("address")).expect("a file");
        file.write_all(address.as_bytes()).expect("writes");
        file
    });
    // A running host holds the lock of its file.
    let _host = file.filter(|_| runs).inspect(|file| file.lock().expect("locks"));
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(mode)).expect("sets the mode");
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut heard = vec![0; 4096];
        let read = stream.read(&mut heard).expect("reads");
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}");
        String::from_utf8_lossy(&heard[..read]).into_owned()
    });
    let mut words = vec!["tools", "--token", "secret"];
    let named = format!("http://127.0.0.1:{port}");
    words.extend(url.then_some(["--url", &named]).into_iter().flatten());
    let said = toolgate(folder.path(), &words);
    // The listener ends in any case.
    let _ = std::net::TcpStream::connect(("127.0.0.1", port)).and_then(|mut end| end.write_all(b"nothing"));
    (said, heard.join().expect("no panic"))
}

#[cfg(unix)]
#[test]
fn token_goes_only_to_the_address_of_an_own_folder() {
    let local = |port| Some(format!("http://127.0.0.1:{port}\n"));
    let is_sent = |heard: &str| heard.contains("Bearer secret");
    assert!(is_sent(&token_for(local, 0o700, false, true).1), "the user's own host");
    assert!(is_sent(&token_for(|_| None, 0o755, true, false).1), "a host that the user named");
    for (address, mode, runs, expected) in [
        (Some("http://127.0.0.1:PORT"), 0o755, true, "other users can access the folder; its mode must be 0700"),
        (Some("http://127.0.0.1:PORT"), 0o710, true, "other users can access the folder; its mode must be 0700"),
        (Some("http://127.0.0.1.example:PORT"), 0o700, true, "which is not on this machine only"),
        (Some("http://127.0.0.1:PORT"), 0o700, false, "no host runs on"),
        (None, 0o700, true, "no host runs on"),
    ] {
        let (said, heard) =
            token_for(|port| address.map(|address| address.replace("PORT", &port.to_string())), mode, false, runs);
        let text = String::from_utf8_lossy(&said.stderr);
        assert!(text.contains(expected) && text.contains("--url"), "{address:?} {mode:o}: {text}");
        assert!(!said.status.success() && !is_sent(&heard), "{address:?} {mode:o}: {heard}");
    }
}

#[test]
fn submitted_file_is_checked_before_a_host_is_needed() {
    for (text, fault) in [
        ("null and void", "more text follows the value at line 1 column 6"),
        ("not json", "no JSON value begins like this at line 1 column 1"),
        ("{\"calls\":\n[", "the text ends inside an array at line 2 column 1"),
    ] {
        let folder = folder();
        std::fs::write(folder.path().join("bad.json"), text).expect("written");
        let said = toolgate(folder.path(), &["submit", "bad.json"]);
        let expected = format!("error: bad.json is not JSON\n  because: {fault}\nhint: save the whole answer");
        assert!(String::from_utf8_lossy(&said.stderr).starts_with(&expected), "{said:?}");
        assert_eq!(said.status.code(), Some(2));
    }
}

#[test]
fn usage_errors_name_the_remedy() {
    check(
        &["tools"],
        3,
        &expect![[r#"
        error: no host runs on toolgate-data
        hint: start one with `toolgate serve`, or name its address with --url or TOOLGATE_URL
    "#]],
    );
    check(
        &["show", "call_1"],
        2,
        &expect![[r#"
        error: "call_1" is the id of neither a suspension nor a turn
        hint: ids begin with susp_ or turn_; `toolgate pending` shows both
    "#]],
    );
    check(
        &["new", "Hello World"],
        2,
        &expect![[r#"
        error: "Hello World" cannot be the name of a plugin
        hint: a name has 1 to 50 of the characters a-z 0-9 _ - and begins with a letter
    "#]],
    );
    check(
        &["call", "word_count", "{}"],
        2,
        &expect![[r#"
        error: there is no plugin folder at plugins
        hint: name one with --plugins, or name a component's file instead of the tool
    "#]],
    );
    check(
        &["call", "x.wasm", "{not json"],
        2,
        &expect![[r#"
        error: the arguments are not valid JSON
          because: a key must be in double quotes at line 1 column 2
        hint: write them like '{"text":"to be"}'
    "#]],
    );
    check(
        &["check", "missing.wasm"],
        2,
        &expect![[r#"
        error: cannot read missing.wasm
          because: No such file or directory (os error 2)
        hint: name a component's file: `toolgate build` makes build/NAME.wasm
    "#]],
    );
    check(
        &["store", "export"],
        1,
        &expect![[r#"
        error: there is no store in toolgate-data/store
        hint: name the host's data folder with --data
    "#]],
    );
    check(
        &["token", "revoke", "nobody", "--data", "."],
        1,
        &expect![[r#"
        error: there is no token with the name nobody
    "#]],
    );
    assert_eq!(toolgate(folder().path(), &["approve", "susp_1"]).status.code(), Some(2));
    assert_eq!(
        toolgate(folder().path(), &["answer", "susp_01935a7c000070008000000000000001", "yes"]).status.code(),
        Some(2)
    );
}

#[test]
fn folder_and_missing_token_file_have_one_hint() {
    check(
        &["config", "--config", "."],
        2,
        &expect![[r#"
            error: cannot read the configuration .
              because: Is a directory (os error 21)
            hint: it is a folder; name a file
        "#]],
    );
    check(
        &["turns", "--url", "http://127.0.0.1:9", "--token-file", "nofile"],
        2,
        &expect![[r#"
            error: cannot read the token in nofile
              because: No such file or directory (os error 2)
            hint: correct the path, or make the file readable
        "#]],
    );
}

#[test]
fn check_goes_on_after_a_file_that_it_cannot_check() {
    check(
        &["check", "missing.wasm", "a b.wasm", "other.wasm"],
        2,
        &expect![[r#"
            error: cannot read missing.wasm
              because: No such file or directory (os error 2)
            hint: name a component's file: `toolgate build` makes build/NAME.wasm
            error: cannot read a b.wasm
              because: No such file or directory (os error 2)
            hint: name a component's file: `toolgate build` makes build/NAME.wasm
            error: cannot read other.wasm
              because: No such file or directory (os error 2)
            hint: name a component's file: `toolgate build` makes build/NAME.wasm
        "#]],
    );
}

#[test]
fn wrong_configuration_is_reported_with_its_place() {
    let folder = folder();
    std::fs::write(folder.path().join("toolgate.toml"), "polcy = []\n").expect("a file");
    let output = toolgate(folder.path(), &["serve"]);
    assert_eq!(output.status.code(), Some(2));
    expect![[r#"
        error: toolgate.toml:1:1: there is no key `polcy` here; the keys are `listen`, `plugins`, `data`, `store`, `hosts`, `approve_own_calls`, `questions_in_clients`, `approve_on_expiry`, `client_grace_ms`, `expires_ms`, `queue_ms`, `max_attempts`, `max_steps`, `step_bytes`, `nesting_depth`, `nested_calls`, `journal_entries`, `journal_bytes`, `max_calls`, `turn_results_bytes`, `ephemeral`, `pool`, `guest_memory_bytes`, `disk_reserve_bytes`, `database_cache_bytes`, `require_declaration`, `compile`, `catalog`, `limits`, `quota`, `retention`, `approvals`, `door`, `server`, `oauth`, `plugin`, `upstream`, `policy`, `policies`, `webhook`
        hint: did you mean `policy`?
        hint: `toolgate config --schema` prints every key of the file
    "#]].assert_eq(&String::from_utf8_lossy(&output.stderr));
    std::fs::write(folder.path().join("toolgate.toml"), "listen = \"0.0.0.0:0\"\n").expect("a file");
    let output = toolgate(folder.path(), &["serve"]);
    assert_eq!(output.status.code(), Some(2));
    expect![[r#"
        error: the configuration would open the host to other machines at 0.0.0.0:0
        hint: if you want that, repeat it on the command line: --listen 0.0.0.0:0
    "#]]
    .assert_eq(&String::from_utf8_lossy(&output.stderr));
    let output = toolgate(folder.path(), &["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(output.status.code(), Some(2));
    expect![[r#"
        error: other machines could reach 0.0.0.0:0, and tokens would cross the network in the clear
        hint: name a certificate in `[server.tls]`, or write `behind_proxy = true` in `[server]` if a proxy serves HTTPS
    "#]]
    .assert_eq(&String::from_utf8_lossy(&output.stderr));
    std::fs::write(folder.path().join("toolgate.toml"), "server.tls = { certificate = \"c.pem\", key = \"k.pem\" }\n")
        .expect("a file");
    let output = toolgate(folder.path(), &["serve", "--listen", "0.0.0.0:0"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot serve HTTPS") && said.contains("cannot read c.pem"), "{said}");
}

#[test]
fn tokens_are_made_listed_and_revoked() {
    let folder = folder();
    let run = |arguments: &[&str]| {
        let output = toolgate(folder.path(), arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let token =
        run(&["token", "create", "--name", "alice", "--role", "approver", "--role", "client", "--conversation", "c"]);
    assert!(token.starts_with("tg_") && token.trim().len() == 46, "{token}");
    let list = run(&["token", "list"]);
    assert!(list.starts_with("alice  approver, client  only c  since 20"), "{list}");
    assert!(list.contains("\nadmin  admin  since 20"), "the first token comes with an admin token: {list}");
    let json = run(&["token", "list", "--json"]);
    let row: serde_json::Value = serde_json::from_str(json.lines().next().expect("a row")).expect("JSON");
    assert_eq!((&row["name"], &row["roles"][0]), (&"alice".into(), &"approver".into()));
    run(&["token", "revoke", "alice"]);
    run(&["token", "revoke", "admin"]);
    run(&["token", "create", "--name", "bob", "--role", "caller"]);
    run(&["token", "revoke", "bob"]);
    assert_eq!(run(&["token", "list"]), "");
}

#[test]
fn new_plugin_needs_no_other_files() {
    let folder = folder();
    let output = toolgate(folder.path(), &["new", "hello"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let plugin = folder.path().join("hello");
    for file in [
        "Cargo.toml",
        "src/lib.rs",
        "README.md",
        ".gitignore",
        ".cargo/config.toml",
        "toolgate/sdk/rust/Cargo.toml",
        "toolgate/sdk/rust/src/lib.rs",
        "toolgate/wit/v0.1/plugin.wit",
        "toolgate/wit/v0.1/deps/keyvalue/store.wit",
    ] {
        assert!(plugin.join(file).is_file(), "{file}");
    }
    let manifest = std::fs::read_to_string(plugin.join("Cargo.toml")).expect("a file");
    assert!(manifest.contains("name = \"hello\"") && manifest.contains("path = \"toolgate/sdk/rust\""), "{manifest}");
    assert!(!manifest.contains("{{"), "{manifest}");
    assert_eq!(toolgate(folder.path(), &["new", "hello"]).status.code(), Some(1), "an existing folder is left alone");
}

#[test]
fn the_schema_of_the_configuration_is_json() {
    let output = toolgate(folder().path(), &["config", "--schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(schema["title"], "toolgate.toml");
}

#[test]
fn address_without_a_port_and_misspelt_folder_are_refused() {
    for (listen, expected) in [
        ("127.0.0.1", "expected an IP address and a port; try 127.0.0.1:7420"),
        ("::1", "expected an IP address and a port; try [::1]:7420"),
        (":8080", "expected an IP address and a port; try 127.0.0.1:8080"),
        ("localhost:8080", "expected an IP address and a port, such as 127.0.0.1:7420 or [::1]:7420"),
    ] {
        let output = toolgate(folder().path(), &["serve", "--listen", listen]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(expected), "{listen}: {said}");
        assert_eq!(output.status.code(), Some(2));
    }
    let folder = folder();
    let output = toolgate(folder.path(), &["serve", "--plugins", "plugns", "--listen", "127.0.0.1:0"]);
    expect![[r#"
        error: there is no plugin folder at plugns
        hint: check the name, or make the folder: mkdir -p plugns
    "#]]
    .assert_eq(&String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is made");
}

/// An address with another scheme is not made right by a second one.
#[test]
fn only_an_address_without_a_scheme_gets_one() {
    for (url, hint) in [("example.com:1", "hint: try http://example.com:1\n"), ("ftp://x/", "")] {
        let output = toolgate(folder().path(), &["status", "--url", url]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.ends_with(&format!("it does not begin with http:// or https://\n{hint}")), "{url}: {said}");
        assert_eq!(output.status.code(), Some(2));
    }
}

/// One list in `toolgate --help`, and a line in each command that points to it.
#[test]
fn shared_options_are_listed_once() {
    let (folder, mut said) = (folder(), Vec::new());
    help(folder.path(), &[], &mut said);
    let (root, commands) = said.split_first().expect("the help of toolgate");
    for option in ["--url <URL>", "--token <TOKEN>", "--token-file <FILE>", "--log <FILTER>", "--log-format <FORMAT>"] {
        assert_eq!(root.1.matches(option).count(), 1, "{option}: {}", root.1);
        for (name, text) in commands {
            assert!(!text.contains(option), "{name} {option}");
            assert!(text.contains("`toolgate --help` lists the options for the "), "{name}: {text}");
        }
    }
    let output = toolgate(folder.path(), &["token", "list", "--log", "[", "--log-format", "json"]);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("the log filter is invalid"),
        "a hidden option is accepted"
    );
}

#[test]
fn completions_and_manual_pages_come_from_the_commands() {
    let folder = folder();
    for (shell, expected) in [("bash", "--token-file"), ("zsh", "#compdef toolgate"), ("fish", "complete -c toolgate")]
    {
        let output = toolgate(folder.path(), &["completions", shell]);
        let script = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && script.contains(expected), "{shell}");
        assert!(script.contains("conversations") && script.contains("revoke"), "{shell}");
    }
    let bash = toolgate(folder.path(), &["completions", "bash"]);
    std::fs::write(folder.path().join("toolgate.bash"), bash.stdout).expect("writes");
    let typed = "source toolgate.bash; COMP_WORDS=(toolgate conv); COMP_CWORD=1; _toolgate toolgate conv toolgate; \
                 echo \"${COMPREPLY[@]}\"";
    let completed = Command::new("bash").args(["-c", typed]).current_dir(folder.path()).output().expect("bash runs");
    assert_eq!(String::from_utf8_lossy(&completed.stdout), "conversations\n");

    // The options of a host are also completed in front of the command.
    for (shell, commands) in
        [("bash", "toolgate__subcmd__answer)"), ("zsh", "case $state in"), ("fish", "-a \"serve\"")]
    {
        let script = String::from_utf8(toolgate(folder.path(), &["completions", shell]).stdout).expect("text");
        let (front, _) = script.split_once(commands).unwrap_or_else(|| panic!("{shell}: {script}"));
        let option = if shell == "fish" { "-l url" } else { "--url" };
        assert!(front.contains(option), "{shell}: {front}");
    }

    let written = toolgate(folder.path(), &["man", "pages", "--json"]);
    assert_eq!(String::from_utf8_lossy(&written.stdout), "{\"folder\":\"pages\"}\n");
    let mut said = Vec::new();
    help(folder.path(), &[], &mut said);
    for (name, _) in said {
        let page = std::fs::read_to_string(folder.path().join(format!("pages/{name}.1"))).expect("a page");
        assert!(page.contains(".TH ") && page.contains(".SH SYNOPSIS"), "{name}: {page}");
    }
}
