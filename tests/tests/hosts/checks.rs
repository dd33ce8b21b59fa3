//! The laws after all faults.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolgate_tests::host::{Host, say};

use super::load::{Given, Record};
use super::{ACCOUNTS, OPENED_WITH, World};

/// Returns when all acknowledged turns have ended. The answerers still answer.
pub(super) fn until_settled(world: &mut World) {
    for path in world.load.record.turns().keys() {
        world.until("end of a turn", None, |world| {
            let turn = world.hosts[0].agent.get(path);
            turn.status == 200 && turn.json()["state"] == "settled"
        });
    }
}

/// The ledger according to the outcomes.
struct Books {
    balances: [i64; ACCOUNTS],
    moved: usize,
    /// The sums of the transfers from and to each account that may have happened, or be halfway.
    unknown: [[i64; 2]; ACCOUNTS],
}

impl Books {
    fn transfer(&mut self, call: &Value, answer: Option<&str>) {
        let arguments = &call["arguments"];
        let account = |side: &str| arguments[side].as_str().unwrap()[1..].parse::<usize>().unwrap();
        let cents = arguments["amount_cents"].as_i64().unwrap();
        let outcome = call["outcome"].as_str().unwrap();
        match (outcome, answer) {
            // The data of the plugin could not be reached.
            ("failed" | "in_doubt", Some("approve") | None) => {
                self.unknown[account("from")][0] += cents;
                self.unknown[account("to")][1] += cents;
            }
            ("ok", Some("approve") | None) => {
                self.balances[account("from")] -= cents;
                self.balances[account("to")] += cents;
                self.moved += 1;
            }
            ("denied", Some("deny") | None) => {}
            _ => panic!("a transfer that was answered {answer:?}: {call:#}"),
        }
    }
}

/// No host responded with an outcome that is not in the store.
fn is_in_store(seen: &Value, turn: &Value) {
    let (call, stored) = (&seen["calls"][0], &turn["calls"][0]);
    assert!(call["outcome"].is_null() || call == stored, "a host responded with {seen:#}, and the store has {turn:#}");
}

pub(super) fn check(hosts: &[Host], record: &Record) {
    let (turns, answers, seen) = (record.turns(), record.answers(), record.seen());
    let mut by_call: BTreeMap<&str, Vec<&Given>> = BTreeMap::new();
    for given in answers.values() {
        by_call.entry(&given.call).or_default().push(given);
    }
    let mut books = Books { balances: [OPENED_WITH; ACCOUNTS], moved: 0, unknown: [[0; 2]; ACCOUNTS] };
    for (path, submitted) in &turns {
        let [turn, other] = [&hosts[2], &hosts[0]].map(|host| host.agent.get(path).ok(200));
        assert_eq!(turn, other, "a turn is the same at each host");
        seen[path].iter().for_each(|seen| is_in_store(seen, &turn));
        let call = &turn["calls"][0];
        for member in ["id", "tool", "arguments"] {
            assert_eq!(call[member], submitted[member], "{turn:#}");
        }
        let given = by_call.remove(call["id"].as_str().unwrap()).unwrap_or_default();
        let (outcome, result) = (call["outcome"].as_str().unwrap(), &call["content"]["result"]);
        match call["tool"].as_str().unwrap() {
            "ledger_transfer" => {
                books.transfer(call, given.first().map(|given| given.body["decision"].as_str().unwrap()));
            }
            // Nobody may have answered in time.
            "get_location" if outcome == "expired" => assert!(given.is_empty(), "{turn:#}"),
            "get_location" => {
                assert_eq!(outcome, "ok", "{turn:#}");
                assert!(given.iter().all(|given| given.body["data"] == *result), "{given:?}: {turn:#}");
            }
            _ => {
                assert_eq!(outcome, "ok", "{turn:#}");
                let (name, color) = result.as_str().unwrap().split_once(" likes ").unwrap();
                let in_result = [json!({"name": name}), json!({"color": color})];
                assert!(given.iter().all(|given| in_result.contains(&given.body["data"])), "{given:?}: {turn:#}");
            }
        }
    }
    assert!(books.moved > 0, "no transfer succeeded");
    assert!(by_call.is_empty(), "answers to calls that nobody submitted: {by_call:?}");
    for (number, expected) in books.balances.iter().enumerate() {
        let turn = hosts[0].agent.call("balances", "ledger_balance", json!({"account": format!("a{number}")}));
        let found = turn["calls"][0]["content"]["result"]["balance_cents"].as_i64().unwrap();
        let [from, to] = books.unknown[number];
        let possible = expected - from..=expected + to;
        assert!(possible.contains(&found), "a{number} has {found}, and {possible:?} is possible: {turn:#}");
    }
    for host in hosts {
        let verified = host.cli(Some(&host.admin), &["audit", "verify", "--url", &host.admin.url()]);
        assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    }
    let (turns, answers, moved) = (turns.len(), answers.len(), books.moved);
    let seen: usize = seen.values().map(Vec::len).sum();
    let unknown: i64 = books.unknown.iter().map(|[from, _]| from).sum();
    say(&format!(
        "{turns} turns, {seen} responses with turns, {answers} answers, {moved} transfers, {unknown} cents in transfers that failed"
    ));
}
