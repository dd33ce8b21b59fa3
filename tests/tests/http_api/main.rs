//! The HTTP API of the real binary, for a caller, an approver, a client and an operator.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod calls;
mod channels;
mod durable;
mod ends;
mod external;
mod formats;
mod interrupted;
mod journal;
mod lingering;
mod lowered;
mod matrix;
mod nested;
mod replies;
mod roles;
mod streams;
mod submitting;
mod syncs;
mod workflow;

use serde_json::{Value, json};

/// A transfer between the accounts that [`opened`] makes.
fn transfer(id: &str, amount: u64) -> Value {
    let arguments = json!({"from": "alice", "to": "bob", "amount_cents": amount});
    json!({"id": id, "tool": "ledger_transfer", "arguments": arguments})
}

/// A call that ends at once.
fn stats(id: &str) -> Value {
    json!({"id": id, "tool": "text_stats", "arguments": {"text": "to be or not to be"}})
}

/// A host with the text tools and a ledger with two accounts.
fn ledger_host(settings: &str) -> toolgate_tests::host::Host {
    let setup = toolgate_tests::host::Setup::with(&["ledger", "textkit"]).settings(settings);
    opened(setup.start())
}

fn opened(host: toolgate_tests::host::Host) -> toolgate_tests::host::Host {
    for account in ["alice", "bob"] {
        let opened = host.agent.call("opening", "ledger_open", json!({"account": account, "opening_balance": 1000}));
        assert_eq!(opened["calls"][0]["outcome"], "ok", "{opened:#}");
    }
    host
}

/// The balance of an account.
fn balance(host: &toolgate_tests::host::Host, account: &str) -> u64 {
    let turn = host.agent.call("balances", "ledger_balance", json!({"account": account}));
    turn["calls"][0]["content"]["result"]["balance_cents"].as_u64().unwrap_or_else(|| panic!("{turn:#}"))
}
