//! Dynamic policies: components that judge calls. They run like any guest, in an instance of their own for each judgement,
//! with less of everything and no capability at all.
//!
//! What a policy says is held against its interface here. Whatever is wrong with it is [`NoAnswer`], and what that means for
//! the call is for whoever asked to decide.

use std::sync::Arc;
use std::time::Duration;

use domain::{Approval, Digest, Executor, Failure, FailureCode, Json, Limits, Risk, Span};
use serde_json::{Map, Value};
use wasmtime::component::{InstancePre, Linker};

use crate::abi::policy::{self as abi, Indices, POLICY};
use crate::call;
use crate::clock::Stopwatch;
use crate::ending::{self, excerpt, size};
use crate::guest::{Guest, Outside};
use crate::inspect::{self, Name};
use crate::load::LoadError;
use crate::report::Sink;
use crate::sandbox::{Sandbox, Shared, unfit};
use crate::wasi;

/// The longest reason that a policy may give, in bytes.
const MAX_REASON: usize = 4096;

/// Characters of a key that a message shows.
const KEY: usize = 64;

/// What a policy may spend on one judgement, its time aside. Enough for a Go or Python guest to start.
const LIMITS: Limits = Limits {
    time: Span::from_secs(1),
    stop_grace: Span::from_millis(0),
    memory: 64 << 20,
    table_elements: 20_000,
    instances: 16,
    hostcall_bytes: 1 << 20,
    handles: 256,
    arguments: 0,
    result: 0,
    progress_updates: 0,
    progress_bytes: 0,
    log_bytes: 4 << 10,
    concurrency: 1,
    queue: 0,
    host_bytes: 1 << 20,
    host_calls: 100_000,
    host_call_time: Span::from_secs(1),
    files_written: 0,
    http_requests: 0,
    http_concurrent: 0,
    http_time: Span::from_secs(1),
    http_sent: 0,
    http_received: 0,
};

/// A loaded policy. Cheap to clone; keeps the sandbox alive.
#[derive(Clone)]
pub struct Policy(Arc<Loaded>);

struct Loaded {
    digest: Digest,
    export: Indices,
    pre: InstancePre<Guest>,
    sandbox: Arc<Shared>,
}

/// What a policy is asked about.
#[derive(Debug, Clone)]
pub struct PolicyQuestion {
    /// The name of the tool.
    pub tool: String,
    /// The plugin that it belongs to.
    pub plugin: String,
    /// Who submitted the call.
    pub caller: String,
    /// The conversation that it belongs to.
    pub conversation: String,
    /// Its arguments, a JSON object.
    pub arguments: Json,
    /// What the caller passed along with the turn.
    pub context: Option<Json>,
    /// Who produces the result; calls of [`Executor::Provider`] cannot be asked about.
    pub executor: Executor,
    /// What the tool declares.
    pub approval: Approval,
    /// A JSON object of what the interface lists under `facts`.
    pub facts: Json,
}

/// What a policy says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyAnswer {
    /// It has nothing against it.
    Proceed,
    /// A person must approve it.
    RequireApproval {
        /// Why, in the policy's words, if it says.
        reason: Option<String>,
        /// How much is at stake, if it says.
        risk: Option<Risk>,
    },
    /// It must not happen.
    Deny {
        /// Why, in the policy's words, if it says.
        reason: Option<String>,
    },
}

/// A policy that gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NoAnswer {
    /// What is wrong, in the host's words and in one clause: "it did not answer within 1000 ms".
    pub why: String,
    /// More about it, for the operator's log. May quote the policy, with what deceives written out.
    pub detail: Option<String>,
}

/// Why a component cannot be used as a policy.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// It does not export what a policy exports.
    #[error(
        "not a policy: it does not export `{}/judge@{}.x`, as everything built against wit/policy does",
        POLICY.name,
        POLICY.spoken
    )]
    NotAPolicy,
    /// It imports what no policy may have.
    #[error("a policy has no capability, and this one imports {}", .0.join(", "))]
    Imports(Vec<String>),
    /// It is no component, was built against another version of the interface, cannot be compiled, or does not fit the
    /// interface.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// What a policy returned, before it was held against the interface.
