//! One call, and the lives of the hosts that carry it out. Each life is a new loop on the same store. It ends with the
//! call, or with a kill at a commit.

use std::collections::HashSet;
use std::sync::Arc;

use dispatch::ports::{AppendError, Clock as _, Commit, Journals as _, Log as _};
use dispatch::{Answer, Dispatcher, Error, Handle, Parts, Until};
use domain::journal::{Entry, Record, RefusedForNow};
use domain::suspension::{Decision, Suspension, SuspensionKind};
use domain::{
    CallIndex, ConversationId, Digest, Outcome, Principal, Refusal, Span, SuspensionId, Turn, TurnId, principal::Role,
    turn::TurnSettings,
};
use registry::Registry;
use toolgate_tests::faults::{Death, MortalStore};
use toolgate_tests::requests::{answer, call, conversation, principal, turn};
use toolgate_tests::world::World;

use super::guests::{Guests, runtime};
use super::program::{Program, RANDOM, WaitEnd};

/// How often a life looks whether a wait that is over has ended.
const MAX_LOOKS: u32 = 1_000_000;

/// Longer than any wait of a call.
const LONG: Span = Span::from_secs(1 << 30);

/// The end of a life.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kill {
    /// The number of the life's commits before the one at which it dies.
    pub(crate) commit: usize,
    pub(crate) death: Death,
}

/// A call that has ended.
pub(crate) struct Carried {
    pub(crate) done: Done,
    /// The kills before its end.
    pub(crate) kills: usize,
    /// The commits of the last life.
    pub(crate) commits: usize,
    pub(crate) seen: Seen,
}

/// Counts of what happened in the lives of a call.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Seen {
    /// Commits of superseded runs that came late and were refused.
    pub(crate) refused: usize,
    /// Questions about requests that a kill left in doubt, which were answered with the decision to send them again.
    pub(crate) sent_again: usize,
    /// Approvals with another value, questions that expired, and cancellations.
    pub(crate) edited: usize,
    pub(crate) expired: usize,
    pub(crate) cancelled: usize,
}

/// The traces of a call and of its nested turns. A kill changes none of them.
pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    /// The number of nested turns.
    pub(crate) nested: usize,
    /// The ended steps: their digests, times and ends.
    pub(crate) steps: Vec<String>,
    /// The entries of the journals, each with its turn, without what a kill may change.
    pub(crate) journal: Vec<(String, Entry)>,
    pub(crate) values: Vec<String>,
    /// The answers of the server to the requests that it carried out, in order. Each has the body of its request.
    pub(crate) effects: Vec<String>,
}

/// Carries a program out in a new world, with the guests of this registry. Each life ends with the next kill, and without one it
/// ends with the call.
pub(crate) fn carry_out(guests: &Guests, registry: &Arc<Registry>, program: &Program, kills: &[Kill]) -> Carried {
    let world = guests.world();
    guests.server.limit(program.limited.iter().cloned());
    let registry = registry.clone();
    let (lifted, seen) = (HashSet::new(), Seen::default());
    let mut lives = Lives { guests, registry, program, world, lifted, late: None, seen };
    for (number, kill) in kills.iter().enumerate() {
        if let Some((turns, commits)) = lives.live(Some(*kill)) {
            return lives.end(&turns, number, commits);
        }
    }
    let (turns, commits) = lives.live(None).expect("nothing kills this host");
    lives.end(&turns, kills.len(), commits)
}

/// The lives of the hosts that carry a program out.
struct Lives<'a> {
    guests: &'a Guests,
    registry: Arc<Registry>,
    program: &'a Program,
    world: World,
    /// The waits for the server that have ended.
    lifted: HashSet<SuspensionId>,
    /// The commit of the last life that is still on its way.
    late: Option<Commit>,
    seen: Seen,
}

