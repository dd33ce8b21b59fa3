//! The accounts of the soak. The plugin `ledger` keeps them in its key-value data, and calls of all workers move money
//! between them.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::host::Host;
use crate::http::{Client, outcomes};
use crate::random::Random;

const ACCOUNTS: usize = 4;

/// The first balance of each account. No sum of transfers exceeds it.
const OPENED_WITH: u64 = 1_000_000;

/// The maximum amount of a transfer.
const MAX_AMOUNT: usize = 500;

/// The ledger keeps a record of each transfer forever. So a soak of any length has at most this many, spread over its
/// turns, and other calls read.
const MAX_TRANSFERS: u64 = 256;

/// The conversation of the calls that belong to no worker.
const CONVERSATION: &str = "soak-ledger";

/// The ledger of one soak.
pub(super) struct Ledger {
    turns: u64,
    begun: AtomicU64,
}

impl Ledger {
    /// Opens the accounts, for a soak of this many turns.
    pub(super) fn open(host: &Host, turns: u64) -> Self {
        for number in 0..ACCOUNTS {
            let arguments = json!({"account": account(number), "opening_balance": OPENED_WITH});
            result(&host.agent, "ledger_open", arguments);
        }
        Self { turns, begun: AtomicU64::new(0) }
    }

    /// The arguments of a transfer, if the turn with this number may make another.
    pub(super) fn transfer(&self, turn: u64, random: &mut Random) -> Option<Value> {
        let due = turn * MAX_TRANSFERS / self.turns;
        let next = |begun| (begun < due).then_some(begun + 1);
        self.begun.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let amount = 1 + random.below(MAX_AMOUNT);
        Some(json!({"from": account(from), "to": account(to), "amount_cents": amount}))
    }

    /// The arguments of a read of any account.
    pub(super) fn read(random: &mut Random) -> Value {
        json!({"account": account(random.below(ACCOUNTS))})
    }

    /// Checks that each transfer happened once, and that no money appeared or disappeared.
    pub(super) fn check(&self, host: &Host) -> Result<()> {
        let audit = result(&host.agent, "ledger_audit", json!({}));
        let total = ACCOUNTS as u64 * OPENED_WITH;
        let transfers = self.begun.load(Ordering::Relaxed);
        let expected = json!({
            "accounts": ACCOUNTS, "total_cents": total, "opened_cents": total, "transfers": transfers, "declined": 0,
            "unfinished": 0,
        });
        ensure!(audit == expected, "the ledger has {audit}, and should have {expected}");
        Ok(())
    }
}

fn account(number: usize) -> String {
    format!("a{number}")
}

/// The result of a call that runs at once.
fn result(by: &Client, tool: &str, arguments: Value) -> Value {
    let turn = by.settled(&by.call(CONVERSATION, tool, arguments));
    assert_eq!(outcomes(&turn), ["ok"], "{turn:#}");
    turn["calls"][0]["content"]["result"].clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_are_bounded_and_spread_over_the_soak() {
        for (turns, expected) in [(5_000, 255), (1_000_000, 255), (100, 99)] {
            let ledger = Ledger { turns, begun: AtomicU64::new(0) };
            let mut random = Random::new(1);
            let mut made = |turns: std::ops::Range<u64>| {
                turns.filter(|turn| ledger.transfer(*turn, &mut random).is_some()).count() as u64
            };
            let first = made(0..turns / 2);
            assert_eq!((first + made(turns / 2..turns), first.abs_diff(expected / 2) <= 1), (expected, true));
        }
    }
}
