//! Removes ended turns as the operator's rules say. The audit records that each turn existed, and why it was removed.

mod calls;
mod clock;
mod nested;
mod pruned;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use domain::{ConversationId, PrincipalId, Span, Timestamp, Turn, retention::RemovalRule};
use tokio::sync::watch;

use self::calls::{Forgetting, Reached};
pub use self::pruned::{Amount, Pruned};
use crate::committer::Committer;
use crate::ports::{
    self, AppendError, Audit, CallRecords, Clock, Commit, EndedTurn, FaultKind, Loaded, Log, NewFacts, Outbox, Peers,
    StoreFault, Subject, Tools, TurnToRemove, TurnsToRemove,
};

/// Rows of ended turns that are read at once.
const PAGE: usize = 256;

/// Turns that one commit removes. Their records are read one turn at a time.
const AT_ONCE: usize = 64;

/// How long ended turns are kept. The default keeps everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionRules {
    /// How long an ended turn is kept.
    pub turns: Option<Span>,
    /// The size of the records of all ended turns that no hold keeps. Beyond it, the oldest turns are removed.
    pub bytes: Option<u64>,
    /// How long an ended turn is kept at least before `bytes` removes it.
    pub bytes_after: Span,
    /// How long an ended turn is kept if it has a call of this tool. The shortest time applies.
    pub tools: BTreeMap<String, Span>,
    /// How long an ended turn is kept at least before the declaration of a live tool removes it. `None`: declarations have no
    /// effect.
    pub declared_min: Option<Span>,
    /// How long the logs of the calls of an ended turn are kept, if no rule removes the turn before.
    pub logs: Option<Span>,
    /// How long the journals of the calls of an ended turn are kept, if no rule removes the turn before.
    pub journals: Option<Span>,
    /// The turns that no rule removes.
    pub hold: Hold,
    /// How long a running host pauses between two removals.
    pub interval: Span,
}

