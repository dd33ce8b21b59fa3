//! Answers to suspensions. The checks that need a parser are here. The domain decides what follows from their findings.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use domain::{
    Call, Json, LinkId, Outcome, Principal, PrincipalId, Refusal, Suspension, SuspensionId, Turn, Violation,
    gate::{RuleEffect, Verdict},
    principal::{Channel, Named},
    refusal::{NoRecheck, NotAllowed},
    standing::{Pin, StandingActive},
    suspension::{Decision, Elicitation, SuspensionBody, SuspensionState},
    tool::Executor,
    turn::{AnswerChecks, CheckedAnswer, Input},
};

use super::{Handle, Readers, run_uncancelled};
use crate::error::{Error, RequestPart};
use crate::exact;
use crate::plan::{self, CallScope};
use crate::ports::KnownTool;
use crate::request::{Answer, Bounds};
use crate::standing::AnnouncedApproval;
use crate::tracker::Texts;
use crate::turns::Entered;

impl Handle {
    /// Answers a suspension. When this returns, the answer is on disk and the call continues. Nobody waits for the
    /// call.
    ///
    /// # Errors
    /// [`Error::Refused`] with the first check that failed. Nothing has changed then. [`Refusal::Unknown`] for a
    /// suspension that this principal may not see.
    pub async fn resolve(&self, by: &Principal, answer: Answer) -> Result<Answered, Error> {
        self.answered(by, answer, |answer| Input::Resolve(Box::new(answer))).await
    }

    /// Sends the result of an external wait with a link to it, in the name of the link's principal. The link is used up
    /// exactly if the answer is accepted.
    ///
    /// # Errors
    /// As [`Handle::resolve`]. [`Refusal::LinkUsed`] if the link was used before, [`Refusal::Unknown`] if the suspension has
    /// no such link for this principal, and [`Refusal::Invalid`] if it is not an external wait.
    pub async fn resolve_by_link(&self, by: &Principal, link: LinkId, answer: Answer) -> Result<Answered, Error> {
        let by = Principal { link: Some(link), channel: Channel::Link, ..by.clone() };
        self.answered(&by, answer, move |answer| Input::ResolveByLink { answer: Box::new(answer), link }).await
    }

    async fn answered(
        &self,
        by: &Principal,
        answer: Answer,
        input: impl Fn(CheckedAnswer) -> Input + Send + Sync + 'static,
    ) -> Result<Answered, Error> {
        self.check_open()?;
        let bounds = &self.inner.shared.bounds;
        let size = |json: &Option<Json>| json.as_ref().map_or(0, Json::size);
        Bounds::check(RequestPart::AnswerData, size(&answer.data), bounds.data)?;
        Bounds::check(RequestPart::AnswerArguments, size(&answer.arguments), bounds.arguments)?;
        Bounds::check(RequestPart::AnswerComment, answer.comment.as_ref().map_or(0, String::len), bounds.comment)?;
        let row = self.inner.readers.indexes.suspension(answer.suspension).await?.ok_or(Refusal::Unknown)?;
        let (handle, by) = (self.clone(), by.clone());
        run_uncancelled("answer a suspension", async move {
            let pipeline = &handle.inner.pipeline;
            let (entered, log) = (pipeline.turns.enter(row.turn), pipeline.log.as_ref());
            // A policy can be slow, so it is asked before the turn is locked. Its question cannot change: the arguments
            // are those of the answer.
            handle.end_revoked(&entered).await?;
            let permit = handle.inner.loads.permit(&by.id).await;
            let turn = entered.read(log).await?.found().ok_or(Refusal::Unknown)?;
            drop(permit);
            let _memory = pipeline.tracker.values(&by.id, read_by(&answer, &turn)).await;
            // Held, so that every check below sees the same value.
            let _values = [&answer.data, &answer.arguments].map(|json| json.as_ref().map(Json::value));
            handle.recall(&by, &answer, &turn).await?;
            let verdict = handle.verdict(&by, &answer, &turn).await?;
            // The check of the data may compile a schema, so it is made before the turn is locked. Neither the data nor the schema
            // can change.
            let data = handle.data_of(&by, &answer, &turn);
            // Held until the answer is committed, so that several answers at once do not exceed the limit.
            let announced = handle.announce_standing(&by, &answer, &turn).await?;
            let resolve = |turn: &Turn| {
                let mut resolve = handle.checked(&by, &answer, turn, (&verdict, data.as_ref()));
                resolve.checked.standing = announced.as_ref().map_or(NO_ROOM, |announced| announced.active);
                input(resolve)
            };
            let replayed = match handle.decide_unless_revoked(&entered, &by, resolve).await {
                Ok(()) => false,
                Err(Error::Refused(Refusal::Replayed)) => true,
                Err(error) => return Err(error),
            };
            let turn = entered.read(log).await?.found().ok_or(Refusal::Unknown)?;
            let (.., suspension, closed) = turn.suspension(row.id).ok_or(Refusal::Unknown)?;
            let state = SuspensionState::of(closed);
            let votes_missing = if closed.is_some() { 0 } else { suspension.votes_missing() };
            Ok(Answered { replayed, suspension: Box::new(suspension.clone()), state, votes_missing })
        })
        .await
    }

