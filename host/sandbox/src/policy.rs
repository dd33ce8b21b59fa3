//! Policy components: they decide about calls. Each decision runs in a new instance, with tight limits and no capability.
//!
//! This module checks each answer against the interface. A wrong answer is [`NoAnswer`]. The caller of this module decides
//! how the call continues.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use capabilities::{excerpt, size};
use domain::{
    CatalogLimits, Digest, Limits, Span,
    json::Value,
    outcome::{Failure, FailureCode},
    tool::Risk,
};
use wasmtime::component::{InstancePre, Linker};

use crate::abi::package::Name;
use crate::abi::policy::{self as abi, Indices, POLICY, PolicyQuestion, RawAnswer};
use crate::clock::Stopwatch;
use crate::ending::Purpose;
use crate::guest::Guest;
use crate::load::LoadError;
use crate::pool::{Peak, User};
use crate::report::Sink;
use crate::sandbox::{Sandbox, unfit};
use crate::shared::Shared;
use crate::{call, ending, inspect, wasi};

/// The maximum size of a reason in bytes.
const MAX_REASON: usize = 4096;

/// Characters of a key in a message.
const MAX_KEY: usize = 64;

/// A loaded policy. Cheap to clone; keeps the sandbox alive.
#[derive(Clone)]
pub struct LoadedPolicy(Arc<PolicyInner>);

struct PolicyInner {
    digest: Digest,
    export: Indices,
    pre: InstancePre<Guest>,
    peak: Peak,
    shared: Arc<Shared>,
}

/// A policy's decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyAnswer {
    Proceed,
    /// A person must approve it.
    RequireApproval {
        /// The policy wrote this text.
        reason: Option<String>,
        risk: Option<Risk>,
    },
    Deny {
        /// The policy wrote this text.
        reason: Option<String>,
    },
}

/// A policy that gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NoAnswer {
    /// The reason in the host's words, as one clause: "it did not answer within 1000 ms".
    pub why: String,
    /// Details for the operator's log. They may quote the policy, with deceptive characters escaped.
    pub detail: Option<String>,
}

/// The reason why a component cannot be a policy.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error(
        "not a policy: it does not export `{}/judge@{}.x`, as everything built against wit/policy does",
        POLICY.name,
        POLICY.spoken
    )]
    NotAPolicy,
    #[error("a policy cannot use capabilities, and this one imports {}; remove that import", .0.join(", "))]
    Imports(Vec<String>),
    /// It is not a component, was built against another version, cannot be compiled, or does not fit the interface.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl Sandbox {
    /// Checks that a component is a policy, by its exports and imports and without compiling it.
    ///
    /// # Errors
    /// [`PolicyError`], which names all imports that no policy may have.
    pub fn inspect_policy(bytes: &[u8]) -> Result<(), PolicyError> {
        let (imports, exports) = inspect::names(bytes)?;
        let mut exports = exports.iter().filter_map(|text| Name::parse(text));
        let judge = exports.find(|name| name.package == POLICY.name && name.interface == "judge");
        let version = judge.ok_or(PolicyError::NotAPolicy)?.version;
        if !POLICY.speaks(version) {
            return Err(POLICY.unspoken(version).into());
        }
        POLICY.check_names(&imports)?;
        let foreign = |text: &&String| !Name::parse(text).is_some_and(|name| is_everyones(&name));
        let foreign: Vec<_> = imports.iter().filter(foreign).map(|text| format!("`{}`", excerpt(text))).collect();
        if foreign.is_empty() { Ok(()) } else { Err(PolicyError::Imports(foreign)) }
    }

    /// Makes a policy of a component. Blocks the thread, as [`Sandbox::load`].
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn load_policy(&self, digest: Digest, bytes: &[u8]) -> Result<LoadedPolicy, PolicyError> {
        self.sized(bytes)?;
        Self::inspect_policy(bytes)?;
        let component = self.component(digest, bytes)?;
        let shared = self.shared();
        POLICY.check_functions(&shared.engine, &component)?;
        let mut linker = Linker::new(&shared.engine);
        let host = |error: wasmtime::Error| LoadError::Host(anyhow::anyhow!("{error:#}"));
        wasi::link(&mut linker).map_err(host)?;
        abi::link(&mut linker).map_err(host)?;
        let pre = linker.instantiate_pre(&component).map_err(unfit)?;
        let export = Indices::find(&pre).map_err(unfit)?;
        self.keep(digest);
        shared.pool.keep_for_policies();
        Ok(LoadedPolicy(Arc::new(PolicyInner {
            digest,
            export,
            pre,
            peak: Peak::default(),
            shared: Arc::clone(shared),
        })))
    }
}

/// Whether every policy may import this.
fn is_everyones(name: &Name<'_>) -> bool {
    // The interfaces of the package were checked when the names were read.
    name.package == POLICY.name || wasi::is_inert(name.package, name.version)
}

