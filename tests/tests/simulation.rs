//! The whole loop with random turns, answers, clock jumps and kills at any commit. Everything acknowledged is kept,
//! every invariant of the state machine holds for every log, and no call runs without permission.
//!
//! Each life of the host has its own runtime. A kill drops the runtime, so only the store survives.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};

use dispatch::ports::{Clock as _, End, Filter, Footprint, Indexes as _, Log as _, Run, Store};
use dispatch::{
    Answer, CallRequest, Dispatcher, Error, Handle, Parts, ProviderResult, Quota, Quotas, TurnRequest, Until,
};
use domain::{
    CallId, ConversationId, Json, Outcome, OwnerId, Principal, PrincipalId, Refusal, Span, SuspensionId, Timestamp,
    Turn, TurnId,
    event::Rejection,
    principal::Role,
    suspension::{Decision, SuspensionEnd},
};
use store::MemoryStore;
use toolgate_tests::clock::SkewedClock;
use toolgate_tests::cluster::Cluster;
use toolgate_tests::faults::{Death, MortalStore};
use toolgate_tests::invariants;
use toolgate_tests::random::Random;
use toolgate_tests::requests::{call, turn};
use toolgate_tests::tools::WordTools;
use toolgate_tests::world::{World, rounds};

/// In milliseconds. No clock is further ahead of the time, or behind it.
const HOUR: i64 = 60 * 60 * 1_000;

const TOOLS: [&str; 8] = [
    "server",
    "server!",
    "server:recovery=ask",
    "server!:expiry=deny",
    "human:expiry=answer",
    "client",
    "client!",
    "provider",
];

fn principal(name: &str, roles: &[Role]) -> Principal {
    Principal::new(PrincipalId::new(name).unwrap(), roles.iter().copied())
}

/// The parts that survive each life of the host: the disk, the outside world, and the acknowledgements.
struct Simulation {
    seed: u64,
    random: Random,
    lasting: World,
    /// All runs of tools.
    runs: Arc<Mutex<Vec<Began>>>,
    /// All requests, so that some can be repeated.
    requests: Vec<TurnRequest>,
    /// `None`: one host uses the store. Only then are some turns ephemeral: nothing else happens while one runs.
    cluster: Option<Arc<Cluster>>,
    /// All acknowledged turns.
    turns: HashSet<TurnId>,
    /// The quota of the only caller.
    quota: Quota,
    /// All acknowledged answers.
    answers: HashMap<SuspensionId, (PrincipalId, Decision)>,
}

/// The begin of a run of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Began {
    call: CallId,
    attempt: u32,
    owner: OwnerId,
}

impl Began {
    /// A host runs no call of another one that is alive, also if its clock says that a lease has ended.
    fn check(&self, before: &[Self], cluster: &Cluster) {
        let is_current = |run: &&Self| run.call == self.call && !cluster.has_ended(run.owner);
        let current = before.iter().find(is_current).filter(|_| !cluster.has_ended(self.owner));
        assert!(current.is_none(), "{self:?} begins beside {current:?}");
    }
}

