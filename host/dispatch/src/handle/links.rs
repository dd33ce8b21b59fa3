//! One-time links to suspensions: recording that one was made and that it was used. The HTTP server knows what is in a
//! link.

use std::sync::Arc;

use domain::{
    LinkId, Principal, PrincipalId, Refusal, SuspensionId, Timestamp, Turn, TurnId, link::LinkRecord,
    suspension::SuspensionKind, turn::Input,
};

use super::{Handle, run_uncancelled};
use crate::error::{Error, Forbidden};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkRequest {
    /// The same id again means the same link.
    pub id: LinkId,
    /// The webhook that receives it.
    pub webhook: Option<Arc<str>>,
    /// From then on it is invalid.
    pub expires_at: Timestamp,
}

/// A principal may make links to one suspension. [`Handle::may_make_link`] checks it.
#[derive(Debug)]
pub struct LinkPermit {
    pub kind: SuspensionKind,
    by: PrincipalId,
    /// The principal in whose name the holder of a link answers.
    to: PrincipalId,
    suspension: SuspensionId,
    turn: TurnId,
}

impl Handle {
    /// Records that a link was made for an admin, or by the host for a webhook. Returns the end of its validity. A link
    /// that was made before and has half of its time left keeps its time. `None`: it was used, so it is invalid.
    ///
    /// # Errors
    /// [`Error::Refused`] as `stale` if the suspension is not open, and if too many links to it were made.
    pub async fn make_link(&self, permit: LinkPermit, request: LinkRequest) -> Result<Option<Timestamp>, Error> {
        let LinkPermit { by, to, suspension, turn, .. } = permit;
        let LinkRequest { id, webhook, expires_at } = request;
        let link = LinkRecord { id, to, by, webhook, expires_at };
        let make = move || Input::MakeLink { suspension, link: Box::new(link.clone()) };
        let turn = match self.about_link(turn, "record that a link was made", make).await {
            Ok(turn) => turn,
            Err(Error::Refused(Refusal::LinkUsed)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let made = turn.suspension(suspension).and_then(|(_, call, ..)| call.link(suspension, id));
        Ok(Some(made.map_or(expires_at, |made| made.link.expires_at)))
    }

    /// Uses a link. Of all calls with the same link, exactly one succeeds, and its use is on disk then.
    ///
    /// # Errors
    /// [`Error::Refused`]: the link was used before ([`Refusal::LinkUsed`]), the suspension has ended, or it has no such link
    /// for this principal ([`Refusal::Unknown`]).
    pub async fn use_link(&self, by: &PrincipalId, suspension: SuspensionId, link: LinkId) -> Result<(), Error> {
        let row = self.inner.readers.indexes.suspension(suspension).await?.ok_or(Refusal::Unknown)?;
        let by = by.clone();
        let used = move || Input::UseLink { suspension, link, by: by.clone() };
        self.about_link(row.turn, "record that a link was used", used).await.map(drop)
    }

    /// Checks that a principal may make links to a suspension in the name of `to`. An admin may. Who may send the result of an
    /// external wait may make links to it in its own name.
    ///
    /// # Errors
    /// [`Error::Forbidden`], [`Refusal::Unknown`] if there is no such suspension, and faults of the store.
    pub async fn may_make_link(
        &self,
        by: &Principal,
        suspension: SuspensionId,
        to: &PrincipalId,
    ) -> Result<LinkPermit, Error> {
        let row = self.inner.pending.row(by, suspension).await?;
        let is_own = row.kind == SuspensionKind::External
            && by.id == *to
            && by.may_answer(row.kind, &row.caller, self.own_calls()).is_ok();
        // An admin for one conversation sees nothing else, and a link may be for anybody.
        if !is_own && by.conversation.is_some() {
            return Err(Forbidden::Admin.into());
        }
        if !is_own {
            super::admin(by)?;
        }
        Ok(LinkPermit { kind: row.kind, by: by.id.clone(), to: to.clone(), suspension, turn: row.turn })
    }

    async fn about_link(
        &self,
        turn: TurnId,
        what: &'static str,
        input: impl Fn() -> Input + Send + Sync + 'static,
    ) -> Result<Turn, Error> {
        let pipeline = self.inner.pipeline.clone();
        run_uncancelled(what, async move {
            let entered = pipeline.turns.enter(turn);
            pipeline.step(&entered, |_, _| Some(input())).await?;
            Ok(entered.read(pipeline.log.as_ref()).await?.found().ok_or(Refusal::Unknown)?)
        })
        .await
    }
}
