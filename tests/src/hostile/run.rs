//! Runs one case against a host: the attack, the neighbour's calls during and after it, and the host's memory. An error
//! names the failed check.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::case::{Attack, Case, Expected};
use super::neighbour::{self, Latency, Neighbour};
use super::resident::Resident;
use super::server::Server;
use super::{guest, steps};
use crate::guests::{any, fixture, with_section};
use crate::host::{Host, Setup};
use crate::http::{Answer, Client, outcomes};

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

/// A host with a neighbour on it, and an attacker.
pub struct Field {
    host: Host,
    neighbour: Neighbour,
    pub(super) attacker: Client,
    server: Server,
    /// Connections that the attacker keeps open.
    held: Mutex<Vec<TcpStream>>,
    quiet: Latency,
}

impl Field {
    /// Starts a host for these cases, which have the same settings.
    ///
    /// # Errors
    /// When the neighbour is not served even without an attack.
    pub fn new(cases: &[Case]) -> Result<Self> {
        let mut setup = Setup::default().component("calm", fixture(&json!([{"name": neighbour::TOOL}])));
        if let Some(first) = cases.first() {
            setup = setup.settings(&first.settings);
        }
        let server = Server::start()?;
        for case in cases.iter().filter(|case| !case.plugin.is_empty()) {
            let table = BTreeMap::from([("plugin", BTreeMap::from([(case.plugin_name(), &case.plugin)]))]);
            setup = setup.tables(&server.filled(&toml::to_string(&table)?));
        }
        setup = cases.iter().fold(setup, |setup, case| setup.tables(&case.tables));
        let mut host = setup.prepare();
        for folder in cases.iter().flat_map(Case::folders) {
            fs::create_dir(host.folder().join(folder))?;
        }
        for (path, content) in cases.iter().flat_map(|case| &case.files) {
            content.write(&host.folder().join(path))?;
        }
        host.start();
        let neighbour = Neighbour::new(host.token("neighbour", &["caller"], None));
        let attacker = host.token("mallory", &["caller"], None);
        // The first calls pay for threads and connections.
        neighbour.call(5)?;
        let (quiet, held) = (Latency::default(), Mutex::default());
        Ok(Self { host, neighbour, attacker, server, held, quiet })
    }

    /// The neighbour's calls without an attack.
    #[must_use]
    pub fn quiet(&self) -> &Latency {
        &self.quiet
    }

    /// The text with the address of the attacker's server.
    pub(super) fn filled(&self, text: &str) -> String {
        self.server.filled(text)
    }

    /// Keeps a connection open until the case has ended.
    pub(super) fn hold(&self, connection: TcpStream) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }

    /// The host.
    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    /// Runs a case.
    ///
    /// # Errors
    /// When its outcome is not the expected one, the neighbour was not served, or the host grew beyond the bound.
    pub fn run(&mut self, case: Case, effort: Effort) -> Result<Measured> {
        let quiet = self.neighbour.call(effort.calls.clamp(3, 20)).context("before the attack")?;
        self.quiet.extend(&quiet);
        let attack = Prepared::new(&case)?;
        let resident = Resident::watch(self.host.process())?;
        let round = std::cell::Cell::new(0);
        let attacked = self.neighbour.during(effort.calls, || {
            round.set(round.get() + 1);
            attack.carry_out(self, &case, round.get())
        });
        self.neighbour.call(3).context("after the attack")?;
        let grew = resident.growth()?;
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clear();
        if attack.is_loaded() {
            // A refused plugin is not loaded.
            let _ = self.host.admin.delete(&format!("/v1/plugins/{}", case.plugin_name()));
        }
        let ((), during) = attacked?;
        let measured = Measured { case, during, grew };
        let (grown, most) = (measured.grew_mib(), measured.case.memory_mib);
        ensure!(grown <= most, "the host grew by {grown} MiB, and {most} MiB is the bound");
        Ok(measured)
    }

    fn load(&self, case: &Case, component: &[u8]) -> Answer {
        self.host.admin.put(&format!("/v1/plugins/{}", case.plugin_name()), component)
    }
}

/// The component of an attack that is one, with this tool.
pub(super) fn component(attack: &Attack, tool: &str) -> Result<Option<Vec<u8>>> {
    Ok(Some(match attack {
        Attack::Text { text, world, encoding } => guest::component(text, world, *encoding, tool)?,
        Attack::Catalog(tools, None) => fixture(tools),
        Attack::Catalog(tools, Some(section)) => with_section(&fixture(tools), section),
        Attack::Guest(guest, _) => any(guest),
        Attack::Generate(generate) => generate.component(tool)?,
        Attack::Steps(..) | Attack::Alone(_) => return Ok(None),
    }))
}

/// An attack with its component already built.
enum Prepared<'a> {
    Component(Vec<u8>),
    Steps(&'a [steps::Step], Option<Vec<u8>>),
}

impl<'a> Prepared<'a> {
    fn new(case: &'a Case) -> Result<Self> {
        let component = |attack| component(attack, &case.tool_name());
        Ok(match &case.attack {
            Attack::Steps(steps, None) => Self::Steps(steps, None),
            Attack::Steps(steps, Some(plugin)) => Self::Steps(steps, component(plugin)?),
            attack => Self::Component(component(attack)?.context("this case has no neighbour and is not run")?),
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
    let turn = field.attacker.submit("attack", calls.into());
    let turn = field.attacker.settled(&turn);
    let ends = outcomes(&turn);
    let text = cut(turn.to_string());
    let is_expected = ends.len() == case.at_once && ends.iter().all(|end| expected.contains(end));
    ensure!(is_expected, "it should end {expected:?}, and ended {ends:?}: {text}");
    for call in turn["calls"].as_array().into_iter().flatten() {
        case.holds(&call["content"].to_string())?;
    }
    Ok(())
}

impl Case {
    /// Checks that a response contains the required text and no forbidden one.
    pub(super) fn holds(&self, answer: &str) -> Result<()> {
        if let Some(words) = &self.holds {
            ensure!(answer.contains(words), "`{words}` is not in: {}", cut(answer.to_owned()));
        }
        for words in &self.never {
            ensure!(!answer.contains(words), "`{words}` is in: {}", cut(answer.to_owned()));
        }
        Ok(())
    }
}

/// The beginning of a text, for messages.
pub(super) fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(4_000));
    text
}