pub(crate) enum Said {
    Proceed,
    RequireApproval { reason: String, risk: Option<Risk>, options: String },
    Deny(String),
}

impl Sandbox {
    /// Whether a component is a policy by what it says that it exports and imports, found without compiling it.
    ///
    /// # Errors
    /// [`PolicyError`]; of the imports that no policy may have all are named.
    pub fn inspect_policy(bytes: &[u8]) -> Result<(), PolicyError> {
        let (imports, exports) = inspect::names(bytes)?;
        let mut exports = exports.iter().filter_map(|text| Name::parse(text));
        let judge = exports.find(|name| name.package == POLICY.name && name.interface == "judge");
        let version = judge.ok_or(PolicyError::NotAPolicy)?.version;
        if !POLICY.speaks(version) {
            return Err(POLICY.unspoken(version).into());
        }
        POLICY.judge_names(&imports)?;
        let foreign = |text: &&String| !Name::parse(text).is_some_and(|name| is_everyones(&name));
        let foreign: Vec<_> = imports.iter().filter(foreign).map(|text| format!("`{}`", excerpt(text))).collect();
        if foreign.is_empty() { Ok(()) } else { Err(PolicyError::Imports(foreign)) }
    }

    /// Makes a policy of a component. As [`Sandbox::load`], call this where nobody is kept waiting.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn load_policy(&self, digest: Digest, bytes: &[u8]) -> Result<Policy, PolicyError> {
        self.sized(bytes)?;
        Self::inspect_policy(bytes)?;
        let component = self.component(digest, bytes)?;
        let shared = self.shared();
        POLICY.judge_functions(&shared.engine, &component)?;
        let mut linker = Linker::new(&shared.engine);
        let host = |error: wasmtime::Error| LoadError::Host(anyhow::anyhow!("{error:#}"));
        wasi::link(&mut linker).map_err(host)?;
        abi::link(&mut linker).map_err(host)?;
        let pre = linker.instantiate_pre(&component).map_err(unfit)?;
        let export = Indices::find(&pre).map_err(unfit)?;
        self.keep(digest);
        Ok(Policy(Arc::new(Loaded { digest, export, pre, sandbox: Arc::clone(shared) })))
    }
}

/// Whether every policy may import this.
fn is_everyones(name: &Name<'_>) -> bool {
    // Which interfaces of it there are was judged when the names were read.
    name.package == POLICY.name || wasi::is_inert(name.package, name.version)
}

impl Policy {
    /// The digest under which the component was loaded.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// Asks it about one call, in a fresh instance. Dropping the future ends the judgement.
    ///
    /// To be awaited on a runtime of [`guest_runtime`](crate::guest_runtime), as [`Plugin::run`](crate::Plugin::run) is.
    ///
    /// # Errors
    /// [`NoAnswer`] when it traps, takes longer than `time`, needs too much, or says what its interface does not allow.
    pub async fn judge(
        &self,
        question: &PolicyQuestion,
        time: Span,
        sink: Arc<dyn Sink>,
    ) -> Result<PolicyAnswer, NoAnswer> {
        let limits = Limits { time, ..LIMITS };
        let sandbox = &self.0.sandbox;
        let Some(_place) = sandbox.place(Duration::from_millis(time.millis())).await else {
            return Err(no_answer(&ending::busy(), &limits));
        };
        let watch = Stopwatch::start(time);
        let nothing = Outside { keyvalue: None, http: None, ..sandbox.outside.clone() };
        let guest = Guest::new(&nothing, None, false, watch, &limits, sink);
        let mut store = call::store(&sandbox.engine, guest, watch, &limits);
        let said = call::bounded(self.0.export.judge(&self.0.pre, &mut store, question), watch).await;
        store.data_mut().finish();
        match said {
            Ok(said) => checked(said),
            Err(error) => Err(no_answer(&call::explain(&error, store.data(), &limits), &limits)),
        }
    }
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policy").field("digest", &self.0.digest).finish_non_exhaustive()
    }
}

