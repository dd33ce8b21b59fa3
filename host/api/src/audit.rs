//! The audit: who did what, in order, and the chain that it hangs in.

use dispatch::ports::{Head, Link};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Verbatim, rfc3339};

/// A page of the audit.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    /// The entries, oldest first.
    pub entries: Vec<AuditEntry>,
    /// Where the next page begins: pass it as `after`. `null` where there was nothing more.
    pub next: Option<u64>,
    /// The head of the audit. Kept elsewhere, it is what `toolgate audit verify --head` compares with.
    pub head: AuditHead,
}

/// A point in the chain.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditHead {
    /// The position of the last commit; 0 if there is none.
    pub position: u64,
    /// Its hash, which covers everything before it.
    pub hash: String,
}

impl From<Head> for AuditHead {
    fn from(head: Head) -> Self {
        Self { position: head.position.0, hash: head.hash.to_string() }
    }
}

/// Something that happened, and whose doing it was.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Where its commit stands. Entries of one commit have the same.
    pub position: u64,
    /// The hash of the chain there.
    pub hash: String,
    /// When.
    pub at: String,
    /// Who; `system` for what the host does by itself.
    pub by: String,
    /// What: `turn.started`, `call.requested`, `approve`, `vote`, `delegate`,
    /// `escalate`, `link.made`, `link.used`, `standing.use`, `standing.revoke`, `deny`, `answer`, `result`, `error`, `expired`, `call.started`,
    /// `call.settled`, `cancel`, `turn.settled`, `plugin.loaded`, `plugin.rejected`, `plugin.unloaded`, `host.started`,
    /// `grants.changed`.
    pub action: String,
    /// In which conversation.
    pub conversation: Option<String>,
    /// In which turn.
    pub turn: Option<String>,
    /// About which call.
    pub call: Option<String>,
    /// Of which tool or plugin.
    pub subject: Option<String>,
    /// Of which plugin the tool is.
    pub plugin: Option<String>,
    /// Which component: the digest of its bytes.
    pub component: Option<String>,
    /// The digest of what it declares of the tool.
    pub declaration: Option<String>,
    /// The SHA-256 of the arguments' exact text.
    pub arguments: Option<String>,
    /// By which suspension.
    pub suspension: Option<String>,
    /// Bound to what: the digest over arguments, component and declaration; or a component's own.
    pub digest: Option<String>,
    /// Which of the answers that a question allows.
    pub answer: Option<String>,
    /// Which attempt at the call.
    pub attempt: Option<u32>,
    /// Which run of the host.
    pub owner: Option<String>,
    /// How the call or the turn ended.
    pub outcome: Option<String>,
    /// The code of what failed.
    pub code: Option<String>,
    /// The SHA-256 of the result's exact text.
    pub result: Option<String>,
    /// The arguments that took the place of the submitted ones.
    pub edited: Option<Verbatim>,
    /// Why.
    pub comment: Option<String>,
    /// The operator's rule or policy that decided about the call.
    pub rule: Option<String>,
    /// Which standing approval was given, used or taken back.
    pub standing: Option<String>,
    /// To whom a say was handed on, or for whom a link is.
    pub to: Option<String>,
    /// `link`, where whoever did it came by a link.
    pub via: Option<String>,
    /// Which link was made or used, or by which they came. It opens nothing.
    pub link: Option<String>,
    /// The webhook that is sent the link.
    pub webhook: Option<String>,
    /// Until when the link counts.
    pub until: Option<String>,
    /// The version of the host.
    pub version: Option<String>,
    /// The tools of a plugin that are live.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Why a plugin was refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// The grants that were in force; of `grants.changed`, those that were added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<String>,
    /// The grants that there are no longer.
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
            action: entry.action.as_str().to_owned(),
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
            outcome: text(&entry.outcome),
            code: text(&entry.code),
            result: text(&entry.result),
            edited: entry.edited.as_ref().map(Verbatim::from),
            comment: entry.comment.clone(),
            rule: entry.rule.clone(),
            standing: text(&entry.standing),
            to: text(&entry.to),
            via: super::via(entry.link.filter(|_| !entry.action.is_of_link())),
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

/// A page of the chain: what is needed to work every hash out anew.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditChain {
    /// The links, oldest first.
    pub links: Vec<AuditLink>,
    /// Where the next page begins: pass it as `after`. `null` where there was nothing more.
    pub next: Option<u64>,
    /// The head of the audit.
    pub head: AuditHead,
}

/// A link of the chain.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditLink {
    /// Where it stands: 1, 2, 3, …
    pub position: u64,
    /// Its hash, as it was stored.
    pub hash: String,
    /// Where its record is, in hexadecimal, as it is hashed.
    pub source: String,
    /// The digest that the record has now; absent if the record is missing or damaged.
    pub record: Option<String>,
}

impl From<&Link> for AuditLink {
    fn from(link: &Link) -> Self {
        use std::fmt::Write as _;
        let source = link.source.to_bytes().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        Self {
            position: link.head.position.0,
            hash: link.head.hash.to_string(),
            source,
            record: link.record.map(|record| record.to_string()),
        }
    }
}