    /// Delegates the principal's authority over an approval. The caller has looked up whom the name means.
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
        Bounds::check(RequestPart::AnswerComment, size, self.inner.shared.bounds.comment)?;
        let row = self.inner.readers.indexes.suspension(suspension).await?.ok_or(Refusal::Unknown)?;
        let (handle, by) = (self.clone(), by.clone());
        run_uncancelled("delegate an approval", async move {
            let entered = handle.inner.pipeline.turns.enter(row.turn);
            handle.end_revoked(&entered).await?;
            let input = |_: &Turn| {
                let to = match &to {
                    Named::Somebody(other) if handle.is_revoked(other) => Named::Nobody(other.id.clone()),
                    known => known.clone(),
                };
                Input::Delegate { suspension, by: by.clone(), to, comment: comment.clone() }
            };
            handle.decide_unless_revoked(&entered, &by, input).await
        })
        .await
    }

    /// Decides about a principal's input, unless the principal is revoked by then. First it ends the authority of
    /// others that are revoked by then. The checks before, such as those of a policy, may have taken long.
    async fn decide_unless_revoked(
        &self,
        entered: &Entered,
        by: &Principal,
        input: impl Fn(&Turn) -> Input + Send + Sync,
    ) -> Result<(), Error> {
        loop {
            self.inner.shared.principals.refresh().await;
            let refused = Mutex::new(None);
            let decide = |turn: &Turn| {
                let why = if self.is_revoked(by) {
                    Some(Undecided::Refused)
                } else {
                    self.revoked(turn).map(|_| Undecided::Again)
                };
                let is_decided = why.is_none();
                *refused.lock().unwrap_or_else(PoisonError::into_inner) = why;
                is_decided.then(|| input(turn))
            };
            self.inner.pipeline.step(entered, |turn, _| decide(turn)).await?;
            match refused.into_inner().unwrap_or_else(PoisonError::into_inner) {
                None => return Ok(()),
                Some(Undecided::Refused) => return Err(Refusal::from(NotAllowed::Revoked).into()),
                Some(Undecided::Again) => self.end_revoked(entered).await?,
            }
        }
    }

    /// Ends the authority of revoked principals in a turn.
    async fn end_revoked(&self, entered: &Entered) -> Result<(), Error> {
        self.inner.shared.principals.refresh().await;
        self.inner.pipeline.step(entered, |turn, _| self.revoked(turn)).await.map(drop)
    }

    /// The end of the authority of revoked principals. `None`: no authority ends.
    fn revoked(&self, turn: &Turn) -> Option<Input> {
        let current = &self.inner.shared.principals;
        let revoked = turn.authorities().filter(|(id, since)| !current.is_current(id, *since));
        let principals: BTreeSet<PrincipalId> = revoked.map(|(id, _)| id.clone()).collect();
        let principals: Vec<PrincipalId> = principals.into_iter().collect();
        (!principals.is_empty()).then_some(Input::Revoked { principals })
    }

    pub(super) fn is_revoked(&self, principal: &Principal) -> bool {
        principal.since.is_some_and(|since| !self.inner.shared.principals.is_current(&principal.id, since))
    }

    /// Recalls the tool whose schema the answer's data must fit. Skipped for an answer that is refused anyway.
    async fn recall(&self, by: &Principal, answer: &Answer, turn: &Turn) -> Result<(), Refusal> {
        let Some((call, suspension)) = open(answer, turn) else { return Ok(()) };
        let Some(pinned) = &call.pinned else { return Ok(()) };
        // The schema of a step is in its suspension.
        let is_checked = answer.data.is_some() && suspension.data_schema().is_some() && suspension.step.is_none();
        if !is_checked || !self.has_authority(by, turn, suspension) {
            return Ok(());
        }
        let recalled = self.inner.pipeline.runner.recheck.recalled(pinned, &call.tool).await;
        let at_data = |why: NoRecheck| Violation { pointer: "/data".into(), message: why.to_string() };
        recalled.map(drop).map_err(|outcome| Refusal::Invalid(vec![at_data(outcome.into())]))
    }

    /// The policy's verdict on edited arguments; it was asked about the submitted ones before. It is asked again about
    /// the call of a guest before the guest runs. For the call of a client there is no later moment, so it is asked
    /// here.
    async fn verdict(&self, by: &Principal, answer: &Answer, turn: &Turn) -> Result<Verdict, Refusal> {
        let Some((call, suspension)) = open(answer, turn) else { return Ok(Verdict::default()) };
        // The policy was asked about the step when it began. The subject of a question inside a call is not its arguments.
        if suspension.is_inside() {
            return Ok(Verdict::default());
        }
        let for_client = call.pinned.as_ref().is_some_and(|pinned| pinned.executor == Executor::Client);
        let unedited = Some(&call.arguments).filter(|_| for_client && suspension.approval().is_some());
        let Some(arguments) = answer.arguments.as_ref().or(unedited) else { return Ok(Verdict::default()) };
        // A policy costs time. It is not asked for an answer that is refused anyway.
        if !self.approves(by, answer, turn, suspension) {
            // Somebody may delegate authority to this principal before the answer is decided. Then it must not approve
            // what no policy has seen.
            return Ok(Verdict { rule: RuleEffect::Deny, ..Verdict::default() });
        }
        let Some(pinned) = &call.pinned else { return Ok(Verdict::default()) };
        let unknown = |outcome: Outcome| NotAllowed::NoRecheck(outcome.into());
        let recheck = &self.inner.pipeline.runner.recheck;
        let known = recheck.recalled(pinned, &call.tool).await.map_err(unknown)?;
        // Arguments that break the tool's schema are refused for that.
        if !known.checks.arguments(arguments).is_empty() {
            return Ok(Verdict::default());
        }
        Ok(recheck.verdict(&CallScope::of(turn), &known, arguments).await.map_err(unknown)?)
    }

    /// Whether it is an approval by a principal who has authority now.
    fn approves(&self, by: &Principal, answer: &Answer, turn: &Turn, suspension: &Suspension) -> bool {
        answer.decision == Decision::Approve && self.has_authority(by, turn, suspension)
    }

    fn has_authority(&self, by: &Principal, turn: &Turn, suspension: &Suspension) -> bool {
        by.may_see(&turn.conversation, &turn.caller)
            && by.may_answer(suspension.kind(), &turn.caller, self.own_calls()).is_ok()
            && suspension.counts_for(by).is_ok()
    }

    /// Announces the standing approval of an answer. A principal without authority announces none, so it delays nobody.
    async fn announce_standing(
        &self,
        by: &Principal,
        answer: &Answer,
        turn: &Turn,
    ) -> Result<Option<AnnouncedApproval>, Error> {
        let (Some(terms), Some((call, suspension))) = (&answer.standing, open(answer, turn)) else { return Ok(None) };
        if !self.approves(by, answer, turn, suspension) {
            return Ok(None);
        }
        let (inner, now) = (&self.inner, self.now());
        let Readers { standing, standings, .. } = &inner.readers;
        standings.ready(standing.as_ref(), now).await?;
        // An edit that only changes white space leaves the arguments as they were submitted.
        let edited = answer.arguments.as_ref().map_or(0, Json::size);
        let bytes = edited.max(call.arguments.size()) + terms.pin.size();
        Ok(Some(standings.announce(&turn.caller, bytes, now)))
    }

    /// The answer with what the checks find. Checks that do not apply find nothing. The verdict and
    /// the faults of the data were found before the turn was locked.
    fn checked(
        &self,
        by: &Principal,
        answer: &Answer,
        turn: &Turn,
        (verdict, data): (&Verdict, Option<&Vec<Violation>>),
    ) -> CheckedAnswer {
        let about = turn.suspension(answer.suspension);
        let edit = about.and_then(|(_, call, suspension, _)| self.edit(answer, call, suspension, turn, verdict));
        let (arguments, checked) = match edit {
            Some((arguments, checked)) => (Some(arguments), checked),
            None => (None, AnswerChecks { rule: verdict.rule, ..AnswerChecks::default() }),
        };
        // Somebody may have delegated authority to this principal meanwhile.
        let data = data.cloned().or_else(|| self.data_of(by, answer, turn)).unwrap_or_default();
        CheckedAnswer {
            suspension: answer.suspension,
            by: by.clone(),
            decision: answer.decision.clone(),
            data: answer.data.clone(),
            arguments,
            comment: answer.comment.clone(),
            standing: answer.standing.clone(),
            expect_digest: answer.expect_digest,
            checked: AnswerChecks {
                data,
                pin: about.map_or_else(Vec::new, |(_, call, ..)| pin(answer, call)),
                ..checked
            },
        }
    }

    /// The faults of an answer's data. `None`: the answer is refused anyway.
    fn data_of(&self, by: &Principal, answer: &Answer, turn: &Turn) -> Option<Vec<Violation>> {
        let (call, suspension) = open(answer, turn)?;
        self.has_authority(by, turn, suspension).then(|| self.data(answer, call, suspension))
    }

    fn data(&self, answer: &Answer, call: &Call, suspension: &Suspension) -> Vec<Violation> {
        let wrong = |message: &str| vec![Violation { pointer: String::new(), message: message.to_owned() }];
        if suspension.approval().is_some() {
            return if answer.data.is_some() { wrong("an approval takes no data") } else { Vec::new() };
        }
        // Without a schema, any JSON fits.
        let Some(schema) = suspension.data_schema() else {
            return answer.data.as_ref().map_or_else(Vec::new, |data| plan::violations(data, |_| Vec::new()));
        };
        if let (Some(data), Some(_)) = (&answer.data, &suspension.step) {
            return plan::violations(data, |data| self.inner.shared.tools.violations(schema, data));
        }
        let has_choices = matches!(&suspension.body, SuspensionBody::Elicitation(Elicitation { choices: Some(_), .. }));
        if suspension.step.is_some() {
            return if has_choices { Vec::new() } else { wrong("data is required here") };
        }
        let Some(known) = self.pinned(call) else { return removed() };
        match (&suspension.body, &answer.data) {
            // A choice is an answer, with or without data.
            (_, None) if has_choices => Vec::new(),
            (_, None) => wrong("data is required here"),
            (SuspensionBody::ClientExec(_), Some(data)) => plan::violations(data, |data| known.checks.result(data)),
            (
                SuspensionBody::Approval(_)
                | SuspensionBody::Elicitation(_)
                | SuspensionBody::External(_)
                | SuspensionBody::Nested(_)
                | SuspensionBody::Timer
                | SuspensionBody::RateLimit,
                Some(data),
            ) => plan::violations(data, |data| known.checks.response(data)),
        }
    }

    /// The edited arguments and the findings about them. `None`: they equal the arguments that were shown.
    fn edit(
        &self,
        answer: &Answer,
        call: &Call,
        suspension: &Suspension,
        turn: &Turn,
        verdict: &Verdict,
    ) -> Option<(Json, AnswerChecks)> {
        let arguments = answer.arguments.as_ref()?;
        let asked = call.asked_about(suspension.id);
        let _value = asked.value();
        // A repeated answer repeats its edit. The call has those arguments already, so the edit is compared with what
        // was committed.
        let resolution = turn.suspension(suspension.id).and_then(|(.., closed)| closed?.resolution());
        if let Some(committed) = resolution.and_then(|resolution| resolution.arguments.as_ref())
            && exact::same(arguments, committed)
        {
            return Some((committed.clone(), AnswerChecks::default()));
        }
        if exact::same(arguments, asked) {
            return None;
        }
        // A vote for an equal edit is a vote for the same text.
        let voted = suspension.votes().iter().filter_map(|vote| vote.arguments.as_ref());
        let arguments = voted.clone().find(|voted| exact::same(voted, arguments)).unwrap_or(arguments);
        let violations = match suspension.subject() {
            // The guest decides what to do with an approved value, and the domain reads decisions about requests.
            Some(_) => plan::violations(arguments, |_| Vec::new()),
            None => self
                .pinned(call)
                .map_or_else(removed, |known| plan::edited(&known, arguments).err().unwrap_or_default()),
        };
        let edited = exact::changed_members(asked, arguments);
        let (rule, needs) = (verdict.rule, verdict.needs.clone());
        Some((
            arguments.clone(),
            AnswerChecks { arguments: violations, edited, rule, needs, ..AnswerChecks::default() },
        ))
    }

    fn pinned(&self, call: &Call) -> Option<Arc<KnownTool>> {
        let pinned = call.pinned.as_ref()?;
        self.inner.shared.tools.pinned(&pinned.plugin, pinned.component, &call.tool)
    }
}

