//! Calls that wait in the middle of their code, in three languages. The host is killed three times meanwhile, and a
//! server records what the calls did.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;

use super::folder::Folder;
use super::host::Host;
use super::recorder::Recorder;
use super::toolgate::Toolgate;
use super::turn::Turn;
use crate::console;
use crate::languages;
use crate::workspace::{Invocation, root};

/// A plugin of the demo.
struct Worker {
    language: &'static str,
    /// The name of the language for `toolgate new`.
    name: &'static str,
    /// The file in `tests/languages/durable`.
    source: &'static str,
    /// The file of the template that it replaces.
    replaced: &'static str,
}

static WORKERS: [Worker; 3] = [
    Worker { language: "Rust", name: "rust", source: "lib.rs", replaced: "src/lib.rs" },
    Worker { language: "Python", name: "python", source: "plugin.py", replaced: "plugin.py" },
    Worker { language: "TypeScript", name: "ts", source: "plugin.ts", replaced: "plugin.ts" },
];

/// The rounds of each call. In each, it counts, draws a random number, sends a request, asks and sleeps.
const ROUNDS: usize = 2;

const CONVERSATION: &str = "demo-workflow";

/// How often the demo looks whether the calls wait again, and how many times: a minute in all.
const LOOK: (Duration, u32) = (Duration::from_millis(100), 600);

/// The workflows of the demo.
pub(super) struct Workflows {
    recorder: Recorder,
    workers: &'static [Worker],
}

impl Workflows {
    pub(super) fn new(only_rust: bool) -> Result<Self> {
        let count = if only_rust { 1 } else { WORKERS.len() };
        Ok(Self { recorder: Recorder::start()?, workers: &WORKERS[..count] })
    }

    /// Builds their plugins with this binary, and returns the paths of their components.
    pub(super) fn build(&self, binary: &Path) -> Result<Vec<PathBuf>> {
        self.workers.iter().map(|worker| self.build_one(binary, worker)).collect()
    }

