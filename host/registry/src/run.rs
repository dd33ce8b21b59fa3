//! Implements the loop's port for tools: finds tools, and runs the guests of server tools.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use capabilities::journal::{JournalWriter, Recording};
use capabilities::{Capabilities, call_refusal};
use dispatch::ports::{AppendError, End, KnownTool, Lingering, Permit, Progress, Run, RunJournal, RunMonitor, Tools};
use domain::{
    CatalogLimits, Digest, Json, Limits, Outcome, PluginName, Receipt, Span, ToolName, Violation,
    call::{Frozen, Level, Pinned},
    journal::{Entry, JournalBounds, JournalSummary, ValueChange},
    outcome::{Failure, FailureCode},
    step::{Durable, RunEnd, StepRequest, StepWait},
};
use sandbox::{Job, LingerCounts, LoadError, RunUsage, Sink, Update};
use tokio::sync::OnceCell;

use crate::Registry;
use crate::blocking::blocking;
use crate::catalog::nearest;
use crate::component::Component;
use crate::guests::LoadedComponent;
use crate::rules;
use crate::schema;
use crate::shared::Shared;

#[async_trait]
impl Tools for Registry {
    fn find(&self, name: &str) -> Result<Arc<KnownTool>, Option<ToolName>> {
        let catalog = self.shared.catalog.load();
        if let Some(tool) = catalog.tool(name) {
            return Ok(tool.clone());
        }
        let near = nearest(name, catalog.sorted().iter().map(|tool| tool.tool.name.as_str()));
        Err(near.and_then(|name| catalog.tool(name)).map(|tool| tool.tool.name.clone()))
    }

    fn pinned(&self, plugin: &PluginName, component: Digest, name: &str) -> Option<Arc<KnownTool>> {
        self.shared.component(plugin, component)?.tool(name).cloned()
    }

    fn limits(&self, plugin: &PluginName) -> Limits {
        self.shared.settings.limits(plugin)
    }

    fn violations(&self, schema: &Json, value: &Json) -> Vec<Violation> {
        schema::violations(schema, value)
    }

    fn list(&self) -> Vec<Arc<KnownTool>> {
        self.shared.catalog.load().sorted().to_vec()
    }

    fn loading(&self) -> usize {
        // In this order: a plugin that becomes live in between has its tools in the catalog.
        let names = self.shared.names_in_progress();
        let catalog = self.shared.catalog.load();
        names.iter().filter(|name| catalog.plugin(name).is_none()).count()
    }

    async fn recall(&self, pinned: &Pinned) -> Result<(), Outcome> {
        if self.shared.component(&pinned.plugin, pinned.component).is_some() {
            return Ok(());
        }
        let component = recall_component(&self.shared, pinned).await?;
        if self.shared.component(&pinned.plugin, pinned.component).is_none() {
            // If it cannot be loaded either, that failure is the better explanation.
            load(&self.shared, &component, false).await?;
            let message =
                "the declaration of the tool's component is lost, so the policy cannot be asked about the call";
            return Err(Outcome::Failed(Failure::new(FailureCode::HostFault, message)));
        }
        Ok(())
    }

    async fn call_refusal(&self, by: &Pinned, tool: &str) -> Result<Option<String>, Outcome> {
        let component = find_component(&self.shared, by).await?;
        Ok(call_refusal(&by.plugin, component.grants.as_ref(), [tool]))
    }

    async fn permit(&self, pinned: &Pinned, has_begun: bool) -> Result<Permit, Outcome> {
        let component = find_component(&self.shared, pinned).await?;
        if has_begun {
            return Ok(Box::new(component.permits.take_without_limit().await));
        }
        let (plugin, limits, queue) = (&component.plugin, &component.limits, self.shared.settings.queue);
        let permit = component.permits.take(plugin, limits, queue).await.map_err(Outcome::Failed)?;
        Ok(Box::new(permit))
    }

    fn release(&self, pinned: &Pinned, idempotency_key: &str) {
        self.shared.loader.release(pinned.component, idempotency_key);
    }

    fn lingering(&self) -> Lingering {
        let LingerCounts { now, kept, resumed, dropped } = self.shared.loader.lingering();
        Lingering { now, kept, resumed, dropped }
    }

    async fn run(&self, run: Run) -> End {
        let has_begun = run.durable.as_ref().is_some_and(Durable::has_begun);
        let end = run_guest(&self.shared, run).await;
        end.unwrap_or_else(|outcome| End::unrun(RunEnd::unrun(has_begun, outcome)))
    }
}