/// Why an input was not decided.
enum Undecided {
    /// The principal was revoked.
    Refused,
    /// The authority of another principal must end first.
    Again,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// Whether the same principal had given it before.
    pub replayed: bool,
    /// The suspension after the answer.
    pub suspension: Box<Suspension>,
    /// Still open if others have to approve too.
    pub state: SuspensionState,
    /// How many approvals are missing at least.
    pub votes_missing: u32,
}

/// An answer that was not announced gives no standing approval.
const NO_ROOM: StandingActive = StandingActive { count: u32::MAX, bytes: usize::MAX };

/// The call and suspension of an answer, while the suspension is open.
fn open<'a>(answer: &Answer, turn: &'a Turn) -> Option<(&'a Call, &'a Suspension)> {
    let (_, call, suspension, closed) = turn.suspension(answer.suspension)?;
    closed.is_none().then_some((call, suspension))
}

/// The sizes of the texts that are parsed to check an answer.
fn read_by(answer: &Answer, turn: &Turn) -> Texts {
    let size = |json: &Option<Json>| json.as_ref().map_or(0, Json::size);
    let edits = answer.arguments.is_some() || answer.standing.is_some();
    let asked = turn
        .suspension(answer.suspension)
        .filter(|_| edits)
        .map_or(0, |(_, call, ..)| call.asked_about(answer.suspension).size());
    [size(&answer.data), size(&answer.arguments), asked].into_iter().collect()
}

/// The faults in the arguments that a standing approval pins.
fn pin(answer: &Answer, call: &Call) -> Vec<Violation> {
    let Some(Pin::Fields(pointers)) = answer.standing.as_ref().map(|standing| &standing.pin) else { return Vec::new() };
    let wrong = |pointer: String, message: &str| Violation { pointer, message: message.to_owned() };
    if pointers.is_empty() || pointers.len() > MAX_PINNED {
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
const MAX_PINNED: usize = 64;

/// The component that the call is pinned to was removed.
fn removed() -> Vec<Violation> {
    vec![Violation { pointer: String::new(), message: NoRecheck::Removed.to_string() }]
}