impl LoadedPolicy {
    /// The digest of the component.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// Asks the policy about one call, in a new instance. Dropping the future cancels the question.
    ///
    /// Await it on a runtime of [`guest_runtime`](crate::guest_runtime), as [`Plugin::run`](crate::Plugin::run).
    ///
    /// # Errors
    /// [`NoAnswer`] if the policy traps, takes longer than `time`, exceeds a limit, or gives a wrong answer.
    pub async fn decide(
        &self,
        question: &PolicyQuestion,
        time: Span,
        sink: Arc<dyn Sink>,
    ) -> Result<PolicyAnswer, NoAnswer> {
        // A decision needs as little as a declaration. No setting changes these limits, except the time.
        let limits = Limits { time, result: 0, ..CatalogLimits::default().of_run() };
        let shared = &self.0.shared;
        let (expected, patience) = (self.0.peak.expected(&limits), Duration::from_millis(time.millis()));
        let user = User::Policy(self.0.digest);
        let Some(reservation) = shared.pool.reserve(user, expected, patience).await.map(Arc::new) else {
            return Err(no_answer(&ending::busy(), &limits));
        };
        let watch = Stopwatch::start(time, Span::ZERO);
        let guest = Guest::new(&shared.services, None, watch.clone(), &limits, Arc::clone(&reservation), sink, None);
        let mut store = call::store(&shared.engine, guest, watch.clone(), &limits);
        let decided = reservation.fair_share().drive(self.0.export.decide(&self.0.pre, &mut store, question));
        let answer = call::bounded(pin!(decided), &watch).await;
        store.data_mut().finish(false);
        self.0.peak.record(reservation.peak());
        match answer {
            Ok(answer) => checked(answer),
            Err(error) => Err(no_answer(&call::explain(&error, store.data(), &limits, Purpose::Decision), &limits)),
        }
    }
}

impl std::fmt::Debug for LoadedPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadedPolicy").field("digest", &self.0.digest).finish_non_exhaustive()
    }
}

/// Checks an answer. A denial with a reason that is too long stays a denial: asking a person instead would be weaker than the
/// policy's decision.
fn checked(answer: RawAnswer) -> Result<PolicyAnswer, NoAnswer> {
    match answer {
        RawAnswer::Proceed => Ok(PolicyAnswer::Proceed),
        RawAnswer::RequireApproval { reason, risk, options } => {
            known(&options)?;
            if reason.len() > MAX_REASON {
                let why = format!("its reason has {} bytes; the maximum is {MAX_REASON}", reason.len());
                return Err(NoAnswer { why, detail: None });
            }
            Ok(PolicyAnswer::RequireApproval { reason: given(reason), risk })
        }
        RawAnswer::Deny(reason) if reason.len() > MAX_REASON => Ok(PolicyAnswer::Deny { reason: None }),
        RawAnswer::Deny(reason) => Ok(PolicyAnswer::Deny { reason: given(reason) }),
    }
}

/// `None` for a blank reason.
fn given(reason: String) -> Option<String> {
    if reason.trim().is_empty() { None } else { Some(reason) }
}

/// Refuses options: this version of the interface defines none.
fn known(options: &str) -> Result<(), NoAnswer> {
    let Ok(Value::Object(options)) = Value::parse(options) else {
        return Err(NoAnswer { why: "the options of its answer are not a JSON object".to_owned(), detail: None });
    };
    match options.iter().next() {
        None => Ok(()),
        Some((key, _)) => {
            let detail = Some(format!("the option {}", escape::quoted(key, MAX_KEY)));
            Err(NoAnswer { why: "its answer has an option that this host does not know".to_owned(), detail })
        }
    }
}

/// The reason for people is in the host's words, because the text of a crash may come from the arguments.
fn no_answer(failure: &Failure, limits: &Limits) -> NoAnswer {
    let why = match failure.code {
        FailureCode::OutOfTime => format!("it did not answer within {} ms", limits.time.millis()),
        FailureCode::OutOfMemory => format!("it needs more than the {} that a policy may have", size(limits.memory)),
        FailureCode::LimitExceeded => "it needs more than a policy may use".to_owned(),
        FailureCode::Busy => "the host runs as many guests as it can at once".to_owned(),
        FailureCode::HostFault => "the host failed while it asked".to_owned(),
        _ => "it crashed".to_owned(),
    };
    NoAnswer { why, detail: Some(failure.message.clone()) }
}

#[cfg(test)]
mod tests {
    use domain::json::MAX_DEPTH;

    use super::*;

    fn asked(reason: &str, options: &str) -> Result<PolicyAnswer, NoAnswer> {
        checked(RawAnswer::RequireApproval { reason: reason.into(), risk: None, options: options.into() })
    }

    #[test]
    fn policy_answer_that_breaks_its_interface_is_refused() {
        let answer =
            |reason: Option<&str>| PolicyAnswer::RequireApproval { reason: reason.map(Into::into), risk: None };
        assert_eq!(asked("why", "{}"), Ok(answer(Some("why"))));
        assert_eq!(asked(" \n", " { } "), Ok(answer(None)));
        assert!(asked(&"x".repeat(MAX_REASON), "{}").is_ok());
        let nested = format!("{{\"a\":{}{}}}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        for (reason, options, why) in [
            (&*"x".repeat(MAX_REASON + 1), "{}", "4097 bytes"),
            ("", "", "not a JSON object"),
            ("", "[]", "not a JSON object"),
            ("", "null", "not a JSON object"),
            ("", r#"{"skip":true}"#, "does not know"),
            ("", &nested, "not a JSON object"),
        ] {
            let found = asked(reason, options).expect_err(options).why;
            assert!(found.contains(why), "{found}");
        }
    }

    #[test]
    fn denial_without_a_reason_is_accepted() {
        let denied = |reason: &str| checked(RawAnswer::Deny(reason.into()));
        assert_eq!(denied("no"), Ok(PolicyAnswer::Deny { reason: Some("no".into()) }));
        assert_eq!(denied(&"x".repeat(MAX_REASON + 1)), Ok(PolicyAnswer::Deny { reason: None }));
    }
}
