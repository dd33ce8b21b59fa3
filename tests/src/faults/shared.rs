//! The other hosts on the store.

use async_trait::async_trait;
use dispatch::ports::{Footprint, News, Peers, Share, StoreFault};
use domain::{ConversationId, OwnerId, PrincipalId, ToolName};

use super::MortalStore;

#[async_trait]
impl Peers for MortalStore {
    fn is_shared(&self) -> bool {
        self.member.is_some()
    }

    fn share(&self) -> Share {
        self.member.as_ref().map_or(Share::ALL, |member| member.share())
    }

    async fn news(&self) -> News {
        match &self.member {
            Some(member) => member.news().await,
            None => std::future::pending().await,
        }
    }

    async fn ended_hosts(&self, owners: Vec<OwnerId>) -> Result<Vec<OwnerId>, StoreFault> {
        match &self.member {
            Some(member) => member.ended_hosts(owners).await,
            None => Ok(owners),
        }
    }

    async fn attached(&self, conversation: &ConversationId) -> Result<Vec<ToolName>, StoreFault> {
        match &self.member {
            Some(member) => member.attached(conversation).await,
            None => Ok(Vec::new()),
        }
    }

    async fn attach(&self, conversation: &ConversationId, tools: Vec<ToolName>) -> Result<(), StoreFault> {
        match &self.member {
            Some(member) => member.attach(conversation, tools).await,
            None => Ok(()),
        }
    }

    async fn open_turns(&self, of: Option<&PrincipalId>) -> Result<Option<Footprint>, StoreFault> {
        match &self.member {
            Some(member) => member.open_turns(of).await,
            None => Ok(None),
        }
    }
}
