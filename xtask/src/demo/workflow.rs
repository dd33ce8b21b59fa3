//! One call of a workflow in each of three languages. The host is killed three times in the middle of these calls, and the
//! service that they build and deploy with records what it carried out.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;

use super::folder::Folder;
use super::host::Host;
use super::recorder::{Effect, Recorder};
use super::toolgate::Toolgate;
use super::turn::{Turn, Waiting};
use crate::console;
use crate::workspace::root;

/// An example plugin with the workflow.
struct Workflow {
    language: &'static str,
    /// Its folder in `plugins/`.
    plugin: &'static str,
    tool: &'static str,
}

static WORKFLOWS: [Workflow; 3] = [
    Workflow { language: "Rust", plugin: "rollout", tool: "roll_out" },
    Workflow { language: "Python", plugin: "rollout-py", tool: "roll_out_py" },
    Workflow { language: "TypeScript", plugin: "rollout-ts", tool: "roll_out_ts" },
];

/// The address in their manifests.
const EXAMPLE: &str = "http://127.0.0.1:8080/";

const CONVERSATION: &str = "demo-workflow";

/// How often the demo looks how far the calls are, and how many times: a minute in all.
const LOOK: (Duration, u32) = (Duration::from_millis(100), 600);

/// Looks until there is something to see. `missing` says what is not there after all that time.
fn until<T>(missing: &'static str, look: impl Fn() -> Result<Option<T>>) -> Result<T> {
    for _ in 0..LOOK.1 {
        if let Some(seen) = look()? {
            return Ok(seen);
        }
        std::thread::sleep(LOOK.0);
    }
    bail!(missing)
}

/// The workflows of the demo, and their service.
pub(super) struct Workflows {
    service: Recorder,
    workflows: &'static [Workflow],
}

impl Workflow {
    /// The tool that deploys.
    fn deploy(&self) -> String {
        format!("{}_deploy", self.tool)
    }

    /// The version that it rolls out.
    fn version(&self) -> String {
        format!("1.4.2-{}", self.language)
    }
}

impl Workflows {
    pub(super) fn new(only_rust: bool) -> Result<Self> {
        let count = if only_rust { 1 } else { WORKFLOWS.len() };
        Ok(Self { service: Recorder::start()?, workflows: &WORKFLOWS[..count] })
    }

    /// The operator's grants for them.
    pub(super) fn grants(&self) -> String {
        let url = self.service.url();
        let grant = |workflow: &Workflow| {
            format!(
                "\n[plugin.{0}]\ncomponent = \"any\"\n\n[plugin.{0}.grants]\ncalls = [\"{1}\"]\nconfig = {{ service = \"{url}\" }}\n\
                 http = [{{ url = \"{url}\", methods = [\"GET\", \"POST\"], private = true, idempotent = true }}]\n",
                workflow.plugin,
                workflow.deploy()
            )
        };
        self.workflows.iter().map(grant).collect()
    }

    /// Makes their components in the folder request the address of the service.
    pub(super) fn pack(&self, operator: &Toolgate, folder: &Folder) -> Result<()> {
        for Workflow { plugin, .. } in self.workflows {
            let file = root().join("plugins").join(plugin).join("toolgate-plugin.toml");
            let wants = fs::read_to_string(&file).with_context(|| format!("could not read {}", file.display()))?;
            ensure!(wants.contains(EXAMPLE), "{} does not request {EXAMPLE}", file.display());
            let manifest = folder.put(&format!("{plugin}.toml"), &wants.replace(EXAMPLE, &self.service.url()))?;
            let component = folder.component(plugin);
            let files = [component.display().to_string(), "--manifest".into(), manifest.display().to_string()];
            operator.succeeds(&[&["pack".into()], &files[..]].concat())?;
        }
        Ok(())
    }

