//! Tests of the ledger with kills at every write, and with concurrent transfers.

use super::*;
use toolgate_sdk::testing::{Attempt, Memory, check};

fn opened(accounts: &[(&str, u64)]) -> Memory {
    let memory = Memory::new();
    for (account, opening_balance) in accounts {
        let arguments = json!({"account": account, "opening_balance": opening_balance});
        let run = Attempt::at("ledger_open", arguments).key(&format!("open-{account}")).memory(&memory).run(&tools());
        assert_eq!(run.result, Ok(json!({"account": account, "balance_cents": opening_balance})));
    }
    memory
}

fn transfer(memory: &Memory, key: &str, from: &str, to: &str, amount: u64) -> Attempt {
    Attempt::at("ledger_transfer", json!({"from": from, "to": to, "amount_cents": amount})).key(key).memory(memory)
}

fn balance(memory: &Memory, account: &str) -> u64 {
    let run = Attempt::at("ledger_balance", json!({"account": account})).memory(memory).run(&tools());
    run.result.unwrap()["balance_cents"].as_u64().unwrap()
}

fn audit(memory: &Memory) -> Audit {
    let run = Attempt::at("ledger_audit", json!({})).memory(memory).run(&tools());
    Audit::deserialize(run.result.unwrap()).unwrap()
}

#[test]
fn the_declarations_are_legal() {
    check(&tools()).unwrap();
}

#[test]
fn a_repeated_transfer_moves_the_amount_once() {
    let memory = opened(&[("alice", 100), ("bob", 0)]);
    let attempt = transfer(&memory, "k1", "alice", "bob", 30);
    let first = attempt.run(&tools());
    assert_eq!(first.result, Ok(json!({"transfer": "k1", "from": "alice", "to": "bob", "amount_cents": 30})));
    let writes = memory.writes();
    assert_eq!(attempt.clone().number(2).run(&tools()).result, first.result);
    assert_eq!(memory.writes(), writes, "a second attempt at a finished transfer writes nothing");
    assert_eq!((balance(&memory, "alice"), balance(&memory, "bob")), (70, 30));
}

#[test]
fn invalid_orders_change_nothing() {
    let memory = opened(&[("alice", 100), ("bob", 0)]);
    let refused = |from: &str, to: &str| transfer(&memory, "k", from, to, 1).run(&tools()).result.unwrap_err();
    assert!(matches!(refused("alice", "alice"), Failure::InvalidArguments(_)));
    assert!(matches!(refused("alice", "nobody"), Failure::InvalidArguments(_)));
    assert!(matches!(refused("nobody", "alice"), Failure::InvalidArguments(_)));
    let again = Attempt::at("ledger_open", json!({"account": "alice", "opening_balance": 7})).memory(&memory);
    assert!(matches!(again.run(&tools()).result, Err(Failure::InvalidArguments(_))));
    assert_eq!(audit(&memory).total_cents, 100);
    transfer(&memory, "k", "alice", "bob", 1).run(&tools()).result.unwrap();
    let other = transfer(&memory, "k", "alice", "bob", 2).run(&tools()).result;
    assert!(matches!(other, Err(Failure::InvalidArguments(_))), "one key, one transfer");
}

#[test]
fn an_uncovered_transfer_is_declined_for_good() {
    let memory = opened(&[("alice", 10), ("bob", 50)]);
    let attempt = transfer(&memory, "k1", "alice", "bob", 11);
    let declined = attempt.run(&tools()).result;
    assert_eq!(declined, Err(Failure::failed("`alice` holds 10 cents, which does not cover 11")));
    transfer(&memory, "k2", "bob", "alice", 50).run(&tools()).result.unwrap();
    assert_eq!(attempt.run(&tools()).result, declined, "money that came later changes no answer");
    let audit = audit(&memory);
    assert_eq!((audit.total_cents, audit.transfers, audit.declined, audit.unfinished), (60, 1, 1, 0));
}

