//! The demo: one turn of an agent with calls of every kind. The host is killed while two calls wait, and people answer
//! afterwards. Everything uses the binary's own commands, as a person types them.

mod folder;
mod host;
mod recorder;
mod toolgate;
mod turn;
mod watch;
mod workflow;

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use crate::build;
use crate::console::{self, Tone};
use crate::languages;
use crate::workspace;
use folder::Folder;
use host::Host;
use toolgate::Toolgate;
use turn::{Turn, Waiting};
use watch::{Events, Watchdog};
use workflow::Workflows;

/// The options of the demo.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Whether the demo answers suspensions instead of a person.
    pub(crate) answer: bool,
    /// The port of the host; 0 takes a free one.
    pub(crate) port: u16,
    /// Whether plugins in other languages are left out. They need the registries of those languages.
    pub(crate) only_rust: bool,
}

/// The conversation that the demo's turn belongs to.
const CONVERSATION: &str = "demo";

/// The conversation that sets up the ledger and reads it.
const ACCOUNTS: &str = "demo-accounts";

/// The model's answer: a file of the folder `demo/`.
const TURN: &str = "turn.openai.json";

/// The outcome of each call if every approval is given.
const EXPECTED: [(&str, &str); 5] = [
    ("text_stats", "ok"),
    ("cluster", "ok"),
    ("ledger_transfer", "ok"),
    ("ask_user", "ok"),
    ("ledger_transfers", "failed"),
];

/// The conversation of a turn with a tool of each language.
const LANGUAGES: &str = "demo-languages";

/// The tools of that turn, in its order, with their languages.
const WRITTEN_IN: [(&str, &str); 6] = [
    ("text_search", "Rust"),
    ("stats_group", "Python"),
    ("json_rows", "TypeScript"),
    ("date_add", "JavaScript"),
    ("diff_text", "Go"),
    ("hash_data", "C"),
];

/// Builds what the demo needs and runs it.
pub(crate) fn run(options: &Options) -> Result<()> {
    console::headline("Building the example plugins and the host (the first time takes some minutes)");
    build::release()?;
    show(options, &workspace::release_binary("toolgate")?)
}

/// Runs the demo with this binary.
pub(crate) fn show(options: &Options, binary: &Path) -> Result<()> {
    let mut components = build::example_plugins()?;
    if !options.only_rust {
        console::headline("Building the example plugins in other languages");
        components.extend(languages::build(binary)?);
    }
    let workflows = Workflows::new(options.only_rust)?;
    let folder = Folder::fresh(&components, &workflows.grants())?;

    console::headline("A host with the example plugins");
    let operator = Toolgate::new(binary, &folder);
    workflows.pack(&operator, &folder)?;
    let mut host = Host::start(&operator, &folder, options.port)?;
    let watchdog = options.answer.then(|| Watchdog::start(&host, &folder));
    let agent = operator.token("agent", "caller")?;
    console::line(&format!(
        "{} tools are live. The agent has a token of its own, which submits calls and cannot approve them.",
        operator.tools()?
    ));
    if !options.only_rust {
        every_language(&agent)?;
    }
    workflows.show(&operator, &agent, &mut host, &folder)?;

    console::headline("Two accounts with 100.00 each");
    agent.submit("accounts.openai.json", ACCOUNTS)?.show();

    console::headline(
        "A model's answer with five tool calls: demo/turn.openai.json, in the form in which the API returned it",
    );
    let events = Events::follow(&agent)?;
    let before = agent.submit(TURN, CONVERSATION)?;
    before.show();
    ensure!(before.waiting().len() == 2, "two calls must wait for a person; see {}", folder.log().display());

    console::headline("The host is killed (SIGKILL) and started again");
    host.kill()?;
    host.restart(&operator, &folder)?;
    let after = agent.turn(&before, CONVERSATION)?;
    ensure!(before.same_as(&after), "the turn changed with the kill:\n{before}\nand then\n{after}");
    console::line("Nothing is lost: every result is still recorded, no call ran again, and the same two calls wait.");

    console::headline("Suspensions that wait for a person");
    for waiting in after.waiting() {
        present(&operator, waiting);
    }
    if options.answer {
        console::headline("Answering, as a person would");
        for waiting in after.waiting() {
            operator.shown(&answer(waiting)?)?;
        }
    } else {
        console::line(
            "\nPaste one command for each into another terminal, in this folder. Results appear here; Ctrl-C ends the demo.",
        );
    }
    let settled = agent.wait(TURN, &after)?;
    events.finish();

    console::headline("The turn has settled");
    settled.show();
    console::headline("The messages for the model");
    agent.messages(TURN)?.iter().for_each(|message| console::line(&format!("  {}", turn::excerpt(message))));
    check(options, &settled, &agent)?;
    if let Some(watchdog) = watchdog {
        watchdog.stop();
    }
    host.kill()?;
    console::headline("Done");
    console::line(&format!("The folder of the demo is {}. The next demo empties it.", folder.shown().display()));
    Ok(())
}

