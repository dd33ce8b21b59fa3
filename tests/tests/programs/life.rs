//! One call, and the lives of the hosts that carry it out. Each life is a new loop on the same store. It ends with the
//! call, or with a kill at a commit.

use std::collections::HashSet;
use std::sync::Arc;

use dispatch::ports::{AppendError, Clock as _, Commit, Journals as _, Log as _};
use dispatch::{Answer, Dispatcher, Error, Handle, Parts, Until};
use domain::journal::{Entry, Record};
use domain::suspension::{Suspension, SuspensionKind};
use domain::{
    CallIndex, Json, Outcome, Principal, Refusal, Span, SuspensionId, Turn, TurnId, principal::Role, turn::TurnSettings,
};
use toolgate_tests::faults::{Death, MortalStore};
use toolgate_tests::requests::{answer as answered, call, conversation, principal, turn};
use toolgate_tests::world::World;

use super::guests::{Guests, runtime};
use super::program::{Program, answer};

/// How often a life looks whether a wait that is over has ended.
const MAX_LOOKS: u32 = 1_000_000;

/// A call, its world and the seed of its answers.
pub(crate) struct Carried<'a> {
    guests: &'a Guests,
    program: &'a Program,
    seed: u64,
    world: World,
    /// The waits for the server that have ended.
    lifted: HashSet<SuspensionId>,
    /// The commit of the last life that is still on its way.
    late: Option<Commit>,
}

/// The traces of a call. A kill changes none of them.
#[derive(Debug, PartialEq)]
pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    /// The ended steps: their digests, times and ends.
    pub(crate) steps: Vec<String>,
    /// The journal, without what names runs.
    pub(crate) journal: Vec<String>,
    pub(crate) values: Vec<(String, String)>,
    /// The requests that the server carried out, each with its key, in order.
    pub(crate) effects: Vec<(String, String)>,
}

/// How a life ended.
pub(crate) enum End {
    /// The call has ended. The number of commits.
    Settled(Box<Turn>, usize),
    Killed {
        late_was_refused: bool,
    },
}

impl<'a> Carried<'a> {
    pub(crate) fn new(guests: &'a Guests, program: &'a Program, seed: u64) -> Self {
        let world = guests.world();
        guests.server.limit(program.limited.iter().cloned());
        Self { guests, program, seed, world, lifted: HashSet::new(), late: None }
    }

    /// One life. `kill`: the number of commits before the one at which it dies, and how.
    pub(crate) fn live(&mut self, kill: Option<(usize, Death)>) -> End {
        let store = Arc::new(MortalStore::new(self.world.store.clone()));
        if let Some((commits, death)) = kill {
            store.die_after(commits, death);
        }
        let runtime = runtime();
        let ended = runtime.block_on(async {
            let settings = TurnSettings { max_attempts: u32::MAX, ..TurnSettings::default() };
            let parts = self.world.parts(self.guests.registry.clone());
            let host = Dispatcher::start(Parts { store: store.clone(), settings, ..parts });
            let handle = host.handle();
            tokio::select! {
                biased;
                () = store.died() => None,
                turn = self.carry_out(&handle) => Some(turn),
            }
        });
        // A thread of the killed host may still wait.
        runtime.shutdown_background();
        let late_was_refused = self.late.take().is_some_and(|late| self.is_refused(&late, store.commits()));
        self.late = store.take_late();
        match ended {
            Some(turn) => End::Settled(Box::new(turn), store.commits()),
            None => End::Killed { late_was_refused },
        }
    }

    /// The commit of the life before the last comes to the disk. After a commit of the last life it is refused.
    fn is_refused(&self, late: &Commit, commits: usize) -> bool {
        let appended = runtime().block_on(self.world.store.append(late));
        let is_refused = match appended {
            Ok(_) => false,
            Err(AppendError::Superseded | AppendError::Conflict | AppendError::CallExists(_)) => true,
            Err(error) => panic!("a late commit: {error}"),
        };
        assert!(is_refused || commits == 0, "a superseded run changed something: {late:?}");
        is_refused
    }

