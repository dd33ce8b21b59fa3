//! Dynamic policies: components that decide about calls in the sandbox. Without an answer of a policy, a person must approve the call.
//! A policy never allows more than the rules.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dispatch::ports::PolicyQuery;
use domain::{
    Json, Span,
    approvers::Need,
    call::Level,
    gate::{RuleEffect, Verdict},
    tool::{Executor, Hints, Risk},
};
use policy::{CallerPattern, Dynamic, Pattern};
use sandbox::{LoadedPolicy, NoAnswer, PolicyAnswer, PolicyQuestion, Sandbox, Sink, Update};
use serde_json::{Map, Value};
use tokio::runtime;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::config::{Config, ConfigError, PolicyComponent};

/// The maximal number of simultaneous decisions of one policy. Others wait, at most for the policy's timeout.
const MAX_CONCURRENT: usize = 16;

/// Loads every policy of the configuration. It compiles them on blocking threads, because that takes a while.
///
/// # Errors
/// [`ConfigError`] with the line of the first policy that cannot be used.
pub(crate) async fn open(
    config: &Config,
    engine: &Sandbox,
    guests: &runtime::Handle,
) -> Result<Vec<Arc<dyn Dynamic>>, ConfigError> {
    let mut guards: Vec<Arc<dyn Dynamic>> = Vec::new();
    for (position, component) in config.policy_components()?.into_iter().enumerate() {
        let PolicyComponent { name, bytes, digest, tools, plugin, caller, time, settings, needs } = component;
        let compiling = engine.clone();
        let loaded = tokio::task::spawn_blocking(move || compiling.load_policy(digest, &bytes)).await;
        let loaded = loaded.unwrap_or_else(|error| Err(sandbox::LoadError::Crashed(error.to_string()).into()));
        let component = loaded.map_err(|error| config.policy_refused(position, &error))?;
        tracing::info!(policy = &*name, component = %digest, "a policy is loaded");
        let (guests, permits) = (guests.clone(), Arc::new(Semaphore::new(MAX_CONCURRENT)));
        guards.push(Arc::new(Guard { name, tools, plugin, caller, time, settings, needs, component, guests, permits }));
    }
    Ok(guards)
}

struct Guard {
    name: Arc<str>,
    tools: Pattern,
    plugin: Option<Pattern>,
    caller: Option<CallerPattern>,
    time: Span,
    settings: Json,
    needs: Arc<[Need]>,
    component: LoadedPolicy,
    guests: runtime::Handle,
    permits: Arc<Semaphore>,
}

#[async_trait]
impl Dynamic for Guard {
    fn name(&self) -> &str {
        &self.name
    }

    fn concerns(&self, question: &PolicyQuery) -> bool {
        let tool = &question.known.tool;
        let plugin = self.plugin.as_ref().is_none_or(|plugin| plugin.matches(tool.plugin.as_str()));
        let caller = self.caller.as_ref().is_none_or(|caller| caller.matches(question.caller.as_str()));
        tool.executor != Executor::Provider && self.tools.matches(tool.name.as_str()) && plugin && caller
    }

    async fn decide(&self, question: &PolicyQuery) -> Verdict {
        match self.ask(question).await {
            Ok(PolicyAnswer::Proceed) => Verdict::default(),
            Ok(PolicyAnswer::RequireApproval { reason, risk }) => self.asks(reason, risk),
            Ok(PolicyAnswer::Deny { reason }) => Verdict { rule: RuleEffect::Deny, ..self.asks(reason, None) },
            Err(NoAnswer { why, detail }) => {
                let (name, tool) = (&*self.name, question.known.tool.name.as_str());
                tracing::warn!(policy = name, tool, why, detail, "a policy did not answer, so a person must approve");
                let reason = format!("the policy {name} could not be asked: {why}");
                Verdict { policy_failed: true, ..self.asks(Some(reason), None) }
            }
        }
    }
}

impl Guard {
    fn asks(&self, reason: Option<String>, risk: Option<Risk>) -> Verdict {
        Verdict {
            rule: RuleEffect::Ask,
            by: Some(self.name.clone()),
            reason: reason.map(Into::into),
            risk,
            needs: self.needs.clone(),
            ..Verdict::default()
        }
    }

