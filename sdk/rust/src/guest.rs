//! Bindings to the interface, generated from `wit/`, and conversions to the SDK's own types.
//!
//! wit-component drops imports that a component never calls, so a plugin imports only what its tools use. This module
//! is public only for the macros, and may change at any time.

#![allow(missing_docs, unreachable_pub, reason = "generated; the documentation is in wit/")]

pub(crate) mod durable;
pub mod policy;

use crate::{AnyTool, Call, ExecutorKind, Failure, Level, Outlet, Plugin, Request};

/// The world of plugins that only declare tools.
pub mod declarations {
    wit_bindgen::generate!({
        path: "../../wit/v0.1",
        world: "toolgate:plugin/declarations",
        pub_export_macro: true,
        export_macro_name: "export_declarations",
        default_bindings_module: "toolgate_sdk::guest::declarations",
    });
}

/// The additional exports of a plugin with server tools. They need a world of their own, because the export macros of
/// the interface's worlds `declarations` and `plugin` would have the same names. wit-component merges both worlds.
pub mod server {
    wit_bindgen::generate!({
        path: "../../wit/v0.1",
        inline: "package toolgate:sdk; world server { export toolgate:plugin/server@0.1.2; }",
        world: "toolgate:sdk/server",
        with: {
            "toolgate:plugin/tool-types@0.1.2": crate::guest::declarations::toolgate::plugin::tool_types,
        },
        pub_export_macro: true,
        export_macro_name: "export_server",
        default_bindings_module: "toolgate_sdk::guest::server",
    });
}

use declarations::toolgate::plugin::{host, tool_types as wit};

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

/// Asks the host whether the call should end.
pub(crate) fn stop_requested() -> bool {
    host::stop_requested()
}
