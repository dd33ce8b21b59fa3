//! The laws after a kill: the host knows everything that it acknowledged, nothing happened twice, and the ledger's sums
//! are right.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::drivers::{Acknowledged, Record};
use super::{ACCOUNTS, CONVERSATION, OPENED_WITH, Tally};
use crate::host::Host;
use crate::random::Random;

/// Turns that are read again after later kills.
const REREAD: usize = 4;

/// The maximum number of transfers with an unknown effect between two checks. Each of them doubles the search.
const MAX_UNKNOWN: usize = 16;

/// The expected state of the ledger, and the turns that were checked.
pub(super) struct Books {
    /// Whether the disk may be full, which can end a transfer.
    disk_fills: bool,
    balances: BTreeMap<String, i64>,
    applied: u64,
    /// The position in the audit of the last check.
    audited: u64,
    /// Each turn as it ended, by its path.
    ended: Vec<(String, Value)>,
    answers: usize,
    repeated: usize,
    failed: usize,
    reread: usize,
    removed: usize,
    /// The component of each plugin, as the audit says.
    components: BTreeMap<String, String>,
    reloads: usize,
}

/// A transfer with an unknown effect.
struct Unknown {
    from: String,
    to: String,
    cents: i64,
}

impl Books {
    pub(super) fn new(disk_fills: bool) -> Self {
        let opened = i64::try_from(OPENED_WITH).expect("a small sum");
        Self {
            disk_fills,
            balances: (0..ACCOUNTS).map(|n| (format!("a{n}"), opened)).collect(),
            applied: 0,
            audited: 0,
            ended: Vec::new(),
            answers: 0,
            repeated: 0,
            failed: 0,
            reread: 0,
            removed: 0,
            components: BTreeMap::new(),
            reloads: 0,
        }
    }

    /// Compares the acknowledged requests since the last check with the host's state, and the ledger with both.
    pub(super) fn check(&mut self, host: &Host, record: &Record, random: &mut Random) {
        let Acknowledged { turns, answers } = record.take();
        let mut unknown = Vec::new();
        let mut ended = Vec::new();
        for (id, calls) in &turns {
            let path = format!("/v1/conversations/{CONVERSATION}/turns/{id}");
            let turn = host.agent.settled(&host.agent.get(&path).ok(200));
            assert_eq!(turn["state"], "settled", "{turn:#}");
            ended.push((path, turn, calls));
        }
        let decisions = self.decisions(host, &answers);
        for (path, turn, calls) in ended {
            let (settled, calls) = (list(&turn["calls"]), list(calls));
            assert_eq!(settled.len(), calls.len(), "{turn:#}");
            for (call, submitted) in settled.iter().zip(calls) {
                for member in ["id", "tool", "arguments"] {
                    assert_eq!(call[member], submitted[member], "{turn:#}");
                }
                self.call(call, decisions.get(text(&call["id"])).map(String::as_str), &mut unknown);
            }
            self.ended.push((path, turn));
        }
        self.answers += answers.len();
        self.failed += unknown.len();
        self.settle(host, &unknown);
        self.read_again(host, random);
    }

