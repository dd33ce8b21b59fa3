//! The upgrades of older records.

use std::sync::Arc;

use domain::{Event, event::CallEvent, tool::Recovery};

/// Commits of version 5. The recovery of a durable tool had no effect, and was `retry` unless the tool said otherwise. A
/// request in doubt ended the call, so it must not be sent again now.
pub(super) fn durable_calls_fail_in_doubt(events: &mut Vec<Event>) {
    for event in events {
        if let Event::Call { event: CallEvent::Requested { pinned: Some(pinned), .. }, .. } = event
            && pinned.durable
            && pinned.recovery == Recovery::Retry
        {
            Arc::make_mut(pinned).recovery = Recovery::Fail;
        }
    }
}
