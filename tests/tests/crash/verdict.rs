//! The checks after all kills, on the host that was started last.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolgate_tests::host::Host;

use crate::drivers::Record;
use crate::{ACCOUNTS, CONVERSATION, OPENED_WITH};

/// Compares the acknowledged requests with the host's state, and the ledger with both. Returns the number of calls that
/// ran again because of a kill.
pub(crate) fn check(host: &Host, record: &Record) -> usize {
    let answers = answers(host, record);
    let mut balances: BTreeMap<String, i64> = (0..ACCOUNTS).map(|n| (format!("a{n}"), OPENED_WITH as i64)).collect();
    let (mut applied, mut interrupted) = (0, 0);
    for (id, calls) in record.turns() {
        let path = format!("/v1/conversations/{CONVERSATION}/turns/{id}");
        let turn = host.agent.settled(&host.agent.get(&path).ok(200));
        assert_eq!(turn["state"], "settled", "{turn:#}");
        let settled = turn["calls"].as_array().unwrap();
        assert_eq!(settled.len(), calls.as_array().unwrap().len(), "{turn:#}");
        for (call, submitted) in settled.iter().zip(calls.as_array().unwrap()) {
            for member in ["id", "tool", "arguments"] {
                assert_eq!(call[member], submitted[member], "{turn:#}");
            }
            interrupted += usize::from(call["attempt"].as_u64() > Some(1));
            let (outcome, decided) = (call["outcome"].as_str().unwrap(), answers.get(call["id"].as_str().unwrap()));
            match (call["tool"].as_str().unwrap(), decided.map(String::as_str)) {
                ("text_stats", None) => {
                    assert_eq!(outcome, "ok", "{call:#}");
                    assert_eq!(call["content"]["result"]["words"], 6, "{call:#}");
                }
                ("ask_user", Some(decision)) => {
                    assert_eq!(outcome, "ok", "{call:#}");
                    let shown = call["content"]["result"].to_string();
                    assert!(shown.contains(decision), "answered {decision}: {call:#}");
                }
                ("ledger_transfer", Some("deny")) => {
                    assert_eq!((outcome, &call["attempt"]), ("denied", &json!(0)), "{call:#}");
                }
                ("ledger_transfer", Some("approve")) => {
                    assert_eq!(outcome, "ok", "{call:#}");
                    let amount = submitted["arguments"]["amount_cents"].as_i64().unwrap();
                    let account = |side: &str| submitted["arguments"][side].as_str().unwrap().to_owned();
                    *balances.get_mut(&account("from")).unwrap() -= amount;
                    *balances.get_mut(&account("to")).unwrap() += amount;
                    applied += 1;
                }
                (tool, decided) => panic!("a call of {tool} that was answered {decided:?}: {call:#}"),
            }
        }
    }
    ledger(host, &balances, applied);
    interrupted
}

/// The decision about each call, by its id. Checks that the host has the acknowledged decision and the audit has it
/// once.
fn answers(host: &Host, record: &Record) -> BTreeMap<String, String> {
    let mut audited: BTreeMap<String, usize> = BTreeMap::new();
    let mut after = String::new();
    loop {
        let page = host.admin.get(&format!("/v1/audit?limit=500{after}")).ok(200);
        for entry in page["entries"].as_array().unwrap() {
            if let Some(suspension) = entry["suspension"].as_str() {
                *audited.entry(suspension.to_owned()).or_default() += 1;
            }
        }
        match page["next"].as_u64() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    let mut by_call = BTreeMap::new();
    for (suspension, given) in record.answers() {
        let [(name, decision)] = given.as_slice() else { panic!("{suspension} was resolved twice: {given:?}") };
        let found = host.admin.get(&format!("/v1/suspensions/{suspension}")).ok(200);
        assert_eq!(found["closed"]["by"], *name, "{found:#}");
        assert_eq!(found["closed"]["decision"], *decision, "{found:#}");
        assert_eq!(audited.get(&suspension), Some(&1), "the audit of {suspension}");
        by_call.insert(found["call"].as_str().unwrap().to_owned(), decision.clone());
    }
    by_call
}

fn ledger(host: &Host, balances: &BTreeMap<String, i64>, applied: u64) {
    let result = |turn: Value| turn["calls"][0]["content"]["result"].clone();
    for (account, expected) in balances {
        let held = result(host.agent.call(CONVERSATION, "ledger_balance", json!({"account": account})));
        assert_eq!(held["balance_cents"], *expected, "{account} after {applied} transfers");
    }
    let audit = result(host.agent.call(CONVERSATION, "ledger_audit", json!({})));
    let total = ACCOUNTS * OPENED_WITH;
    let expected = json!({
        "accounts": ACCOUNTS, "total_cents": total, "opened_cents": total, "transfers": applied, "declined": 0, "unfinished": 0,
    });
    assert_eq!(audit, expected);
}
