//! The tools of a plugin, and the macros that export them.
//!
//! A plugin without a server tool exports only its catalog, and a server tool in it does not compile:
//!
//! ```compile_fail,E0277
//! # use toolgate_sdk::prelude::*;
//! toolgate_sdk::declarations! {
//!     Tool::server("ok", "Says ok.", |_: NoArguments, _: &Call| Ok("ok")),
//! }
//! ```

use serde_json::Value;

use crate::tool::{Approval, Executor, ExecutorKind, Run, Spec, Tool};
use crate::{Call, Client, Failure, Human, Provider};

/// A tool of any kind, as the host sees it.
pub struct AnyTool {
    spec: Spec,
    executor: ExecutorKind,
    gated: bool,
    run: Option<Run>,
}

impl<E: Executor, A: Approval> From<Tool<E, A>> for AnyTool {
    fn from(tool: Tool<E, A>) -> Self {
        Self { spec: tool.spec, executor: E::KIND, gated: A::GATED, run: tool.executor.into_run() }
    }
}

impl AnyTool {
    /// The tool's name.
    pub fn name(&self) -> &'static str {
        self.spec.name
    }

    /// The description, for the model.
    pub fn description(&self) -> &'static str {
        self.spec.description
    }

    /// The kind of executor.
    pub fn executor(&self) -> ExecutorKind {
        self.executor
    }

    /// Whether a person must approve each call first.
    pub fn requires_approval(&self) -> bool {
        self.gated
    }

    /// Whether the tool reports progress before its result.
    pub fn streaming(&self) -> bool {
        self.spec.streaming
    }

    /// Whether its calls may wait in the middle of their code.
    pub fn is_durable(&self) -> bool {
        self.spec.options.durable
    }

    /// The JSON Schema of the arguments.
    pub fn parameters(&self) -> Value {
        (self.spec.parameters)()
    }

    /// The options in the form that the interface defines.
    pub fn options(&self) -> Value {
        self.spec.options.to_json()
    }
}

/// The kinds of tools that a component without `server` can declare, because others run them.
#[diagnostic::on_unimplemented(
    message = "a server tool needs a component that exports `server`",
    label = "list it in `plugin!` instead of `declarations!`"
)]
pub trait Declarable: Executor {}
impl<Answer> Declarable for Human<Answer> {}
impl Declarable for Client {}
impl Declarable for Provider {}

/// The tools of a plugin.
#[derive(Default)]
pub struct Tools(Vec<AnyTool>);

impl Tools {
    /// No tools yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    pub fn with(mut self, tool: impl Into<AnyTool>) -> Self {
        self.0.push(tool.into());
        self
    }

    /// Adds a tool that is not a server tool.
    pub fn with_declared<E: Declarable, A: Approval>(self, tool: Tool<E, A>) -> Self {
        self.with(tool)
    }

    /// All tools in their order.
    pub fn iter(&self) -> impl Iterator<Item = &AnyTool> {
        self.0.iter()
    }

    /// Runs a server tool. Arguments and result are JSON texts.
    ///
    /// # Errors
    /// The failure of the tool's function. `Failed` if this server tool does not exist; a host never asks for one.
    pub fn run(&self, tool: &str, call: &Call<'_>, arguments: &str) -> Result<String, Failure> {
        match self.0.iter().find(|candidate| candidate.spec.name == tool).and_then(|found| found.run.as_ref()) {
            Some(run) => run(call, arguments),
            None => Err(Failure::Failed(format!("this plugin has no server tool `{tool}`"))),
        }
    }
}

/// The tools of a component. `plugin!` and `declarations!` implement it.
#[doc(hidden)]
pub trait Plugin {
    fn tools() -> Tools;
}

/// Exports tools of any kind, and defines `fn tools() -> Tools` for tests. Use it once per crate, at its root.
#[macro_export]
macro_rules! plugin {
    ($($tool:expr),+ $(,)?) => {
        /// The tools of this plugin.
        pub fn tools() -> $crate::Tools {
            $crate::Tools::new()$(.with($tool))+
        }

        #[cfg(target_family = "wasm")]
        const _: () = {
            struct Exports;
            impl $crate::Plugin for Exports {
                fn tools() -> $crate::Tools {
                    tools()
                }
            }
            $crate::bindings::declarations::export_declarations!(Exports with_types_in $crate::bindings::declarations);
            $crate::bindings::server::export_server!(Exports with_types_in $crate::bindings::server);
        };
    };
}

/// Exports tools that people, clients or providers run, and defines `fn tools() -> Tools` for tests. The component
/// exports no function to run, so it can only declare.
#[macro_export]
macro_rules! declarations {
    ($($tool:expr),+ $(,)?) => {
        /// The tools of this plugin.
        pub fn tools() -> $crate::Tools {
            $crate::Tools::new()$(.with_declared($tool))+
        }

        #[cfg(target_family = "wasm")]
        const _: () = {
            struct Exports;
            impl $crate::Plugin for Exports {
                fn tools() -> $crate::Tools {
                    tools()
                }
            }
            $crate::bindings::declarations::export_declarations!(Exports with_types_in $crate::bindings::declarations);
        };
    };
}