    /// Submits the call if no host has it, and answers what it asks, until it ends.
    async fn carry_out(&mut self, handle: &Handle) -> Turn {
        let agent = principal("agent", Role::Caller);
        let request = turn("c", [call("call", "run", self.program.arguments())]);
        let id = handle.submit(&agent, request).await.expect("the turn is submitted").turn.id;
        let of = conversation("c");
        for _ in 0..MAX_LOOKS {
            let quiet = handle.wait(&agent, &of, id, Until::Quiet, Span::from_secs(1 << 30));
            let turn = quiet.await.expect("the turn can be read");
            if turn.is_ended() {
                return turn;
            }
            for open in nested(handle).await.iter().chain([&turn]).flat_map(Turn::pending) {
                self.end(handle, &agent, open.2).await;
            }
            // The host sees in a task of its own that a wait is over.
            tokio::task::yield_now().await;
        }
        panic!("the call does not go on")
    }

    /// Ends a wait: its time comes, or somebody answers.
    async fn end(&mut self, handle: &Handle, agent: &Principal, open: &Suspension) {
        match open.kind() {
            SuspensionKind::Children => {}
            SuspensionKind::Timer | SuspensionKind::RateLimit => {
                if open.kind() == SuspensionKind::RateLimit && self.lifted.insert(open.id) {
                    self.guests.server.lift();
                }
                let left = open.expires_at.millis().saturating_sub(self.world.clock.now().millis());
                self.world.clock.advance(Span::from_millis(left));
            }
            kind => {
                let (decision, data) = answer(self.seed, open);
                let data = data.map(|data| Json::unchecked(data.to_string()));
                let by =
                    if kind == SuspensionKind::External { agent.clone() } else { principal("ann", Role::Approver) };
                match handle.resolve(&by, Answer { data, ..answered(open.id, decision) }).await {
                    Ok(_) | Err(Error::Refused(Refusal::Stale { .. })) => {}
                    Err(error) => panic!("the answer to {open:?} is refused: {error}"),
                }
            }
        }
    }

    /// The effects of the call and of its nested turns, and how they ended.
    pub(crate) fn done(&self, turn: &Turn) -> Done {
        let call = &turn.calls[0];
        let (mut steps, mut journal) = (Vec::new(), Vec::new());
        let nested = runtime().block_on(async {
            let parts = self.world.parts(self.guests.registry.clone());
            nested(&Dispatcher::start(parts).handle()).await
        });
        for turn in nested.iter().chain([turn]) {
            steps.extend(turn.calls[0].steps().map(|step| format!("{} {step:?}", turn.id)));
            let entries = runtime().block_on(self.world.store.journal(turn.id, CallIndex(0))).expect("the journal");
            journal.extend(entries.iter().map(|each| entry(turn.id, each)));
        }
        Done {
            outcome: call.outcome().expect("the call has ended").clone(),
            steps,
            journal,
            values: self.guests.values(),
            effects: self.guests.server.carried_out(),
        }
    }
}

/// The nested turns, in the order of their submission.
async fn nested(handle: &Handle) -> Vec<Turn> {
    let (by, of) = (principal("agent", Role::Caller), conversation("~c"));
    // Before the first one, there is no such conversation.
    let mut turns = handle.turns(&by, &of, |_| true, None, 100).await.map_or_else(|_| Vec::new(), |(turns, _)| turns);
    turns.sort_by_key(|turn| turn.id);
    turns
}

/// An entry without its run and its salt. `in_doubt` of a refusal says whether a kill came before it.
fn entry(turn: TurnId, entry: &Entry) -> String {
    let Entry { number, step, function, digest, at, record, .. } = entry;
    let record = match record {
        Record::Refused(refused) => format!("refused until {:?} for {:?}", refused.until, refused.wait),
        other => format!("{other:?}"),
    };
    format!("{turn} {number} after {step}: {function:?} {digest} {at:?} {record}")
}
