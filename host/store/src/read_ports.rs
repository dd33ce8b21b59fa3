//! The ports that only read. A backend has a `Reader` with one method for each of theirs, and `Reads` runs it.

/// Implements the ports for a store with the field `reads`. `$entries` is the method of it for reads of single entries.
macro_rules! read_ports {
    ($store:ident, $entries:ident $(, $hangs:item)?) => {
        const _: () = {
            use async_trait::async_trait;
            use dispatch::ports::{
                Audiences, Audit, Audited, BegunTurns, CallLogs, ChainEntry, DeliveryRow, Denial, Filter,
                FoundSubmission, Head, Indexes, JournalPage, Journals, Outbox, Page, Position, RunLog,
                StandingApprovals, StoreFault, Subject, SuspensionRow,
            };
            use domain::{
                CallId, CallIndex, ConversationId, Digest, PrincipalId, StandingId, SuspensionId, Timestamp, TurnId,
                effect::Due, event::HostStarted, journal::JournalBounds, retention::Removal, standing::StandingRow,
                suspension::Audience, turn::TurnState,
            };

            #[async_trait]
            impl Indexes for $store {
                async fn owner(&self, conversation: &ConversationId) -> Result<Option<PrincipalId>, StoreFault> {
                    let conversation = conversation.clone();
                    self.reads.$entries(move |reader| async move { reader.owner(&conversation).await }).await
                }

                async fn conversations(
                    &self,
                    after: Option<&ConversationId>,
                    limit: usize,
                ) -> Result<Vec<(ConversationId, PrincipalId)>, StoreFault> {
                    let after = after.cloned();
                    self.reads.run(move |reader| async move { reader.conversations(after.as_ref(), limit).await }).await
                }

                async fn find_call(&self, conversation: &ConversationId, call: &CallId) -> Result<Option<TurnId>, StoreFault> {
                    let (conversation, call) = (conversation.clone(), call.clone());
                    self.reads.$entries(move |reader| async move { reader.find_call(&conversation, &call).await }).await
                }

                async fn turns(
                    &self,
                    conversation: &ConversationId,
                    before: Option<Position>,
                    limit: usize,
                ) -> Result<BegunTurns, StoreFault> {
                    let conversation = conversation.clone();
                    self.reads.run(move |reader| async move { reader.turns(&conversation, before, limit).await }).await
                }

                async fn states(&self, turns: &[TurnId]) -> Result<Vec<Option<TurnState>>, StoreFault> {
                    let turns = turns.to_vec();
                    self.reads.run(move |reader| async move { reader.states(&turns).await }).await
                }

                async fn due(
                    &self,
                    after: Option<(Timestamp, TurnId)>,
                    until: Timestamp,
                    limit: usize,
                ) -> Result<Vec<(TurnId, Due)>, StoreFault> {
                    self.reads.run(move |reader| async move { reader.due(after, until, limit).await }).await
                }

                async fn unfinished(&self, after: Option<TurnId>, limit: usize) -> Result<Vec<(TurnId, Due)>, StoreFault> {
                    self.reads.run(move |reader| async move { reader.unfinished(after, limit).await }).await
                }

                async fn suspension(&self, id: SuspensionId) -> Result<Option<SuspensionRow>, StoreFault> {
                    self.reads.run(move |reader| async move { reader.suspension(id).await }).await
                }

                async fn suspensions(
                    &self,
                    filter: &Filter,
                    after: Option<SuspensionId>,
                    limit: usize,
                ) -> Result<Page, StoreFault> {
                    let filter = filter.clone();
                    self.reads.run(move |reader| async move { reader.suspensions(&filter, after, limit).await }).await
                }

                async fn suspensions_of(
                    &self,
                    filter: &Filter,
                    audiences: &[Audience],
                    after: Option<SuspensionId>,
                    limit: usize,
                ) -> Result<Page, StoreFault> {
                    let (filter, audiences) = (filter.clone(), audiences.to_vec());
                    self.reads
                        .run(move |reader| async move { reader.suspensions_of(&filter, &audiences, after, limit).await })
                        .await
                }

                async fn audiences(&self, filter: &Filter) -> Result<Audiences, StoreFault> {
                    let filter = filter.clone();
                    self.reads.run(move |reader| async move { reader.audiences(&filter).await }).await
                }

                async fn kept_bytes(&self, principal: &PrincipalId) -> Result<u64, StoreFault> {
                    let principal = principal.clone();
                    self.reads.$entries(move |reader| async move { reader.kept_bytes(&principal).await }).await
                }

                async fn find_submission(
                    &self,
                    conversation: &ConversationId,
                    calls: Vec<CallId>,
                    keeper: Option<&PrincipalId>,
                ) -> Result<FoundSubmission, StoreFault> {
                    let (conversation, keeper) = (conversation.clone(), keeper.cloned());
                    self.reads
                        .$entries(move |reader| async move { reader.find_submission(&conversation, calls, keeper.as_ref()).await })
                        .await
                }

                $($hangs)?
            }

            #[async_trait]
            impl Outbox for $store {
                async fn deliveries(&self, of: Subject) -> Result<Vec<DeliveryRow>, StoreFault> {
                    self.reads.run(move |reader| async move { reader.deliveries(of).await }).await
                }

                async fn deliveries_due(
                    &self,
                    webhook: &str,
                    until: Timestamp,
                    limit: usize,
                ) -> Result<Vec<DeliveryRow>, StoreFault> {
                    let webhook = webhook.to_owned();
                    self.reads.run(move |reader| async move { reader.deliveries_due(&webhook, until, limit).await }).await
                }

                async fn webhooks_with_pending(&self) -> Result<Vec<String>, StoreFault> {
                    self.reads.run(move |reader| async move { reader.webhooks_with_pending().await }).await
                }
            }

            #[async_trait]
            impl StandingApprovals for $store {
                async fn standing(&self, id: StandingId) -> Result<Option<StandingRow>, StoreFault> {
                    self.reads.run(move |reader| async move { reader.standing(id).await }).await
                }

                async fn standings(&self, after: Option<StandingId>, limit: usize) -> Result<Vec<StandingRow>, StoreFault> {
                    self.reads.run(move |reader| async move { reader.standings(after, limit).await }).await
                }

                async fn denied(&self, conversation: &ConversationId, alike: Digest) -> Result<Option<Timestamp>, StoreFault> {
                    let conversation = conversation.clone();
                    self.reads.$entries(move |reader| async move { reader.denied(&conversation, alike).await }).await
                }

                async fn denials(&self, after: Option<&Denial>, limit: usize) -> Result<Vec<Denial>, StoreFault> {
                    let after = after.cloned();
                    self.reads.run(move |reader| async move { reader.denials(after.as_ref(), limit).await }).await
                }
            }

            #[async_trait]
            impl CallLogs for $store {
                async fn call_log(&self, turn: TurnId, call: CallIndex) -> Result<Vec<RunLog>, StoreFault> {
                    self.reads.run(move |reader| async move { reader.call_log(turn, call).await }).await
                }
            }

            #[async_trait]
            impl Journals for $store {
                async fn journal_page(
                    &self,
                    turn: TurnId,
                    call: CallIndex,
                    from: u32,
                    max: JournalBounds,
                ) -> Result<JournalPage, StoreFault> {
                    self.reads.run(move |reader| async move { reader.journal_page(turn, call, from, max).await }).await
                }
            }

            #[async_trait]
            impl Audit for $store {
                async fn audit(&self, after: Position, limit: usize) -> Result<Vec<Audited>, StoreFault> {
                    self.reads.run(move |reader| async move { reader.audit(after, limit).await }).await
                }

                async fn chain(&self, after: Position, limit: usize) -> Result<Vec<ChainEntry>, StoreFault> {
                    self.reads.run(move |reader| async move { reader.chain(after, limit).await }).await
                }

                async fn removals(&self, after: Position, limit: usize) -> Result<Vec<(Position, Removal)>, StoreFault> {
                    self.reads.run(move |reader| async move { reader.removals(after, limit).await }).await
                }

                async fn head(&self) -> Result<Head, StoreFault> {
                    self.reads.run(move |reader| async move { reader.head().await }).await
                }

                async fn last_start(&self) -> Result<Option<HostStarted>, StoreFault> {
                    self.reads.run(move |reader| async move { reader.last_start().await }).await
                }
            }
        };
    };
}

pub(crate) use read_ports;
