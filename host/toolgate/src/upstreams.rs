//! The tools of a host: those of its plugins, and those of upstream MCP servers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use async_trait::async_trait;
use capabilities::secrets::{Secret, Vault};
use dispatch::ports::{Clock, End, KnownTool, Lingering, Permit, Run, Tools};
use domain::{
    Digest, Json, Limits, Outcome, PluginName, ToolName, Violation,
    call::Pinned,
    tool::{Approval, Recovery},
};
use registry::{Registry, RegistrySettings};
use sandbox::Declared;
use serde_json::json;
use tokio::runtime;
use upstream::{Bounds, Endpoint, MakeTool, Offer, Parts, Pins, Place, Program, Redact, UpstreamSettings, Upstreams};

use crate::clock::WallClock;
use crate::compiler::CompilerProgram;
use crate::config::{ApprovalWord, Config, SecretValues, UpstreamTable};
use crate::error::OpenError;

/// The bytes of a message beside a result.
const FRAME: usize = 64 << 10;

/// The longest origin of a URL in a title, in characters.
const MAX_ORIGIN: usize = 60;

/// The tools of the plugins and of the upstreams. A name is of one of both, because no component can have a tool whose name begins like
/// those of an upstream.
pub(crate) struct AllTools {
    pub(crate) registry: Registry,
    pub(crate) upstreams: Upstreams,
}

#[async_trait]
impl Tools for AllTools {
    fn find(&self, name: &str) -> Result<Arc<KnownTool>, Option<ToolName>> {
        self.registry.find(name).or_else(|nearest| self.upstreams.find(name).ok_or(nearest))
    }

    fn refusal(&self, name: &str) -> Option<Outcome> {
        self.upstreams.refusal(name)
    }

    fn pinned(&self, plugin: &PluginName, component: Digest, name: &str) -> Option<Arc<KnownTool>> {
        if plugin.is_upstream() {
            return self.upstreams.pinned(plugin, component, name);
        }
        self.registry.pinned(plugin, component, name)
    }

    async fn recall(&self, pinned: &Pinned) -> Result<(), Outcome> {
        if pinned.plugin.is_upstream() { Err(self.upstreams.lost(pinned)) } else { self.registry.recall(pinned).await }
    }

    async fn call_refusal(&self, by: &Pinned, tool: &str) -> Result<Option<String>, Outcome> {
        self.registry.call_refusal(by, tool).await
    }

    fn loading(&self) -> usize {
        Tools::loading(&self.registry)
    }

    fn limits(&self, plugin: &PluginName) -> Limits {
        self.registry.limits(plugin)
    }

    fn violations(&self, schema: &Json, value: &Json) -> Vec<Violation> {
        self.registry.violations(schema, value)
    }

    fn list(&self) -> Vec<Arc<KnownTool>> {
        let mut all = [self.registry.list(), self.upstreams.list()].concat();
        all.sort_by(|a, b| a.tool.name.cmp(&b.tool.name));
        all
    }

    fn release(&self, pinned: &Pinned, idempotency_key: &str) {
        self.registry.release(pinned, idempotency_key);
    }

    fn lingering(&self) -> Lingering {
        self.registry.lingering()
    }

    async fn permit(&self, pinned: &Pinned, has_begun: bool) -> Result<Permit, Outcome> {
        if pinned.plugin.is_upstream() {
            return self.upstreams.permit(pinned).await;
        }
        self.registry.permit(pinned, has_begun).await
    }

    async fn run(&self, run: Run) -> End {
        if run.pinned.plugin.is_upstream() { self.upstreams.run(run).await } else { self.registry.run(run).await }
    }
}

/// The upstreams of a configuration. No server is started yet. Must be called in a tokio runtime with I/O.
///
/// # Errors
/// [`OpenError`] if a secret or the file of accepted tools cannot be read.
pub fn configured(config: &Config, supervisor: Option<CompilerProgram>) -> Result<Upstreams, OpenError> {
    let settings = config.registry(&config.data_folder(), &SecretValues::default());
    open(config, &settings, supervisor, Arc::new(WallClock))
}