impl Simulation {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            random: Random::new(seed),
            // A clock that is behind has a time too.
            lasting: World::at(Timestamp::from_millis(HOUR.unsigned_abs() * 2)),
            runs: Arc::default(),
            requests: Vec::new(),
            cluster: None,
            turns: HashSet::new(),
            // With a small quota, calls wait for each other and some turns are refused.
            quota: if seed.is_multiple_of(3) {
                Quota { open_turns: 12, running_calls: 1, waiting_calls: 2, ..Quota::default() }
            } else {
                Quota::default()
            },
            answers: HashMap::new(),
        }
    }

    /// A host on the store of the previous one.
    fn start(&mut self, store: Arc<dyn Store>) -> Dispatcher {
        let parts = self.parts();
        Dispatcher::start(Parts { store, ..parts })
    }

    /// A host beside others, with a clock of its own.
    fn join(&mut self) -> Beside {
        let parts = self.parts();
        let (owner, memory) = (parts.owner, self.lasting.store.clone());
        let member = self.cluster.as_ref().unwrap().join(owner);
        let store = Arc::new(MortalStore::shared(memory, member));
        let clock = Arc::new(SkewedClock::of(self.lasting.clock.clone()));
        let host = Dispatcher::start(Parts { store, clock: clock.clone(), ..parts });
        Beside { owner, clock, host }
    }

    /// The parts of a host.
    fn parts(&mut self) -> Parts {
        let (clock, runs, memory) = (self.lasting.clock.clone(), self.runs.clone(), self.lasting.store.clone());
        let (cluster, owner) = (self.cluster.clone(), Arc::<OnceLock<OwnerId>>::default());
        let of_host = owner.clone();
        let delays = Mutex::new(Random::new(self.random.bits()));
        let run = move |run: Run| {
            let (clock, memory) = (clock.clone(), memory.clone());
            let began = Began { call: run.call.clone(), attempt: run.attempt, owner: *of_host.get().unwrap() };
            {
                let mut runs = runs.lock().unwrap();
                cluster.iter().for_each(|cluster| began.check(&runs, cluster));
                runs.push(began);
            }
            let is_alone = cluster.is_none();
            let (delay, ok) = {
                let mut delays = delays.lock().unwrap();
                (Span::from_millis(delays.bits() % 20_000), !delays.once_in(5))
            };
            async move {
                assert_not_recorded(memory.as_ref(), &run, is_alone).await;
                clock.sleep(delay).await;
                let value = Json::unchecked("{\"done\":true}");
                let failure = || domain::outcome::Failure::new(domain::outcome::FailureCode::Trapped, "trap");
                let outcome = if ok { Outcome::Ok { value, trusted: true } } else { Outcome::Failed(failure()) };
                End::unrun(outcome.into())
            }
        };
        let quotas = Quotas { each: self.quota, ..Quotas::default() };
        let parts = self.lasting.parts(Arc::new(WordTools::new(&TOOLS, run)));
        owner.set(parts.owner).unwrap();
        Parts { quotas, ..parts }
    }

    fn request(&mut self) -> TurnRequest {
        if !self.requests.is_empty() && self.random.once_in(5) {
            return self.random.pick(&self.requests).clone();
        }
        let n = self.requests.len();
        let calls = (0..=self.random.below(4)).map(|index| {
            let tool = self.random.below(TOOLS.len() + 1);
            let arguments = if self.random.once_in(10) { "7" } else { "{\"n\":1}" };
            let provider = TOOLS.get(tool) == Some(&"provider");
            let result = (provider && arguments != "7").then(|| ProviderResult::Value(Json::unchecked("{}")));
            CallRequest { result, ..call(&format!("c{n}_{index}"), &format!("tool_{tool}"), arguments) }
        });
        let calls: Vec<_> = calls.collect();
        let conversation = ["one", "two"][self.random.below(2)];
        let request = TurnRequest {
            rejection: Rejection::ALL[self.random.below(3)],
            ephemeral: self.random.once_in(6) && self.cluster.is_none(),
            ..turn(conversation, calls)
        };
        self.requests.push(request.clone());
        request
    }

    async fn submit(&mut self, handle: &Handle) {
        let request = self.request();
        let agent = principal("agent", &[Role::Caller]);
        let submitted = match handle.submit(&agent, request.clone()).await {
            Ok(submitted) => submitted,
            Err(Error::Busy(_)) => return,
            Err(error) => self.panic(&error),
        };
        assert_eq!(submitted.turn.calls.len(), request.calls.len());
        if !submitted.ephemeral {
            self.turns.insert(submitted.turn.id);
        }
    }

    async fn answer(&mut self, handle: &Handle) {
        let ann = principal("ann", &[Role::Approver, Role::Client]);
        let open = Filter { open: self.random.once_in(4).then_some(false).or(Some(true)), ..Filter::default() };
        let items = handle.suspensions(&ann, open, None, 50).await.unwrap().items;
        if items.is_empty() {
            return;
        }
        let item = self.random.pick(&items).clone();
        let decision = self.random.pick(&item.suspension.allowed()).clone();
        let answer = Answer {
            suspension: item.suspension.id,
            decision: decision.clone(),
            data: Some(Json::unchecked("{}")).filter(|_| decision != Decision::Deny && decision != Decision::Approve),
            arguments: (decision == Decision::Approve && self.random.once_in(3)).then(|| Json::unchecked("{\"n\":2}")),
            comment: None,
            expect_digest: Some(item.suspension.digest),
            standing: None,
        };
        // Two people answer concurrently. At most one of them wins, and the same answer again is a replay.
        let bob = principal("bob", &[Role::Approver, Role::Client]);
        let (first, second) = tokio::join!(handle.resolve(&ann, answer.clone()), handle.resolve(&bob, answer.clone()));
        for (by, result) in [(&ann, first), (&bob, second)] {
            match result {
                Ok(_) => {
                    let known = self.answers.entry(answer.suspension).or_insert((by.id.clone(), decision.clone()));
                    assert_eq!(*known, (by.id.clone(), decision.clone()), "one answer wins (seed {})", self.seed);
                }
                Err(Error::Refused(
                    Refusal::Unknown
                    | Refusal::Stale { .. }
                    | Refusal::Invalid(_)
                    | Refusal::NotAllowed(_)
                    | Refusal::DigestMismatch { .. },
                )) => {}
                Err(error) => self.panic(&error),
            }
        }
    }

    async fn cancel(&mut self, handle: &Handle) {
        let turns: Vec<TurnId> = self.turns.iter().copied().collect();
        if turns.is_empty() {
            return;
        }
        let picked = *self.random.pick(&turns);
        let turn = self.load(picked).await;
        handle.cancel(&principal("agent", &[Role::Caller]), &turn.conversation, turn.id).await.unwrap();
    }

    fn panic(&self, error: &Error) -> ! {
        panic!("seed {}: {error}", self.seed)
    }

    async fn load(&self, id: TurnId) -> Turn {
        let loaded = self
            .lasting
            .store
            .load(id)
            .await
            .unwrap()
            .found()
            .unwrap_or_else(|| panic!("seed {}: {id} lost", self.seed));
        Turn::replay(&loaded.events).unwrap()
    }

    /// The invariants after each life.
    async fn check(&self) {
        for id in &self.turns {
            let loaded = self
                .lasting
                .store
                .load(*id)
                .await
                .unwrap()
                .found()
                .unwrap_or_else(|| panic!("seed {}: {id} lost", self.seed));
            let turn = Turn::replay(&loaded.events).unwrap();
            invariants::check(&loaded.events, &turn);
            for call in &turn.calls {
                for (suspension, closed) in &call.suspensions {
                    if let Some((by, decision)) = self.answers.get(&suspension.id) {
                        let closed = closed.as_ref().unwrap_or_else(|| panic!("seed {}: answer lost", self.seed));
                        let ended = SuspensionEnd::Decided(decision.clone());
                        assert_eq!((&closed.by, closed.ended()), (by, ended), "seed {}", self.seed);
                    }
                }
            }
        }
        // An ephemeral turn is not stored, so it runs again when it is submitted again.
        let ephemeral = self.requests.iter().filter(|request| request.ephemeral);
        let ephemeral: HashSet<_> = ephemeral.flat_map(|request| request.calls.iter().map(|call| &call.id)).collect();
        let runs = self.runs.lock().unwrap();
        let recorded: Vec<_> = runs.iter().filter(|run| !ephemeral.contains(&run.call)).collect();
        let distinct: HashSet<_> = recorded.iter().map(|run| (&run.call, run.attempt)).collect();
        assert_eq!(distinct.len(), recorded.len(), "no attempt runs twice (seed {}): {recorded:?}", self.seed);
    }

    /// Nothing is due for longer than the clock of its host may be behind. Expiries, grace periods and leases are due at their ends.
    async fn check_due(&self) {
        let until = self.lasting.clock.now().millis() - HOUR.unsigned_abs();
        let late = self.lasting.store.due(None, Timestamp::from_millis(until), 10).await.unwrap();
        assert!(late.is_empty(), "seed {}: at {until}, these were due before: {late:?}", self.seed);
    }
}

