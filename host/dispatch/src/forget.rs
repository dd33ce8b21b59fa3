//! Forgetting what no decision looks at any more: denials that are no longer remembered, and standing approvals that have ended.
//! What happened stays in the logs and in the audit.

use domain::{Span, Timestamp};

use crate::parts::Parts;

/// How often to look for rows to forget.
const EVERY: Span = Span::from_secs(60 * 60);

/// How long a standing approval is still listed after it has ended.
const LISTED: Span = Span::from_secs(7 * 24 * 60 * 60);

/// Works for as long as the host runs.
pub(crate) async fn watch(parts: std::sync::Arc<Parts>) {
    loop {
        let now = parts.clock.now();
        let before = |span: Span| Timestamp::from_millis(now.millis().saturating_sub(span.millis()));
        match parts.store.forget(before(parts.rules.denied_again), before(LISTED)).await {
            Ok(0) => {}
            Ok(rows) => tracing::debug!(rows, "old denials and standing approvals that have ended were removed"),
            Err(error) => tracing::error!(%error, "old denials and standing approvals could not be removed"),
        }
        parts.clock.sleep_until(now + EVERY).await;
    }
}