pub(crate) fn open(
    config: &Config,
    settings: &RegistrySettings,
    supervisor: Option<CompilerProgram>,
    clock: Arc<dyn Clock>,
) -> Result<Upstreams, OpenError> {
    if config.upstream.is_empty() {
        return Ok(Upstreams::default());
    }
    let supervisor = supervisor.map(|CompilerProgram { program, arguments }| -> Vec<OsString> {
        std::iter::once(program.into_os_string()).chain(arguments).collect()
    });
    let one = |(name, table): (&String, &UpstreamTable)| upstream(config, settings, name, table, supervisor.clone());
    let servers = config.upstream.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    let pins = Pins::open(config.upstream_pins())?;
    let parts = Parts { clock, make: make(settings.clone()), runtime: runtime::Handle::current() };
    Ok(Upstreams::new(servers, pins, &parts))
}

fn upstream(
    config: &Config,
    settings: &RegistrySettings,
    name: &str,
    table: &UpstreamTable,
    supervisor: Option<Vec<OsString>>,
) -> Result<UpstreamSettings, OpenError> {
    // The configuration was checked.
    let plugin = PluginName::of_upstream(name).map_err(|error| OpenError::Sandbox(error.to_string()))?;
    let (limits, catalog) = (settings.limits(&plugin), &settings.catalog);
    let approvals = table.tools.iter().filter_map(|(tool, table)| Some((tool.clone(), approval(table.approval?))));
    let idempotent = table.tools.iter().filter_map(|(tool, table)| Some((tool.clone(), table.idempotent?)));
    let (place, secrets) = match &table.url {
        Some(url) => {
            let token = config.upstream_token(name, table)?;
            let (token, secret) = token.map_or((None, None), |(token, secret)| (Some(token), Some(secret)));
            (Place::Url(Endpoint { url: url.0.clone(), token }), secret.into_iter().collect())
        }
        None => {
            let environment = config.upstream_environment(name, table)?;
            let program = Program {
                command: table.command.iter().map(OsString::from).collect(),
                environment: environment.variables,
                folder: config.upstream_folder(table),
                supervisor,
            };
            (Place::Program(program), environment.secrets)
        }
    };
    Ok(UpstreamSettings {
        place,
        target: table.target(),
        approval: table.approval.map_or(Approval::RequiresApproval, approval),
        approvals: approvals.collect(),
        is_idempotent: table.idempotent,
        idempotent: idempotent.collect::<BTreeMap<_, _>>(),
        bounds: Bounds {
            message: limits.result.saturating_mul(2).max(catalog.declaration).saturating_add(FRAME),
            result: limits.result,
            tools: catalog.tools,
            declarations: catalog.declaration,
            start: domain::Span::from_secs(60),
            concurrency: limits.concurrency,
            queue: limits.queue,
            wait: settings.queue,
        },
        redact: redact(&plugin, &secrets),
        plugin,
    })
}

fn approval(word: ApprovalWord) -> Approval {
    match word {
        ApprovalWord::Auto => Approval::Auto,
        ApprovalWord::RequiresApproval => Approval::RequiresApproval,
    }
}

/// Removes the secrets that the server holds from what it says.
fn redact(plugin: &PluginName, secrets: &[Secret]) -> Redact {
    let vault = Vault::new(plugin, "", secrets);
    Arc::new(move |text| vault.redacted(text))
}

/// Makes tools by the rules for those of components.
fn make(settings: RegistrySettings) -> MakeTool {
    Arc::new(move |offer| {
        registry::upstream_tool(&settings, offer.plugin, offer.identity, &declared(offer))
            .map_err(|findings| findings.iter().map(ToString::to_string).collect())
    })
}