    /// Asks on the guests' threads: a policy can block its thread for up to a millisecond at a time.
    async fn ask(&self, question: &PolicyQuery) -> Result<PolicyAnswer, NoAnswer> {
        let question = self.question(question)?;
        let (component, time, permits) = (self.component.clone(), self.time, self.permits.clone());
        let lines = Arc::new(Lines(self.name.clone()));
        let task = self.guests.spawn(async move {
            let permit = tokio::time::timeout(Duration::from_millis(time.millis()), permits.acquire_owned()).await;
            let Ok(Ok(_permit)) = permit else {
                return Err(no_answer("it is busy with the maximal number of calls, and none of them ended in time"));
            };
            component.decide(&question, time, lines).await
        });
        let _stop = StopOnDrop(task.abort_handle());
        task.await.unwrap_or_else(|_| Err(no_answer("the host failed while it asked")))
    }

    /// The question for the policy. It must not contain JSON that two parsers can read differently: the tool might read the
    /// other meaning.
    fn question(&self, question: &PolicyQuery) -> Result<PolicyQuestion, NoAnswer> {
        unambiguous("arguments", &question.arguments)?;
        question.context.as_ref().map_or(Ok(()), |context| unambiguous("context", context))?;
        let tool = &question.known.tool;
        Ok(PolicyQuestion {
            tool: tool.name.as_str().to_owned(),
            plugin: tool.plugin.as_str().to_owned(),
            caller: question.caller.as_str().to_owned(),
            conversation: question.conversation.as_str().to_owned(),
            arguments: question.arguments.clone(),
            context: question.context.clone(),
            executor: tool.executor,
            approval: tool.approval,
            facts: self.facts(&tool.component.to_string(), tool.options.hints, question),
        })
    }

    fn facts(&self, component: &str, hints: Hints, question: &PolicyQuery) -> Json {
        let Hints { read_only, destructive, idempotent, open_world } = hints;
        let hints = [
            ("read_only", read_only),
            ("destructive", destructive),
            ("idempotent", idempotent),
            ("open_world", open_world),
        ];
        let hints: Map<_, _> =
            hints.into_iter().filter_map(|(name, hint)| Some((name.to_owned(), Value::from(hint?)))).collect();
        let (component, hints) = (Value::from(component), Value::from(hints));
        let step = question.step.map_or_else(String::new, |step| format!(r#","step":"{}""#, step.as_str()));
        let via = question.via.as_deref().map_or_else(String::new, |via| {
            let (plugin, tool) = (Value::from(via.plugin.as_str()), Value::from(&*via.tool));
            format!(r#","via":{{"plugin":{plugin},"tool":{tool},"depth":{}}}"#, via.depth)
        });
        Json::unchecked(format!(
            r#"{{"settings":{},"component":{component},"hints":{hints}{step}{via}}}"#,
            self.settings
        ))
    }
}

/// The HTTP API refuses such JSON already. A program that embeds the host may not.
fn unambiguous(what: &str, text: &Json) -> Result<(), NoAnswer> {
    text.check_stored().map_err(|_| no_answer(&format!("the {what} have a duplicate key, or are nested too deeply")))
}

fn no_answer(why: &str) -> NoAnswer {
    NoAnswer { why: why.to_owned(), detail: None }
}

/// Writes the log lines of a policy into the host's log. The sandbox limits their size.
struct Lines(Arc<str>);

impl Sink for Lines {
    fn progress(&self, _update: Update) {}

    fn log(&self, level: Level, line: &str) {
        let (name, line) = (&*self.0, escape::line(line));
        match level {
            Level::Debug => tracing::debug!(policy = name, "{line}"),
            Level::Info => tracing::info!(policy = name, "{line}"),
            Level::Warn | Level::Error => tracing::warn!(policy = name, "{line}"),
        }
    }
}

/// Stops a task when its caller stops waiting.
struct StopOnDrop(AbortHandle);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_arguments_are_not_sent_to_a_policy() {
        let checked = |text: &str| unambiguous("arguments", &Json::unchecked(text)).map_err(|error| error.why);
        assert_eq!(checked(r#"{"amount": 1, "of": [{"amount": 2}]}"#), Ok(()));
        let why = "the arguments have a duplicate key, or are nested too deeply";
        for text in [r#"{"a": 1, "a": 1}"#, r#"{"a": {"b": 1, "\u0062": 2}}"#, &"[".repeat(1000)] {
            assert_eq!(checked(text), Err(why.to_owned()), "{text}");
        }
    }
}
