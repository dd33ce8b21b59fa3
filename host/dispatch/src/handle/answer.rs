//! Answers to suspensions. What needs a parser is checked here, against the turn as it is at that moment; what follows
//! from the findings is decided by the domain.

use domain::{
    Call, Checked, ClosedAs, Input, Json, Kind, Principal, Refusal, Resolution, Resolve, Suspension, Turn, Violation,
};

use super::{Handle, to_the_end};
use crate::error::Error;
use crate::exact;
use crate::request::{Answer, Bounds};

impl Handle {
    /// Answers a suspension. When this returns, the answer is on disk, and what follows from it has begun; nobody waits
    /// for that. Returns whether the same answer had been given before.
    ///
    /// # Errors
    /// [`Error::Refused`] with the first check that failed: nothing has changed. An unknown suspension is `stale`, as is
    /// one that this principal may not see.
    pub async fn resolve(&self, by: &Principal, answer: Answer) -> Result<Replayed, Error> {
        let bounds = &self.inner.parts.bounds;
        let size = |json: &Option<Json>| json.as_ref().map_or(0, Json::size);
        Bounds::check("the data", size(&answer.data), bounds.data)?;
        Bounds::check("the arguments", size(&answer.arguments), bounds.arguments)?;
        Bounds::check("the comment", answer.comment.as_ref().map_or(0, String::len), bounds.comment)?;
        let unknown = || Refusal::Stale { state: "unknown".into(), by: None, at: None };
        let row = self.inner.parts.store.suspension(answer.suspension).await?.ok_or_else(unknown)?;
        let (handle, by) = (self.clone(), by.clone());
        let stepped = to_the_end("answer a suspension", async move {
            let entered = handle.inner.turns.enter(row.turn);
            let resolve = |turn: &Turn| Some(Input::Resolve(Box::new(handle.checked(&by, &answer, turn))));
            handle.inner.step(&entered, row.turn, |turn, _| resolve(turn)).await
        });
        match stepped.await {
            Ok(_) => Ok(Replayed(false)),
            Err(Error::Refused(Refusal::Replayed)) => Ok(Replayed(true)),
            Err(error) => Err(error),
        }
    }

    /// The answer with what the checks find. Checks that do not apply find nothing.
    fn checked(&self, by: &Principal, answer: &Answer, turn: &Turn) -> Resolve {
        let about = turn.suspension(answer.suspension);
        let edit = about.and_then(|(_, call, suspension, _)| self.edit(answer, call, suspension, turn));
        let (arguments, checked) = match edit {
            Some((arguments, checked)) => (Some(arguments), checked),
            None => (None, Checked::default()),
        };
        let data = about.map_or_else(Vec::new, |(_, call, suspension, _)| self.data(answer, call, suspension));
        Resolve {
            suspension: answer.suspension,
            by: by.clone(),
            decision: answer.decision.clone(),
            data: answer.data.clone(),
            arguments,
            comment: answer.comment.clone(),
            expect_digest: answer.expect_digest,
            checked: Checked { data, ..checked },
        }
    }

    fn data(&self, answer: &Answer, call: &Call, suspension: &Suspension) -> Vec<Violation> {
        // An approval is a yes or a no. Without a schema, anything fits a question.
        if suspension.response.is_none() {
            let superfluous = suspension.kind == Kind::Approval && answer.data.is_some();
            let message = "an approval takes no data".to_owned();
            return superfluous.then_some(Violation { pointer: String::new(), message }).into_iter().collect();
        }
        let Some(live) = self.pinned(call) else { return gone() };
        match (&answer.data, suspension.kind) {
            // A choice is an answer of its own; what comes with it may be left out.
            (None, Kind::Elicitation) if suspension.responses.is_some() => Vec::new(),
            (None, _) => vec![Violation { pointer: String::new(), message: "data is required here".into() }],
            (Some(data), Kind::ClientExec) => live.checks.result(data),
            (Some(data), Kind::Approval | Kind::Elicitation) => live.checks.response(data),
        }
    }

    /// The edited arguments with what the checks find, or nothing if they are the ones that were shown.
    fn edit(&self, answer: &Answer, call: &Call, suspension: &Suspension, turn: &Turn) -> Option<(Json, Checked)> {
        let arguments = answer.arguments.as_ref()?;
        // A repeated answer repeats its edit, which by then is what the call has: it is compared with what was committed.
        let closed = turn.suspension(suspension.id).and_then(|(.., closed)| closed);
        if let Some(ClosedAs::Resolved(Resolution { arguments: Some(committed), .. })) =
            closed.map(|closed| &closed.how)
            && exact::same(arguments.as_str(), committed.as_str())
        {
            return Some((committed.clone(), Checked::default()));
        }
        if exact::same(arguments.as_str(), call.arguments.as_str()) {
            return None;
        }
        let (violations, rule) = match self.pinned(call) {
            None => (gone(), domain::Rule::Allow),
            Some(live) => (live.checks.arguments(arguments), live.rule),
        };
        let edited = exact::changed_members(call.arguments.as_str(), arguments.as_str());
        Some((arguments.clone(), Checked { data: Vec::new(), arguments: violations, edited, rule }))
    }

    fn pinned(&self, call: &Call) -> Option<std::sync::Arc<crate::ports::LiveTool>> {
        self.inner.parts.tools.pinned(call.pinned.as_ref()?.component, &call.tool)
    }
}

/// Whether an answer had been given before by the same principal. It stands either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed(pub bool);

fn gone() -> Vec<Violation> {
    vec![Violation { pointer: String::new(), message: "the component that this call is pinned to is gone".into() }]
}
