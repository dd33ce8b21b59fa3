//! Conversions between the interface and the SDK's own types.

mod policy;

use crate::bindings::declarations::toolgate::plugin::{host, tool_types as wit};
use crate::bindings::{declarations, server};
use crate::{AnyTool, Call, ExecutorKind, Failure, Level, Outlet, Plugin, Request};

impl<P: Plugin> declarations::exports::toolgate::plugin::catalog::Guest for P {
    fn tools() -> Vec<wit::Tool> {
        P::tools().iter().map(declared).collect()
    }
}

impl<P: Plugin> server::exports::toolgate::plugin::server::Guest for P {
    fn run(call: wit::Call) -> Result<String, wit::Failure> {
        let request = Request {
            id: call.id,
            tool: call.tool,
            arguments: call.arguments,
            idempotency_key: call.idempotency_key,
            attempt: call.attempt,
            scope: call.scope,
        };
        P::tools().run(&request.tool, &Call::new(&request, &Host), &request.arguments).map_err(wit::Failure::from)
    }
}

fn declared(tool: &AnyTool) -> wit::Tool {
    wit::Tool {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        parameters: tool.parameters().to_string(),
        executor: match tool.executor() {
            ExecutorKind::Server => wit::Executor::Server,
            ExecutorKind::Human => wit::Executor::Human,
            ExecutorKind::Client => wit::Executor::Client,
            ExecutorKind::Provider => wit::Executor::Provider,
        },
        approval: if tool.requires_approval() { wit::Approval::RequiresApproval } else { wit::Approval::Auto },
        streaming: tool.streaming(),
        options: tool.options().to_string(),
    }
}

impl From<Failure> for wit::Failure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::InvalidArguments(why) => Self::InvalidArguments(why),
            Failure::Failed(why) => Self::Failed(why),
            Failure::Unavailable(why) => Self::Unavailable(why),
        }
    }
}

/// The outlet of a real call.
struct Host;

impl Outlet for Host {
    fn progress(&self, message: &str, fraction: Option<f64>, data: Option<String>) {
        host::progress(&host::Update { message: message.to_owned(), fraction, data });
    }

    fn log(&self, level: Level, message: &str) {
        let level = match level {
            Level::Debug => host::Level::Debug,
            Level::Info => host::Level::Info,
            Level::Warn => host::Level::Warn,
            Level::Error => host::Level::Error,
        };
        host::log(level, message);
    }
}
