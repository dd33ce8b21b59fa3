//! A place where a durable call runs: a store in a folder, which is opened again after each kill.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use async_trait::async_trait;
use capabilities::http::{HttpClient, HttpRule, Reach, SystemResolver};
use capabilities::journal::{JournalWriter, Recording};
use capabilities::keyvalue::{KeyValueQuota, Service};
use capabilities::secrets::{Secret, SecretPlace, SecretValue};
use capabilities::{Capabilities, Grants, Services};
use dispatch::ports::{Commit, JournalRow, Journals as _, Log as _, RowChange};
use domain::doubt::DecidedRequest;
use domain::journal::{Entry, JournalBounds, ValueChange};
use domain::step::{Durable, RunEnd, Step, StepEnd, StepWait};
use domain::{
    CallIndex, ConversationId, Digest, Event, Json, Limits, Outcome, PluginName, Span, Timestamp, TurnId, call::Level,
};
use sandbox::{Job, Plugin, Sandbox, SandboxSettings, Sink, Update, guest_runtime};
use serde_json::{Value, json};
use store::{KeyValue, SledStore, StoreSettings};
use tokio::runtime::Runtime;
use toolgate_tests::effects::Server;
use toolgate_tests::guests::illegal;

use crate::buckets::StoreBuckets;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| guest_runtime(2).unwrap());

static HTTP: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());

static PLUGIN: LazyLock<Plugin> = LazyLock::new(|| {
    let client = HttpClient::new(HTTP.handle().clone(), Arc::new(SystemResolver::default()), &[]).unwrap();
    let services = Services {
        keyvalue: Service::over(Arc::new(StoreBuckets::new(of_place))),
        http: Some(client),
        ..Services::default()
    };
    let sandbox = Sandbox::new(SandboxSettings { pool: 8, services, ..SandboxSettings::default() }).unwrap();
    let component = illegal("program");
    sandbox.load(Digest::of(&component), &component, Capabilities::EVERY).unwrap()
});

/// The data of each place, by the name of its plugin.
static PLACES: Mutex<BTreeMap<String, KeyValue>> = Mutex::new(BTreeMap::new());

fn of_place(plugin: &PluginName) -> KeyValue {
    PLACES.lock().unwrap()[plugin.as_str()].clone()
}

static NUMBER: AtomicUsize = AtomicUsize::new(0);

const TURN: TurnId = TurnId::from_bits(1);
const CALL: CallIndex = CallIndex(0);
const STARTED_AT: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// When the host dies, seen from a write of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Death {
    Before,
    After,
}

/// The end of a call, the log of its last run, and why runs before it could not continue.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) log: Vec<String>,
    pub(crate) repeated: Vec<String>,
    /// The waits for servers.
    pub(crate) limits: usize,
    /// The requests that were in doubt, for each time that somebody was asked.
    pub(crate) doubts: Vec<Vec<String>>,
}

pub(crate) struct Place {
    folder: tempfile::TempDir,
    plugin: PluginName,
    rule: HttpRule,
    /// The longest time that the call waits for a server.
    pub(crate) retry: Option<Span>,
    /// In the first run, the guest sees at its check of this number that it should stop, and in later runs never.
    pub(crate) stops_at: Option<u32>,
    pub(crate) bounds: JournalBounds,
    pub(crate) limits: Limits,
    pub(crate) quota: KeyValueQuota,
    /// Whether the plugin has the secret `token`. Each run has another value of it.
    pub(crate) has_secret: bool,
    /// The answers to questions about requests in doubt. Without one, the call ends in doubt.
    pub(crate) decisions: VecDeque<Value>,
    /// The last run in which the grant calls requests idempotent. `None`: every run.
    pub(crate) withdrawn_after: Option<u32>,
    /// The runs without any grant.
    pub(crate) without_grants: Range<u32>,
    decided: Vec<DecidedRequest>,
    /// The writes of the last call.
    writes: Arc<AtomicUsize>,
    /// Another run begins after this number of writes of the first.
    supersedes: Option<usize>,
    /// Another host changes each value before the call does, and the call tries again.
    pub(crate) is_overtaken: bool,
}

impl Place {
    /// `idempotent`: the operator says that requests may be sent again.
    pub(crate) fn new(server: &Server, idempotent: bool) -> Self {
        let plugin = format!("place-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let methods: BTreeSet<String> = ["GET", "POST", "PUT"].map(str::to_owned).into();
        let rule = HttpRule::parse(&server.url("/"), methods, Reach::Private).unwrap();
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
            plugin: PluginName::new(&plugin).unwrap(),
            rule: HttpRule { idempotent, ..rule },
            retry: None,
            stops_at: None,
            bounds: JournalBounds::default(),
            // A program can have the largest body.
            limits: Limits { arguments: 2 << 20, ..Limits::default() },
            quota: KeyValueQuota::default(),
            has_secret: false,
            decisions: VecDeque::new(),
            withdrawn_after: None,
            without_grants: 0..0,
            decided: Vec::new(),
            writes: Arc::default(),
            supersedes: None,
            is_overtaken: false,
        };
        let event = Event::TurnCancelled { by: "ann".parse().unwrap(), at: STARTED_AT };
        let begun = Commit::turn(TURN, ConversationId::new("c").unwrap(), 0, vec![event]);
        block_on(place.open().append(&begun)).unwrap();
        place.close();
        place
    }

