//! The interface of policies: bindings from `wit/policy` and their conversion, and nothing else. It has versions of its own.

use domain::{Approval, Executor, Risk};
use wasmtime::component::{HasSelf, InstancePre, Linker};
use wasmtime::{Result, Store};

use self::bindings::exports::toolgate::policy::judge;
use self::bindings::toolgate::policy::{host, policy_types};
use super::package::Package;
use crate::guest::Guest;
use crate::policy::{PolicyQuestion, Said};
use crate::report::Level;

mod bindings {
    #![allow(missing_docs, unreachable_pub, dead_code, reason = "generated from the interface")]

    wasmtime::component::bindgen!({
        path: "../../wit/policy/v0.1",
        world: "policy",
        exports: { default: async },
        // The arguments of a call are lowered from where they are, without a copy for each judgement.
        ownership: Borrowing { duplicate_if_necessary: true },
    });
}

/// The interface of policies, as far as they import it.
pub(crate) static POLICY: Package = Package {
    name: "toolgate:policy",
    spoken: "0.1",
    newest: "0.1.0",
    interfaces: &[("host", &["log"]), ("policy-types", &[])],
};

/// Where the export of a policy is.
pub(crate) struct Indices(judge::GuestIndices);

impl Indices {
    pub(crate) fn find(pre: &InstancePre<Guest>) -> Result<Self> {
        judge::GuestIndices::new(pre).map(Self)
    }

    /// Makes an instance and has it judge one call.
    pub(crate) async fn judge(
        &self,
        pre: &InstancePre<Guest>,
        store: &mut Store<Guest>,
        question: &PolicyQuestion,
    ) -> Result<Said> {
        let instance = pre.instantiate_async(&mut *store).await?;
        let asked = judge::Question {
            tool: &question.tool,
            plugin: &question.plugin,
            caller: &question.caller,
            conversation: &question.conversation,
            arguments: question.arguments.as_str(),
            context: question.context.as_ref().map(domain::Json::as_str),
            executor: executor(question.executor)?,
            approval: match question.approval {
                Approval::Auto => policy_types::Approval::Auto,
                Approval::RequiresApproval => policy_types::Approval::RequiresApproval,
            },
            facts: question.facts.as_str(),
        };
        let answer = self.0.load(&mut *store, &instance)?.call_judge(store, asked).await?;
        Ok(match answer {
            judge::Answer::Proceed => Said::Proceed,
            judge::Answer::RequireApproval(asked) => {
                Said::RequireApproval { reason: asked.reason, risk: asked.risk.map(risk), options: asked.options }
            }
            judge::Answer::Deny(reason) => Said::Deny(reason),
        })
    }
}

/// The interface has no word for what is not judged.
fn executor(executor: Executor) -> Result<policy_types::Executor> {
    match executor {
        Executor::Server => Ok(policy_types::Executor::Server),
        Executor::Human => Ok(policy_types::Executor::Human),
        Executor::Client => Ok(policy_types::Executor::Client),
        Executor::Provider => Err(wasmtime::format_err!("asked to judge a call that the provider has carried out")),
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
    policy_types::add_to_linker::<_, HasSelf<Guest>>(linker, Guest::called)?;
    host::add_to_linker::<_, HasSelf<Guest>>(linker, Guest::called)
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
        Self::log(self).line(level, &message);
    }
}
