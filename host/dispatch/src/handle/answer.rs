//! Answers to suspensions. What needs a parser is checked here, against the turn as it is at that moment; what follows
//! from the findings is decided by the domain.

use std::sync::Arc;

use domain::{
    Call, Checked, ClosedAs, Executor, Input, Json, Kind, Named, Outcome, Pin, Principal, Refusal, Resolution, Resolve,
    Rule, StandingActive, Suspension, SuspensionId, Turn, Verdict, Violation,
};

use super::{Handle, to_the_end};
use crate::error::Error;
use crate::exact;
use crate::pending::unknown;
use crate::plan::{self, Asker};
use crate::ports::LiveTool;
use crate::recheck;
use crate::request::{Answer, Bounds};
use crate::standing::Coming;

impl Handle {
    /// Answers a suspension. When this returns, the answer is on disk, and what follows from it has begun; nobody waits
    /// for that.
    ///
    /// # Errors
    /// [`Error::Refused`] with the first check that failed: nothing has changed. An unknown suspension is `stale`, as is
    /// one that this principal may not see.
    pub async fn resolve(&self, by: &Principal, answer: Answer) -> Result<Answered, Error> {
        let bounds = &self.inner.parts.bounds;
        let size = |json: &Option<Json>| json.as_ref().map_or(0, Json::size);
        Bounds::check("the data", size(&answer.data), bounds.data)?;
        Bounds::check("the arguments", size(&answer.arguments), bounds.arguments)?;
        Bounds::check("the comment", answer.comment.as_ref().map_or(0, String::len), bounds.comment)?;
        let row = self.inner.parts.store.suspension(answer.suspension).await?.ok_or_else(unknown)?;
        let (handle, by) = (self.clone(), by.clone());
        to_the_end("answer a suspension", async move {
            let pipeline = &handle.inner.pipeline;
            let (entered, store) = (pipeline.turns.enter(row.turn), pipeline.parts.store.as_ref());
            // A policy may take its time, so it is asked before the turn is held. What it was asked about cannot change: the
            // arguments are those of the answer.
            let turn = entered.read(store).await?.ok_or_else(unknown)?;
            let _memory = pipeline.observers.tracker.values(&by.id, read_by(&answer, &turn)).await;
            // Held, so that every check below sees the same value.
            let _values = [&answer.data, &answer.arguments].map(|json| json.as_ref().map(Json::value));
            handle.recall(&by, &answer, &turn).await?;
            let verdict = handle.judged(&by, &answer, &turn).await?;
            // Held until the answer is committed, so that many at once do not give more than there may be.
            let coming = handle.coming(&by, &answer, &turn).await?;
            let resolve = |turn: &Turn| {
                let mut resolve = handle.checked(&by, &answer, turn, &verdict);
                resolve.checked.standing = coming.as_ref().map_or(NO_ROOM, |coming| coming.active);
                Some(Input::Resolve(Box::new(resolve)))
            };
            let replayed = match pipeline.step(&entered, |turn, _| resolve(turn)).await {
                Ok(_) => false,
                Err(Error::Refused(Refusal::Replayed)) => true,
                Err(error) => return Err(error),
            };
            let turn = entered.read(store).await?.ok_or_else(unknown)?;
            let (.., suspension, closed) = turn.suspension(row.id).ok_or_else(unknown)?;
            let state = closed.map_or("open", domain::Closed::state).to_owned();
            let votes_missing = if closed.is_some() { 0 } else { suspension.votes_missing() };
            Ok(Answered { replayed, state, votes_missing })
        })
        .await
    }

    /// Hands the principal's say in an approval on to somebody who has none in it. Whoever keeps the tokens says who that is.
    ///
    /// # Errors
    /// As [`Handle::resolve`].
    pub async fn delegate(
        &self,
        by: &Principal,
        suspension: SuspensionId,
        to: Named,
        comment: Option<String>,
    ) -> Result<(), Error> {
        let size = comment.as_ref().map_or(0, String::len);
        Bounds::check("the comment", size, self.inner.parts.bounds.comment)?;
        let row = self.inner.parts.store.suspension(suspension).await?.ok_or_else(unknown)?;
        let (pipeline, by) = (self.inner.pipeline.clone(), by.clone());
        to_the_end("hand an approval on", async move {
            let entered = pipeline.turns.enter(row.turn);
            let input =
                |_: &Turn| Input::Delegate { suspension, by: by.clone(), to: to.clone(), comment: comment.clone() };
            pipeline.step(&entered, |turn, _| Some(input(turn))).await.map(drop)
        })
        .await
    }

    /// Has the schema recalled that an answer's data is held against, where it is not known any more. Not for those whose answer is
    /// refused anyway.
    async fn recall(&self, by: &Principal, answer: &Answer, turn: &Turn) -> Result<(), Refusal> {
        let Some((call, suspension)) = open(answer, turn) else { return Ok(()) };
        let Some(pinned) = &call.pinned else { return Ok(()) };
        if answer.data.is_none() || suspension.response.is_none() || !self.has_say(by, turn, suspension) {
            return Ok(());
        }
        let recalled = self.inner.pipeline.runner.recheck.recalled(pinned, &call.tool).await;
        let unknown = |outcome| Violation { pointer: "/data".into(), message: recheck::unknown(outcome) };
        recalled.map(drop).map_err(|outcome| Refusal::Invalid(vec![unknown(outcome)]))
    }