/// Checks that the call has no recorded result. A guest runs only while its call is recorded as running.
async fn assert_not_recorded(store: &MemoryStore, run: &Run, is_alone: bool) {
    for conversation in ["one", "two"] {
        let conversation = ConversationId::new(conversation).unwrap();
        if let Some(turn) = store.find_call(&conversation, &run.call).await.unwrap() {
            let loaded = store.load(turn).await.unwrap().found().unwrap();
            let turn = Turn::replay(&loaded.events).unwrap();
            let (_, call) = turn.call(&run.call).unwrap();
            // Another host may have ended the call just before.
            assert!(call.outcome().is_none() || !is_alone, "a call with a recorded result runs");
            assert_eq!(call.arguments, run.arguments, "a guest gets the approved arguments");
        }
    }
}

/// One life of the host, until it ends by itself or dies at a commit.
async fn live(world: &mut Simulation, store: Arc<dyn Store>) {
    let host = world.start(store);
    let handle = host.handle();
    for _ in 0..world.random.below(40) {
        match world.random.below(10) {
            0..4 => world.submit(&handle).await,
            4..7 => world.answer(&handle).await,
            7 => world.cancel(&handle).await,
            _ => world.lasting.clock.advance(Span::from_millis(world.random.bits() % 60_000)),
        }
        rounds(200).await;
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

fn simulate(seed: u64) {
    let mut world = Simulation::new(seed);
    for _ in 0..4 {
        let mortal = Arc::new(MortalStore::new(world.lasting.store.clone()));
        let death = if world.random.once_in(2) { Death::Before } else { Death::After };
        mortal.die_after(world.random.below(40), death);
        // A life that died never returns from its last commit. All its other work is done.
        runtime().block_on(async {
            let mut life = Box::pin(live(&mut world, mortal));
            for _ in 0..20_000 {
                if futures::poll!(&mut life).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        });
        runtime().block_on(world.check());
    }
    runtime().block_on(async {
        let host = world.start(world.lasting.store.clone());
        // Nobody answers any more, so expiries must end everything.
        for _ in 0..200 {
            world.lasting.clock.advance(Span::from_secs(600));
            rounds(200).await;
        }
        let agent = principal("agent", &[Role::Caller]);
        for id in &world.turns {
            let turn = world.load(*id).await;
            let turn = host.handle().wait(&agent, &turn.conversation, *id, Until::Ended, Span::ZERO).await.unwrap();
            assert!(turn.is_ended(), "seed {seed}: {turn:?}");
        }
        assert_eq!(host.handle().turns_in_memory(), 0, "an ended turn is not kept in memory");
        let counts = host.handle().counts();
        let left =
            [counts.open_turns, counts.open_bytes, counts.suspensions, counts.running_calls, counts.waiting_calls];
        assert_eq!(left, [0; 5], "seed {seed}: ended turns do not count");
    });
    runtime().block_on(world.check());
}

#[test]
fn every_promise_holds_in_a_hundred_worlds() {
    for seed in 0..100 {
        simulate(seed);
    }
}

/// One of several hosts.
struct Beside {
    owner: OwnerId,
    clock: Arc<SkewedClock>,
    host: Dispatcher,
}

impl Beside {
    /// Sets its clock.
    fn jump(&self, random: &mut Random) {
        self.clock.set_ahead(*random.pick(&[-HOUR, 0, HOUR]));
    }
}

/// Up to three hosts share a store. Some end, with or without their guests: those of a host whose lease has ended go on, and must not
/// be able to do harm. The clocks of some jump by an hour or two. Whether a lease has ended is no matter of their clocks.
async fn share(world: &mut Simulation, cluster: &Cluster) {
    let (mut hosts, mut paused) = (vec![world.join()], Vec::new());
    for _ in 0..world.random.below(160) {
        let at = world.random.below(hosts.len());
        let handle = hosts[at].host.handle();
        match world.random.below(13) {
            0..4 => world.submit(&handle).await,
            4..7 => world.answer(&handle).await,
            7 => world.cancel(&handle).await,
            8 if hosts.len() < 3 => hosts.push(world.join()),
            9 if hosts.len() > 1 => {
                let ending: Beside = hosts.swap_remove(at);
                cluster.end(ending.owner);
                if world.random.once_in(2) {
                    paused.push(ending.host);
                }
            }
            10 => hosts[at].jump(&mut world.random),
            _ => world.lasting.clock.advance(Span::from_millis(world.random.bits() % 60_000)),
        }
        // Sometimes a host acts before it has the news about the others.
        let delay = if world.random.once_in(3) { world.random.below(20) } else { 300 };
        rounds(delay).await;
        world.check().await;
    }
    rounds(1_000).await;
    world.check_due().await;
    for ending in hosts {
        cluster.end(ending.owner);
    }
}

fn simulate_several(seed: u64) {
    let cluster = Arc::<Cluster>::default();
    let mut world = Simulation { cluster: Some(cluster.clone()), ..Simulation::new(seed) };
    for _ in 0..3 {
        runtime().block_on(share(&mut world, &cluster));
        runtime().block_on(world.check());
    }
    runtime().block_on(async {
        let hosts = [(); 3].map(|()| world.join());
        for _ in 0..200 {
            world.random.pick(&hosts).jump(&mut world.random);
            world.lasting.clock.advance(Span::from_secs(600));
            rounds(200).await;
            world.check_due().await;
        }
        for id in &world.turns {
            let turn = world.load(*id).await;
            assert!(turn.is_ended(), "seed {seed}: {turn:?}");
        }
        for Beside { host, .. } in &hosts {
            assert_eq!(host.handle().turns_in_memory(), 0, "an ended turn is not kept in memory");
        }
        assert_eq!(cluster.open(), Footprint::default(), "seed {seed}: ended turns do not count");
    });
    runtime().block_on(world.check());
}

#[test]
fn every_promise_holds_with_several_hosts() {
    for seed in 0..100 {
        simulate_several(seed);
    }
}
