//! The laws after all faults.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolgate_tests::host::{Host, say};
use toolgate_tests::http::outcomes;

use super::load::Given;
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

/// The ledger, checked call by call.
struct Books {
    /// The entries in the data of the plugin that belong to no call yet, by the ids of their calls.
    entries: BTreeMap<String, Value>,
    balances: [i64; ACCOUNTS],
    moved: usize,
    /// The transfers that failed, and those of them that moved nothing after they had written their order.
    failed: usize,
    unfinished: usize,
}

impl Books {
    fn of(world: &World) -> Self {
        // A reader completes the transfers that stopped between their two accounts.
        audit(&world.hosts[0]);
        // Rows of a name contain it.
        let entries = "SELECT coalesce(json_agg(convert_from(value, 'UTF8')::json), '[]') FROM toolgate.plugin_values \
            WHERE position('transfer/'::bytea IN key) > 0";
        let entries: Vec<Value> = serde_json::from_str(&world.query(entries)).unwrap();
        let count = entries.len();
        let memo = |entry: &Value| entry["order"]["memo"].as_str().unwrap().to_owned();
        let entries: BTreeMap<_, _> = entries.into_iter().map(|entry| (memo(&entry), entry)).collect();
        assert_eq!(entries.len(), count, "a transfer has two entries: {entries:#?}");
        Self { entries, balances: [OPENED_WITH; ACCOUNTS], moved: 0, failed: 0, unfinished: 0 }
    }

    /// Each outcome has its entry, and an entry moves its money once. A transfer fails only if its host cannot reach the data of the
    /// plugin in the middle of it. Then the call is not repeated, and its last write may have happened. So only the entry says whether
    /// it moved money. Nothing else is allowed for.
    fn transfer(&mut self, call: &Value, answer: Option<&str>) {
        let arguments = &call["arguments"];
        let entry = self.entries.remove(call["id"].as_str().unwrap());
        let order = entry.as_ref().map(|entry| &entry["order"]);
        assert!(order.is_none_or(|order| order == arguments), "{entry:?}: {call:#}");
        let state = entry.as_ref().map(|entry| entry["state"].as_str().unwrap_or("declined"));
        let error = call["content"]["error"]["code"].as_str();
        match (call["outcome"].as_str().unwrap(), error, answer, state) {
            ("ok", None, Some("approve") | None, Some("posted")) => {}
            ("denied", _, Some("deny") | None, None) => {}
            ("failed", Some("tool_unavailable"), Some("approve") | None, None | Some("intended" | "posted")) => {
                self.failed += 1;
                self.unfinished += usize::from(state == Some("intended"));
            }
            _ => panic!("a transfer that was answered {answer:?} has the entry {entry:?}: {call:#}"),
        }
        if state == Some("posted") {
            let account = |side: &str| arguments[side].as_str().unwrap()[1..].parse::<usize>().unwrap();
            let cents = arguments["amount_cents"].as_i64().unwrap();
            self.balances[account("from")] -= cents;
            self.balances[account("to")] += cents;
            self.moved += 1;
        }
    }

    /// The accounts have exactly this.
    fn close(&self, host: &Host) {
        assert!(self.entries.is_empty(), "transfers that nobody ordered: {:#?}", self.entries);
        assert!(self.moved > 0, "no transfer succeeded");
        let all = OPENED_WITH * i64::try_from(ACCOUNTS).unwrap();
        let (moved, unfinished) = (self.moved, self.unfinished);
        let sums = json!({
            "accounts": ACCOUNTS, "total_cents": all, "opened_cents": all, "transfers": moved, "declined": 0, "unfinished": unfinished,
        });
        assert_eq!(audit(host), sums);
        for (number, expected) in self.balances.iter().enumerate() {
            let turn = host.agent.call("balances", "ledger_balance", json!({"account": format!("a{number}")}));
            assert_eq!(turn["calls"][0]["content"]["result"]["balance_cents"], *expected, "a{number}: {turn:#}");
        }
    }
}

/// The sums of the ledger.
fn audit(host: &Host) -> Value {
    let turn = host.agent.call("balances", "ledger_audit", json!({}));
    assert_eq!(outcomes(&turn), ["ok"], "{turn:#}");
    turn["calls"][0]["content"]["result"].clone()
}

/// No host responded with an outcome that is not in the store.
fn is_in_store(seen: &Value, turn: &Value) {
    let (call, stored) = (&seen["calls"][0], &turn["calls"][0]);
    assert!(call["outcome"].is_null() || call == stored, "a host responded with {seen:#}, and the store has {turn:#}");
}

pub(super) fn check(world: &World) {
    let (hosts, record) = (&world.hosts, &world.load.record);
    let (turns, answers, seen) = (record.turns(), record.answers(), record.seen());
    let mut by_call: BTreeMap<&str, Vec<&Given>> = BTreeMap::new();
    for given in answers.values() {
        by_call.entry(&given.call).or_default().push(given);
    }
    let mut books = Books::of(world);
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
    assert!(by_call.is_empty(), "answers to calls that nobody submitted: {by_call:?}");
    books.close(&hosts[0]);
    for host in hosts {
        let verified = host.cli(Some(&host.admin), &["audit", "verify", "--url", &host.admin.url()]);
        assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    }
    let (turns, answers) = (turns.len(), answers.len());
    let seen: usize = seen.values().map(Vec::len).sum();
    let Books { moved, failed, .. } = books;
    say(&format!(
        "{turns} turns, {seen} responses with turns, {answers} answers, {moved} transfers moved money, {failed} failed"
    ));
}
