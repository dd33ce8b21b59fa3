//! Links to suspensions: writing down that one was made and that it was used. What is in a link, the doors know.

use std::sync::Arc;

use domain::{Input, Link, LinkId, Principal, PrincipalId, Refusal, SuspensionId, Timestamp, Turn};

use super::{Handle, to_the_end};
use crate::error::Error;
use crate::pending::unknown;

/// A link as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedLink {
    /// Its id. The same one again means the same link.
    pub id: LinkId,
    /// To what.
    pub suspension: SuspensionId,
    /// In whose name its holder answers.
    pub to: PrincipalId,
    /// The webhook that is sent it.
    pub webhook: Option<Arc<str>>,
    /// From then on it counts no more.
    pub expires_at: Timestamp,
}

impl Handle {
    /// Writes down that an admin, or a webhook in the host's own name, has a link made. Returns until when it counts: of one
    /// that was made before and has half of that time left, as it was then. `None`: it was used, and opens nothing any more.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] for whoever is no admin, [`Error::Refused`] as `stale` when the suspension is not open, and when
    /// as many links to it were made as there may be.
    pub async fn make_link(&self, by: &Principal, wanted: WantedLink) -> Result<Option<Timestamp>, Error> {
        super::admin(by)?;
        let WantedLink { id, suspension, to, webhook, expires_at } = wanted;
        let link = Link { id, to, by: by.id.clone(), webhook, expires_at };
        let make = move || Input::MakeLink { suspension, link: Box::new(link.clone()) };
        let turn = match self.about_link(suspension, "write down that a link was made", make).await {
            Ok(turn) => turn,
            Err(Error::Refused(Refusal::Replayed)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let made = turn.suspension(suspension).and_then(|(_, call, ..)| call.link(suspension, id));
        Ok(Some(made.map_or(expires_at, |made| made.link.expires_at)))
    }

    /// Uses a link up. Whether it is by this call: of all calls, exactly one is told so, and it is on disk by then.
    ///
    /// # Errors
    /// [`Error::Refused`] as `stale`: the suspension has ended, or there is no such link to it for this principal (`unknown`).
    pub async fn use_link(&self, by: &PrincipalId, suspension: SuspensionId, link: LinkId) -> Result<bool, Error> {
        let by = by.clone();
        let used = move || Input::UseLink { suspension, link, by: by.clone() };
        match self.about_link(suspension, "write down that a link was used", used).await {
            Ok(_) => Ok(true),
            Err(Error::Refused(Refusal::Replayed)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn about_link(
        &self,
        suspension: SuspensionId,
        what: &'static str,
        input: impl Fn() -> Input + Send + Sync + 'static,
    ) -> Result<Turn, Error> {
        let row = self.inner.parts.store.suspension(suspension).await?.ok_or_else(unknown)?;
        let pipeline = self.inner.pipeline.clone();
        to_the_end(what, async move {
            let entered = pipeline.turns.enter(row.turn);
            pipeline.step(&entered, |_, _| Some(input())).await?;
            Ok(entered.read(pipeline.parts.store.as_ref()).await?.ok_or_else(unknown)?)
        })
        .await
    }
}