impl Default for RetentionRules {
    fn default() -> Self {
        let hour = Span::from_secs(60 * 60);
        let (tools, hold) = (BTreeMap::new(), Hold::default());
        Self {
            turns: None,
            bytes: None,
            bytes_after: hour,
            tools,
            declared_min: None,
            logs: None,
            journals: None,
            hold,
            interval: hour,
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
        let Self { turns, bytes, tools, declared_min, logs, journals, .. } = self;
        let ages = [turns, declared_min, logs, journals];
        ages.iter().all(|age| age.is_none()) && bytes.is_none() && tools.is_empty()
    }

    /// The rules with the times that live tools declare, where they are stricter.
    fn with_declared(&self, live: &dyn Tools) -> Self {
        let mut rules = self.clone();
        let Some(min) = self.declared_min else { return rules };
        for known in live.list() {
            let Some(days) = known.tool.options.retention.and_then(|retention| retention.max_age_days) else {
                continue;
            };
            let kept = Span::from_secs(u64::from(days) * 24 * 60 * 60).max(min);
            let strictest = rules.tools.entry(known.tool.name.to_string()).or_insert(kept);
            *strictest = kept.min(*strictest);
        }
        rules
    }

    fn holds(&self, turn: &EndedTurn) -> bool {
        let conversations = &self.hold.conversations;
        // A hold of a conversation holds its nested turns.
        conversations.contains(&turn.conversation)
            || conversations.contains(&turn.conversation.of_caller())
            || self.hold.callers.contains(&turn.caller)
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

/// A walk over the ended turns.
enum Pass {
    /// Applies the rules by age. `kept` is the size of the turns that stay and that no hold keeps.
    Age { kept: u64 },
    /// Applies the rule by size, until nothing is above it.
    Size { limit: u64, above: u64 },
}

/// The verdict of a pass about a turn.
enum Verdict {
    Keep,
    /// It keeps this turn and all later ones.
    Stop,
    Remove(RemovalRule),
}

impl Pass {
    fn verdict(&mut self, rules: &RetentionRules, turn: &EndedTurn, bytes: u64, now: Timestamp) -> Verdict {
        let rule = rules.by_age(turn, now);
        match self {
            Self::Age { kept } => match rule {
                Some(rule) => Verdict::Remove(rule),
                None if rules.bytes.is_none() && turn.at > rules.youngest(now) => Verdict::Stop,
                None => {
                    *kept = if rules.holds(turn) { *kept } else { kept.saturating_add(bytes) };
                    Verdict::Keep
                }
            },
            Self::Size { above: 0, .. } => Verdict::Stop,
            Self::Size { .. } if turn.at + rules.bytes_after > now => Verdict::Stop,
            // The other pass has dealt with it, or nothing may remove it.
            Self::Size { .. } if rule.is_some() || rules.holds(turn) => Verdict::Keep,
            Self::Size { limit, .. } => Verdict::Remove(RemovalRule::Bytes { kept: *limit }),
        }
    }

    /// The turn can be removed.
    fn removes(&mut self, bytes: u64) {
        if let Self::Size { above, .. } = self {
            *above = above.saturating_sub(bytes);
        }
    }
}

/// How far the logs and the journals of calls were removed before their turns.
#[derive(Default)]
struct Forgotten {
    logs: Reached,
    journals: Reached,
}

/// Whether turns are removed, or only counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Remove,
    DryRun,
}

/// Removes what the rules no longer keep, in a store without a host, and so without declarations of tools. A dry run only
/// counts it.
///
/// # Errors
/// [`StoreFault`]; some turns may be removed.
pub async fn prune(
    log: Arc<dyn Log>,
    outbox: Arc<dyn Outbox>,
    turns: Arc<dyn ports::EndedTurns>,
    rules: RetentionRules,
    now: Timestamp,
    mode: Mode,
) -> Result<Pruned, StoreFault> {
    let committer = Arc::new(Committer::without_host(log.clone()));
    let retention = TurnRemover::new(log, outbox, turns, committer, rules);
    let pruned = retention.prune(None, now, mode, &mut Forgotten::default()).await;
    if mode == Mode::Remove {
        // Also after a fault: some turns may be removed.
        let reclaimed = retention.turns.reclaim().await;
        return pruned.and_then(|pruned| reclaimed.map(|_| pruned));
    }
    pruned
}

/// Removes turns while the host runs.
pub(crate) struct TurnRemover {
    log: Arc<dyn Log>,
    outbox: Arc<dyn Outbox>,
    turns: Arc<dyn ports::EndedTurns>,
    committer: Arc<Committer>,
    rules: RetentionRules,
    /// How far the time of retention is behind the clock, in milliseconds.
    pub(crate) lag: Arc<AtomicU64>,
    /// Notified after each run that removed turns.
    pub(crate) removals: watch::Sender<()>,
}

impl TurnRemover {
    pub(crate) fn new(
        log: Arc<dyn Log>,
        outbox: Arc<dyn Outbox>,
        turns: Arc<dyn ports::EndedTurns>,
        committer: Arc<Committer>,
        rules: RetentionRules,
    ) -> Self {
        Self { log, outbox, turns, committer, rules, lag: Arc::default(), removals: watch::Sender::default() }
    }

    /// Works for as long as the host runs. It logs the head of `audit` after each removal.
    pub(crate) async fn watch(
        self,
        clock: Arc<dyn Clock>,
        audit: Arc<dyn Audit>,
        peers: Arc<dyn Peers>,
        live: Arc<dyn Tools>,
    ) {
        if self.rules.keeps_everything() {
            return;
        }
        // A killed host may have left large records of turns that it removed.
        let mut reclaims = true;
        let mut forgotten = Forgotten::default();
        loop {
            // One of several hosts removes turns.
            while !peers.share().is_first() {
                clock.sleep(self.rules.interval).await;
            }
            let now = clock.now();
            let pruned = match self.time(now).await {
                Ok(time) => self.prune(Some(live.as_ref()), time, Mode::Remove, &mut forgotten).await,
                Err(fault) => Err(fault),
            };
            match pruned {
                Ok(pruned) => {
                    if pruned.above > 0 {
                        let bytes = pruned.above;
                        tracing::warn!(
                            bytes,
                            "ended turns take more than turns_bytes, and the others are too young, wait for a delivery or belong to an open turn"
                        );
                    }
                    for (rule, Amount { turns, bytes }) in &pruned.removed {
                        tracing::info!(%rule, turns, bytes, "ended turns were removed");
                    }
                    for (records, amount) in [("logs", pruned.logs), ("journals", pruned.journals)] {
                        if let Amount { turns: turns @ 1.., bytes } = amount {
                            tracing::info!(records, turns, bytes, "records of the calls of ended turns were removed");
                            reclaims = true;
                        }
                    }
                    if let (false, Ok(head)) = (pruned.removed.is_empty(), audit.head().await) {
                        tracing::info!(%head, "the head of the audit log after the removal");
                        self.removals.send_replace(());
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
                match self.turns.reclaim().await {
                    Ok(files) => {
                        tracing::debug!(files, "large records that nothing refers to were removed");
                        reclaims = false;
                    }
                    Err(error) => tracing::error!(%error, "large records could not be removed"),
                }
            }
            // Counted from the end, so that a long removal is not followed by another one at once.
            clock.sleep(self.rules.interval).await;
        }
    }

    /// Applies the rules by age, also of the live tools, then the rule by size to what stays, and then the rules about logs and
    /// journals.
    async fn prune(
        &self,
        live: Option<&dyn Tools>,
        now: Timestamp,
        mode: Mode,
        forgotten: &mut Forgotten,
    ) -> Result<Pruned, StoreFault> {
        let rules = live.map_or_else(|| self.rules.clone(), |live| self.rules.with_declared(live));
        let mut pruned = Pruned::default();
        let mut ages = Pass::Age { kept: 0 };
        self.walk(&rules, &mut ages, now, mode, &mut pruned).await?;
        if let (Pass::Age { kept }, Some(limit)) = (ages, rules.bytes) {
            let mut sizes = Pass::Size { limit, above: kept.saturating_sub(limit) };
            self.walk(&rules, &mut sizes, now, mode, &mut pruned).await?;
            if let Pass::Size { above, .. } = sizes {
                pruned.above = above;
            }
        }
        let walk = |records, kept| Forgetting { records, kept, now, mode, counted: &pruned.counted };
        let logs = self.forget(&walk(CallRecords::Logs, rules.logs), &mut forgotten.logs).await?;
        let journals = self.forget(&walk(CallRecords::Journals, rules.journals), &mut forgotten.journals).await?;
        (pruned.logs, pruned.journals) = (logs, journals);
        pruned.counted.clear();
        Ok(pruned)
    }

    /// Walks the ended turns, oldest first.
    async fn walk(
        &self,
        rules: &RetentionRules,
        pass: &mut Pass,
        now: Timestamp,
        mode: Mode,
        pruned: &mut Pruned,
    ) -> Result<(), StoreFault> {
        let mut batch: Vec<(RemovalRule, TurnToRemove)> = Vec::new();
        let mut after = None;
        loop {
            let page = self.turns.ended(after, PAGE).await?;
            let mut is_last = page.len() < PAGE;
            for (turn, bytes) in page {
                after = Some(turn.key());
                let rule = match pass.verdict(rules, &turn, bytes, now) {
                    Verdict::Remove(rule) => rule,
                    Verdict::Keep => continue,
                    Verdict::Stop => {
                        is_last = true;
                        break;
                    }
                };
                if rules.holds(&turn) {
                    pruned.held.add(bytes);
                    continue;
                }
                match self.prepared(turn, bytes).await? {
                    Prepared::Ready(turn) => {
                        pass.removes(bytes);
                        batch.push((rule, turn));
                    }
                    Prepared::Undelivered => pruned.undelivered.add(bytes),
                    Prepared::Skipped => {}
                }
            }
            // The next page begins after a key, so the removal does not disturb the walk.
            self.removed(std::mem::take(&mut batch), now, mode, pruned).await?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Finds everything that points to a turn.
    async fn prepared(&self, ended: EndedTurn, bytes: u64) -> Result<Prepared, StoreFault> {
        let loaded = match self.log.load(ended.turn).await {
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
        if self.is_in_open(&turn).await? {
            return Ok(Prepared::Skipped);
        }
        let suspensions = turn.calls.iter().flat_map(|call| &call.suspensions);
        let suspensions: Vec<_> = suspensions.map(|(suspension, _)| suspension.id).collect();
        let subjects = suspensions.iter().copied().map(Subject::Suspension).chain([ended.turn.into()]);
        for subject in subjects {
            match self.outbox.deliveries(subject).await {
                Ok(rows) if rows.iter().any(|row| row.next().is_some()) => return Ok(Prepared::Undelivered),
                Ok(_) => {}
                Err(fault) if fault.is_damage() => {
                    tracing::error!(turn = %ended.turn, %fault, "a delivery of an ended turn cannot be read, so the turn is not removed");
                    return Ok(Prepared::Skipped);
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(Prepared::Ready(TurnToRemove { ended, bytes, commits: loaded.version, suspensions }))
    }

    /// Removes these turns. One commit removes a few turns by one rule.
    async fn removed(
        &self,
        batch: Vec<(RemovalRule, TurnToRemove)>,
        at: Timestamp,
        mode: Mode,
        pruned: &mut Pruned,
    ) -> Result<(), StoreFault> {
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
                if mode == Mode::DryRun {
                    pruned.counted.extend(turns.iter().map(|turn| turn.ended.turn));
                }
                for bytes in removed {
                    pruned.removed.entry(rule.clone()).or_default().add(bytes);
                }
            }
        }
        Ok(())
    }

    /// Removes the turns that have not changed since they were read. Returns the size of each.
    async fn remove(&self, rule: &RemovalRule, turns: &[TurnToRemove], at: Timestamp) -> Result<Vec<u64>, StoreFault> {
        let commit = |turns: &[TurnToRemove]| -> Commit {
            NewFacts::Removal(TurnsToRemove { at, rule: rule.clone(), turns: turns.to_vec() }).into()
        };
        let failed = |error: AppendError| error.into_fault("remove ended turns");
        match self.committer.record(commit(turns)).await {
            Ok(()) => return Ok(turns.iter().map(|turn| turn.bytes).collect()),
            // One changed or damaged turn refuses the whole commit, so each turn gets a commit of its own.
            Err(AppendError::Changed) => {}
            Err(AppendError::Fault(fault)) if fault.is_damage() => {}
            Err(error) => return Err(failed(error)),
        }
        let mut removed = Vec::new();
        for turn in turns {
            match self.committer.record(commit(std::slice::from_ref(turn))).await {
                Ok(()) => removed.push(turn.bytes),
                Err(AppendError::Changed) => {}
                Err(AppendError::Fault(fault)) if fault.is_damage() => {
                    tracing::error!(turn = %turn.ended.turn, %fault, "an ended turn is damaged, so it is not removed");
                }
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
    /// It was removed meanwhile, cannot be read, or is nested in a turn that is open.
    Skipped,
}