impl Lives<'_> {
    /// One life. Returns the turns if the call ended, the nested ones first, and the number of commits.
    fn live(&mut self, kill: Option<Kill>) -> Option<(Vec<Turn>, usize)> {
        let store = Arc::new(MortalStore::new(self.world.store.clone()));
        if let Some(Kill { commit, death }) = kill {
            store.die_after(commit, death);
        }
        let runtime = runtime();
        let ended = runtime.block_on(async {
            let settings = TurnSettings { max_attempts: u32::MAX, ..TurnSettings::default() };
            let parts = self.world.parts(self.registry.clone());
            let host = Dispatcher::start(Parts { store: store.clone(), settings, ..parts });
            let handle = host.handle();
            tokio::select! {
                biased;
                () = store.died() => None,
                turns = self.call(&handle) => Some(turns),
            }
        });
        // A thread of the killed host may still wait.
        runtime.shutdown_background();
        let commits = store.commits();
        if let Some(late) = self.late.take() {
            self.append_late(&late, commits);
        }
        self.late = store.take_late();
        Some((ended?, commits))
    }

    /// The commit of the life before the last comes to the disk. It is refused after a commit of the last life.
    fn append_late(&mut self, late: &Commit, commits: usize) {
        match runtime().block_on(self.world.store.append(late)) {
            Ok(_) => assert_eq!(commits, 0, "a superseded run changed something: {late:?}, with {}", self.program),
            Err(AppendError::Superseded | AppendError::Conflict | AppendError::CallExists(_)) => self.seen.refused += 1,
            Err(error) => panic!("a late commit: {error}, with {}", self.program),
        }
    }

    /// Submits the call if no host has it, and answers what it asks, until it ends. Returns the turns, nested ones first.
    async fn call(&mut self, handle: &Handle) -> Vec<Turn> {
        let (agent, of) = (principal("agent", Role::Caller), conversation("c"));
        let request = turn("c", [call("call", "run", self.program.arguments())]);
        let id = handle.submit(&agent, request).await.expect("the turn is submitted").turn.id;
        for _ in 0..MAX_LOOKS {
            let outer = quiet(handle, &agent, &of, id).await;
            let mut turns = nested(handle, &agent).await;
            let has_ended = outer.is_ended();
            turns.push(outer);
            if turns.iter().all(Turn::is_ended) {
                return turns;
            }
            // The host cancels nested turns after the call that waits for them.
            for open in turns.iter().flat_map(Turn::pending).filter(|_| !has_ended) {
                self.end_wait(handle, (&agent, &of, id), open.2).await;
            }
            // The host sees in a task of its own that a wait is over.
            tokio::task::yield_now().await;
        }
        panic!("the call does not go on: {}", self.program)
    }

    /// Ends a wait of this turn or of its nested turns.
    async fn end_wait(
        &mut self,
        handle: &Handle,
        (agent, of, turn): (&Principal, &ConversationId, TurnId),
        open: &Suspension,
    ) {
        let kind = open.kind();
        if kind == SuspensionKind::Nested {
            return;
        }
        let answer = answer(open.id, Decision::Approve);
        let answer = match self.program.end(open) {
            WaitEnd::Answer(decision, data) => Answer { decision, data, ..answer },
            WaitEnd::Denial => Answer { decision: Decision::Deny, ..answer },
            WaitEnd::Edit(value) => {
                self.seen.edited += 1;
                Answer { arguments: Some(value), ..answer }
            }
            WaitEnd::SendAgain(decisions) => {
                self.seen.sent_again += 1;
                Answer { arguments: Some(decisions), ..answer }
            }
            WaitEnd::Time => {
                if kind == SuspensionKind::RateLimit && self.lifted.insert(open.id) {
                    self.guests.server.lift();
                }
                self.seen.expired += usize::from(kind == SuspensionKind::Elicitation);
                let left = open.expires_at.millis().saturating_sub(self.world.clock.now().millis());
                return self.world.clock.advance(Span::from_millis(left));
            }
            WaitEnd::Cancellation => {
                self.seen.cancelled += 1;
                return handle.cancel(agent, of, turn).await.map(drop).expect("the caller may cancel");
            }
        };
        let by = if kind == SuspensionKind::External { agent.clone() } else { principal("ann", Role::Approver) };
        match handle.resolve(&by, answer).await {
            Ok(_) | Err(Error::Refused(Refusal::Stale { .. })) => {}
            Err(error) => panic!("the answer to {open:?} is refused: {error}"),
        }
    }

    /// The traces of these turns.
    fn end(self, turns: &[Turn], kills: usize, commits: usize) -> Carried {
        let (mut steps, mut journal) = (Vec::new(), Vec::new());
        for (number, turn) in turns.iter().enumerate() {
            let name = if number + 1 < turns.len() { format!("nested turn {number}") } else { "turn".to_owned() };
            steps.extend(turn.calls[0].steps().map(|step| format!("{name}: {step:?}")));
            let mut entries = runtime().block_on(self.world.store.journal(turn.id, CallIndex(0))).expect("the journal");
            if self.seen.sent_again > 0 {
                // Somebody has decided to send a request again.
                entries.dedup_by(|next, begun| {
                    matches!((&next.record, &begun.record), (Record::Begun(_), Record::Begun(_)))
                        && next.digest == begun.digest
                });
            }
            journal.extend((0..).zip(entries).map(|(number, entry)| (name.clone(), compared(number, entry))));
        }
        let outer = turns.last().and_then(|turn| turn.calls[0].outcome());
        let effects = self.guests.server.carried_out().into_iter().map(|(_, answer)| answer).collect();
        let done = Done {
            outcome: outer.expect("the call has ended").clone(),
            nested: turns.len() - 1,
            steps,
            journal,
            values: self.guests.values(),
            effects,
        };
        Carried { done, kills, commits, seen: self.seen }
    }
}

/// The turn once no call of it runs.
async fn quiet(handle: &Handle, agent: &Principal, of: &ConversationId, turn: TurnId) -> Turn {
    handle.wait(agent, of, turn, Until::Quiet, LONG).await.expect("the turn can be read")
}

/// The nested turns in the order of their submission, once no call of them runs.
async fn nested(handle: &Handle, agent: &Principal) -> Vec<Turn> {
    let of = conversation("~c");
    // Before the first one, there is no such conversation.
    let listed = handle.turns(agent, &of, |_| true, None, 100).await.map_or_else(|_| Vec::new(), |(turns, _)| turns);
    let mut turns = Vec::new();
    for turn in listed {
        turns.push(if turn.is_ended() { turn } else { quiet(handle, agent, &of, turn.id).await });
    }
    turns.sort_by_key(|turn| turn.id);
    turns
}

/// An entry without what a kill may change: its run, its salt, whether a request was in doubt, its number if a request was begun once
/// more, and the digest of a random body.
fn compared(number: u32, entry: Entry) -> Entry {
    let record = match entry.record {
        Record::Refused(refused) => Record::Refused(RefusedForNow { in_doubt: false, ..refused }),
        other => other,
    };
    let is_random = entry.function.as_ref().is_some_and(|function| function.ends_with(RANDOM));
    let digest = if is_random { Digest::of("a random body") } else { entry.digest };
    Entry { number, run: None, salt: None, digest, record, ..entry }
}
