//! Removes rows that no decision needs any more: denials that are old or too many, and standing approvals that ended some
//! time ago. The logs and the audit keep the facts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use domain::{Span, Timestamp};

use crate::committer::Committer;
use crate::ports::{AppendError, Clock, Commit, Log, Peers, RowChange, StandingApprovals, StoreFault};

/// How often to look for rows to remove.
const INTERVAL: Span = Span::from_secs(60 * 60);

/// How long a standing approval is still listed after it has ended.
const LISTED: Span = Span::from_secs(7 * 24 * 60 * 60);

/// Denials that are read at once.
const MAX_DENIALS: usize = 1_000;

/// Standing approvals that are read at once. Each may have a megabyte.
const STANDINGS: usize = 16;

/// Removes old rows.
pub(crate) struct Forget {
    pub(crate) standing: Arc<dyn StandingApprovals>,
    pub(crate) committer: Arc<Committer>,
}

/// As `Forget::forget`, for a store without a host.
///
/// # Errors
/// As `Forget::forget`.
pub async fn forget(
    log: Arc<dyn Log>,
    standing: Arc<dyn StandingApprovals>,
    denied: Timestamp,
    denied_bytes: usize,
    ended: Timestamp,
) -> Result<usize, StoreFault> {
    let committer = Arc::new(Committer::without_host(log));
    Forget { standing, committer }.forget(denied, denied_bytes, ended).await
}

impl Forget {
    /// Works for as long as the host runs. A denial is kept for the time `denied_again`, but the oldest of more than
    /// `denied_bytes` are not.
    pub(crate) async fn watch(
        self,
        peers: Arc<dyn Peers>,
        clock: Arc<dyn Clock>,
        denied_again: Span,
        denied_bytes: usize,
    ) {
        loop {
            if !peers.share().is_first() {
                clock.sleep(INTERVAL).await;
                continue;
            }
            let now = clock.now();
            let before = |span: Span| Timestamp::from_millis(now.millis().saturating_sub(span.millis()));
            match self.forget(before(denied_again), denied_bytes, before(LISTED)).await {
                Ok(0) => {}
                Ok(rows) => tracing::debug!(rows, "old denials and standing approvals that have ended were removed"),
                Err(error) => tracing::error!(%error, "old denials and standing approvals could not be removed"),
            }
            clock.sleep(INTERVAL).await;
        }
    }

    /// Removes denials from before `denied` and the oldest of more than `denied_bytes`, and standing approvals that expired
    /// before `ended`. A row that changes meanwhile stays. Returns how many rows were removed.
    ///
    /// # Errors
    /// [`StoreFault`]; some rows may be removed.
    async fn forget(&self, denied: Timestamp, denied_bytes: usize, ended: Timestamp) -> Result<usize, StoreFault> {
        let denied = self.denied_within(denied, denied_bytes).await?;
        let mut removed = 0;
        let mut after = None;
        loop {
            let page = self.standing.denials(after.as_ref(), MAX_DENIALS).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.clone());
            let old = page.into_iter().filter(|denial| denial.at < denied);
            removed += self.remove(old.map(RowChange::ForgetDenial).collect()).await?;
        }
        let mut after = None;
        loop {
            let page = self.standing.standings(after, STANDINGS).await?;
            let Some(last) = page.last() else { return Ok(removed) };
            after = Some(last.standing.id);
            let old = page.into_iter().filter(|row| row.standing.expires_at < ended);
            removed += self.remove(old.map(|row| RowChange::ForgetStanding(Box::new(row))).collect()).await?;
        }
    }

    /// The first time from `since` on after which all denials together have at most this many bytes. Holds only those in
    /// memory.
    async fn denied_within(&self, mut since: Timestamp, max_bytes: usize) -> Result<Timestamp, StoreFault> {
        let (mut newest, mut bytes) = (BinaryHeap::new(), 0_usize);
        let mut after = None;
        loop {
            let page = self.standing.denials(after.as_ref(), MAX_DENIALS).await?;
            let Some(last) = page.last() else { return Ok(since) };
            after = Some(last.clone());
            for denial in page {
                bytes = bytes.saturating_add(denial.size());
                newest.push(Reverse((denial.at, denial.size())));
                while let Some(Reverse((at, size))) = newest.peek().copied()
                    && (bytes > max_bytes || at < since)
                {
                    newest.pop();
                    bytes -= size;
                    since = since.max(at + Span::from_millis(1));
                }
            }
        }
    }

    /// Removes the rows that have not changed since they were read. Returns how many.
    async fn remove(&self, rows: Vec<RowChange>) -> Result<usize, StoreFault> {
        if rows.is_empty() {
            return Ok(0);
        }
        let commit = Commit::rows(rows);
        match self.committer.record(commit.clone()).await {
            Ok(()) => Ok(commit.rows.len()),
            // One changed row keeps all of them, so each gets a commit of its own.
            Err(AppendError::Changed) => {
                let mut removed = 0;
                for row in commit.rows {
                    match self.committer.record(Commit::rows(vec![row])).await {
                        Ok(()) => removed += 1,
                        Err(AppendError::Changed) => {}
                        Err(error) => return Err(error.into_fault("remove an old row")),
                    }
                }
                Ok(removed)
            }
            Err(error) => Err(error.into_fault("remove old rows")),
        }
    }
}