    fn call(&mut self, call: &Value, decision: Option<&str>, unknown: &mut Vec<Unknown>) {
        self.repeated += usize::from(call["attempt"].as_u64() > Some(1));
        let outcome = text(&call["outcome"]);
        match (text(&call["tool"]), decision) {
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
                let [from, to] = ["from", "to"].map(|side| text(&call["arguments"][side]).to_owned());
                let cents = call["arguments"]["amount_cents"].as_i64().expect("a number");
                let transfer = Unknown { from, to, cents };
                // The guest could not write. It may have moved the money before, or never.
                if self.disk_fills && outcome == "failed" && is_of_the_disk(&call["content"]["error"]) {
                    unknown.push(transfer);
                } else {
                    assert_eq!(outcome, "ok", "{call:#}");
                    self.applied += 1;
                    transfer.apply(&mut self.balances);
                }
            }
            (tool, decided) => panic!("a call of {tool} that was answered {decided:?}: {call:#}"),
        }
    }

    /// The decision about each call, by its id. Checks that the host has the acknowledged decision and the audit has it
    /// once.
    fn decisions(
        &mut self,
        host: &Host,
        answers: &BTreeMap<String, Vec<(String, String)>>,
    ) -> BTreeMap<String, String> {
        let mut entries: BTreeMap<String, usize> = BTreeMap::new();
        loop {
            let page = host.admin.get(&format!("/v1/audit?limit=500&after={}", self.audited)).ok(200);
            for entry in list(&page["entries"]) {
                self.audited = self.audited.max(entry["position"].as_u64().expect("a position"));
                if entry["action"] == "plugin.loaded" {
                    let [plugin, component] = ["subject", "digest"].map(|member| text(&entry[member]).to_owned());
                    let before = self.components.insert(plugin, component.clone());
                    self.reloads += usize::from(before.is_some_and(|before| before != component));
                }
                if let Some(suspension) = entry["suspension"].as_str() {
                    *entries.entry(suspension.to_owned()).or_default() += 1;
                }
            }
            match page["next"].as_u64() {
                Some(next) => self.audited = next,
                None => break,
            }
        }
        let mut by_call = BTreeMap::new();
        for (suspension, given) in answers {
            let [(name, decision)] = given.as_slice() else { panic!("{suspension} was resolved twice: {given:?}") };
            let found = host.admin.get(&format!("/v1/suspensions/{suspension}")).ok(200);
            assert_eq!(found["closed"]["by"], *name, "{found:#}");
            assert_eq!(found["closed"]["decision"], *decision, "{found:#}");
            assert_eq!(entries.get(suspension), Some(&1), "the audit of {suspension}");
            by_call.insert(text(&found["call"]).to_owned(), decision.clone());
        }
        by_call
    }

    /// Compares the balances. Each transfer with an unknown effect happened once or never.
    fn settle(&mut self, host: &Host, unknown: &[Unknown]) {
        assert!(unknown.len() <= MAX_UNKNOWN, "a full disk ended {} transfers", unknown.len());
        let mut found = BTreeMap::new();
        for account in self.balances.keys() {
            let held = result(host, "ledger_balance", json!({"account": account}));
            found.insert(account.clone(), held["balance_cents"].as_i64().expect("a balance"));
        }
        let happened = (0..1_u32 << unknown.len()).find(|happened| {
            let mut balances = self.balances.clone();
            for transfer in chosen(unknown, *happened) {
                transfer.apply(&mut balances);
            }
            balances == found
        });
        let of = unknown.len();
        let happened = happened.unwrap_or_else(|| {
            panic!(
                "after {} transfers and {of} of unknown effect: expected {:?}, found {found:?}",
                self.applied, self.balances
            )
        });
        self.applied += u64::from(happened.count_ones());
        self.balances = found;
    }

    /// Turns that ended before earlier kills are as they were, or retention has removed them.
    fn read_again(&mut self, host: &Host, random: &mut Random) {
        for _ in 0..REREAD.min(self.ended.len()) {
            let (path, turn) = random.pick(&self.ended);
            let answer = host.agent.get(path);
            self.reread += 1;
            if answer.status == 410 {
                assert!(self.disk_fills, "nothing removes turns: {}", answer.text);
                answer.problem(410, "removed");
                self.removed += 1;
            } else {
                assert_eq!(answer.ok(200)["calls"], turn["calls"], "{path}");
            }
        }
    }

    /// Compares the ledger's own audit.
    pub(super) fn audited(&self, host: &Host) {
        let audit = result(host, "ledger_audit", json!({}));
        let total = ACCOUNTS * OPENED_WITH;
        let unfinished = audit["unfinished"].as_u64().expect("a number");
        assert!(unfinished <= self.failed as u64, "{audit:#}");
        let expected = json!({
            "accounts": ACCOUNTS, "total_cents": total, "opened_cents": total, "transfers": self.applied, "declined": 0,
            "unfinished": unfinished,
        });
        assert_eq!(audit, expected);
    }

    pub(super) fn count(&self, tally: &mut Tally) {
        tally.turns += self.ended.len();
        tally.answers += self.answers;
        tally.repeated += self.repeated;
        tally.failed += self.failed;
        tally.reread += self.reread;
        tally.removed += self.removed;
        tally.reloads += self.reloads;
    }
}

/// Whether the store failed during a call. A reload ends no call like this.
fn is_of_the_disk(error: &Value) -> bool {
    match text(&error["code"]) {
        // The guest could not write.
        "tool_unavailable" => text(&error["message"]).contains("the host's store failed"),
        // The host could not write.
        "host_fault" => text(&error["message"]).contains("while it ran the tool"),
        _ => false,
    }
}

impl Unknown {
    fn apply(&self, balances: &mut BTreeMap<String, i64>) {
        for (account, cents) in [(&self.from, -self.cents), (&self.to, self.cents)] {
            *balances.get_mut(account).expect("an account of the test") += cents;
        }
    }
}

/// The transfers whose bits are set.
fn chosen(unknown: &[Unknown], bits: u32) -> impl Iterator<Item = &Unknown> {
    unknown.iter().zip(0..).filter(move |(_, n)| bits >> n & 1 == 1).map(|(transfer, _)| transfer)
}

fn result(host: &Host, tool: &str, arguments: Value) -> Value {
    host.agent.call(CONVERSATION, tool, arguments)["calls"][0]["content"]["result"].clone()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_store_can_fail_a_transfer() {
        let store = "cannot access the bucket: the host's store failed";
        for (code, message, expected) in [
            ("tool_unavailable", store, true),
            ("host_fault", "the host failed while it ran the tool; its log says why", true),
            ("tool_unavailable", "the service does not answer", false),
            ("tool_failed", store, false),
            ("host_fault", "the host failed while it ran this call", false),
            ("unknown_tool", "there is no such tool", false),
            ("trapped", "unreachable", false),
        ] {
            assert_eq!(is_of_the_disk(&json!({"code": code, "message": message})), expected, "{code}: {message}");
        }
    }
}
