//! The text of tokens: a versioned JSON object, in a file or in a document of the database. A change replaces the file, and only its
//! owner can read it.

use std::io;
use std::path::Path;

use domain::{ConversationId, Digest, PrincipalId, Timestamp, ids::Group, principal::Role};
use serde::{Deserialize, Serialize};

use super::TokenError;
use crate::files::{existing, replace};

/// The version that is written. All versions up to it are read.
const VERSION: u32 = 1;

/// The holder of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenHolder {
    /// The unique name, as the audit log shows it.
    pub name: PrincipalId,
    /// The roles of the holder.
    pub roles: Vec<Role>,
    /// The groups of the holder. Rules can require the approval of a group.
    pub groups: Vec<Group>,
    /// The only conversation that the holder can see, if there is a restriction.
    pub conversation: Option<ConversationId>,
    /// The time at which the token was made.
    pub created_at: Timestamp,
}

/// The content of the file: each holder with the SHA-256 of the token.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) tokens: Vec<(TokenHolder, [u8; 32])>,
}

/// Distinguishes states without reading them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    /// A replaced file has another inode.
    File { length: u64, modified: Option<std::time::SystemTime>, inode: u64 },
    /// The version of a document.
    Version(i64),
}

/// The member of every version. It is read first, because later versions may have other members.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
    /// Whether the tokens are in the database.
    #[serde(default)]
    moved: bool,
}

/// Version 1.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    tokens: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    roles: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<String>,
    created_at_ms: u64,
    sha256: String,
}

impl Stamp {
    /// `None` if there is no file.
    pub(super) fn of(path: &Path) -> io::Result<Option<Self>> {
        let found = existing(std::fs::metadata(path))?;
        Ok(found.map(|found| Self::File { length: found.len(), modified: found.modified().ok(), inode: inode(&found) }))
    }
}

#[cfg(unix)]
fn inode(found: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(found)
}

#[cfg(not(unix))]
fn inode(_: &std::fs::Metadata) -> u64 {
    0
}

impl Content {
    /// Reads the file. A missing file has no tokens.
    pub(super) fn read(path: &Path) -> Result<Self, TokenError> {
        let failed = |reason| TokenError::Io { attempted: "read", path: path.to_owned(), reason };
        let text = existing(std::fs::read(path)).map_err(failed)?;
        text.map_or_else(|| Ok(Self::default()), |text| Self::parse(&text, path))
    }

    /// Parses a text. Errors name its place.
    pub(super) fn parse(text: &[u8], path: &Path) -> Result<Self, TokenError> {
        let unreadable = |reason: String| TokenError::Unreadable { path: path.to_owned(), reason };
        let not_json = |error: serde_json::Error| unreadable(error.to_string());
        let Versioned { version, moved } = serde_json::from_slice(text).map_err(not_json)?;
        if moved {
            return Err(TokenError::Moved(path.to_owned()));
        }
        let written: Written = match version {
            1 => serde_json::from_slice(text).map_err(not_json)?,
            found if found > VERSION => {
                return Err(TokenError::Newer { path: path.to_owned(), found, known: VERSION });
            }
            found => return Err(unreadable(format!("no toolgate writes the version {found}"))),
        };
        let tokens = written.tokens.into_iter().map(Row::read).collect::<Result<_, _>>().map_err(unreadable)?;
        Ok(Self { tokens })
    }

    pub(super) fn to_text(&self) -> Result<Vec<u8>, TokenError> {
        let tokens = self.tokens.iter().map(|(holder, digest)| Row::written(holder, *digest)).collect();
        serde_json::to_vec_pretty(&Written { version: VERSION, tokens }).map_err(|error| TokenError::Io {
            attempted: "write",
            path: "tokens".into(),
            reason: error.into(),
        })
    }

    /// Replaces the file and syncs it to disk.
    pub(super) fn write(&self, path: &Path) -> Result<(), TokenError> {
        let failed = |reason| TokenError::Io { attempted: "write", path: path.to_owned(), reason };
        replace(path, &self.to_text()?).map_err(failed)
    }
}

impl Row {
    fn written(holder: &TokenHolder, digest: [u8; 32]) -> Self {
        Self {
            name: holder.name.to_string(),
            roles: holder.roles.iter().map(|role| role.as_str().to_owned()).collect(),
            groups: holder.groups.iter().map(ToString::to_string).collect(),
            conversation: holder.conversation.as_ref().map(ToString::to_string),
            created_at_ms: holder.created_at.millis(),
            sha256: Digest::from_bytes(digest).hex(),
        }
    }

    fn read(self) -> Result<(TokenHolder, [u8; 32]), String> {
        let digest: Digest = self.sha256.parse().map_err(|error| format!("{error}"))?;
        let holder = TokenHolder {
            name: self.name.parse().map_err(|error| format!("{error}"))?,
            roles: self.roles.iter().map(|role| role.parse()).collect::<Result<_, _>>().map_err(|e| format!("{e}"))?,
            groups: self
                .groups
                .iter()
                .map(|name| name.parse())
                .collect::<Result<_, _>>()
                .map_err(|e| format!("{e}"))?,
            conversation: self.conversation.map(|id| id.parse()).transpose().map_err(|error| format!("{error}"))?,
            created_at: Timestamp::from_millis(self.created_at_ms),
        };
        Ok((holder, *digest.as_bytes()))
    }
}
