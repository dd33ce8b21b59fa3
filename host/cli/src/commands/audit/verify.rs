//! `audit verify`: whether the audit log was changed, in a data folder or at the host that runs on it.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use api::{AuditChain, AuditEntry, AuditHead, AuditLink};
use clap::Args;
use dispatch::ports::{ChainEntry, Checkpoint, Head, Position, Recorded, Source, Tampering, Walk};
use domain::Digest;
use store::{OpenError, StoreSettings, VerifyError};
use toolgate::checkpoint::{self, AuditCheckpoint, Removals, RemovedByRule};

use crate::args::{Connection, NO_STORE, unread};
use crate::client::{Client, PAGE, parse};
use crate::commands::{Run, runtime};
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
  toolgate audit verify --checkpoint 1041.json --key ed25519:Kx8…

Someone who can write to the data folder can rewrite the whole chain or cut off its end. To detect that, keep a checkpoint \
where they cannot write and pass it with --head. A checkpoint is the `head` of GET /v1/audit, or a head in the host's log.")]
pub(crate) struct Verify {
    /// A checkpoint that was kept elsewhere: a hash, or POSITION:HASH. May be given several times
    #[arg(long, value_name = "[POSITION:]HASH")]
    head: Vec<Checkpoint>,
    /// A signed checkpoint, from `checkpoints` in the data folder. The removals that it names must be those of the audit
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// The public key that must have signed the checkpoint
    #[arg(long, value_name = "ed25519:KEY", requires = "checkpoint")]
    key: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

/// A checkpoint whose signature is valid.
struct Signed {
    checkpoint: AuditCheckpoint,
    public_key: String,
}

impl Run for Verify {
    fn run(mut self, terminal: &Terminal) -> Result<(), Report> {
        let signed = self.signed()?;
        if let Some(Signed { checkpoint, .. }) = &signed {
            let hash = digest(&checkpoint.hash)?;
            self.head.push(Checkpoint { position: Some(Position(checkpoint.position)), hash });
        }
        let head = match &self.host.url {
            Some(_) => None,
            None => match self.of_folder()? {
                Err(VerifyError::Open(OpenError::InUse { .. })) => None,
                Err(VerifyError::Tampered(found)) => return Err(tampered(found)),
                Err(VerifyError::Open(error)) => return Err(error.into()),
                Err(VerifyError::Store(fault)) => return Err(fault.into()),
                Ok(head) => Some(head),
            },
        };
        let is_host = head.is_none();
        let head = head.map_or_else(|| self.of_host(), Ok)?;
        if let Some(Signed { checkpoint, .. }) = &signed {
            let found = if is_host { self.removals_of_host(checkpoint)? } else { self.removals_of_folder(checkpoint)? };
            compare(checkpoint, &found)?;
        }
        self.print(head, signed.as_ref(), terminal)
    }
}

impl Verify {
    /// Reads the signed checkpoint and checks its signature.
    fn signed(&self) -> Result<Option<Signed>, Report> {
        let Some(path) = &self.checkpoint else { return Ok(None) };
        let refused = || Report::new(Exit::Refused, format!("{} is not a valid checkpoint", path.display()));
        let mut text = String::new();
        let limit = u64::try_from(checkpoint::MAX_BYTES).unwrap_or(u64::MAX);
        let read = File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text));
        read.map_err(|error| unread(path.display(), error))?;
        let verified = checkpoint::verify(&text, self.key.as_deref());
        let (checkpoint, public_key) = verified.map_err(|error| refused().because(error))?;
        Ok(Some(Signed { checkpoint, public_key }))
    }

    /// The removals in the range of a checkpoint, in a folder that no host runs on.
    fn removals_of_folder(&self, checkpoint: &AuditCheckpoint) -> Result<Vec<RemovedByRule>, Report> {
        let folder = self.host.data.store(NO_STORE, "start the host, and name it with --url")?;
        let opened = store::open(&folder, &StoreSettings { migrates: false, ..StoreSettings::default() })?;
        let (after, to) = (Position(checkpoint.after), Position(checkpoint.position));
        Ok(runtime()?.block_on(checkpoint::removals(&opened, after, to))?)
    }

    /// The removals in the range of a checkpoint, as a running host reads them.
    fn removals_of_host(&self, checkpoint: &AuditCheckpoint) -> Result<Vec<RemovedByRule>, Report> {
        let client = Client::new(&self.host)?;
        let after = checkpoint.after.to_string();
        let query = [
            ("after", Some(after.as_str())),
            ("limit", Some(PAGE)),
            ("action", Some(dispatch::Action::TurnRemoved.as_str())),
        ];
        let mut removals = Removals::default();
        client.pages("/v1/audit", (&query, "entries"), None, |entry| {
            let entry: AuditEntry = parse(entry)?;
            if entry.position <= checkpoint.position {
                removals.add(entry.position, entry.rule.unwrap_or_default(), 1);
            }
            Ok(())
        })?;
        Ok(removals.into_rows())
    }

    /// Verifies a folder that no host runs on.
    fn of_folder(&self) -> Result<Result<Head, VerifyError>, Report> {
        let missing = "name the host's data folder with --data, or a host that keeps turns in memory with --url";
        let folder = self.host.data.store(missing, "start the host, and name it with --url")?;
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

    fn print(&self, head: Head, signed: Option<&Signed>, terminal: &Terminal) -> Result<(), Report> {
        let Head { position: Position(position), hash } = head;
        if self.json {
            let mut value =
                serde_json::json!({"position": position, "hash": hash.to_string(), "anchors": self.head.len()});
            if let Some(Signed { checkpoint, public_key }) = signed {
                let known = self.key.is_some();
                value["checkpoint"] =
                    serde_json::json!({"signed": checkpoint, "public_key": public_key, "key_compared": known});
            }
            return Ok(terminal.line(value.to_string())?);
        }
        let commits = if position == 1 { "commit" } else { "commits" };
        let verified = terminal.style(Style::Good, "verified");
        terminal.line(format!("{verified} {position} {commits}; the head is {position}:{hash}"))?;
        for Checkpoint { position, hash } in &self.head {
            let at = position.map_or_else(String::new, |at| format!("{}:", at.0));
            terminal.line(format!("  and {at}{hash} is part of it"))?;
        }
        if let Some(Signed { checkpoint, public_key }) = signed {
            terminal.line(format!("  signed at {} by {}", escape::line(&checkpoint.at), escape::line(public_key)))?;
            for RemovedByRule { rule, turns, first, last } in &checkpoint.removed {
                let noun = if *turns == 1 { "turn" } else { "turns" };
                let rule = escape::line(rule);
                terminal.line(format!("  {turns} {noun} removed, positions {first} to {last}: {rule}"))?;
            }
            if self.key.is_none() {
                terminal.note("the key was not compared with a known one; pass the public key with --key\n");
            }
        }
        if self.head.is_empty() {
            terminal
                .note("without --head, a chain that was rewritten as a whole or cut off at its end is not detected\n");
        }
        Ok(())
    }
}