/// Runs a guest. The error is the outcome of a call whose guest did not run.
async fn run_guest(shared: &Arc<Shared>, run: Run) -> Result<End, Outcome> {
    let component = find_component(shared, &run.pinned).await?;
    let limits = Limits { time: run.pinned.timeout.min(component.limits.time), ..component.limits };
    let limits = match &run.pinned.frozen {
        Some(frozen) if frozen.version != Frozen::VERSION => return unknown_version(&run, frozen.version),
        Some(frozen) => limits.with_observable(&frozen.limits),
        None => limits,
    };
    let has_begun = run.durable.as_ref().is_some_and(Durable::has_begun);
    let loaded = load(shared, &component, has_begun).await?;
    let job = Job {
        plugin: run.pinned.plugin.clone(),
        grants: if has_begun { &component.grants_of_begun } else { &component.grants }.clone(),
        call_id: run.call.as_str().into(),
        tool: run.tool,
        arguments: run.arguments,
        idempotency_key: run.idempotency_key.into(),
        attempt: run.attempt,
        scope: run.scope_json,
        streaming: run.pinned.streaming,
        durable: run.durable,
        recording: run.journal.map(recording),
    };
    let end = loaded.run(&job, &limits, Arc::new(Reporter(run.monitor))).await;
    let tool = component.tool(&job.tool);
    let ended = match end.ended {
        RunEnd::Waits(request) => complete_question(tool, request, &shared.settings.catalog).await,
        ended => shared.large_results.checked(&component.permits, tool, ended).await,
    };
    Ok(End { ended, wrote: end.wrote, receipt: end.spent.map(receipt) })
}

/// The end of a call that a host of another version accepted. Its guest would see something else in a later run than in the first.
fn unknown_version(run: &Run, version: u32) -> Result<End, Outcome> {
    let why = format!(
        "the call was accepted by a host with version {version} of the surroundings of durable calls, and this host has version {} \
         only",
        Frozen::VERSION
    );
    if run.durable.as_ref().is_some_and(Durable::has_begun) {
        run.monitor.log(Level::Error, &format!("the call ends in doubt: {why}"));
        return Ok(End::unrun(Outcome::InDoubt.into()));
    }
    Err(Outcome::Failed(Failure::new(FailureCode::HostFault, format!("{why}. Nothing was carried out"))))
}

/// The journal of the loop, for the sandbox.
pub(crate) fn recording((journal, bounds): (Arc<dyn RunJournal>, JournalBounds)) -> Recording {
    Recording { writer: Arc::new(Recorder(journal)), bounds }
}

struct Recorder(Arc<dyn RunJournal>);

#[async_trait]
impl JournalWriter for Recorder {
    async fn write(&self, entries: Vec<Entry>, values: Vec<ValueChange>) -> Result<bool, String> {
        match self.0.append(entries, values).await {
            Ok(()) => Ok(true),
            Err(AppendError::Changed) => Ok(false),
            Err(AppendError::Fault(fault)) => {
                // The caller reads the log of the call. The reason is for the operator.
                tracing::error!(%fault, "the journal of a call could not be written");
                Err("the host's store failed".to_owned())
            }
            Err(refused) => Err(refused.to_string()),
        }
    }

    fn head(&self) -> Option<JournalSummary> {
        Some(self.0.summary())
    }
}

fn receipt(spent: RunUsage) -> Receipt {
    let number = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
    Receipt {
        micros: u64::try_from(spent.time.as_micros()).unwrap_or(u64::MAX),
        peak_memory: number(spent.peak_memory),
        peak_host_bytes: number(spent.peak_host_bytes),
        host_calls: spent.host_calls,
        bytes_in: spent.bytes_in,
        bytes_out: spent.bytes_out,
        // The loop knows it.
        journal: None,
    }
}

/// The component of a call.
async fn find_component(shared: &Arc<Shared>, pinned: &Pinned) -> Result<Arc<Component>, Outcome> {
    match shared.component(&pinned.plugin, pinned.component) {
        Some(component) => Ok(component),
        None => recall_component(shared, pinned).await,
    }
}

/// Gets the component of a call from another host, or asks it again if its record is lost. Runs on a thread that may wait.
async fn recall_component(shared: &Arc<Shared>, pinned: &Pinned) -> Result<Arc<Component>, Outcome> {
    let (shared, plugin, digest) = (shared.clone(), pinned.plugin.clone(), pinned.component);
    let recall = move || shared.recall(&plugin, digest);
    let component = blocking(recall).await.and_then(|component| component).map_err(|error| fault(&error))?;
    component.ok_or(Outcome::Invalidated)
}

