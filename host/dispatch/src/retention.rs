//! Removes ended turns as the operator's rules say. The audit keeps that each turn was there, and why it was removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::{ConversationId, PrincipalId, Span, Timestamp, Turn, retention::RemovalRule};

use crate::committer::Committer;
use crate::ports::{
    AppendError, Commit, EndedTurn, FaultKind, Loaded, NewFacts, Store, StoreFault, TurnToRemove, TurnsToRemove,
};
use crate::shared::Shared;

/// Rows of ended turns that are read at once.
const PAGE: usize = 256;

/// Turns that one commit removes. Their records are read one turn at a time.
const AT_ONCE: usize = 64;

/// How long ended turns are kept. The default keeps everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionRules {
    /// How long an ended turn is kept.
    pub turns: Option<Span>,
    /// The size of the records of all ended turns. Beyond it, the oldest turns are removed.
    pub bytes: Option<u64>,
    /// How long an ended turn with a call of a tool is kept, where that is shorter.
    pub tools: BTreeMap<String, Span>,
    /// The turns that no rule removes.
    pub hold: Hold,
    /// How long a running host pauses between two removals.
    pub interval: Span,
}

impl Default for RetentionRules {
    fn default() -> Self {
        Self {
            turns: None,
            bytes: None,
            tools: BTreeMap::new(),
            hold: Hold::default(),
            interval: Span::from_secs(60 * 60),
        }
    }
}

/// A legal hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hold {
    pub conversations: BTreeSet<ConversationId>,
    /// The principals who submitted the turns.
    pub callers: BTreeSet<PrincipalId>,
}

impl RetentionRules {
    fn keeps_everything(&self) -> bool {
        self.turns.is_none() && self.bytes.is_none() && self.tools.is_empty()
    }

    fn holds(&self, turn: &EndedTurn) -> bool {
        self.hold.conversations.contains(&turn.conversation) || self.hold.callers.contains(&turn.caller)
    }

    /// The strictest rule by age that a turn is past.
    fn by_age(&self, turn: &EndedTurn, now: Timestamp) -> Option<RemovalRule> {
        let all = self.turns.map(|kept| (kept, RemovalRule::Age { kept }));
        let tools = turn.tools.iter().filter_map(|tool| {
            let kept = *self.tools.get(tool)?;
            Some((kept, RemovalRule::Tool { tool: tool.clone(), kept }))
        });
        let (kept, rule) = all.into_iter().chain(tools).min_by_key(|(kept, _)| *kept)?;
        (turn.at + kept <= now).then_some(rule)
    }

    /// Turns that ended after this are too young for every rule by age.
    fn youngest(&self, now: Timestamp) -> Timestamp {
        let shortest = self.turns.iter().chain(self.tools.values()).min();
        shortest.map_or(Timestamp::from_millis(0), |kept| {
            Timestamp::from_millis(now.millis().saturating_sub(kept.millis()))
        })
    }
}

/// The result of a removal, or of a dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The removed turns, by rule.
    pub removed: BTreeMap<RemovalRule, Amount>,
    /// Turns that a rule would remove, and that a hold keeps.
    pub held: Amount,
    /// Turns that a rule would remove, and that wait for a delivery to a webhook.
    pub undelivered: Amount,
}

/// Turns, and the size of their records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    pub turns: u64,
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.turns += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Whether turns are removed, or only counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Remove,
    DryRun,
}

/// Removes what the rules no longer keep, in a store without a host. A dry run only counts it.
///
/// # Errors
/// [`StoreFault`]; some turns may be removed.
pub async fn prune(
    store: Arc<dyn Store>,
    rules: RetentionRules,
    now: Timestamp,
    mode: Mode,
) -> Result<Pruned, StoreFault> {
    let committer = Arc::new(Committer::without_host(store.clone()));
    let retention = Retention { store, committer, rules };
    let pruned = retention.prune(now, mode).await;
    if mode == Mode::Remove {
        // Also after a fault: some turns may be removed.
        let reclaimed = retention.store.reclaim().await;
        return pruned.and_then(|pruned| reclaimed.map(|_| pruned));
    }
    pruned
}

/// Removes turns while the host runs.
pub(crate) struct Retention {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) committer: Arc<Committer>,
    pub(crate) rules: RetentionRules,
}

impl Retention {
    /// Works for as long as the host runs.
    pub(crate) async fn watch(self, shared: Arc<Shared>) {
        if self.rules.keeps_everything() {
            return;
        }
        // A killed host may have left large records of turns that it removed.
        let mut reclaims = true;
        loop {
            let now = shared.clock.now();
            match self.prune(now, Mode::Remove).await {
                Ok(pruned) => {
                    for (rule, Amount { turns, bytes }) in &pruned.removed {
                        tracing::info!(%rule, turns, bytes, "ended turns were removed");
                    }
                    if let (false, Ok(head)) = (pruned.removed.is_empty(), self.store.head().await) {
                        tracing::info!(%head, "the head of the audit log after the removal");
                        reclaims = true;
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "ended turns could not be removed");
                    // Some of them may be removed.
                    reclaims = true;
                }
            }
            if reclaims {
                match self.store.reclaim().await {
                    Ok(files) => {
                        tracing::debug!(files, "large records that nothing refers to were removed");
                        reclaims = false;
                    }
                    Err(error) => tracing::error!(%error, "large records could not be removed"),
                }
            }
            // Counted from the end, so that a long removal is not followed by another one at once.
            shared.clock.sleep_until(shared.clock.now() + self.rules.interval).await;
        }
    }

