//! The audit: all actions in order, and the hash chain over them.

use dispatch::ports::{ChainEntry, Head, Recorded};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Action, Ended, FailureCode, Verbatim, Via, rfc3339};

/// A page of the audit.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    /// The entries, oldest first.
    pub entries: Vec<AuditEntry>,
    /// Where the next page begins: pass it as `after`. `null` on the last page.
    pub next: Option<u64>,
    /// The head of the audit. Store it elsewhere as a checkpoint for `toolgate audit verify --head`.
    pub head: AuditHead,
}

/// A position and hash of the chain.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditHead {
    /// The position of the last commit, or 0 before the first.
    pub position: u64,
    /// Its hash, which covers all commits before it.
    pub hash: String,
}

impl From<Head> for AuditHead {
    fn from(head: Head) -> Self {
        Self { position: head.position.0, hash: head.hash.to_string() }
    }
}

/// A signed checkpoint: the head of the audit after retention removed turns, and how many turns each rule removed.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignedCheckpoint {
    /// The signed JSON text, to the byte.
    pub checkpoint: String,
    /// The Ed25519 signature of the text, in base64url.
    pub signature: String,
    /// The public key that verifies it: `ed25519:` and 32 bytes in base64url.
    pub public_key: String,
}

/// One action, and who did it.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// The position of its commit. Entries of one commit share it.
    pub position: u64,
    /// The hash of the chain at this position.
    pub hash: String,
    /// When it happened.
    pub at: String,
    /// The principal. `system` is the host itself.
    pub by: String,
    /// The kind of action.
    pub action: Action,
    /// The conversation that it concerns.
    pub conversation: Option<String>,
    /// The turn that it concerns.
    pub turn: Option<String>,
    /// The call that it concerns, by the caller's id.
    pub call: Option<String>,
    /// The tool or plugin.
    pub subject: Option<String>,
    /// The plugin that offers the tool.
    pub plugin: Option<String>,
    /// The digest of the component.
    pub component: Option<String>,
    /// The digest of the tool's declaration.
    pub declaration: Option<String>,
    /// The SHA-256 of the arguments' exact text.
    pub arguments: Option<String>,
    /// The suspension that it concerns.
    pub suspension: Option<String>,
    /// The digest over arguments, component and declaration, or the digest of a plugin's component.
    pub digest: Option<String>,
    /// The chosen answer to a question.
    pub answer: Option<String>,
    /// The number of the attempt at the call.
    pub attempt: Option<u32>,
    /// The run of the host.
    pub owner: Option<String>,
    /// How the call or the turn ended.
    pub outcome: Option<Ended>,
    /// The code of the failure.
    pub code: Option<FailureCode>,
    /// The SHA-256 of the result's exact text.
    pub result: Option<String>,
    /// The edited arguments that replaced the submitted ones.
    pub edited: Option<Verbatim>,
    /// The comment of the principal.
    pub comment: Option<String>,
    /// The operator's rule or policy that decided the call, or the rule of retention that removed the turn.
    pub rule: Option<String>,
    /// The standing approval that was given, used or revoked.
    pub standing: Option<String>,
    /// The principal who received a delegation or a link, or whose authority ended.
    pub to: Option<String>,
    /// The channel that the principal used for an answer, a vote or a delegation. Absent if an older host recorded it.
    pub via: Option<Via>,
    /// The id of the link that was made or used. It is not the secret of the link.
    pub link: Option<String>,
    /// The webhook that receives the link.
    pub webhook: Option<String>,
    /// When the link expires.
    pub until: Option<String>,
    /// The version of the host.
    pub version: Option<String>,
    /// The live tools of a plugin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Why a plugin was rejected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// The grants in force. For `grants.changed`, the added ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<String>,
    /// The removed grants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked: Vec<String>,
}

impl From<&(Head, dispatch::AuditEntry)> for AuditEntry {
    fn from((head, entry): &(Head, dispatch::AuditEntry)) -> Self {
        fn text(value: &Option<impl ToString>) -> Option<String> {
            value.as_ref().map(ToString::to_string)
        }
        Self {
            position: head.position.0,
            hash: head.hash.to_string(),
            at: rfc3339(entry.at),
            by: entry.by.to_string(),
            action: Action(entry.action),
            conversation: text(&entry.conversation),
            turn: text(&entry.turn),
            call: text(&entry.call),
            subject: entry.subject.clone(),
            plugin: text(&entry.plugin),
            component: text(&entry.component),
            declaration: text(&entry.declaration),
            arguments: text(&entry.arguments),
            suspension: text(&entry.suspension),
            digest: text(&entry.digest),
            answer: entry.answer.clone(),
            attempt: entry.attempt,
            owner: text(&entry.owner),
            outcome: entry.outcome.as_ref().map(Ended::from),
            code: entry.code.map(FailureCode),
            result: text(&entry.result),
            edited: entry.edited.as_ref().map(Verbatim::from),
            comment: entry.comment.clone(),
            rule: entry.rule.clone(),
            standing: text(&entry.standing),
            to: text(&entry.to),
            via: entry.via.map(Via),
            link: text(&entry.link),
            webhook: entry.webhook.clone(),
            until: entry.until.map(rfc3339),
            version: entry.version.clone(),
            tools: entry.tools.clone(),
            findings: entry.findings.clone(),
            grants: entry.grants.clone(),
            revoked: entry.revoked.clone(),
        }
    }
}

/// A page of the chain, with everything that is needed to recompute its hashes.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditChain {
    /// The entries of the chain, oldest first.
    pub links: Vec<AuditLink>,
    /// Where the next page begins: pass it as `after`. `null` on the last page.
    pub next: Option<u64>,
    /// The head of the audit.
    pub head: AuditHead,
}

/// An entry of the chain.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditLink {
    /// Its position: 1, 2, 3, …
    pub position: u64,
    /// Its stored hash.
    pub hash: String,
    /// The key of its record, in hexadecimal, as it is hashed.
    pub source: String,
    /// The current digest of the record, or the digest that a removed record left. Absent if the record is missing or
    /// damaged.
    pub record: Option<String>,
    /// The position of the later entry that says that the record was removed. Absent if it was not removed.
    pub removed_by: Option<u64>,
}

impl From<&ChainEntry> for AuditLink {
    fn from(link: &ChainEntry) -> Self {
        use std::fmt::Write as _;
        let source = link.source.to_bytes().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let (record, removed_by) = match link.record {
            Recorded::Kept(digest) => (Some(digest), None),
            Recorded::Removed { digest, by: Some(by) } => (Some(digest), Some(by.0)),
            Recorded::Removed { by: None, .. } | Recorded::Missing => (None, None),
        };
        let (hash, record) = (link.head.hash.to_string(), record.map(|record| record.to_string()));
        Self { position: link.head.position.0, hash, source, record, removed_by }
    }
}