/// One turn with a tool of each language.
fn every_language(agent: &Toolgate) -> Result<()> {
    let languages: Vec<&str> = WRITTEN_IN.iter().map(|(_, language)| *language).collect();
    console::headline(&format!("One turn whose tools are written in {}", languages.join(", ")));
    let turn = agent.submit("languages.anthropic.json", LANGUAGES)?;
    turn.show();
    for ((tool, language), call) in WRITTEN_IN.iter().zip(turn.calls()) {
        ensure!(
            call.tool == *tool && call.outcome.as_deref() == Some("ok"),
            "{} should be {tool}, in {language}, and end ok, but it ended {:?}",
            call.tool,
            call.outcome
        );
    }
    ensure!(turn.calls().len() == WRITTEN_IN.len(), "a call is missing:\n{turn}");
    Ok(())
}

/// Prints a suspension with the commands that answer it.
fn present(operator: &Toolgate, waiting: &Waiting) {
    console::line(&format!("\n{} {}", console::toned(Tone::Waiting, &waiting.kind), waiting.tool));
    console::line(&format!("  {}", waiting.prompt));
    let suspension = &waiting.suspension;
    let commands = match waiting.kind.as_str() {
        "approval" => vec![format!("approve {suspension}"), format!("deny {suspension} --comment 'not this month'")],
        _ => vec![
            format!("answer {suspension} '{{\"answer\":\"Friday\"}}'"),
            format!("answer {suspension} --decision decline"),
        ],
    };
    for command in commands {
        console::line(&format!("    {}", operator.line(&command)));
    }
}

/// The answer that the demo gives by itself.
fn answer(waiting: &Waiting) -> Result<Vec<String>> {
    let suspension = waiting.suspension.clone();
    let words = match waiting.tool.as_str() {
        "ledger_transfer" => vec!["approve".into(), suspension, "--comment".into(), "as agreed".into()],
        "ask_user" => vec!["answer".into(), suspension, r#"{"answer":"Friday"}"#.into()],
        other => bail!("{other} waits, but the demo has no answer for it"),
    };
    Ok(words)
}

/// The expected result with the demo's own answers. A person's answers may lead to another.
fn check(options: &Options, settled: &Turn, agent: &Toolgate) -> Result<()> {
    if !options.answer {
        return Ok(());
    }
    for ((tool, outcome), call) in EXPECTED.iter().zip(settled.calls()) {
        ensure!(
            call.tool == *tool && call.outcome.as_deref() == Some(*outcome),
            "{} should be {tool} and end {outcome}, but it ended {:?}",
            call.tool,
            call.outcome
        );
    }
    let balances = agent.submit("balances.openai.json", ACCOUNTS)?;
    let cents = |name: &str| balances.results().find_map(|result| result.balance_of(name));
    let (rent, landlord) = (cents("household"), cents("landlord"));
    let sums = rent.zip(landlord).context("the ledger returned no balances")?;
    ensure!(sums == (7_500, 12_500), "25.00 should have moved once; the accounts hold {sums:?} cents");
    console::line("\n25.00 moved once: the accounts hold 75.00 and 125.00.");
    Ok(())
}