/// Compares the removals that a checkpoint names with those of the audit.
fn compare(checkpoint: &AuditCheckpoint, found: &[RemovedByRule]) -> Result<(), Report> {
    let (after, to) = (checkpoint.after, checkpoint.position);
    let Some(row) = checkpoint.removed.iter().find(|row| !found.contains(row)) else {
        return match found.iter().find(|row| !checkpoint.removed.contains(row)) {
            Some(row) => Err(Report::new(
                Exit::Refused,
                format!("the checkpoint does not name removals after {after} up to {to}: {}", escape::line(&row.rule)),
            )),
            None => Ok(()),
        };
    };
    let RemovedByRule { rule, turns, .. } = row;
    let rule = escape::line(rule);
    let text = format!("the audit after {after} up to {to} does not have {turns} removed turns by the rule: {rule}");
    Err(Report::new(Exit::Refused, text))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removals_must_be_those_of_the_audit() {
        let row = |turns| RemovedByRule { rule: "old".to_owned(), turns, first: 2, last: 2 };
        let text = r#"{"format":1,"position":3,"hash":"","at":"","after":0,"removed":[{"rule":"old","turns":4,"first":2,"last":2}]}"#;
        let mut checkpoint: AuditCheckpoint = serde_json::from_str(text).expect("a checkpoint");
        assert!(compare(&checkpoint, &[row(4)]).is_ok());
        assert!(compare(&checkpoint, &[row(3)]).is_err(), "another number");
        assert!(compare(&checkpoint, &[]).is_err(), "a removal that is not in the audit");
        checkpoint.removed.clear();
        assert!(compare(&checkpoint, &[row(4)]).is_err(), "a removal that is not named");
    }
}
