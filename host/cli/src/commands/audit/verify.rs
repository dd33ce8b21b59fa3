//! `audit verify`: whether the audit is what was written, of a folder or of the host that runs on it.

use dispatch::ports::{Anchor, Head, Link, Position, Source, Tampering, Walk};
use domain::Digest;
use store::{OpenError, VerifyError};
use toolgate::config::Config;

use crate::args::Verify;
use crate::client::Client;
use crate::report::{Exit, Report};
use crate::terminal::{Ink, Terminal};
use crate::wire::{AuditChain, AuditHead, AuditLink};

pub(super) fn run(args: &Verify, terminal: &Terminal) -> Result<(), Report> {
    let verified = match &args.host.url {
        Some(_) => of_host(args),
        None => match of_folder(args)? {
            Err(VerifyError::Open(OpenError::InUse { .. })) => of_host(args),
            verified => verified.map_err(report),
        },
    };
    say(verified?, args, terminal)
}

/// Of a folder that no host runs on.
fn of_folder(args: &Verify) -> Result<Result<Head, VerifyError>, Report> {
    let config = Config::read(args.host.data.config.as_deref())?;
    let folder = args.host.data.folder.clone().unwrap_or_else(|| config.data_folder()).join("store");
    if !folder.is_dir() {
        return Err(Report::new(Exit::Refused, format!("there is no store in {}", folder.display()))
            .hint("name the host's own folder with --data, or a host that keeps its turns in memory with --url"));
    }
    Ok(store::verify(&folder, &store::Settings::default(), args.head.clone()))
}

/// Through a host: it says what it has stored, and every hash is worked out here.
fn of_host(args: &Verify) -> Result<Head, Report> {
    let client = Client::new(&args.host)?;
    let mut walk = Walk::new(args.head.clone());
    let (mut after, mut first) = (None::<String>, None);
    loop {
        let page: AuditChain =
            client.read("/v1/audit/chain", &[("after", after.as_deref()), ("limit", Some("500"))])?;
        // What is committed meanwhile is for the next time.
        let end = *first.get_or_insert(head(&page.head)?);
        for link in &page.links {
            let link = understood(link)?;
            if link.head.position > end.position {
                break;
            }
            walk.step(&link).map_err(tampered)?;
        }
        let (reached, next) = (walk.head().position, page.next);
        after = next.filter(|_| reached < end.position).map(|next| next.to_string());
        if after.is_none() {
            return walk.end(end).map_err(tampered);
        }
    }
}

fn say(head: Head, args: &Verify, terminal: &Terminal) -> Result<(), Report> {
    let Head { position: Position(position), hash } = head;
    if args.json {
        let said = serde_json::json!({"position": position, "hash": hash.to_string(), "anchors": args.head.len()});
        return Ok(terminal.line(said.to_string())?);
    }
    let commits = if position == 1 { "commit" } else { "commits" };
    let fine = terminal.ink(Ink::Good, "verified");
    terminal.line(format!("{fine} {position} {commits}; the head is {position}:{hash}"))?;
    for Anchor { position, hash } in &args.head {
        let at = position.map_or_else(String::new, |at| format!("{}:", at.0));
        terminal.line(format!("  and {at}{hash} is part of it"))?;
    }
    if args.head.is_empty() {
        terminal.note("without --head, a chain that was made anew as a whole or cut off at its end is not found\n");
    }
    Ok(())
}

fn report(error: VerifyError) -> Report {
    match error {
        VerifyError::Tampered(found) => tampered(found),
        VerifyError::Open(error) => anyhow::Error::from(error).into(),
        VerifyError::Store(fault) => anyhow::Error::from(fault).into(),
    }
}

fn tampered(found: Tampering) -> Report {
    Report::new(Exit::Refused, "the audit is not what was written").because(found)
}

fn head(head: &AuditHead) -> Result<Head, Report> {
    Ok(Head { position: Position(head.position), hash: digest(&head.hash)? })
}

fn understood(link: &AuditLink) -> Result<Link, Report> {
    let source = unhex(&link.source).and_then(|bytes| Source::from_bytes(&bytes));
    Ok(Link {
        head: Head { position: Position(link.position), hash: digest(&link.hash)? },
        source: source.ok_or_else(|| unknown(&link.source))?,
        record: link.record.as_deref().map(digest).transpose()?,
    })
}

fn digest(text: &str) -> Result<Digest, Report> {
    text.parse().map_err(|_| unknown(text))
}

fn unknown(text: &str) -> Report {
    let text = text::line(text);
    Report::new(
        Exit::HostFault,
        format!("the host's answer holds {text}, which this version of toolgate does not know"),
    )
    .hint("is the host of the same version as this binary?")
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}