    fn build_one(&self, binary: &Path, worker: &Worker) -> Result<PathBuf> {
        let Worker { name, source, replaced, .. } = worker;
        let plugin = plugin(name);
        let folder = binary.parent().context("the binary is in no folder")?.join("demo-workflow").join(&plugin);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("could not remove {}", folder.display()))?;
        }
        let toolgate = |line: &str| {
            let command = Invocation::new(line).program(binary);
            let command = command.variable("TOOLGATE_CACHE", languages::cache().display().to_string());
            command.variable("CARGO_TARGET_DIR", root().join("plugins/target/new").display().to_string())
        };
        let shown = folder.display().to_string();
        toolgate(&format!("toolgate new {plugin} --durable --lang {name} --dir")).word(&shown).run()?;
        let fill = || -> std::io::Result<()> {
            fs::copy(root().join("tests/languages/durable").join(source), folder.join(replaced))?;
            fs::write(folder.join("toolgate-plugin.toml"), self.wants())?;
            if *name == "rust" {
                // With the versions of the example plugins, cargo needs no registry.
                fs::copy(root().join("plugins/Cargo.lock"), folder.join("Cargo.lock"))?;
                let project = fs::read_to_string(folder.join("Cargo.toml"))?;
                let features = "toolgate-sdk = { features = [\"http\", \"keyvalue\"], path";
                fs::write(folder.join("Cargo.toml"), project.replace("toolgate-sdk = { path", features))?;
            }
            Ok(())
        };
        fill().with_context(|| format!("could not fill {shown}"))?;
        let build = toolgate("toolgate build").word(&shown);
        console::aside(&format!("$ {build}"));
        build.run()?;
        Ok(folder.join("build").join(format!("{plugin}.wasm")))
    }

    /// The manifest of each plugin.
    fn wants(&self) -> String {
        format!(
            "[wants.keyvalue]\nwhy = \"counts\"\n\n[[wants.http]]\nurl = \"{}\"\nmethods = [\"POST\"]\nwhy = \"the demo\"\n",
            self.recorder.url()
        )
    }

    /// The operator's grants for them.
    pub(super) fn grants(&self) -> String {
        let grant = |Worker { name, .. }: &Worker| {
            format!(
                "\n[plugin.{0}]\ncomponent = \"any\"\ngrants.keyvalue = true\n\n[[plugin.{0}.grants.http]]\nurl = \"{1}\"\n\
                 methods = [\"POST\"]\nprivate = true\nidempotent = true\n",
                plugin(name),
                self.recorder.url()
            )
        };
        self.workers.iter().map(grant).collect()
    }

    /// One call of each. The host is killed while they wait for an answer, while they sleep, and while they wait again.
    pub(super) fn show(&self, operator: &Toolgate, agent: &Toolgate, host: &mut Host, folder: &Folder) -> Result<()> {
        let languages: Vec<&str> = self.workers.iter().map(|worker| worker.language).collect();
        let languages = languages.join(", ");
        console::headline(&format!("A call that waits twice in the middle of its code, in {languages}"));
        let calls = self.workers.iter().map(|Worker { name, .. }| {
            let arguments = json!({"key": name, "rounds": ROUNDS, "url": self.recorder.url()});
            json!({"id": name, "tool": format!("work_{name}"), "arguments": arguments})
        });
        let file = folder.put("workflow.json", &json!({"calls": calls.collect::<Vec<_>>()}).to_string())?;
        let turn = agent.submit_file(&file, CONVERSATION)?;
        turn.show();
        let mut kill = |when: &str| {
            console::line(&format!("The host is killed (SIGKILL) {when}, and started again."));
            host.kill()?;
            host.restart(operator, folder)
        };
        let asked = self.asked(agent, &turn, 0)?;
        kill("while they wait for their first answer")?;
        answer(operator, &asked)?;
        kill("after the answers, in the middle of their code")?;
        let asked = self.asked(agent, &turn, 1)?;
        kill("while they wait for their second answer")?;
        answer(operator, &asked)?;
        let settled = agent.wait_file(&file, CONVERSATION)?;
        settled.show();
        self.check(&settled)
    }

    /// The suspensions of a round, once each call has come to it.
    fn asked(&self, agent: &Toolgate, turn: &Turn, round: usize) -> Result<Vec<String>> {
        for _ in 0..LOOK.1 {
            let now = agent.turn(turn, CONVERSATION)?;
            let round = format!(" {round}");
            let asked = now.waiting().iter().filter(|waiting| waiting.prompt.ends_with(&round));
            let asked: Vec<_> = asked.map(|waiting| waiting.suspension.clone()).collect();
            if asked.len() == self.workers.len() {
                return Ok(asked);
            }
            std::thread::sleep(LOOK.0);
        }
        bail!("the calls do not come to their round {round}")
    }

    fn check(&self, settled: &Turn) -> Result<()> {
        for call in settled.calls() {
            ensure!(
                call.outcome.as_deref() == Some("ok"),
                "{} should end ok, but it ended {:?}",
                call.tool,
                call.outcome
            );
        }
        let effects = self.recorder.effects();
        for effect in &effects {
            let requests =
                if effect.requests > 1 { format!(" (it came {} times)", effect.requests) } else { String::new() };
            console::aside(&format!("  the server carried out: {}{requests}", effect.body));
        }
        for Worker { name, .. } in self.workers {
            for round in 0..ROUNDS {
                let begin = format!("{name} {round} {} ", round + 1);
                let times = effects.iter().filter(|effect| effect.body.starts_with(&begin)).count();
                ensure!(times == 1, "the request {begin:?} was carried out {times} times");
            }
        }
        ensure!(effects.len() == self.workers.len() * ROUNDS, "the server carried out {} requests", effects.len());
        console::line("Three kills, one outcome for each call, and the server carried out each request once.");
        Ok(())
    }
}

fn plugin(name: &str) -> String {
    format!("steps-{name}")
}

fn answer(operator: &Toolgate, asked: &[String]) -> Result<()> {
    let answer =
        |suspension: &String| operator.shown(&["answer".into(), suspension.clone(), r#"{"word":"go on"}"#.into()]);
    asked.iter().try_for_each(answer)
}