    /// One call of each. The host is killed while they wait for a decision, while they deploy, and while they wait for a report.
    pub(super) fn show(&self, operator: &Toolgate, agent: &Toolgate, host: &mut Host, folder: &Folder) -> Result<()> {
        let languages: Vec<&str> = self.workflows.iter().map(|workflow| workflow.language).collect();
        let languages = languages.join(", ");
        console::headline(&format!(
            "A workflow that builds, asks, deploys, waits and verifies in one call, in {languages}"
        ));
        let calls = self.workflows.iter().map(|workflow| {
            let (tool, version) = (workflow.tool, workflow.version());
            let arguments = json!({"version": version, "settles_s": 1, "deploy": true, "signal": tool});
            json!({"id": tool, "tool": tool, "arguments": arguments})
        });
        let file = folder.put("workflow.json", &json!({"calls": calls.collect::<Vec<_>>()}).to_string())?;
        let turn = agent.submit_file(&file, CONVERSATION)?;
        turn.show();
        let mut kill = |when: &str| {
            console::line(&format!("The host is killed (SIGKILL) {when}, and started again."));
            host.kill()?;
            self.service.answer_again();
            host.restart(operator, folder)
        };
        let pending = || operator.pending(CONVERSATION);

        for asked in self.waiting(pending, |waiting| waiting.kind == "elicitation")? {
            operator.shown(&["answer".into(), asked, r#"{"environment":"live"}"#.into()])?;
        }
        let is_gate = |waiting: &Waiting| waiting.tool.ends_with("_deploy");
        let plans = self.waiting(pending, |waiting| waiting.kind == "approval" && !is_gate(waiting))?;
        kill("while they wait for a decision about their plans")?;
        operator.succeeds(&[vec!["approve".into()], plans].concat())?;

        let gates = self.waiting(pending, is_gate)?;
        self.service.fall_silent();
        operator.succeeds(&[vec!["approve".into()], gates].concat())?;
        self.deploying()?;
        kill("while they deploy: the service has carried it out, and its answer is lost")?;

        let steps = || Ok(agent.turn(&turn, CONVERSATION)?.into_waiting());
        let _ = self.waiting(steps, |waiting| waiting.kind == "external")?;
        kill("while they wait for a report of their health")?;
        for Workflow { tool, .. } in self.workflows {
            let signal = ["signal", CONVERSATION, tool, r#"{"healthy":true}"#];
            agent.shown(&signal.map(str::to_owned))?;
        }
        let settled = agent.wait_file(&file, CONVERSATION)?;
        settled.show();
        self.check(&settled)
    }

    /// The suspensions that are like this, once each workflow has one.
    fn waiting(
        &self,
        look: impl Fn() -> Result<Vec<Waiting>>,
        is_meant: impl Fn(&Waiting) -> bool,
    ) -> Result<Vec<String>> {
        let all = |found: &Vec<_>| found.len() == self.workflows.len();
        until("the workflows do not come to their next step", || {
            let found: Vec<_> = look()?.into_iter().filter(&is_meant).map(|waiting| waiting.suspension).collect();
            Ok(Some(found).filter(all))
        })
    }

    /// Returns once the service has carried out each deployment.
    fn deploying(&self) -> Result<()> {
        until("the service gets no deployment", || {
            let deployed = self.service.effects().iter().filter(|effect| effect.path == "/deployments").count();
            Ok((deployed == self.workflows.len()).then_some(()))
        })
    }

    fn check(&self, settled: &Turn) -> Result<()> {
        for call in settled.calls() {
            ensure!(
                call.outcome.as_deref() == Some("ok") && call.result()["state"] == "done",
                "{} should end ok and done, but it ended {:?}: {}",
                call.tool,
                call.outcome,
                call.result()
            );
        }
        let effects = self.service.effects();
        for Effect { path, body, requests, .. } in &effects {
            let times = if *requests > 1 { format!(" (it came {requests} times)") } else { String::new() };
            console::aside(&format!("  the service carried out once: POST {path} {body}{times}"));
        }
        let asked = self.service.asked();
        asked.iter().for_each(|path| console::aside(&format!("  the service was asked: GET {path}")));
        for workflow in self.workflows {
            let path = format!("/deployments/{}", workflow.version());
            ensure!(
                asked.contains(&path),
                "{} should verify its deployment, but asked only for {asked:?}",
                workflow.tool
            );
            let version = format!("\"{}\"", workflow.version());
            for (path, requests) in [("/builds", 1), ("/deployments", 2)] {
                let is_it = |effect: &&Effect| effect.path == path && effect.body.contains(&version);
                let came: Vec<_> = effects.iter().filter(is_it).map(|effect| effect.requests).collect();
                ensure!(came == [requests], "the requests of {path} for {version} came {came:?} times");
            }
        }
        ensure!(effects.len() == self.workflows.len() * 2, "the service carried out {} requests", effects.len());
        console::line(
            "Three kills, one outcome for each call. The service carried out each build and each deployment once, and confirmed \
             each version.",
        );
        Ok(())
    }
}