/// The component's code, loaded at the first call and kept for later ones; each call gets its own instance. A call that has begun
/// goes on without a grant that its component has lost: the code is then linked with all that it imports, and what the call may do
/// with that depends on its grants.
async fn load<'a>(
    shared: &Arc<Shared>,
    component: &'a Component,
    has_begun: bool,
) -> Result<&'a Arc<dyn LoadedComponent>, Outcome> {
    let of_begun = component.loaded_for_begun.get().filter(|_| has_begun);
    if let Some(loaded) = component.loaded.get().or(of_begun) {
        return Ok(loaded);
    }
    let granted = component.access.effective.capabilities();
    let loaded = match load_into(&component.loaded, shared, component.digest, granted).await {
        Err(Unloadable::Refused(LoadError::Imports(_))) if has_begun => {
            load_into(&component.loaded_for_begun, shared, component.digest, Capabilities::EVERY).await
        }
        loaded => loaded,
    };
    Ok(loaded?)
}

async fn load_into<'a>(
    cell: &'a OnceCell<Arc<dyn LoadedComponent>>,
    shared: &Arc<Shared>,
    digest: Digest,
    linked: Capabilities,
) -> Result<&'a Arc<dyn LoadedComponent>, Unloadable> {
    let make = || async {
        let shared = shared.clone();
        blocking(move || load_component(&shared, digest, linked)).await.map_err(Unloadable::Fault)?
    };
    cell.get_or_try_init(make).await
}

/// Reads the bytes, checks their digest, and compiles them unless the sandbox has cached code.
fn load_component(
    shared: &Shared,
    digest: Digest,
    linked: Capabilities,
) -> Result<Arc<dyn LoadedComponent>, Unloadable> {
    let bytes = shared.components.bytes(digest).map_err(Unloadable::Fault)?.ok_or(Unloadable::Missing)?;
    shared.loader.make(digest, &bytes, linked).map_err(Unloadable::Refused)
}

/// Why a component does not run.
enum Unloadable {
    Missing,
    Fault(io::Error),
    /// It was loadable when the call was submitted. Since then the operator revoked a grant, or the host changed.
    Refused(LoadError),
}

impl From<Unloadable> for Outcome {
    fn from(why: Unloadable) -> Self {
        match why {
            Unloadable::Missing => Self::Invalidated,
            Unloadable::Fault(error) => fault(&error),
            Unloadable::Refused(error) => {
                let message = format!("the tool's component can no longer be loaded: {error}");
                Self::Failed(Failure::new(FailureCode::HostFault, message))
            }
        }
    }
}

fn fault(error: &io::Error) -> Outcome {
    tracing::error!(%error, "the host could not make a guest");
    Outcome::Failed(Failure::new(FailureCode::HostFault, "the host could not read or load the tool's component"))
}

/// The wait for a question, with the options of the tool for what it leaves out. The call fails if the question's schema is
/// refused. Compiling a schema takes a thread's time.
async fn complete_question(tool: Option<&Arc<KnownTool>>, mut request: StepRequest, limits: &CatalogLimits) -> RunEnd {
    let (question, limits) = (request.wait.clone(), *limits);
    match blocking(move || rules::check_question(&question, &limits)).await {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => return Outcome::Failed(failure).into(),
        Err(error) => return RunEnd::Repeating(Failure::new(FailureCode::HostFault, error.to_string())),
    }
    if let StepWait::Answer(question) | StepWait::Approval { question, .. } | StepWait::External { question, .. } =
        &mut request.wait
    {
        let options = tool.map(|known| &known.tool.options);
        question.risk = question.risk.or(options.and_then(|options| options.risk));
        question.title = options.and_then(|options| options.title.clone());
        // If the tool is not known any more, people see none of the context.
        question.context_keys = options.map_or_else(|| Some([].into()), |options| options.context_keys.clone());
    }
    RunEnd::Waits(request)
}

/// Passes a guest's reports on to the loop.
struct Reporter(Arc<dyn RunMonitor>);

impl Sink for Reporter {
    fn try_start(&self, grace: Span) -> bool {
        self.0.try_start(grace)
    }

    fn stop_requested(&self) -> bool {
        self.0.stop_requested()
    }

    fn progress(&self, update: Update) {
        self.0.progress(Progress { message: update.message, fraction: update.fraction, data: update.data });
    }

    /// A text of several lines, such as a traceback, is several lines of the log. Secrets in it are already redacted.
    fn log(&self, level: Level, text: &str) {
        let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
        lines.for_each(|line| self.0.log(level, line.strip_suffix('\r').unwrap_or(line)));
    }
}
