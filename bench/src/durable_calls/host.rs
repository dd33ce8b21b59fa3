//! A host with the plugin of this benchmark, and its calls.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use dispatch::{Answer, CallRequest, TurnRequest, Until};
use domain::{
    CallId, ConversationId, Json, Outcome, Principal, PrincipalId, Span, Turn, principal::Role, suspension::Decision,
};
use toolgate::Host;
use toolgate::config::Config;

use super::guests::PLUGIN;
use crate::measure::now;
use crate::setting;

/// Where a host keeps its data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    InMemory,
    OnDisk,
}

/// A host that has loaded the component. It may send requests to this server.
pub(super) async fn start(component: &[u8], kept: Kept, server: SocketAddr) -> Result<Host> {
    let grants = format!(
        "grants.keyvalue = true\ngrants.http = [{{ url = \"http://{server}/\", methods = [\"POST\"], private = true }}]"
    );
    let text = format!("{}\n[plugin.{PLUGIN}]\ncomponent = \"any\"\n{grants}\n", setting::QUOTA);
    let builder = Host::builder().config(Config::parse(&text, Path::new("bench.toml"))?);
    let builder = if kept == Kept::InMemory { builder.memory() } else { builder };
    let host = builder.open().await?;
    setting::load_component(&host, PLUGIN, component.to_vec()).await?;
    Ok(host)
}

/// Submits a turn of one call, and returns it when its guest does not run.
pub(super) async fn call(host: &Host, id: &str, tool: &str, arguments: &str) -> Result<Turn> {
    let request = TurnRequest {
        conversation: ConversationId::new(id)?,
        calls: vec![CallRequest {
            id: CallId::new("call")?,
            tool: tool.into(),
            arguments: Json::unchecked(arguments),
            result: None,
            origin: None,
        }],
        context: None,
        rejection: domain::event::Rejection::ContinueSiblings,
        ephemeral: false,
    };
    let turn = host.handle().submit(&setting::caller()?, request).await?.turn;
    reached(host, &turn, Until::Quiet).await
}

/// The same for a call that must end well.
pub(super) async fn call_to_its_end(host: &Host, id: &str, tool: &str, arguments: &str) -> Result<()> {
    ended(&call(host, id, tool, arguments).await?)
}

/// The times of an answer: until it is on disk, and from then until the call has ended.
pub(super) struct Answered {
    pub(super) committed: Duration,
    pub(super) continued: Duration,
}

/// Answers the question of a call that waits, and waits for its end.
pub(super) async fn answer(host: &Host, turn: &Turn) -> Result<Answered> {
    let (.., open) = turn.pending().next().context("the call waits for an answer")?;
    let answer = Answer {
        suspension: open.id,
        decision: Decision::from("answer"),
        data: Some(Json::unchecked("true")),
        arguments: None,
        comment: None,
        expect_digest: None,
        standing: None,
    };
    let approver = Principal::new(PrincipalId::new("ann")?, [Role::Approver]);
    let start = now();
    host.handle().resolve(&approver, answer).await?;
    let committed = start.elapsed();
    let turn = reached(host, turn, Until::Ended).await?;
    let continued = start.elapsed().saturating_sub(committed);
    ended(&turn)?;
    Ok(Answered { committed, continued })
}

async fn reached(host: &Host, turn: &Turn, until: Until) -> Result<Turn> {
    let at_most = Span::from_secs(60);
    Ok(host.handle().wait(&setting::caller()?, &turn.conversation, turn.id, until, at_most).await?)
}

fn ended(turn: &Turn) -> Result<()> {
    let outcome = turn.calls[0].outcome();
    ensure!(matches!(outcome, Some(Outcome::Ok { .. })), "the call ended {outcome:?}");
    Ok(())
}
