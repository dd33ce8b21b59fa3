//! Durable turns: single ones compared with the cost of their commits, and concurrent ones compared with sled on one
//! thread.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dispatch::ports::{Commit, KnownTool, Log as _, RowChange};
use dispatch::{Until, index_rows};
use domain::{
    CallId, CallIndex, ConversationId, Event, Json, Outcome, OwnerId, PrincipalId, Span, Timestamp, Turn, TurnId,
    call::Plan,
    event::Rejection,
    suspension::Asked,
    turn::{Context as Deciding, Finished, Input, Requested, Submission, TurnSettings},
};
use tokio::sync::oneshot;

use crate::measure::{Samples, now, say};
use crate::setting;

const ROUNDS: usize = 15;
const TURNS: usize = 200;

pub(crate) fn durable() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let host = setting::host().await?;
        let caller = setting::caller()?;
        let live = live(&host)?;
        let folder = tempfile::tempdir()?;
        let opened = store::open(folder.path().join("store"), &store::StoreSettings::default())?;
        let (mut ours, mut floor) = (Samples::default(), Samples::default());
        for round in 0..ROUNDS {
            let start = now();
            for n in 0..TURNS {
                let (first, second) = commits(&live, (round * TURNS + n) as u128)?;
                opened.append(&first).await?;
                opened.append(&second).await?;
            }
            floor.add(start.elapsed(), TURNS);
            let start = now();
            for n in 0..TURNS {
                let request = setting::turn("bench", &format!("c{round}_{n}"), "echo", false)?;
                let turn = host.handle().submit(&caller, request).await?.turn;
                let at_most = Span::from_secs(10);
                host.handle().wait(&caller, &turn.conversation, turn.id, Until::Ended, at_most).await?;
            }
            ours.add(start.elapsed(), TURNS);
        }
        floor.say("its two commits alone");
        ours.say("a durable turn of one call, submitted and awaited");
        ours.say_ratio(&floor, "at most 1.3");
        anyhow::Ok(())
    })
}

fn live(host: &toolgate::Host) -> Result<Arc<KnownTool>> {
    let echo = |live: &Arc<KnownTool>| live.tool.name.as_str() == "echo";
    host.handle().tools().into_iter().find(echo).context("lab offers echo")
}

/// The two commits of a durable turn of one call, as the dispatcher makes them.
fn commits(live: &KnownTool, n: u128) -> Result<(Commit, Commit)> {
    let conversation = ConversationId::new("bench")?;
    let settings = TurnSettings::default();
    let mut mint = || 0;
    let mut cx = Deciding {
        now: Timestamp::from_millis(1_800_000_000_000),
        owner: OwnerId::from_bits(1),
        settings: &settings,
        mint: &mut mint,
        about: &|_| None,
    };
    let submission = Submission {
        turn: TurnId::from_bits(n << 64 | 7),
        conversation: conversation.clone(),
        caller: PrincipalId::new("bench")?,
        rejection: Rejection::ContinueSiblings,
        context: None,
        parent: None,
        calls: vec![Requested {
            id: CallId::new(&format!("f{n}"))?,
            tool: "echo".into(),
            arguments: Json::unchecked(setting::ARGUMENTS),
            plan: Plan::Go(live.pinned.clone()),
            asked: Asked::default(),
            ruled_by: None,
            origin: None,
            standing: None,
            result: None,
        }],
    };
    let (started, turn) = Turn::submit(submission, &mut cx)?;
    let value = Json::unchecked(setting::ARGUMENTS);
    let outcome = Outcome::Ok { value, trusted: true };
    let (finished, after) = turn.decide(Input::Finished(Finished::new(CallIndex(0), 1, outcome)), &mut cx)?;
    let commit = |expected, events: Vec<Event>, after: &Turn| {
        let rows = index_rows(&events, after);
        Commit::turn(turn.id, conversation.clone(), expected, events).with(rows)
    };
    let mut second = commit(1, finished, &after);
    second.rows.push(RowChange::Due { turn: turn.id, before: turn.next_due(), after: None });
    Ok((commit(0, started, &turn), second))
}

const WINDOW: Duration = Duration::from_secs(3);

pub(crate) fn throughput() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build()?;
    let host = Arc::new(runtime.block_on(setting::host())?);
    let live = live(&host)?;
    let keys = runtime.block_on(keys_of_a_turn(&live))?;
    for callers in [1, 16, 256] {
        let (mut ours, mut floor, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..3 {
            let plain = runtime.block_on(plain(callers, &keys))?;
            let turns = runtime.block_on(turns(&host, callers, round))?;
            ratios.push(turns / plain);
            floor.push(plain);
            ours.push(turns);
        }
        let median = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            (values[values.len() / 2], values[0], values[values.len() - 1])
        };
        let line = |what: &str, (median, low, high): (f64, f64, f64), unit: &str| {
            say(&format!("  {callers:>4} callers, {what:<44} {median:>10.2} {unit} ({low:.2} to {high:.2})"));
        };
        line("plain sled, the same keys and values", median(floor), "turns/s");
        line("toolgate, durable turns of one call", median(ours), "turns/s");
        line("ratio (aim: at least 0.7)", median(ratios), "×");
    }
    Ok(())
}

