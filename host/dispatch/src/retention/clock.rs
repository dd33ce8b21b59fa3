//! The time that retention goes by.

use std::sync::atomic::Ordering;

use domain::{Span, Timestamp, TurnId};

use super::TurnRemover;
use crate::ports::{Commit, RowChange, StoreFault};

/// The time that retention uses advances by at most this many pauses at once. So a clock that is years ahead does not remove
/// all turns at once, and an operator has time to set it right. A host that did not run for a while catches up.
const MAX_PAUSES: u64 = 6;

impl TurnRemover {
    /// The time that the rules go by: that of the clock, unless the clock has jumped ahead.
    pub(super) async fn time(&self, now: Timestamp) -> Result<Timestamp, StoreFault> {
        let known = match self.turns.retention_time().await? {
            Some(known) => Some(known),
            None => self.newest(now).await?,
        };
        let step = Span::from_millis(self.rules.interval.millis().saturating_mul(MAX_PAUSES));
        let time = known.map_or(now, |known| now.min(known + step));
        self.lag.store((now - time).millis(), Ordering::Relaxed);
        if time < now {
            let (now, time) = (domain::rfc3339(now), domain::rfc3339(time));
            tracing::error!(
                now,
                time,
                "the clock is far ahead of the last known time; retention advances slowly: if the clock is wrong, set it \
                 right, or turns are removed too early"
            );
        }
        let recorded = self.committer.record(Commit::rows(vec![RowChange::RetentionTime(time)])).await;
        recorded.map_err(|error| error.into_fault("record the time of retention"))?;
        Ok(time)
    }

    /// The end of the turn that ended last, before `now`.
    async fn newest(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreFault> {
        let last = TurnId::from_bits(u128::MAX);
        let mut newest = None;
        let (mut from, mut to) = (0, now.millis());
        while from < to {
            let middle = from + (to - from) / 2;
            match self.turns.ended(Some((Timestamp::from_millis(middle), last)), 1).await?.first() {
                Some((later, _)) if later.at <= now => {
                    newest = Some(later.at);
                    from = later.at.millis();
                }
                _ => to = middle,
            }
        }
        Ok(newest)
    }
}