    /// Runs a call to its end. The first kill is in the first run, and so on.
    pub(crate) fn call(&mut self, program: &Value, kills: &[(usize, Death)]) -> Ended {
        let (mut steps, mut repeated, mut kills, mut run) = (Vec::new(), Vec::new(), kills.iter().copied(), 0);
        let (mut limits, mut doubts) = (0, Vec::new());
        self.writes = Arc::default();
        loop {
            run += 1;
            assert!(run < 200, "the call does not come to its end: {repeated:?}");
            let store = Arc::new(self.open());
            let named = RowChange::JournalRun { turn: TURN, call: CALL, run: Some(run) };
            block_on(store.append(&Commit::rows(vec![named]))).unwrap();
            let journal = block_on(store.journal(TURN, CALL)).unwrap();
            let writer = Arc::new(Writer {
                store: store.clone(),
                run,
                fate: Mutex::new(kills.next()),
                is_dead: Mutex::new(false),
                writes: self.writes.clone(),
                supersedes: self.supersedes.take(),
                overtaken: self.is_overtaken.then(AtomicBool::default),
            });
            let stops_at = self.stops_at.filter(|_| run == 1);
            let heard = Arc::new(Heard { stops_at, ..Heard::default() });
            let job = self.job(program, &steps, journal, writer.clone(), run);
            let end = RUNTIME.block_on(PLUGIN.run(&job, &self.limits, heard.clone()));
            let is_dead = *writer.is_dead.lock().unwrap();
            drop((job, writer, store));
            self.close();
            if is_dead {
                continue;
            }
            match end.ended {
                RunEnd::Outcome(outcome) => {
                    return Ended { outcome, log: heard.lines.lock().unwrap().clone(), repeated, limits, doubts };
                }
                RunEnd::InDoubt(requests) => {
                    doubts.push(requests.all().iter().map(|each| format!("{} {}", each.entry, each.request)).collect());
                    let Some(value) = self.decisions.pop_front() else {
                        let (outcome, log) = (Outcome::InDoubt, heard.lines.lock().unwrap().clone());
                        return Ended { outcome, log, repeated, limits, doubts };
                    };
                    self.decided.extend(requests.decided(Some(&Json::unchecked(value.to_string()))).unwrap());
                }
                RunEnd::Waits(request) => {
                    limits += usize::from(matches!(request.wait, StepWait::RateLimit(_)));
                    let end = match request.wait {
                        StepWait::Time(_) | StepWait::RateLimit(_) => StepEnd::Elapsed,
                        _ => StepEnd::Answered(Json::unchecked(r#""yes""#)),
                    };
                    let ended_at = STARTED_AT + Span::from_secs(3_600 * (steps.len() as u64 + 1));
                    steps.push(Step { digest: request.digest, ended_at, end });
                }
                RunEnd::Repeating(failure) => repeated.push(failure.message),
            }
        }
    }

    /// The number of writes of the journal in the last call.
    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    /// In the first run of the next call, another run begins after this number of writes.
    pub(crate) fn supersede_after(&mut self, writes: usize) {
        self.supersedes = Some(writes);
    }

    /// The recorded functions, as people see them.
    pub(crate) fn functions(&self) -> Vec<String> {
        let store = self.open();
        let entries = block_on(store.journal(TURN, CALL)).unwrap();
        drop(store);
        self.close();
        entries.into_iter().map(|entry| entry.function.unwrap().to_string()).collect()
    }

    /// The stored values by key.
    pub(crate) fn values(&self) -> Vec<(String, String)> {
        let store = self.open();
        let (values, plugin) = (store.key_value(), self.plugin.as_str());
        let keys = values.list(plugin, "default", b"", None, 1_000).unwrap().keys;
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let value = |key: &Vec<u8>| values.get(plugin, "default", key).unwrap().unwrap();
        let all = keys.iter().map(|key| (text(key.clone()), text(value(key)))).collect();
        drop((values, store));
        self.close();
        all
    }

    fn open(&self) -> SledStore {
        let store = store::open(self.folder.path(), &StoreSettings::default()).unwrap();
        PLACES.lock().unwrap().insert(self.plugin.as_str().to_owned(), store.key_value());
        store
    }

    /// Drops the handle on the data that [`Place::open`] kept. It holds the folder's lock.
    fn close(&self) {
        PLACES.lock().unwrap().remove(self.plugin.as_str());
    }

    fn job(&self, program: &Value, steps: &[Step], journal: Vec<Entry>, writer: Arc<Writer>, run: u32) -> Job {
        // The configuration is another one in each run.
        let config = [("region".to_owned(), format!("eu-{}", run - 1))];
        let grants = Grants {
            keyvalue: Some(self.quota),
            http: vec![HttpRule {
                retry: self.retry,
                idempotent: self.rule.idempotent && self.withdrawn_after.is_none_or(|last| run <= last),
                ..self.rule.clone()
            }],
            config: Some(config.into()),
            secrets: self.has_secret.then(|| secret(run)).into_iter().collect(),
            ..Grants::default()
        };
        let withdrawn =
            || Grants { secrets: grants.secrets.iter().cloned().map(Secret::withdrawn).collect(), ..Grants::default() };
        let grants = if self.without_grants.contains(&run) { withdrawn() } else { grants };
        Job {
            plugin: self.plugin.clone(),
            grants: Arc::new(grants),
            call_id: "call_1".into(),
            tool: "run".into(),
            arguments: Json::unchecked(json!({"program": program}).to_string()),
            idempotency_key: "key_1".into(),
            attempt: run,
            scope: Json::unchecked("{}"),
            streaming: false,
            durable: Some(Durable {
                started_at: STARTED_AT,
                steps: steps.into(),
                journal: journal.into(),
                decided: self.decided.clone().into(),
            }),
            recording: Some(Recording { writer, bounds: self.bounds }),
        }
    }
}

/// The secret of a run.
fn secret(run: u32) -> Secret {
    Secret {
        name: "token".to_owned(),
        value: SecretValue::new(&format!("token-of-run-{run}")).unwrap(),
        hosts: vec!["127.0.0.1".parse().unwrap()],
        places: vec![SecretPlace::Header("authorization".to_owned())],
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

/// Writes to the journal until it dies.
struct Writer {
    store: Arc<SledStore>,
    run: u32,
    /// The number of writes before the last one, and how it ends.
    fate: Mutex<Option<(usize, Death)>>,
    is_dead: Mutex<bool>,
    writes: Arc<AtomicUsize>,
    supersedes: Option<usize>,
    /// Whether the last change of a value came too late. Every second one does.
    overtaken: Option<AtomicBool>,
}

impl Writer {
    /// The end of the next write.
    fn dies(&self) -> Option<Death> {
        let mut fate = self.fate.lock().unwrap();
        let (left, death) = (*fate)?;
        *fate = left.checked_sub(1).map(|left| (left, death));
        fate.is_none().then_some(death)
    }

    fn die(&self) -> Result<bool, String> {
        *self.is_dead.lock().unwrap() = true;
        Err("killed".to_owned())
    }
}

#[async_trait]
impl JournalWriter for Writer {
    async fn write(&self, entries: Vec<Entry>, values: Vec<ValueChange>) -> Result<bool, String> {
        if *self.is_dead.lock().unwrap() {
            return self.die();
        }
        let is_overtaken = |last: &AtomicBool| !last.fetch_xor(true, Ordering::Relaxed);
        if !values.is_empty() && self.overtaken.as_ref().is_some_and(is_overtaken) {
            return Ok(false);
        }
        let death = self.dies();
        if death == Some(Death::Before) {
            return self.die();
        }
        let before = self.writes.fetch_add(1, Ordering::Relaxed);
        if self.supersedes == Some(before) {
            let named = RowChange::JournalRun { turn: TURN, call: CALL, run: Some(self.run + 1) };
            self.store.append(&Commit::rows(vec![named])).await.unwrap();
        }
        let row = |entry| RowChange::JournalEntry(JournalRow { turn: TURN, call: CALL, run: self.run, entry });
        let rows = entries.into_iter().map(row).chain(values.into_iter().map(RowChange::Value));
        let appended = self.store.append(&Commit::rows(rows.collect())).await;
        if let Err(error) = appended {
            assert_eq!(self.supersedes, Some(before), "{error}");
            return self.die();
        }
        if death == Some(Death::After) { self.die() } else { Ok(true) }
    }
}

/// The log of a run, and when it asks the guest to stop.
#[derive(Default)]
struct Heard {
    lines: Mutex<Vec<String>>,
    stops_at: Option<u32>,
    checks: AtomicU32,
}

impl Sink for Heard {
    fn stop_requested(&self) -> bool {
        let checks = 1 + self.checks.fetch_add(1, Ordering::Relaxed);
        self.stops_at.is_some_and(|at| at <= checks)
    }

    fn progress(&self, _: Update) {}

    fn log(&self, level: Level, line: &str) {
        self.lines.lock().unwrap().push(format!("{}: {line}", level.as_str()));
    }
}