/// The declaration in the form of a component's. Its title and its description say that the tool runs outside the sandbox.
fn declared(offer: &Offer<'_>) -> Declared {
    let declaration = offer.declaration;
    let server = offer.plugin.upstream().unwrap_or_default();
    let at = offer.origin.as_ref().map(|origin| format!(" at {}", escape::excerpt(origin, MAX_ORIGIN)));
    let marks = format!(" (MCP server {server}{}, outside the sandbox)", at.unwrap_or_default());
    let title = declaration.title().unwrap_or(declaration.name());
    let room = registry::MAX_TITLE.saturating_sub(marks.chars().count());
    let title: String = title.chars().take(room).chain(marks.chars()).collect();
    let hints = declaration.annotations();
    let mut options = json!({
        "title": title,
        "hints": {},
        "recovery": match offer.recovery {
            Recovery::Retry => "retry",
            Recovery::Ask => "ask",
            Recovery::Fail => "fail",
        },
    });
    let known = [
        ("read_only", hints.read_only),
        ("destructive", hints.destructive),
        ("idempotent", hints.idempotent),
        ("open_world", hints.open_world),
    ];
    for (hint, value) in known.into_iter().filter_map(|(hint, value)| Some((hint, value?))) {
        options["hints"][hint] = value.into();
    }
    let mut options = options.to_string();
    if let Some(schema) = declaration.output_schema() {
        // The text was checked, and it stays as it is.
        options.pop();
        options.push_str(&format!(r#","result":{schema}}}"#));
    }
    let described = declaration.description().or_else(|| declaration.title()).unwrap_or(declaration.name());
    Declared {
        name: offer.name.clone(),
        // Before the server's words, because some models get no title.
        description: format!("{} {described}", marks.trim_start()),
        parameters: declaration.input_schema().to_owned(),
        executor: domain::tool::Executor::Server,
        approval: offer.approval,
        streaming: false,
        options,
    }
}

/// The line about an upstream in the record of a start.
pub(crate) fn recorded(status: &upstream::UpstreamStatus) -> String {
    let at = status.origin.as_ref().map(|origin| format!(" at {origin}")).unwrap_or_default();
    format!("{}: runs outside the sandbox{at}, as {}", status.plugin, status.identity)
}

/// An upstream as the API shows it: a plugin whose findings are about the tools that it does not offer.
#[cfg(feature = "server")]
pub(crate) fn view(status: &upstream::UpstreamStatus) -> api::PluginView {
    use api::{FindingView, PluginState};
    use domain::LoadRule;
    use upstream::Problem;

    let name = status.plugin.upstream().unwrap_or_default();
    let finding = |tool: Option<&String>, rule, message: String| FindingView {
        tool: tool.map(|tool| escape::excerpt(tool, 100).into_owned()),
        rule: api::LoadRule(rule),
        message,
        remedy: format!("run `toolgate upstream review {name}`"),
    };
    let problem = |(tool, problem): (&String, &Problem)| {
        let rule = if let Problem::Unusable(_) = problem { LoadRule::DeclarationForm } else { LoadRule::NeedsReview };
        finding(Some(tool), rule, problem.to_string())
    };
    let fault = status.fault.iter().map(|why| {
        let why = escape::excerpt(why, 400);
        finding(None, LoadRule::Catalog, format!("when it was last needed, the MCP server {why}"))
    });
    api::PluginView {
        name: status.plugin.to_string(),
        digest: Some(status.identity.to_string()),
        sandboxed: false,
        origin: status.origin.clone(),
        built_against: None,
        tools: status.tools.clone(),
        state: if status.tools.is_empty() { PluginState::Rejected } else { PluginState::Live },
        findings: status.problems.iter().map(problem).chain(fault).collect(),
        notes: Vec::new(),
        needs_review: status.problems.values().any(|problem| !matches!(problem, Problem::Unusable(_))),
        access: None,
    }
}
