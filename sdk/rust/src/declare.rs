//! The options of a tool. Each method exists only for the tools that its option applies to.

use std::marker::PhantomData;
use std::time::Duration;

use serde::Serialize;

use crate::options::{Editable, Expiry};
use crate::tool::{Asks, Auto, Executor, Gateable, Gated, Human, Server, Tool, Waits};
use crate::{OnExpiry, Recovery, Risk};

/// For every tool.
impl<E, A> Tool<E, A> {
    /// A name for people, if the tool's name is not clear enough.
    pub fn title(mut self, title: &'static str) -> Self {
        self.spec.options.title = Some(title);
        self
    }

    /// The possible harm of a wrong call. Approvers see it, unless the operator sets another one.
    pub fn risk(mut self, risk: Risk) -> Self {
        self.spec.options.risk = Some(risk);
        self
    }

    /// A hint: the tool changes nothing.
    pub fn read_only(mut self) -> Self {
        self.spec.options.hints.read_only = Some(true);
        self
    }

    /// A hint: the tool may destroy data.
    pub fn destructive(mut self) -> Self {
        self.spec.options.hints.destructive = Some(true);
        self
    }

    /// A hint: a repeated call with the same arguments has no further effect.
    pub fn idempotent(mut self) -> Self {
        self.spec.options.hints.idempotent = Some(true);
        self
    }

    /// A hint: whether the tool deals with an open world, such as the web.
    pub fn open_world(mut self, open: bool) -> Self {
        self.spec.options.hints.open_world = Some(open);
        self
    }

    /// Results are useful in a model's context for this many turns.
    pub fn keep_for_turns(mut self, turns: u32) -> Self {
        self.spec.options.retention.max_age_turns = Some(turns);
        self
    }

    /// Only this many of the latest results are useful in a model's context.
    pub fn keep_latest(mut self, count: u32) -> Self {
        self.spec.options.retention.max_count = Some(count);
        self
    }

    /// A turn with a call of this tool may be removed this many days after its end, if the operator of the host allows it.
    pub fn remove_after_days(mut self, days: u32) -> Self {
        self.spec.options.retention.max_age_days = Some(days);
        self
    }

    /// Results must stay in a model's context.
    pub fn never_evict(mut self) -> Self {
        self.spec.options.retention.never_evict = true;
        self
    }
}

/// For tools that wait for somebody: gated tools, questions, and client tools.
impl<E, A> Tool<E, A> {
    /// The maximum time of each wait, in whole milliseconds. Without it, the host's default.
    pub fn expires(mut self, after: Duration) -> Self
    where
        (E, A): Waits,
    {
        self.spec.options.expires_ms = Some(milliseconds(after));
        self
    }

    /// Only these members of the turn's context are shown while the call waits. An empty list shows none. Without this
    /// option the whole context is shown.
    pub fn context_keys(mut self, names: &'static [&'static str]) -> Self
    where
        (E, A): Waits,
    {
        self.spec.options.context_keys = Some(names);
        self
    }

    /// The text that a person sees. `{name}` is a top-level argument, `{/json/pointer}` a value inside one, `{{` and
    /// `}}` are braces.
    pub fn prompt(mut self, template: &'static str) -> Self
    where
        (E, A): Asks,
    {
        self.spec.options.prompt = Some(template);
        self
    }
}

/// For tools that can be gated.
impl<E: Gateable> Tool<E, Auto> {
    /// A person must approve each call before it runs.
    pub fn requires_approval(self) -> Tool<E, Gated> {
        Tool { spec: self.spec, executor: self.executor, gate: PhantomData }
    }
}

/// For server tools and client tools.
impl<E: Gateable, A> Tool<E, A> {
    /// The tool reports progress before its result.
    pub fn streaming(mut self) -> Self {
        self.spec.streaming = true;
        self
    }
}

/// For server tools.
impl<A> Tool<Server, A> {
    /// The maximum time of one run, in whole milliseconds. Without it, the host's default. Each run of a durable call has all of
    /// it, also for the code that it repeats. The waits between runs do not count.
    pub fn timeout(mut self, after: Duration) -> Self {
        self.spec.options.timeout_ms = Some(milliseconds(after));
        self
    }

    /// Its calls may wait in the middle of their code: [`mod@crate::durable`]. Such a plugin cannot use folders yet.
    pub fn durable(mut self) -> Self {
        self.spec.options.durable = true;
        self
    }

    /// How the host continues a call that was running when the host was killed. It has no effect for a durable tool, whose calls
    /// run again from their last step.
    pub fn recovery(mut self, recovery: Recovery) -> Self {
        self.spec.options.recovery = Some(recovery);
        self
    }
}

/// For gated tools.
impl<E: Executor> Tool<E, Gated> {
    /// The outcome of an approval that nobody answers in time.
    pub fn on_expiry(mut self, outcome: OnExpiry) -> Self {
        self.spec.options.on_expiry = Some(Expiry::Approval(outcome));
        self
    }

    /// An approver may change these top-level arguments.
    pub fn editable(mut self, names: &'static [&'static str]) -> Self {
        self.spec.options.editable = Some(Editable::Fields(names));
        self
    }

    /// An approver may change every argument.
    pub fn editable_all(mut self) -> Self {
        self.spec.options.editable = Some(Editable::All);
        self
    }
}

/// For questions.
impl<Answer> Tool<Human<Answer>, Auto> {
    /// The answer if nobody answers in time.
    ///
    /// # Panics
    /// If the answer has no JSON form. Any unit test of the tools finds this mistake.
    pub fn answer_on_expiry(mut self, answer: &Answer) -> Self
    where
        Answer: Serialize,
    {
        #[expect(clippy::expect_used, reason = "documented, and found by the first test that lists the tools")]
        let answer = serde_json::to_value(answer).expect("an answer has a JSON form");
        self.spec.options.on_expiry = Some(Expiry::Answer(answer));
        self
    }

    /// The decisions that the person chooses from. The result is then `{"decision": choice, "data": answer}`, and the
    /// answer is optional.
    pub fn responses(mut self, responses: &'static [&'static str]) -> Self {
        self.spec.options.responses = Some(responses);
        self
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
