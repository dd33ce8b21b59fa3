//! Runs one case against a host: the attack, the neighbour's calls during and after it, and the host's memory. An error
//! names the failed check.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::case::{Attack, Case, Expected, cut};
use super::field::Field;
use super::guest::{self, Declared};
use super::neighbour::{Latency, Work};
use super::step::Step;
use super::steps;
use crate::guests::{any, fixture, with_section};
use crate::http::{Answer, outcomes};

/// The length of a case.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// The neighbour's calls during each attack. The attack is repeated until then.
    pub calls: usize,
}

impl Effort {
    /// Enough for a test to know that the neighbour is served.
    pub const TEST: Self = Self { calls: 5 };
    /// Enough for a percentile to publish.
    pub const PUBLISH: Self = Self { calls: 100 };
}

/// The result of a case.
#[derive(Debug)]
pub struct Measured {
    /// The case.
    pub case: Case,
    /// The neighbour's calls during the attack.
    pub during: Latency,
    /// The growth of the host's memory in bytes.
    pub grew: u64,
}

impl Measured {
    /// The growth in whole MiB.
    #[must_use]
    pub fn grew_mib(&self) -> u64 {
        self.grew.div_ceil(1 << 20)
    }

    /// The neighbour's p99, as a multiple of its p99 without an attack.
    #[must_use]
    pub fn p99_ratio(&self, quiet: &Latency) -> f64 {
        self.during.ratio(quiet, 99)
    }
}

impl Field {
    /// Runs a case.
    ///
    /// # Errors
    /// When its outcome is not the expected one, the neighbour was not served, or the host grew beyond the bound.
    pub fn run(&mut self, case: Case, effort: Effort) -> Result<Measured> {
        let quiet = self.neighbour.call(effort.calls.clamp(3, 20), Work::Submits).context("before the attack")?;
        self.quiet.extend(&quiet);
        let attack = Prepared::new(&case)?;
        let process = self.host().process();
        self.watch()?;
        let round = std::cell::Cell::new(0);
        let attacked = self.neighbour.during(effort.calls, case.neighbour, || {
            round.set(round.get() + 1);
            attack.carry_out(self, &case, round.get())
        });
        self.neighbour.call(3, case.neighbour).context("after the attack")?;
        let grew = self.growth()?;
        if self.host().process() != process {
            self.neighbour.each_call_is_recorded_once()?;
        }
        self.release();
        if attack.is_loaded() {
            // A refused plugin is not loaded.
            let _ = self.host().admin.delete(&format!("/v1/plugins/{}", case.plugin_name()));
        }
        let ((), during) = attacked?;
        let measured = Measured { case, during, grew };
        let (grown, most) = (measured.grew_mib(), measured.case.memory_mib);
        ensure!(grown <= most, "the host grew by {grown} MiB, and {most} MiB is the bound");
        Ok(measured)
    }
}

/// The component of an attack that is one, with this tool.
pub(super) fn component(attack: &Attack, tool: &str) -> Result<Option<Vec<u8>>> {
    Ok(Some(match attack {
        Attack::Text { text, world, options, encoding } => {
            guest::component(text, world, *encoding, &Declared { tool, options })?
        }
        Attack::Catalog(tools, None) => fixture(tools),
        Attack::Catalog(tools, Some(section)) => with_section(&fixture(tools), section),
        Attack::Guest(guest, _) => any(guest),
        Attack::Generate(generate) => generate.component(tool)?,
        Attack::Steps(..) => return Ok(None),
    }))
}

/// An attack with its component already built.
enum Prepared<'a> {
    Component(Vec<u8>),
    Steps(&'a [Step], Option<Vec<u8>>),
}

impl<'a> Prepared<'a> {
    fn new(case: &'a Case) -> Result<Self> {
        let component = |attack| component(attack, &case.tool_name());
        Ok(match &case.attack {
            Attack::Steps(steps, None) => Self::Steps(steps, None),
            Attack::Steps(steps, Some(plugin)) => Self::Steps(steps, component(plugin)?),
            attack => Self::Component(component(attack)?.context("it has no component")?),
        })
    }

    fn is_loaded(&self) -> bool {
        matches!(self, Self::Component(_) | Self::Steps(_, Some(_)))
    }

    fn carry_out(&self, field: &Field, case: &Case, round: u32) -> Result<()> {
        match self {
            Self::Steps(steps, plugin) => {
                if let Some(component) = plugin.as_ref().filter(|_| round == 1) {
                    loaded(&field.load(case, component))?;
                }
                steps::carry_out(steps, field, case, round)
            }
            Self::Component(component) => match &case.expected {
                Expected::Refused(rule) => refused(case, &field.load(case, component), rule),
                Expected::Ends(outcomes) => {
                    if round == 1 {
                        loaded(&field.load(case, component))?;
                    }
                    called(field, case, outcomes, round)
                }
                Expected::AsItsStepsSay(_) => bail!("it has no steps"),
            },
        }
    }
}

fn loaded(answer: &Answer) -> Result<()> {
    ensure!(answer.status == 200, "it should load: {} {}", answer.status, answer.text);
    Ok(())
}

fn refused(case: &Case, answer: &Answer, rule: &str) -> Result<()> {
    ensure!((400..500).contains(&answer.status), "it should be refused: {} {}", answer.status, answer.text);
    let problem = answer.json();
    let rules = problem["findings"].as_array().into_iter().flatten().map(|finding| &finding["rule"]);
    let named = problem["code"] == rule || rules.into_iter().any(|found| found == rule);
    ensure!(named, "it should be refused for {rule}: {}", answer.text);
    case.holds(&answer.text)
}

/// Calls the tool, with the concurrency of the case.
fn called(field: &Field, case: &Case, expected: &[String], round: u32) -> Result<()> {
    let arguments: Value = serde_json::from_str(&field.filled(&case.arguments.to_string()))?;
    let call = |n| json!({"id": format!("{}-{round}-{n}", case.plugin_name()), "tool": case.tool_name(), "arguments": arguments});
    let calls: Vec<Value> = (0..case.at_once).map(call).collect();
    let [attacker, ..] = &field.attackers;
    let turn = attacker.settled(&attacker.submit("attack", calls.into()));
    let ends = outcomes(&turn);
    let text = cut(turn.to_string());
    let is_expected = ends.len() == case.at_once && ends.iter().all(|end| expected.contains(end));
    ensure!(is_expected, "it should end {expected:?}, and ended {ends:?}: {text}");
    for (end, least) in &case.ended {
        let found = ends.iter().filter(|found| *found == end).count();
        ensure!(found >= *least, "{found} calls ended {end}, and not {least}: {ends:?}");
    }
    for call in turn["calls"].as_array().into_iter().flatten() {
        case.holds(&call["content"].to_string())?;
    }
    Ok(())
}
