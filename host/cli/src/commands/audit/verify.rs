//! `audit verify`: whether the audit log was changed, in a data folder or at the host that runs on it.

use api::{AuditChain, AuditHead, AuditLink};
use clap::Args;
use dispatch::ports::{ChainEntry, Checkpoint, Head, Position, Recorded, Source, Tampering, Walk};
use domain::Digest;
use store::{OpenError, VerifyError};

use crate::args::Connection;
use crate::client::Client;
use crate::commands::Run;
use crate::report::{Exit, Report};
use crate::terminal::{Style, Terminal};

/// Verify the hash chain of the audit log, and print the first position that was edited, removed, inserted or moved.
///
/// Reads the data folder, or asks the host that runs on it. The exit code is 1 if the log was changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate audit verify
  toolgate audit verify --data /var/lib/toolgate --head 1041:sha256:9f86d081…

Someone who can write to the data folder can rewrite the whole chain or cut off its end. To detect that, keep a checkpoint
where they cannot write and pass it with --head. A checkpoint is the `head` of GET /v1/audit, or a head in the host's log.")]
pub(crate) struct Verify {
    /// A checkpoint that was kept elsewhere: a hash, or POSITION:HASH. May be given several times
    #[arg(long, value_name = "[POSITION:]HASH")]
    head: Vec<Checkpoint>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Verify {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let head = match &self.host.url {
            Some(_) => self.of_host(),
            None => match self.of_folder()? {
                Err(VerifyError::Open(OpenError::InUse { .. })) => self.of_host(),
                Err(VerifyError::Tampered(found)) => Err(tampered(found)),
                Err(VerifyError::Open(error)) => Err(error.into()),
                Err(VerifyError::Store(fault)) => Err(fault.into()),
                Ok(head) => Ok(head),
            },
        };
        self.print(head?, terminal)
    }
}

impl Verify {
    /// Verifies a folder that no host runs on.
    fn of_folder(&self) -> Result<Result<Head, VerifyError>, Report> {
        let folder = self.host.data.folder()?.join("store");
        if !folder.is_dir() {
            return Err(Report::new(Exit::Refused, format!("there is no store in {}", folder.display()))
                .hint("name the host's data folder with --data, or a host that keeps turns in memory with --url"));
        }
        Ok(store::verify(&folder, &store::StoreSettings::default(), self.head.clone()))
    }

    /// Verifies the records of a running host. This process computes every hash itself.
    fn of_host(&self) -> Result<Head, Report> {
        let client = Client::new(&self.host)?;
        let mut walk = Walk::new(self.head.clone());
        let (mut after, mut end) = (None::<String>, None::<Head>);
        loop {
            let page: AuditChain =
                client.read("/v1/audit/chain", &[("after", after.as_deref()), ("limit", Some("500"))])?;
            // Commits that follow the first answer are not verified, or this might never end. Except if one of them says
            // that records before it were removed.
            let end = match end {
                Some(end) if walk.last_removal().is_none_or(|removal| removal <= end.position) => end,
                Some(_) | None => *end.insert(head(&page.head)?),
            };
            for link in &page.links {
                let link = entry(link)?;
                if link.head.position > end.position {
                    break;
                }
                walk.step(&link).map_err(tampered)?;
            }
            let reached = walk.head().position;
            let is_removed_later = walk.last_removal().is_some_and(|removal| removal > end.position);
            if page.links.is_empty() || (reached >= end.position && !is_removed_later) {
                return walk.end(end).map_err(tampered);
            }
            after = Some(reached.0.to_string());
        }
    }

    fn print(&self, head: Head, terminal: &Terminal) -> Result<(), Report> {
        let Head { position: Position(position), hash } = head;
        if self.json {
            let value = serde_json::json!({"position": position, "hash": hash.to_string(), "anchors": self.head.len()});
            return Ok(terminal.line(value.to_string())?);
        }
        let commits = if position == 1 { "commit" } else { "commits" };
        let verified = terminal.style(Style::Good, "verified");
        terminal.line(format!("{verified} {position} {commits}; the head is {position}:{hash}"))?;
        for Checkpoint { position, hash } in &self.head {
            let at = position.map_or_else(String::new, |at| format!("{}:", at.0));
            terminal.line(format!("  and {at}{hash} is part of it"))?;
        }
        if self.head.is_empty() {
            terminal
                .note("without --head, a chain that was rewritten as a whole or cut off at its end is not detected\n");
        }
        Ok(())
    }
}

fn tampered(found: Tampering) -> Report {
    Report::new(Exit::Refused, "the audit log was changed").because(found)
}

fn head(head: &AuditHead) -> Result<Head, Report> {
    Ok(Head { position: Position(head.position), hash: digest(&head.hash)? })
}

fn entry(link: &AuditLink) -> Result<ChainEntry, Report> {
    let source = unhex(&link.source).and_then(|bytes| Source::from_bytes(&bytes));
    Ok(ChainEntry {
        head: Head { position: Position(link.position), hash: digest(&link.hash)? },
        source: source.ok_or_else(|| unknown(&link.source))?,
        record: match (link.record.as_deref().map(digest).transpose()?, link.removed_by) {
            (Some(record), None) => Recorded::Kept(record),
            (Some(digest), Some(by)) => Recorded::Removed { digest, by: Some(Position(by)) },
            (None, _) => Recorded::Missing,
        },
    })
}

fn digest(value: &str) -> Result<Digest, Report> {
    value.parse().map_err(|_| unknown(value))
}

fn unknown(value: &str) -> Report {
    let value = escape::line(value);
    Report::new(Exit::HostFault, format!("the host's answer contains {value}, which this version cannot read"))
        .hint("check that the host and this binary have the same version")
}

fn unhex(value: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = value.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}
