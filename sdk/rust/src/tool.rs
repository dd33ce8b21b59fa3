//! Tools as authors write them. The kind and the gate are types, so that combinations that make no sense do not
//! compile.
//!
//! Approving a question would be circular, and the host cannot stop a provider's call. So neither can be gated:
//!
//! ```compile_fail,E0599
//! # use toolgate_sdk::prelude::*;
//! Tool::human::<NoArguments, bool>("sure", "Asks whether the user is sure.").requires_approval();
//! ```
//! ```compile_fail,E0599
//! # use toolgate_sdk::prelude::*;
//! Tool::provider::<NoArguments>("web_search", "Searches the web.").requires_approval();
//! ```
//!
//! Options for approvers exist only on gated tools, and limits on running only on server tools:
//!
//! ```compile_fail,E0599
//! # use toolgate_sdk::prelude::*;
//! Tool::client::<NoArguments, bool>("ring", "Rings the phone.").editable_all();
//! ```
//! ```compile_fail,E0599
//! # use toolgate_sdk::prelude::*;
//! Tool::client::<NoArguments, bool>("ring", "Rings the phone.").timeout(std::time::Duration::from_secs(1));
//! ```
//! ```compile_fail,E0599
//! # use toolgate_sdk::prelude::*;
//! Tool::client::<NoArguments, bool>("ring", "Rings the phone.").durable();
//! ```
//! ```compile_fail,E0277
//! # use toolgate_sdk::prelude::*;
//! Tool::server("now", "Says ok.", |_: NoArguments, _: &Call| Ok("ok")).expires(std::time::Duration::from_secs(60));
//! ```
//! ```compile_fail,E0277
//! # use toolgate_sdk::prelude::*;
//! Tool::client::<NoArguments, bool>("ring", "Rings the phone.").prompt("Ring?");
//! ```

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::options::Options;
use crate::schema::{SchemaOf, schema_of, schema_of_result};
use crate::{Call, Failure, arguments};

/// A tool: its declaration and, for a server tool, its function.
///
/// `E` is the executor, and `A` tells whether a person must approve first. Start with [`Tool::server`],
/// [`Tool::human`], [`Tool::client`] or [`Tool::provider`], and list the tool in [`plugin!`](crate::plugin) or
/// [`declarations!`](crate::declarations).
#[must_use = "a tool does nothing until it is listed in `plugin!` or `declarations!`"]
pub struct Tool<E, A> {
    pub(crate) spec: Spec,
    pub(crate) executor: E,
    pub(crate) gate: PhantomData<A>,
}

/// The declaration that tools of all kinds share.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) parameters: SchemaOf,
    pub(crate) streaming: bool,
    pub(crate) options: Options,
}

/// The function of a server tool, from arguments to result as JSON texts.
pub(crate) type Run = Box<dyn Fn(&Call<'_>, &str) -> Result<String, Failure>>;

/// The kind of executor, as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutorKind {
    /// The plugin's own function.
    Server,
    /// A person.
    Human,
    /// The program at the user's end.
    Client,
    /// The model's provider.
    Provider,
}

/// The plugin's own function produces the result.
pub struct Server {
    pub(crate) run: Run,
}

/// A person produces the result, an `Answer`.
pub struct Human<Answer> {
    answer: PhantomData<Answer>,
}

/// The program at the user's end produces the result.
pub struct Client;

/// The model's provider produces the result.
pub struct Provider;

/// No approval is needed.
pub struct Auto;

/// A person must approve first.
pub struct Gated;

/// The executor of a tool: [`Server`], [`Human`], [`Client`] or [`Provider`].
pub trait Executor: sealed::Sealed {
    #[doc(hidden)]
    const KIND: ExecutorKind;
    #[doc(hidden)]
    fn into_run(self) -> Option<Run>
    where
        Self: Sized,
    {
        None
    }
}

/// The executors of tools that can be gated and can report progress: [`Server`] and [`Client`].
pub trait Gateable: Executor {}
impl Gateable for Server {}
impl Gateable for Client {}

/// Whether a person must approve first: [`Auto`] or [`Gated`].
pub trait Approval: sealed::Sealed {
    #[doc(hidden)]
    const GATED: bool;
}

/// The combinations in which a call waits for somebody.
#[diagnostic::on_unimplemented(
    message = "a call of this tool never waits, so it cannot expire",
    label = "only gated tools, questions and client tools wait"
)]
pub trait Waits: sealed::Sealed {}

