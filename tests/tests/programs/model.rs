//! Random programs of a durable call in the real loop, with the real journal, sandbox and store in memory. Each program
//! runs without a kill, then with each kind of kill at each of its commits, and then with one kill after another. It also
//! runs with instances that are kept while the call waits, without kills and with them. The result, the steps, the journal,
//! the stored values and the effects that the server saw are always the same.

#![expect(clippy::expect_used, reason = "a model that cannot be set up has failed")]

pub(crate) mod guests;
pub(crate) mod life;
pub(crate) mod program;

use std::fmt::Debug;
use std::sync::Arc;

use domain::Outcome;
use domain::journal::Record;
use registry::Registry;
use toolgate_tests::faults::Death;
use toolgate_tests::host::say;
use toolgate_tests::random::Random;

use guests::Guests;
use life::{Carried, Done, Kill};
use program::{ONCE, Program};

const DEATHS: [Death; 3] = [Death::Before, Death::After, Death::Late];

/// The kills of a run with one kill after another.
const MAX_KILLS: usize = 40;

/// The commits between two of them, and one more.
const MAX_COMMITS: usize = 4;

/// The programs between two lines of progress.
const PROGRESS: u32 = 100;

/// The programs to run.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) programs: u32,
    /// The seed of the first program. The next program has the next one.
    pub(crate) seed: u64,
}

/// Counts of things that happened.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) programs: u32,
    /// Runs from the first commit to the end of the call.
    pub(crate) runs: usize,
    pub(crate) kills: usize,
    /// Commits, nested turns, steps, entries and effects of the runs without a kill.
    pub(crate) commits: usize,
    pub(crate) nested: usize,
    pub(crate) steps: usize,
    pub(crate) entries: usize,
    pub(crate) effects: usize,
    pub(crate) refused: usize,
    pub(crate) sent_again: usize,
    pub(crate) edited: usize,
    pub(crate) expired: usize,
    pub(crate) cancelled: usize,
    /// Calls that ended in doubt because a kill left a request that may not be sent again.
    pub(crate) in_doubt: usize,
    /// Waits after which a run continued the instance that was kept.
    pub(crate) resumed: u64,
}

/// Runs them.
///
/// # Panics
/// When a kill changes something.
pub(crate) fn run(plan: Plan) -> Tally {
    let (guests, mut tally) = (Guests::new(), Tally::default());
    for number in 0..plan.programs {
        let named = Named(plan.seed.wrapping_add(number.into()));
        compare(named.0, &guests, &mut tally);
        if tally.programs.is_multiple_of(PROGRESS) {
            say(&format!("{} programs, {} kills, seed {}", tally.programs, tally.kills, named.0));
        }
    }
    tally.resumed = guests.counts().resumed;
    tally
}

/// Says how to repeat a program that fails.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            say(&format!("to repeat it: cargo xtask kills --programs 1 --seed {}", self.0));
        }
    }
}

fn compare(seed: u64, guests: &Guests, tally: &mut Tally) {
    let program = Program::new(seed, &guests.server);
    let expected = life::carry_out(guests, &guests.registry, &program, &[]);
    tally.programs += 1;
    tally.runs += 1;
    tally.commits += expected.commits;
    tally.nested += expected.done.nested;
    tally.steps += expected.done.steps.len();
    tally.entries += expected.done.journal.len();
    tally.effects += expected.done.effects.len();

    tally.edited += expected.seen.edited;
    tally.expired += expected.seen.expired;
    tally.cancelled += expected.seen.cancelled;

    // The first commit has the call. Without it, the caller submits another call.
    for commit in 1..expected.commits {
        for death in DEATHS {
            check(guests, &guests.registry, &program, &[Kill { commit, death }], &expected.done, tally);
        }
    }
    let mut random = Random::new(!seed);
    let kill = |life| {
        let commit = usize::from(life == 0) + random.below(MAX_COMMITS);
        Kill { commit, death: *random.pick(&DEATHS) }
    };
    let kills: Vec<_> = (0..MAX_KILLS).map(kill).collect();
    check(guests, &guests.registry, &program, &kills, &expected.done, tally);
    check(guests, &guests.lingering, &program, &[], &expected.done, tally);
    check(guests, &guests.lingering, &program, &kills, &expected.done, tally);
}

/// Checks that these kills change nothing.
fn check(
    guests: &Guests,
    registry: &Arc<Registry>,
    program: &Program,
    kills: &[Kill],
    expected: &Done,
    tally: &mut Tally,
) {
    let Carried { done: found, kills: killed, seen, .. } = life::carry_out(guests, registry, program, kills);
    tally.runs += 1;
    tally.kills += killed;
    tally.refused += seen.refused;
    tally.sent_again += seen.sent_again;
    let context = || format!("with {:?} of {program}", &kills[..killed]);
    if found.outcome == Outcome::InDoubt && expected.outcome != Outcome::InDoubt {
        tally.in_doubt += 1;
        stops_in_doubt(&found, expected, context);
    } else {
        same("step", &found.steps, &expected.steps, context);
        same("entry", &found.journal, &expected.journal, context);
        same("value", &found.values, &expected.values, context);
        same("effect", &found.effects, &expected.effects, context);
        assert_eq!(found.outcome, expected.outcome, "{}", context());
    }
}

/// Checks that both are equal. Otherwise this shows the first difference.
fn same<T: PartialEq + Debug>(name: &str, found: &[T], expected: &[T], context: impl Fn() -> String) {
    for at in 0..found.len().max(expected.len()) {
        let (found, expected) = (found.get(at), expected.get(at));
        assert!(found == expected, "{name} {at} is {found:#?}, not {expected:#?}, {}", context());
    }
}

/// Checks that there is nothing that is not expected. It is in the order of the turns, of which the nested ones come first.
fn nothing_new<T: PartialEq + Debug>(name: &str, found: &[T], expected: &[T], context: impl Fn() -> String) {
    let unexpected = found.iter().find(|each| !expected.contains(each));
    assert!(unexpected.is_none(), "{name}: {unexpected:#?} is new, {}", context());
}

/// Checks that the call ended at a request that was begun and may not be sent again, and that nothing follows it.
fn stops_in_doubt(found: &Done, expected: &Done, context: impl Fn() -> String) {
    let last = found.journal.last().map(|(_, entry)| &entry.record);
    let is_doubtful = matches!(last, Some(Record::Begun(text)) if text.contains(ONCE));
    assert!(is_doubtful, "the last entry is {last:?}, {}", context());
    nothing_new("step", &found.steps, &expected.steps, &context);
    nothing_new("entry", &found.journal, &expected.journal, &context);
    same("effect", &found.effects, &expected.effects[..found.effects.len().min(expected.effects.len())], &context);
}