    /// What the policy says of edited arguments; of others it was asked before. A guest's call is judged again when it is run;
    /// what a client carries out is judged here once more, since there is no later moment.
    async fn judged(&self, by: &Principal, answer: &Answer, turn: &Turn) -> Result<Verdict, Refusal> {
        let Some((call, suspension)) = open(answer, turn) else { return Ok(Verdict::default()) };
        let for_client = call.pinned.as_ref().is_some_and(|pinned| pinned.executor == Executor::Client);
        let unedited = Some(&call.arguments).filter(|_| for_client && suspension.kind == Kind::Approval);
        let Some(arguments) = answer.arguments.as_ref().or(unedited) else { return Ok(Verdict::default()) };
        // A policy costs something. It is not asked by those whose answer is refused anyway.
        if !self.approves(by, answer, turn, suspension) {
            // Refused for that as things stand. Should they have a say by the time that the answer is decided on, because somebody
            // handed them one meanwhile, it is not for what nobody judged.
            return Ok(Verdict { rule: Rule::Deny, ..Verdict::default() });
        }
        let Some(pinned) = &call.pinned else { return Ok(Verdict::default()) };
        let live = self.inner.pipeline.runner.recheck.recalled(pinned, &call.tool).await.map_err(|outcome| {
            let cause = recheck::unknown(outcome);
            Refusal::NotAllowed(format!("nobody can say what the policy makes of this call, so deny it: {cause}"))
        })?;
        // What breaks the tool's schema is refused for that.
        if !live.checks.arguments(arguments).is_empty() {
            return Ok(Verdict::default());
        }
        Ok(self.inner.parts.policy.judge(Asker::of(turn).question(&live, arguments)).await)
    }

    /// Whether it is an approval by somebody who has a say, as things stand.
    fn approves(&self, by: &Principal, answer: &Answer, turn: &Turn, suspension: &Suspension) -> bool {
        answer.decision == "approve" && self.has_say(by, turn, suspension)
    }

    fn has_say(&self, by: &Principal, turn: &Turn, suspension: &Suspension) -> bool {
        by.may_see(&turn.conversation, &turn.caller)
            && by.may_answer(suspension.kind, &turn.caller, self.own_calls()).is_ok()
            && suspension.counts_for(by).is_ok()
    }

    /// Announces what an answer is to allow beforehand. Whoever has no say holds up nobody who has one.
    async fn coming(&self, by: &Principal, answer: &Answer, turn: &Turn) -> Result<Option<Coming>, Error> {
        let (Some(terms), Some((call, suspension))) = (&answer.standing, open(answer, turn)) else { return Ok(None) };
        if !self.approves(by, answer, turn, suspension) {
            return Ok(None);
        }
        let (inner, now) = (&self.inner, self.now());
        inner.standings().ready(inner.parts.store.as_ref(), now).await?;
        // An edit that changes nothing but how they are written leaves them as they were asked.
        let edited = answer.arguments.as_ref().map_or(0, Json::size);
        let bytes = edited.max(call.arguments.size()) + terms.pin.size();
        Ok(Some(inner.standings().coming(&turn.caller, bytes, now)))
    }

    /// The answer with what the checks find. Checks that do not apply find nothing.
    fn checked(&self, by: &Principal, answer: &Answer, turn: &Turn, verdict: &Verdict) -> Resolve {
        let about = turn.suspension(answer.suspension);
        let edit = about.and_then(|(_, call, suspension, _)| self.edit(answer, call, suspension, turn, verdict));
        let (arguments, checked) = match edit {
            Some((arguments, checked)) => (Some(arguments), checked),
            None => (None, Checked { rule: verdict.rule, ..Checked::default() }),
        };
        let data = about.map_or_else(Vec::new, |(_, call, suspension, _)| self.data(answer, call, suspension));
        Resolve {
            suspension: answer.suspension,
            by: by.clone(),
            decision: answer.decision.clone(),
            data: answer.data.clone(),
            arguments,
            comment: answer.comment.clone(),
            standing: answer.standing.clone(),
            expect_digest: answer.expect_digest,
            checked: Checked { data, pin: about.map_or_else(Vec::new, |(_, call, ..)| pin(answer, call)), ..checked },
        }
    }