impl Waits for (Server, Gated) {}
impl Waits for (Client, Auto) {}
impl Waits for (Client, Gated) {}
impl<Answer> Waits for (Human<Answer>, Auto) {}

/// The combinations in which a person is asked.
#[diagnostic::on_unimplemented(
    message = "no person is asked about a call of this tool, so it has no prompt",
    label = "only gated tools and questions have a prompt"
)]
pub trait Asks: Waits {}

impl Asks for (Server, Gated) {}
impl Asks for (Client, Gated) {}
impl<Answer> Asks for (Human<Answer>, Auto) {}

mod sealed {
    #[allow(unreachable_pub, reason = "sealing needs a public trait in a private place")]
    pub trait Sealed {}
    impl Sealed for super::Server {}
    impl<Answer> Sealed for super::Human<Answer> {}
    impl Sealed for super::Client {}
    impl Sealed for super::Provider {}
    impl Sealed for super::Auto {}
    impl Sealed for super::Gated {}
    impl<E: Sealed, A: Sealed> Sealed for (E, A) {}
}

impl Executor for Server {
    const KIND: ExecutorKind = ExecutorKind::Server;
    fn into_run(self) -> Option<Run> {
        Some(self.run)
    }
}
impl<Answer> Executor for Human<Answer> {
    const KIND: ExecutorKind = ExecutorKind::Human;
}
impl Executor for Client {
    const KIND: ExecutorKind = ExecutorKind::Client;
}
impl Executor for Provider {
    const KIND: ExecutorKind = ExecutorKind::Provider;
}
impl Approval for Auto {
    const GATED: bool = false;
}
impl Approval for Gated {
    const GATED: bool = true;
}

impl<E> Tool<E, Auto> {
    fn new<Args: JsonSchema>(name: &'static str, description: &'static str, executor: E, options: Options) -> Self {
        let spec = Spec { name, description, parameters: schema_of::<Args>, streaming: false, options };
        Self { spec, executor, gate: PhantomData }
    }
}

impl Tool<Server, Auto> {
    /// A tool that the plugin itself runs, in the host's sandbox. The schema of `Out` is declared as `result`.
    pub fn server<Args, Out, F>(name: &'static str, description: &'static str, run: F) -> Self
    where
        Args: DeserializeOwned + JsonSchema,
        Out: Serialize + JsonSchema,
        F: Fn(Args, &Call<'_>) -> Result<Out, Failure> + 'static,
    {
        let run = move |call: &Call<'_>, arguments: &str| {
            Ok(serde_json::to_string(&run(arguments::read(arguments)?, call)?)?)
        };
        let options = Options { result: Some(schema_of_result::<Out>), ..Options::default() };
        Self::new::<Args>(name, description, Server { run: Box::new(run) }, options)
    }

    /// A server tool whose function returns its result as JSON text. The declared result is any JSON. Use it for
    /// results that are JSON already. The host refuses a text that is not JSON.
    pub fn server_json<Args, F>(name: &'static str, description: &'static str, run: F) -> Self
    where
        Args: DeserializeOwned + JsonSchema,
        F: Fn(Args, &Call<'_>) -> Result<String, Failure> + 'static,
    {
        let run = move |call: &Call<'_>, arguments: &str| run(arguments::read(arguments)?, call);
        Self::new::<Args>(name, description, Server { run: Box::new(run) }, Options::default())
    }
}

impl Tool<Client, Auto> {
    /// A tool that the program at the user's end runs. The host checks its result against the schema of `Out`.
    pub fn client<Args: JsonSchema, Out: JsonSchema>(name: &'static str, description: &'static str) -> Self {
        let options = Options { result: Some(schema_of::<Out>), ..Options::default() };
        Self::new::<Args>(name, description, Client, options)
    }
}

impl Tool<Human<()>, Auto> {
    /// A question to a person. The answer is the result, and fits the schema of `Answer`.
    pub fn human<Args: JsonSchema, Answer: JsonSchema>(
        name: &'static str,
        description: &'static str,
    ) -> Tool<Human<Answer>, Auto> {
        let options = Options { response: Some(schema_of::<Answer>), ..Options::default() };
        Tool::new::<Args>(name, description, Human { answer: PhantomData }, options)
    }
}

impl Tool<Provider, Auto> {
    /// A tool that the model's provider runs inside its own stream. The host only records its calls.
    pub fn provider<Args: JsonSchema>(name: &'static str, description: &'static str) -> Self {
        Self::new::<Args>(name, description, Provider, Options::default())
    }
}
