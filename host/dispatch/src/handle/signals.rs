//! Signals: an external system names a wait of a conversation instead of its suspension.

use domain::{ConversationId, Principal, SignalName, SuspensionId, suspension::SuspensionKind};

use super::Handle;
use crate::error::{Error, Resource};
use crate::pending::narrowed;
use crate::ports::{Filter, Order, SuspensionRow};

/// The number of waits that ended among which the last one of a name is looked for.
const RECENT: usize = 500;

impl Handle {
    /// The open wait of a conversation for this signal.
    ///
    /// # Errors
    /// [`domain::Refusal::Stale`] if nothing waits for it and the last wait for it has ended. [`Error::NotFound`] if this principal
    /// may not see the conversation, or nothing waits for the signal and no recent wait had its name; and faults of the store.
    pub async fn suspension_of_signal(
        &self,
        by: &Principal,
        conversation: &ConversationId,
        name: &SignalName,
    ) -> Result<SuspensionId, Error> {
        self.may_read(by, conversation).await?;
        let unknown = Error::NotFound(Resource::Signal);
        let waits = |open, order| Filter {
            open: Some(open),
            conversation: Some(conversation.clone()),
            kind: Some(SuspensionKind::External),
            order,
            ..Filter::default()
        };
        let Some(open) = narrowed(by, waits(true, Order::OldestFirst)) else { return Err(unknown) };
        let indexes = &self.inner.readers.indexes;
        if let Some(row) = self.inner.pipeline.signals.awaited(&open, name).await? {
            return Ok(row.id);
        }
        let Some(ended) = narrowed(by, waits(false, Order::NewestFirst)) else { return Err(unknown) };
        let ended = indexes.suspensions(&ended, None, RECENT).await?;
        let is_last = |row: &&SuspensionRow| row.signal.as_ref() == Some(name);
        let Some(row) = ended.rows.iter().find(is_last) else { return Err(unknown) };
        let item = self.inner.pending.item(row, &mut None).await?;
        let ended = item.and_then(|item| item.closed.map(|closed| item.suspension.stale(&closed)));
        Err(ended.map_or(unknown, Error::from))
    }
}