/// Holds what a policy returned against its interface. A denial stands even if its reason does not: to be asked instead would
/// be less than what the policy wants.
fn checked(said: Said) -> Result<PolicyAnswer, NoAnswer> {
    match said {
        Said::Proceed => Ok(PolicyAnswer::Proceed),
        Said::RequireApproval { reason, risk, options } => {
            known(&options)?;
            if reason.len() > MAX_REASON {
                let why = format!("its reason has {} bytes, at most {MAX_REASON} are taken", reason.len());
                return Err(NoAnswer { why, detail: None });
            }
            Ok(PolicyAnswer::RequireApproval { reason: given(reason), risk })
        }
        Said::Deny(reason) if reason.len() > MAX_REASON => Ok(PolicyAnswer::Deny { reason: None }),
        Said::Deny(reason) => Ok(PolicyAnswer::Deny { reason: given(reason) }),
    }
}

/// Blanks are no reason.
fn given(reason: String) -> Option<String> {
    if reason.trim().is_empty() { None } else { Some(reason) }
}

/// Refuses options that are not the empty object: this version of the interface defines none.
fn known(options: &str) -> Result<(), NoAnswer> {
    let Ok(options) = serde_json::from_str::<Map<String, Value>>(options) else {
        return Err(NoAnswer { why: "the options of its answer are not a JSON object".to_owned(), detail: None });
    };
    match options.keys().next() {
        None => Ok(()),
        Some(key) => {
            let detail = Some(format!("the option {}", text::quoted(key, KEY)));
            Err(NoAnswer { why: "its answer has an option that this host does not know".to_owned(), detail })
        }
    }
}

/// What a failed run means. The words for people are the host's alone: those of a crash may come from the arguments.
fn no_answer(failure: &Failure, limits: &Limits) -> NoAnswer {
    let why = match failure.code {
        FailureCode::OutOfTime => format!("it did not answer within {} ms", limits.time.millis()),
        FailureCode::OutOfMemory => format!("it needs more than the {} that a policy may have", size(limits.memory)),
        FailureCode::LimitExceeded => "it needs more than what a policy may spend".to_owned(),
        FailureCode::Busy => "the host runs as many guests as it can at once".to_owned(),
        FailureCode::HostFault => "the host failed while it asked".to_owned(),
        _ => "it crashed".to_owned(),
    };
    NoAnswer { why, detail: Some(failure.message.clone()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(reason: &str, options: &str) -> Result<PolicyAnswer, NoAnswer> {
        checked(Said::RequireApproval { reason: reason.into(), risk: None, options: options.into() })
    }

    #[test]
    fn an_answer_is_taken_as_its_interface_says_or_not_at_all() {
        let answer =
            |reason: Option<&str>| PolicyAnswer::RequireApproval { reason: reason.map(Into::into), risk: None };
        assert_eq!(asked("why", "{}"), Ok(answer(Some("why"))));
        assert_eq!(asked(" \n", " { } "), Ok(answer(None)));
        assert!(asked(&"x".repeat(MAX_REASON), "{}").is_ok());
        for (reason, options, why) in [
            (&*"x".repeat(MAX_REASON + 1), "{}", "4097 bytes"),
            ("", "", "not a JSON object"),
            ("", "[]", "not a JSON object"),
            ("", "null", "not a JSON object"),
            ("", r#"{"skip":true}"#, "does not know"),
        ] {
            let found = asked(reason, options).expect_err(options).why;
            assert!(found.contains(why), "{found}");
        }
    }

    #[test]
    fn a_denial_stands_without_its_reason() {
        let denied = |reason: &str| checked(Said::Deny(reason.into()));
        assert_eq!(denied("no"), Ok(PolicyAnswer::Deny { reason: Some("no".into()) }));
        assert_eq!(denied(&"x".repeat(MAX_REASON + 1)), Ok(PolicyAnswer::Deny { reason: None }));
    }
}
