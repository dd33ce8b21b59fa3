//! Forgetting what no decision looks at any more: denials that are no longer remembered, and standing approvals that have ended.
//! What happened is in the logs and in the audit.

use std::sync::Arc;

use domain::{Span, Timestamp};

use crate::dispatcher::Inner;

/// How often it is looked for what can be forgotten.
const EVERY: Span = Span::from_secs(60 * 60);

/// How long a standing approval is still listed after its time is over.
const LISTED: Span = Span::from_secs(7 * 24 * 60 * 60);

/// Looks again and again, for as long as the host runs.
pub(crate) async fn watch(inner: Arc<Inner>) {
    let parts = &inner.parts;
    loop {
        let now = parts.clock.now();
        let before = |span: Span| Timestamp::from_millis(now.millis().saturating_sub(span.millis()));
        match parts.store.forget(before(parts.rules.denied_again), before(LISTED)).await {
            Ok(0) => {}
            Ok(rows) => tracing::debug!(rows, "denials and standing approvals that are over were forgotten"),
            Err(error) => tracing::error!(%error, "what is over could not be forgotten"),
        }
        parts.clock.sleep_until(now + EVERY).await;
    }
}