    fn data(&self, answer: &Answer, call: &Call, suspension: &Suspension) -> Vec<Violation> {
        // An approval is a yes or a no. Without a schema, any JSON fits a question.
        if suspension.response.is_none() {
            return match (&answer.data, suspension.kind) {
                (None, _) => Vec::new(),
                (Some(_), Kind::Approval) => {
                    vec![Violation { pointer: String::new(), message: "an approval takes no data".into() }]
                }
                (Some(data), _) => plan::violations(data, |_| Vec::new()),
            };
        }
        let Some(live) = self.pinned(call) else { return gone() };
        match (&answer.data, suspension.kind) {
            // A choice is an answer of its own; what comes with it may be left out.
            (None, Kind::Elicitation) if suspension.responses.is_some() => Vec::new(),
            (None, _) => vec![Violation { pointer: String::new(), message: "data is required here".into() }],
            (Some(data), Kind::ClientExec) => plan::violations(data, |data| live.checks.result(data)),
            (Some(data), Kind::Approval | Kind::Elicitation) => {
                plan::violations(data, |data| live.checks.response(data))
            }
        }
    }

    /// The edited arguments with what the checks find, or nothing if they are the ones that were shown.
    fn edit(
        &self,
        answer: &Answer,
        call: &Call,
        suspension: &Suspension,
        turn: &Turn,
        verdict: &Verdict,
    ) -> Option<(Json, Checked)> {
        let arguments = answer.arguments.as_ref()?;
        let _value = call.arguments.value();
        // A repeated answer repeats its edit, which by then is what the call has: it is compared with what was committed.
        let closed = turn.suspension(suspension.id).and_then(|(.., closed)| closed);
        if let Some(ClosedAs::Resolved(Resolution { arguments: Some(committed), .. })) =
            closed.map(|closed| &closed.how)
            && exact::same(arguments, committed)
        {
            return Some((committed.clone(), Checked::default()));
        }
        if exact::same(arguments, &call.arguments) {
            return None;
        }
        // A vote for the same edit as an earlier one is a vote for the very same text.
        let voted = suspension.votes.iter().filter_map(|vote| vote.arguments.as_ref());
        let arguments = voted.clone().find(|voted| exact::same(voted, arguments)).unwrap_or(arguments);
        let violations = self
            .pinned(call)
            .map_or_else(gone, |live| plan::violations(arguments, |arguments| live.checks.arguments(arguments)));
        let edited = exact::changed_members(&call.arguments, arguments);
        let (rule, needs) = (verdict.rule, verdict.needs.clone());
        Some((arguments.clone(), Checked { arguments: violations, edited, rule, needs, ..Checked::default() }))
    }

    fn pinned(&self, call: &Call) -> Option<Arc<LiveTool>> {
        let pinned = call.pinned.as_ref()?;
        self.inner.parts.tools.pinned(&pinned.plugin, pinned.component, &call.tool)
    }
}

/// That an answer stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// Whether the same principal had given it before.
    pub replayed: bool,
    /// How the suspension is now: `open` where others have to approve as well, or how it ended.
    pub state: String,
    /// How many approvals are missing at least.
    pub votes_missing: u32,
}

/// What is allowed beforehand by an answer that was not announced: nothing.
const NO_ROOM: StandingActive = StandingActive { count: u32::MAX, bytes: usize::MAX };

/// What an answer is about, while that is open.
fn open<'a>(answer: &Answer, turn: &'a Turn) -> Option<(&'a Call, &'a Suspension)> {
    let (_, call, suspension, closed) = turn.suspension(answer.suspension)?;
    closed.is_none().then_some((call, suspension))
}

/// The bytes of the texts that are parsed to check an answer.
fn read_by(answer: &Answer, turn: &Turn) -> usize {
    let size = |json: &Option<Json>| json.as_ref().map_or(0, Json::size);
    let edits = answer.arguments.is_some() || answer.standing.is_some();
    let asked = turn.suspension(answer.suspension).filter(|_| edits).map_or(0, |(_, call, ..)| call.arguments.size());
    size(&answer.data) + size(&answer.arguments) + asked
}

/// What is wrong with the arguments that a standing approval is to pin.
fn pin(answer: &Answer, call: &Call) -> Vec<Violation> {
    let Some(Pin::Fields(pointers)) = answer.standing.as_ref().map(|standing| &standing.pin) else { return Vec::new() };
    let wrong = |pointer: String, message: &str| Violation { pointer, message: message.to_owned() };
    if pointers.is_empty() || pointers.len() > MOST_PINNED {
        return vec![wrong("/standing/pin".into(), "name 1 to 64 arguments, or pin \"all\" of them")];
    }
    let arguments = answer.arguments.as_ref().unwrap_or(&call.arguments);
    let Ok(arguments) = arguments.value() else {
        return vec![wrong("/standing/pin".into(), "these arguments can only be pinned as a whole: pin \"all\"")];
    };
    let absent = |pointer: &String| pointer.is_empty() || arguments.pointer(pointer).is_none();
    let absent = pointers.iter().enumerate().filter(|(_, pointer)| absent(pointer));
    absent.map(|(n, _)| wrong(format!("/standing/pin/{n}"), "the arguments have nothing there")).collect()
}

/// How many arguments one standing approval can pin.
const MOST_PINNED: usize = 64;

fn gone() -> Vec<Violation> {
    vec![Violation { pointer: String::new(), message: recheck::unknown(Outcome::Invalidated) }]
}
