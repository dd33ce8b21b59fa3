//! Random programs of a durable call in the real loop, with the real journal, sandbox and store in memory. Each program
//! runs once without a kill, and once with kills at commits of its turn and of its journal. The result, the steps, the
//! journal, the stored values and the effects that the server saw are equal.

pub(crate) mod guests;
pub(crate) mod life;
pub(crate) mod program;

use domain::Outcome;
use toolgate_tests::faults::Death;
use toolgate_tests::host::say;
use toolgate_tests::random::Random;

use guests::Guests;
use life::{Carried, Done, End};
use program::{ONCE, Program};

/// Lives that end with a kill before the one that may come to the end.
const MAX_KILLS: u32 = 40;

/// The kills between two lines of progress.
const PROGRESS: u32 = 1_000;

/// The kills to carry out.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// Programs are run until there were this many kills.
    pub(crate) kills: u32,
    /// The seed of the first program. The next program has the next one.
    pub(crate) seed: u64,
}

/// Counts of things that happened.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) programs: u32,
    pub(crate) kills: u32,
    /// Commits of the runs without a kill.
    pub(crate) commits: usize,
    /// Steps, entries and effects of all programs.
    pub(crate) steps: usize,
    pub(crate) entries: usize,
    pub(crate) effects: usize,
    /// Commits of superseded runs that came late and were refused.
    pub(crate) refused: u32,
    /// Calls that ended in doubt because a kill left a request that may not be sent again.
    pub(crate) in_doubt: u32,
}

/// Carries them out.
///
/// # Panics
/// When a kill changes something.
pub(crate) fn run(plan: Plan) -> Tally {
    let (guests, mut tally) = (Guests::new(), Tally::default());
    for seed in (0..).map(|n| plan.seed.wrapping_add(n)) {
        if tally.kills >= plan.kills {
            break;
        }
        let before = tally.kills / PROGRESS;
        let named = Named(seed);
        compare(seed, &guests, &mut tally);
        drop(named);
        if tally.kills / PROGRESS > before {
            say(&format!("{} kills, {} programs, next seed {}", tally.kills, tally.programs, seed.wrapping_add(1)));
        }
    }
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
    let mut carried = Carried::new(guests, &program, seed);
    let End::Settled(turn, commits) = carried.live(None) else { panic!("nothing kills the first host") };
    let expected = carried.done(&turn);
    drop(carried);

    let (mut carried, mut random) = (Carried::new(guests, &program, seed), Random::new(!seed));
    let mut kills = 0;
    let turn = loop {
        let death = *random.pick(&[Death::Before, Death::After, Death::Late]);
        let kill = (kills < MAX_KILLS).then(|| (random.below(4), death));
        match carried.live(kill) {
            End::Settled(turn, _) => break turn,
            End::Killed { late_was_refused } => {
                kills += 1;
                tally.refused += u32::from(late_was_refused);
            }
        }
    };
    let found = carried.done(&turn);
    tally.programs += 1;
    tally.kills += kills;
    tally.commits += commits;
    tally.steps += expected.steps.len();
    tally.entries += expected.journal.len();
    tally.effects += expected.effects.len();
    let operations = &program.operations;
    if found.outcome == Outcome::InDoubt && expected.outcome != Outcome::InDoubt {
        tally.in_doubt += 1;
        stops_in_doubt(&found, &expected);
    } else {
        assert_eq!(found, expected, "after {kills} kills of {operations:#?}");
    }
}

/// A request that may not be sent again was begun, and nothing follows it.
fn stops_in_doubt(found: &Done, expected: &Done) {
    let begun = found.journal.last().expect("an entry");
    assert!(begun.contains("Begun") && begun.contains(ONCE), "{begun}");
    let differs =
        |(found, expected): (&[String], &[String])| found.iter().find(|each| !expected.contains(each)).cloned();
    assert_eq!(differs((&found.journal, &expected.journal)), None, "{expected:#?}");
    assert_eq!(differs((&found.steps, &expected.steps)), None, "{expected:#?}");
    // Nobody knows whether the server got the request.
    assert_eq!(found.effects, expected.effects[..found.effects.len()]);
    let begun = |done: &Done| done.journal.iter().filter(|entry| entry.contains("Begun")).count();
    assert!(found.effects.len() <= begun(found), "{found:#?}");
}
