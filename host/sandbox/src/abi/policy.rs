//! The interface of policies: bindings from `wit/policy` and their conversion. It has separate versions.

use domain::{
    Json,
    call::Level,
    tool::{Approval, Executor, Risk},
};
use wasmtime::component::{HasSelf, InstancePre, Linker};
use wasmtime::{Result, Store};

use self::bindings::exports::toolgate::policy::judge;
use self::bindings::toolgate::policy::{host, policy_types};
use super::package::Package;
use crate::guest::Guest;
use crate::wasi::Inert;

mod bindings {
    #![allow(missing_docs, unreachable_pub, dead_code, reason = "generated from the interface")]

    wasmtime::component::bindgen!({
        path: "../../wit/policy/v0.1",
        world: "policy",
        exports: { default: async },
        // The arguments of a call are lowered from where they are, without a copy for each question.
        ownership: Borrowing { duplicate_if_necessary: true },
    });
}

/// A question to a policy.
#[derive(Debug, Clone)]
pub struct PolicyQuestion {
    pub tool: String,
    /// The plugin of the tool.
    pub plugin: String,
    /// The principal that submitted the call.
    pub caller: String,
    pub conversation: String,
    /// A JSON object.
    pub arguments: Json,
    /// The context that the caller passed with the turn.
    pub context: Option<Json>,
    /// Never [`Executor::Provider`].
    pub executor: Executor,
    /// As the tool declares it.
    pub approval: Approval,
    /// A JSON object with the members that the interface lists under `facts`.
    pub facts: Json,
}

/// The answer of a policy, before it is checked.
pub(crate) enum RawAnswer {
    Proceed,
    RequireApproval { reason: String, risk: Option<Risk>, options: String },
    Deny(String),
}

/// The interface that policies import.
pub(crate) static POLICY: Package = Package {
    name: "toolgate:policy",
    spoken: "0.1",
    newest: "0.1.0",
    interfaces: &[("host", &["log"]), ("policy-types", &[])],
};

/// The export of a policy.
pub(crate) struct Indices(judge::GuestIndices);

impl Indices {
    pub(crate) fn find(pre: &InstancePre<Guest>) -> Result<Self> {
        judge::GuestIndices::new(pre).map(Self)
    }

    /// Makes an instance and asks it about one call.
    pub(crate) async fn decide(
        &self,
        pre: &InstancePre<Guest>,
        store: &mut Store<Guest>,
        question: &PolicyQuestion,
    ) -> Result<RawAnswer> {
        let instance = pre.instantiate_async(&mut *store).await?;
        let asked = judge::Question {
            tool: &question.tool,
            plugin: &question.plugin,
            caller: &question.caller,
            conversation: &question.conversation,
            arguments: question.arguments.as_str(),
            context: question.context.as_ref().map(Json::as_str),
            executor: executor(question.executor)?,
            approval: match question.approval {
                Approval::Auto => policy_types::Approval::Auto,
                Approval::RequiresApproval => policy_types::Approval::RequiresApproval,
            },
            facts: question.facts.as_str(),
        };
        let answer = self.0.load(&mut *store, &instance)?.call_judge(store, asked).await?;
        Ok(match answer {
            judge::Answer::Proceed => RawAnswer::Proceed,
            judge::Answer::RequireApproval(asked) => {
                RawAnswer::RequireApproval { reason: asked.reason, risk: asked.risk.map(risk), options: asked.options }
            }
            judge::Answer::Deny(reason) => RawAnswer::Deny(reason),
        })
    }
}

/// Policies are not asked about calls of a provider.
fn executor(executor: Executor) -> Result<policy_types::Executor> {
    match executor {
        Executor::Server => Ok(policy_types::Executor::Server),
        Executor::Human => Ok(policy_types::Executor::Human),
        Executor::Client => Ok(policy_types::Executor::Client),
        Executor::Provider => {
            Err(wasmtime::format_err!("a policy cannot decide about a call that the provider has carried out"))
        }
    }
}

fn risk(risk: policy_types::Risk) -> Risk {
    match risk {
        policy_types::Risk::Low => Risk::Low,
        policy_types::Risk::Medium => Risk::Medium,
        policy_types::Risk::High => Risk::High,
        policy_types::Risk::Critical => Risk::Critical,
    }
}

/// Links the `host` interface of policies.
pub(crate) fn link(linker: &mut Linker<Guest>) -> Result<()> {
    policy_types::add_to_linker::<_, HasSelf<Guest>>(linker, Guest::counted)?;
    host::add_to_linker::<_, HasSelf<Guest>>(linker, Guest::counted)
}

impl policy_types::Host for Guest {}

impl host::Host for Guest {
    fn log(&mut self, level: host::Level, message: String) {
        let level = match level {
            host::Level::Debug => Level::Debug,
            host::Level::Info => Level::Info,
            host::Level::Warn => Level::Warn,
            host::Level::Error => Level::Error,
        };
        self.run.log.line(level, &message);
    }
}