#[test]
fn the_next_attempt_completes_a_killed_transfer() {
    for (amount, arrives) in [(30, 30), (999, 0)] {
        let mut kills = 0;
        for writes in 0.. {
            let memory = opened(&[("alice", 100), ("bob", 5)]);
            memory.kill_after(writes);
            let attempt = transfer(&memory, "k1", "alice", "bob", amount);
            if attempt.run_or_die(&tools()).is_some() {
                break;
            }
            kills += 1;
            let cents = |account: &str| {
                memory.peek::<Value>(&format!("account/{account}")).unwrap()["balance"].as_u64().unwrap()
            };
            assert!(cents("alice") + cents("bob") <= 105, "no kill makes money");
            let again = attempt.number(2).run(&tools()).result;
            assert_eq!(again.is_ok(), arrives > 0, "after {writes} writes: {again:?}");
            assert_eq!((balance(&memory, "alice"), balance(&memory, "bob")), (100 - arrives, 5 + arrives));
            assert_eq!(audit(&memory).unfinished, 0);
        }
        assert_eq!(kills, if arrives > 0 { 8 } else { 4 }, "the table in `book` counts the writes");
    }
}

/// A cancelled call is not dispatched again.
#[test]
fn next_call_finishes_a_cancelled_transfer() {
    let mut finished = 0;
    for writes in 0..8 {
        let memory = opened(&[("alice", 100), ("bob", 5), ("carol", 0)]);
        memory.kill_after(writes);
        assert!(transfer(&memory, "k1", "alice", "bob", 30).run_or_die(&tools()).is_none());
        assert_eq!(balance(&memory, "carol"), 0, "a call that is about neither account");
        let Audit { total_cents, opened_cents, transfers, unfinished, .. } = audit(&memory);
        assert_eq!(total_cents, opened_cents, "after {writes} writes");
        let moved = balance(&memory, "bob") == 35;
        assert_eq!((transfers, balance(&memory, "alice")), if moved { (1, 70) } else { (0, 100) });
        assert_eq!(unfinished, u64::from(!moved && writes > 0), "after {writes} writes");
        finished += u64::from(moved);
    }
    assert_eq!(finished, 5, "those that were debited");
}

#[test]
fn next_attempt_repairs_a_second_kill_at_any_write() {
    for first in 0..8 {
        for second in 0..8 {
            let memory = opened(&[("alice", 100), ("bob", 5)]);
            let attempt = transfer(&memory, "k1", "alice", "bob", 30);
            memory.kill_after(first);
            assert!(attempt.run_or_die(&tools()).is_none());
            memory.kill_after(second);
            let _killed_or_not = attempt.clone().number(2).run_or_die(&tools());
            memory.spare();
            attempt.number(3).run(&tools()).result.unwrap();
            assert_eq!((balance(&memory, "alice"), balance(&memory, "bob")), (70, 35));
        }
    }
}

/// Four threads move money between three accounts at the same time. Every few writes a call is killed and dispatched
/// again. The accounts are so small that many transfers are declined.
#[test]
fn concurrent_transfers_with_kills_keep_the_total() {
    let memory = opened(&[("a", 40), ("b", 40), ("c", 40)]);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let memory = &memory;
            scope.spawn(move || {
                let names = ["a", "b", "c"];
                for n in 0..100 {
                    let dice = (thread * 1_000 + n).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
                    let from = (dice % 3) as usize;
                    let to = (from + 1 + (dice / 3 % 2) as usize) % 3;
                    let key = format!("t{thread}-{n}");
                    let attempt = transfer(memory, &key, names[from], names[to], 1 + dice % 50);
                    memory.kill_after(dice % 9);
                    while attempt.run_or_die(&tools()).is_none() {}
                }
            });
        }
    });
    let audit = audit(&memory);
    assert_eq!((audit.total_cents, audit.opened_cents, audit.unfinished), (120, 120, 0));
    assert_eq!(audit.transfers + audit.declined, 400);
    assert!(audit.transfers > 100 && audit.declined > 20, "the test tries both: {audit:?}");
}
