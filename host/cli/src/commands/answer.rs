//! `approve`, `deny` and `answer`: one suspension, one decision.

use domain::SuspensionId;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::args::{Answer, Approve, Deny};
use crate::card;
use crate::client::{Client, understand};
use crate::report::{Exit, Report};
use crate::terminal::{Ink, Terminal};
use crate::wire::{Resolved, Suspension};

/// The body of a resolution.
#[derive(Serialize, Default)]
struct Resolve<'a> {
    decision: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expect_digest: Option<&'a str>,
}

pub(super) fn approve(args: &Approve, terminal: &Terminal) -> Result<(), Report> {
    let client = Client::new(&args.host)?;
    let shown = look(&client, args.suspension)?;
    terminal.line(card::suspension(&shown, terminal).trim_end())?;
    let digest = args.expect_digest.map_or_else(|| shown.digest.clone(), |digest| digest.to_string());
    let arguments = args.arguments.as_deref().map(raw).transpose()?;
    let resolve = Resolve {
        decision: "approve",
        arguments: arguments.as_deref(),
        comment: args.comment.as_deref(),
        expect_digest: Some(&digest),
        ..Resolve::default()
    };
    send(&client, args.suspension, &resolve, terminal)
}

pub(super) fn deny(args: &Deny, terminal: &Terminal) -> Result<(), Report> {
    let resolve = Resolve { decision: "deny", comment: args.comment.as_deref(), ..Resolve::default() };
    send(&Client::new(&args.host)?, args.suspension, &resolve, terminal)
}

pub(super) fn answer(args: &Answer, terminal: &Terminal) -> Result<(), Report> {
    let client = Client::new(&args.host)?;
    let shown = look(&client, args.suspension)?;
    let decision = match (&args.decision, &args.error) {
        (Some(decision), _) => decision.clone(),
        (None, Some(_)) => "error".into(),
        (None, None) => shown.allowed.first().cloned().unwrap_or_else(|| "answer".into()),
    };
    if shown.kind == "approval" {
        let id = args.suspension;
        return Err(Report::new(Exit::Usage, format!("{id} asks for an approval and not for an answer"))
            .hint(format!("toolgate approve {id}"))
            .hint(format!("toolgate deny {id}")));
    }
    let data = match &args.error {
        Some(error) => Some(to_raw_value(error)?),
        None => args.data.as_deref().map(raw).transpose()?,
    };
    let comment = args.comment.as_deref();
    let resolve = Resolve { decision: &decision, data: data.as_deref(), comment, ..Resolve::default() };
    send(&client, args.suspension, &resolve, terminal)
}

/// A suspension as it is now.
fn look(client: &Client, id: SuspensionId) -> Result<Suspension, Report> {
    client.read(&format!("/v1/suspensions/{id}"), &[])
}

fn raw(json: &str) -> Result<Box<RawValue>, Report> {
    Ok(RawValue::from_string(json.to_owned())?)
}

fn send(client: &Client, id: SuspensionId, resolve: &Resolve<'_>, terminal: &Terminal) -> Result<(), Report> {
    let answer = client.post(&format!("/v1/suspensions/{id}/resolve"), &[], &serde_json::to_vec(resolve)?)?;
    let again = if understand::<Resolved>(&answer)?.replayed { " (it was answered so before)" } else { "" };
    let decision = text::line(resolve.decision);
    terminal.line(format!("{} {id}: {decision}{again}", terminal.ink(Ink::Good, "answered")))?;
    Ok(())
}
