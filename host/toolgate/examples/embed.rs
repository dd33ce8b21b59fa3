//! A host inside of a program: submit what a model asked for, answer what waits, hand the results back.
//!
//! `cargo run --example embed -- PLUGINS_FOLDER TOOL ARGUMENTS`

use anyhow::Context as _;
use toolgate::domain::{CallId, ConversationId, Json, Span, event::Rejection};
use toolgate::{Answer, CallRequest, Host, TurnRequest, Until};

#[tokio::main]
#[expect(clippy::disallowed_macros, reason = "a program of its own, which prints what it found")]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, tool, arguments] = arguments.as_slice() else { anyhow::bail!("PLUGINS_FOLDER TOOL ARGUMENTS") };
    let host = Host::builder().plugins(folder).memory().approve_own_calls().open().await?;
    let (me, conversation) = (Host::principal("me")?, ConversationId::new("demo")?);

    let call = CallRequest {
        id: CallId::new("call_1")?,
        tool: tool.as_str().into(),
        arguments: Json::parse(arguments.as_str())?,
        result: None,
        origin: None,
    };
    let request = TurnRequest {
        conversation: conversation.clone(),
        calls: vec![call],
        context: None,
        rejection: Rejection::default(),
        ephemeral: false,
    };
    let turn = host.handle().submit(&me, request).await?.turn;
    for (waiting, _) in turn.calls.iter().flat_map(|call| &call.suspensions) {
        let (suspension, expect_digest) = (waiting.id, Some(waiting.digest));
        let decision = waiting.allowed().into_iter().next().context("a wait that can be answered")?;
        let answer =
            Answer { suspension, decision, expect_digest, data: None, arguments: None, comment: None, standing: None };
        host.handle().resolve(&me, answer).await?;
    }
    let turn = host.handle().wait(&me, &conversation, turn.id, Until::Ended, Span::from_secs(60)).await?;
    for call in &turn.calls {
        println!("{}: {:?}", call.tool, call.outcome());
    }
    Ok(host.close(std::time::Duration::from_secs(1)).await?)
}