/// Settled turns per second of `callers` callers. Each waits for its turn before the next.
async fn turns(host: &Arc<toolgate::Host>, callers: usize, round: usize) -> Result<f64> {
    let done = Arc::new(AtomicUsize::new(0));
    let start = now();
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let (host, done) = (host.clone(), done.clone());
            tokio::spawn(async move {
                let by = setting::caller()?;
                let mut n = 0;
                while start.elapsed() < WINDOW {
                    let id = format!("t{round}_{callers}_{caller}_{n}");
                    let request = setting::turn(&format!("bench{caller}"), &id, "echo", false)?;
                    let turn = host.handle().submit(&by, request).await?.turn;
                    let at_most = Span::from_secs(10);
                    host.handle().wait(&by, &turn.conversation, turn.id, Until::Ended, at_most).await?;
                    n += 1;
                    done.fetch_add(1, Ordering::Relaxed);
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64())
}

/// The sizes of the keys and values that a turn leaves behind, read from a store that holds many.
async fn keys_of_a_turn(live: &KnownTool) -> Result<Vec<(usize, usize)>> {
    const MANY: u128 = 200;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("store");
    let opened = store::open(&path, &store::StoreSettings::default())?;
    for n in 0..MANY {
        let (first, second) = commits(live, n)?;
        opened.append(&first).await?;
        opened.append(&second).await?;
    }
    drop(opened);
    let database = database(&path.join("sled"))?;
    let mut entries = Vec::new();
    for tree in database.tree_names() {
        for entry in database.open_tree(tree)?.iter() {
            let (key, value) = entry?;
            entries.push((key.len(), value.len()));
        }
    }
    // Entries of one kind have nearly equal sizes, so every n-th of the sorted list represents its kind.
    entries.sort_unstable();
    let turns = usize::try_from(MANY)?;
    ensure!(entries.len() >= turns, "the store's entries were not found");
    Ok(entries.into_iter().skip(turns / 2).step_by(turns).collect())
}

/// Opens a database with the settings of the store. With other segments, large values would go to separate files.
fn database(path: &std::path::Path) -> Result<sled::Db> {
    Ok(sled::Config::new().path(path).segment_size(8 << 20).open()?)
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

type Queued = (Entries, oneshot::Sender<()>);

/// Turns per second of the plain pattern: callers queue entries, and one thread writes the queued entries as one batch
/// and syncs.
async fn plain(callers: usize, keys: &[(usize, usize)]) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let database = database(folder.path())?;
    let file = File::open(folder.path().join("db"))?;
    let (queue, queued) = std::sync::mpsc::channel::<Queued>();
    let committing = std::thread::spawn(move || commit_all(&database, &file, &queued));
    let done = Arc::new(AtomicUsize::new(0));
    let start = now();
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let (queue, done, keys) = (queue.clone(), done.clone(), keys.to_vec());
            tokio::spawn(async move {
                let mut n = 0_u64;
                while start.elapsed() < WINDOW {
                    for half in keys.chunks(keys.len().div_ceil(2)) {
                        let (answer, answered) = oneshot::channel();
                        queue.send((entries(caller, n, half), answer))?;
                        answered.await?;
                        n += 1;
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    let rate = done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
    drop(queue);
    committing.join().map_err(|_| anyhow::anyhow!("the committing thread panicked"))??;
    Ok(rate)
}

fn commit_all(database: &sled::Db, file: &File, queued: &std::sync::mpsc::Receiver<Queued>) -> Result<()> {
    while let Ok(first) = queued.recv() {
        let (mut batch, mut waiting) = (sled::Batch::default(), Vec::new());
        for (entries, answer) in std::iter::once(first).chain(queued.try_iter()) {
            for (key, value) in entries {
                batch.insert(key, value);
            }
            waiting.push(answer);
        }
        database.apply_batch(batch)?;
        database.flush()?;
        file.sync_data()?;
        for answer in waiting {
            let _ = answer.send(());
        }
    }
    Ok(())
}

fn entries(caller: usize, n: u64, sizes: &[(usize, usize)]) -> Entries {
    let entry = |(index, (key, value)): (usize, &(usize, usize))| {
        let mut bytes = format!("{index:02}{caller:06}{n:012}").into_bytes();
        bytes.resize(*key.max(&20), b'k');
        (bytes, vec![b'v'; *value])
    };
    sizes.iter().enumerate().map(entry).collect()
}