    /// Walks the ended turns, oldest first.
    async fn prune(&self, now: Timestamp, mode: Mode) -> Result<Pruned, StoreFault> {
        let mut pruned = Pruned::default();
        let mut excess = match self.rules.bytes {
            Some(kept) => self.size().await?.saturating_sub(kept),
            None => 0,
        };
        let youngest = self.rules.youngest(now);
        let mut batch: Vec<(RemovalRule, TurnToRemove)> = Vec::new();
        let mut after = None;
        loop {
            let page = self.store.ended(after, PAGE).await?;
            let is_last = page.len() < PAGE;
            for (turn, bytes) in page {
                after = Some(turn.key());
                if excess == 0 && turn.at > youngest {
                    return self.removed(batch, now, mode, pruned).await;
                }
                let by_bytes = || Some(excess).filter(|excess| *excess > 0).and(self.rules.bytes);
                let rule = self.rules.by_age(&turn, now);
                let rule = rule.or_else(|| by_bytes().map(|kept| RemovalRule::Bytes { kept }));
                let Some(rule) = rule else { continue };
                if self.rules.holds(&turn) {
                    pruned.held.add(bytes);
                    continue;
                }
                match self.prepared(turn, bytes).await? {
                    Prepared::Ready(turn) => {
                        excess = excess.saturating_sub(bytes);
                        batch.push((rule, turn));
                    }
                    Prepared::Undelivered => pruned.undelivered.add(bytes),
                    Prepared::Skipped => {}
                }
            }
            // The next page begins after a key, so the removal does not disturb the walk.
            pruned = self.removed(std::mem::take(&mut batch), now, mode, pruned).await?;
            if is_last {
                return Ok(pruned);
            }
        }
    }

    /// The size of the records of all ended turns.
    async fn size(&self) -> Result<u64, StoreFault> {
        let (mut size, mut after) = (0_u64, None);
        loop {
            let page = self.store.ended(after, PAGE).await?;
            size = page.iter().map(|(_, bytes)| *bytes).fold(size, u64::saturating_add);
            let Some((last, _)) = page.last() else { return Ok(size) };
            after = Some(last.key());
        }
    }

    /// Finds everything that points to a turn.
    async fn prepared(&self, ended: EndedTurn, bytes: u64) -> Result<Prepared, StoreFault> {
        let loaded = match self.store.load(ended.turn).await {
            Ok(Loaded::Found(loaded)) => loaded,
            Ok(Loaded::Removed(_) | Loaded::Absent) => return Ok(Prepared::Skipped),
            // One damaged turn must not keep all later ones.
            Err(fault) if fault.kind == FaultKind::Damaged => {
                tracing::error!(turn = %ended.turn, %fault, "an ended turn cannot be read, so it is not removed");
                return Ok(Prepared::Skipped);
            }
            Err(fault) => return Err(fault),
        };
        let Some(turn) = Turn::replay(&loaded.events) else {
            tracing::error!(turn = %ended.turn, "an ended turn has no beginning, so it is not removed");
            return Ok(Prepared::Skipped);
        };
        let suspensions = turn.calls.iter().flat_map(|call| &call.suspensions);
        let suspensions: Vec<_> = suspensions.map(|(suspension, _)| suspension.id).collect();
        for id in &suspensions {
            if self.store.deliveries(*id).await?.iter().any(|row| row.next().is_some()) {
                return Ok(Prepared::Undelivered);
            }
        }
        Ok(Prepared::Ready(TurnToRemove { ended, bytes, commits: loaded.version, suspensions }))
    }

    /// Removes these turns, with one commit for each rule and each few turns.
    async fn removed(
        &self,
        batch: Vec<(RemovalRule, TurnToRemove)>,
        at: Timestamp,
        mode: Mode,
        mut pruned: Pruned,
    ) -> Result<Pruned, StoreFault> {
        let mut by_rule: BTreeMap<RemovalRule, Vec<TurnToRemove>> = BTreeMap::new();
        for (rule, turn) in batch {
            by_rule.entry(rule).or_default().push(turn);
        }
        for (rule, turns) in by_rule {
            for turns in turns.chunks(AT_ONCE) {
                let removed = match mode {
                    Mode::Remove => self.remove(&rule, turns, at).await?,
                    Mode::DryRun => turns.iter().map(|turn| turn.bytes).collect(),
                };
                for bytes in removed {
                    pruned.removed.entry(rule.clone()).or_default().add(bytes);
                }
            }
        }
        Ok(pruned)
    }

    /// Removes the turns that have not changed since they were read. Returns the size of each.
    async fn remove(&self, rule: &RemovalRule, turns: &[TurnToRemove], at: Timestamp) -> Result<Vec<u64>, StoreFault> {
        let commit = |turns: &[TurnToRemove]| -> Commit {
            NewFacts::Removal(TurnsToRemove { at, rule: rule.clone(), turns: turns.to_vec() }).into()
        };
        let failed = |error: AppendError| error.into_fault("remove ended turns");
        match self.committer.record(commit(turns)).await {
            Ok(()) => return Ok(turns.iter().map(|turn| turn.bytes).collect()),
            // One changed turn keeps all of them, so each gets a commit of its own.
            Err(AppendError::Changed) => {}
            Err(error) => return Err(failed(error)),
        }
        let mut removed = Vec::new();
        for turn in turns {
            match self.committer.record(commit(std::slice::from_ref(turn))).await {
                Ok(()) => removed.push(turn.bytes),
                Err(AppendError::Changed) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(removed)
    }
}

/// Whether a turn can be removed.
enum Prepared {
    Ready(TurnToRemove),
    /// A webhook has not got a message about it yet.
    Undelivered,
    /// It was removed meanwhile, or cannot be read.
    Skipped,
}
