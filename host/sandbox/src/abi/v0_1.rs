//! Version 0.1 of the interface: bindings from `wit/v0.1` and their conversion to the newest form.

use domain::Json;
use domain::call::Level;
use domain::outcome::{Failure, FailureCode};
use wasmtime::component::{HasSelf, InstancePre, Linker};
use wasmtime::{Result, Store};

use self::bindings::exports::toolgate::plugin::{catalog, server};
use self::bindings::toolgate::plugin::{durable, host, tool_types};
use super::Declared;
use crate::durable::{Kind, Unanswered};
use crate::guest::Guest;
use crate::job::Job;
use crate::wasi::Inert;

mod bindings {
    #![allow(missing_docs, unreachable_pub, dead_code, reason = "generated from the interface")]

    wasmtime::component::bindgen!({
        path: "../../wit/v0.1",
        world: "plugin-durable",
        imports: {
            "toolgate:plugin/host.stop-requested": trappable,
            "toolgate:plugin/durable.ask": async | trappable,
            "toolgate:plugin/durable.approve": async | trappable,
            "toolgate:plugin/durable.await-external": async | trappable,
            "toolgate:plugin/durable.call-tools": async | trappable,
            "toolgate:plugin/durable.sleep": async | trappable,
        },
        exports: { default: async },
        // Lowers the texts of a call without a copy.
        ownership: Borrowing { duplicate_if_necessary: true },
    });
}

/// The exports of a component.
pub(crate) struct Indices {
    catalog: catalog::GuestIndices,
    server: Option<server::GuestIndices>,
}

impl Indices {
    pub(crate) fn find(has_server: bool, pre: &InstancePre<Guest>) -> Result<Self> {
        let server = has_server.then(|| server::GuestIndices::new(pre)).transpose()?;
        Ok(Self { catalog: catalog::GuestIndices::new(pre)?, server })
    }

    pub(crate) async fn tools(&self, pre: &InstancePre<Guest>, store: &mut Store<Guest>) -> Result<Vec<Declared>> {
        let instance = pre.instantiate_async(&mut *store).await?;
        let tools = self.catalog.load(&mut *store, &instance)?.call_tools(store).await?;
        Ok(tools.into_iter().map(Declared::from).collect())
    }

    pub(crate) async fn run(
        &self,
        pre: &InstancePre<Guest>,
        store: &mut Store<Guest>,
        job: &Job,
    ) -> Result<std::result::Result<String, Failure>> {
        let server = self.server.as_ref().ok_or_else(|| wasmtime::format_err!("the plugin has no `server`"))?;
        let instance = pre.instantiate_async(&mut *store).await?;
        let call = server::Call {
            id: &job.call_id,
            tool: &job.tool,
            arguments: job.arguments.as_str(),
            idempotency_key: &job.idempotency_key,
            attempt: if job.durable.is_some() { 1 } else { job.attempt },
            scope: job.scope.as_str(),
        };
        let answer = server.load(&mut *store, &instance)?.call_run(store, call).await?;
        Ok(answer.map_err(Failure::from))
    }
}

/// Links the interfaces that plugins import.
pub(crate) fn link(linker: &mut Linker<Guest>) -> Result<()> {
    tool_types::add_to_linker::<_, HasSelf<Guest>>(linker, Guest::counted)?;
    host::add_to_linker::<_, HasSelf<Guest>>(linker, Guest::counted)?;
    durable::add_to_linker::<_, HasSelf<Guest>>(linker, Guest::counted)
}

impl tool_types::Host for Guest {}

impl host::Host for Guest {
    fn progress(&mut self, update: host::Update) {
        self.update(update.message, update.fraction, update.data);
    }

    fn log(&mut self, level: host::Level, message: String) {
        self.run.log.line(level.into(), &message);
    }

    fn stop_requested(&mut self) -> Result<bool> {
        Self::stop_requested(self)
    }
}

impl durable::Host for Guest {
    async fn ask(&mut self, question: String) -> Result<std::result::Result<String, durable::WaitError>> {
        answer(self.ask(Kind::Answer, &question).await)
    }

    async fn approve(&mut self, question: String) -> Result<std::result::Result<String, durable::WaitError>> {
        answer(self.ask(Kind::Approval, &question).await)
    }

    async fn await_external(&mut self, question: String) -> Result<std::result::Result<String, durable::WaitError>> {
        answer(self.ask(Kind::External, &question).await)
    }

    async fn call_tools(&mut self, request: String) -> Result<std::result::Result<String, durable::WaitError>> {
        answer(self.ask(Kind::Calls, &request).await)
    }

    async fn sleep(&mut self, ms: u64) -> Result<()> {
        Self::sleep(self, ms).await
    }
}

fn answer(
    answer: Result<std::result::Result<Json, Unanswered>>,
) -> Result<std::result::Result<String, durable::WaitError>> {
    Ok(answer?.map(|json| json.as_str().to_owned()).map_err(durable::WaitError::from))
}

impl From<Unanswered> for durable::WaitError {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Denied(comment) => Self::Denied(comment),
            Unanswered::Expired => Self::Expired,
            Unanswered::Cancelled => Self::Cancelled,
            Unanswered::NotGranted(why) => Self::NotGranted(why),
        }
    }
}

impl From<host::Level> for Level {
    fn from(level: host::Level) -> Self {
        match level {
            host::Level::Debug => Self::Debug,
            host::Level::Info => Self::Info,
            host::Level::Warn => Self::Warn,
            host::Level::Error => Self::Error,
        }
    }
}

impl From<tool_types::Failure> for Failure {
    fn from(failure: tool_types::Failure) -> Self {
        match failure {
            tool_types::Failure::InvalidArguments(text) => Self::new(FailureCode::InvalidArguments, text),
            tool_types::Failure::Failed(text) => Self::new(FailureCode::ToolFailed, text),
            tool_types::Failure::Unavailable(text) => Self::new(FailureCode::ToolUnavailable, text),
        }
    }
}

impl From<tool_types::Tool> for Declared {
    fn from(tool: tool_types::Tool) -> Self {
        Self {
            name: tool.name,
            description: tool.description,
            parameters: tool.parameters,
            executor: tool.executor.into(),
            approval: tool.approval.into(),
            streaming: tool.streaming,
            options: tool.options,
        }
    }
}

impl From<tool_types::Executor> for domain::tool::Executor {
    fn from(executor: tool_types::Executor) -> Self {
        match executor {
            tool_types::Executor::Server => Self::Server,
            tool_types::Executor::Human => Self::Human,
            tool_types::Executor::Client => Self::Client,
            tool_types::Executor::Provider => Self::Provider,
        }
    }
}

impl From<tool_types::Approval> for domain::tool::Approval {
    fn from(approval: tool_types::Approval) -> Self {
        match approval {
            tool_types::Approval::Auto => Self::Auto,
            tool_types::Approval::RequiresApproval => Self::RequiresApproval,
        }
    }
}
