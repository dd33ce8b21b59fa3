//! The pages of `docs/how-to`. Those for users are followed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::json;
use toolgate_tests::guests::fixture;

use super::{Page, pages, root};

/// Pages for those who change toolgate itself. Most of their commands are tests, which CI runs anyway. The others write files that
/// CI compares.
const FOR_DEVELOPERS: [&str; 7] = [
    "add-a-capability.md",
    "add-a-command.md",
    "add-a-format.md",
    "add-a-language.md",
    "add-a-record-version.md",
    "add-a-store.md",
    "add-a-wit-version.md",
];

/// Functions that the commands of a page use.
pub(super) const HOST: &str = include_str!("host.sh");

const AGENT: &str = "toolgate token create --name agent --role caller > agent.token\n";

/// A page whose reader has the plugin `bank` and the token of an agent, and has run these commands.
fn after(commands: &str) -> Page {
    Page { before: format!("{HOST}{AGENT}{commands}"), ..Page::default() }
}

/// Puts the plugin `bank` into the folder of a page. Its tools return their arguments.
pub(super) fn fill(folder: &Path) {
    let parameters = json!({
        "type": "object",
        "properties": {"amount": {"type": "number"}, "to": {"type": "string"}},
        "required": ["amount"],
    });
    let tool =
        |name: &str, approval: &str| json!({"name": name, "approval": approval, "parameters": parameters.to_string()});
    let tools = json!([tool("pay", "auto"), tool("refund", "requires-approval")]);
    fs::create_dir(folder.join("plugins")).unwrap();
    fs::write(folder.join("plugins/bank.wasm"), fixture(&tools)).unwrap();
}

/// Pages that have settings and no commands that run here. `tests/tests/postgres.rs` and `hosts.rs` use such settings.
const WITHOUT_COMMANDS: [&str; 2] = ["use-postgresql.md", "run-several-hosts.md"];

macro_rules! how_to {
    ($($test:ident: $name:literal, $page:expr;)*) => {
        $(#[test]
        fn $test() {
            Page { name: concat!("docs/how-to/", $name).to_owned(), ..$page }.follow();
        })*

        /// The pages that are followed.
        pub(super) const FOLLOWED: &[&str] = &[$(concat!("docs/how-to/", $name)),*];

        #[test]
        fn every_page_is_followed_or_for_developers() {
            let all = [$($name),*].into_iter().chain(FOR_DEVELOPERS).chain(WITHOUT_COMMANDS).map(str::to_owned);
            assert_eq!(pages("how-to"), BTreeSet::from_iter(all));
        }
    };
}

how_to! {
    add_a_plugin: "add-a-plugin.md", Page { builds: true, ..Page::default() };

    ask_people: "ask-people.md", Page {
        stand_ins: &[("susp_…", "$(waiting)"), ("turn_…", "$(turn)")],
        ..after("toolgate token create --name alice --role approver --group finance > alice.token; start")
    };

    back_up_and_salvage: "back-up-and-salvage.md", Page {
        stand_ins: &[("/var/lib/toolgate", "toolgate-data"), ("1041:sha256:9f86d081…", "$(checkpoint)")],
        ..after("start; submit pay call_1")
    };

    embed: "embed.md", Page {
        // The same program, which CI has built with the tests.
        stand_ins: &[("cargo run -p toolgate --example embed -- ", "$(dirname $(command -v toolgate))/examples/embed ")],
        ..after("folder=plugins/target/wasm32-wasip2/release; mkdir -p $folder; cp $REPOSITORY/$folder/textkit.wasm $folder")
    };

    grant_access: "grant-access.md", Page {
        stand_ins: &[("sha256:7d0c…", "$(digest dist/ledger.wasm)")],
        ..after(include_str!("ledger.sh"))
    };

    keep_and_remove: "keep-and-remove.md", after("start; submit pay call_1");

    log_in_and_link: "log-in-and-link.md", Page {
        stand_ins: &[
            ("susp_…", "$(waiting)"),
            ("http://127.0.0.1:7420", "$url"),
        ],
        ..after("start; submit refund call_1; TOKEN=$(cat toolgate-data/admin-token)")
    };

    receive_webhooks: "receive-webhooks.md", Page {
        after: include_str!("webhooks.sh"),
        ..after("export PAGER_SECRET=0123456789abcdef01234567 AGENT_SECRET=0123456789abcdef01234567")
    };

    use_from_mcp_clients: "use-from-mcp-clients.md", Page {
        stand_ins: &[("http://127.0.0.1:7420", "$url")],
        ..after("start")
    };

    use_upstream_mcp_servers: "use-upstream-mcp-servers.md", Page {
        stand_ins: &[
            ("/usr/local/bin/files-server", "$(dirname $(command -v toolgate))/toolgate-test-upstream"),
            ("sha256:31ad…", "$(toolgate upstream review files --json | sed -n 's/.*\"digest\": *\"\\(sha256:[0-9a-f]*\\)\".*/\\1/p')"),
        ],
        ..Page::default()
    };

    verify_a_component: "verify-a-component.md", Page {
        stand_ins: &[
            ("https://example.org/hello", "$source"),
            ("sha256:4c5e…", "$new"),
            ("sha256:99ab…", "$old"),
        ],
        builds: true,
        ..after(include_str!("source.sh"))
    };

    verify_the_audit: "verify-the-audit.md", Page {
        stand_ins: &[
            ("turn_01935a7c…", "$(turn)"),
            ("/var/lib/toolgate", "stopped"),
            ("http://127.0.0.1:7420", "$url"),
            ("1041:sha256:9f86d081…", "$(checkpoint)"),
            ("ed25519:Kx8…", "$key"),
        ],
        ..after(include_str!("checkpoint.sh"))
    };

    write_a_dynamic_policy: "write-a-dynamic-policy.md", Page {
        stand_ins: &[
            ("production/target", "$CARGO_TARGET_DIR"),
            ("sha256:…", "$(digest policies/production.wasm)"),
            ("http://127.0.0.1:7420", "$url"),
        ],
        builds: true,
        ..after("start")
    };

    write_policies: "write-policies.md", Page {
        stand_ins: &[("http://127.0.0.1:7420", "$url")],
        ..after(include_str!("rules.sh"))
    };

    write_a_workflow: "write-a-workflow.md", Page {
        stand_ins: &[("susp_…", "$(waiting)")],
        ..after("cp $REPOSITORY/plugins/target/wasm32-wasip2/release/rollout.wasm plugins; start")
    };
}

#[test]
fn program_on_the_page_about_embedding_compiles() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let (page, library) = (read("docs/how-to/embed.md"), read("host/toolgate/src/lib.rs"));
    let (_, program) = page.split_once("```rust\n").unwrap();
    let (program, _) = program.split_once("```").unwrap();
    let compiled: String = program.lines().map(|line| format!("//! {line}").trim_end().to_owned() + "\n").collect();
    assert!(library.contains(&compiled), "the example of the library is another program; doc tests compile that");
}
