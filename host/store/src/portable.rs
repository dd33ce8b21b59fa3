//! The portable form of a store: JSON lines that each backend writes and reads. So the turns can move between a data folder and a
//! database, and an export is a file that other programs can read.
//!
//! ```text
//! {"store":{"format":1,"position":7,"hash":"sha256:…"}}         the head of the audit
//! {"commit":{"position":1,"hash":"sha256:…","source":"started","content":{"record":{"version":1,"json":{…}}}}}
//! …                                                              in the order of `Line`
//! {"end":{"lines":42,"digest":"sha256:…"}}                       of all lines before it
//! ```
//!
//! Records are as they are stored: a version, and JSON with the same bytes, because the audit has their digests. So a record keeps
//! its version until something writes it again. Everything that follows from other lines is left out, and the import makes it again:
//! feeds, due times, the inbox, counts and usage. The lines of a kind have one order, so stores with the same content have the
//! same lines.
//!
//! An import does not trust its lines. Each kind has a maximum size, and each record a maximum of memory (`bounds.rs`). The keys of the
//! lines of a kind ascend, so none is there twice (`order.rs`).

pub(crate) mod bounds;
mod item;
mod order;
mod read;
mod write;

use std::error::Error;
use std::{fmt, io};

use dispatch::ports::{Head, Position, Source, StoreFault, Tampering};
use domain::{
    CallId, CallIndex, ConversationId, Digest, PrincipalId, Timestamp, TurnId, event::TurnEnd, journal::Entry,
};
use serde::de::Visitor;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use self::bounds::{DOCUMENTS, MAX_RECORD};
pub(crate) use self::item::{CommitItem, Content, Item, Recorded};
pub(crate) use self::order::Key;
pub(crate) use self::read::LineReader;
#[cfg(feature = "postgres")]
pub(crate) use self::read::damaged;
pub(crate) use self::write::LineWriter;
use crate::OpenError;
use crate::record::field;

/// The format of the lines. A change that an older version would misread needs the next number.
const FORMAT: u32 = 1;

/// The result of an export or an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// The number of lines, without the last one.
    pub lines: u64,
    /// The head of the audit.
    pub head: Head,
}

/// A part of an export that a data folder has in files of its own.
pub enum Shared {
    /// A document, such as the tokens.
    Document { name: String, body: Vec<u8> },
    /// A component with the record of its tools.
    Component { digest: Digest, bytes: Vec<u8>, record: Vec<u8> },
}

/// Why an export ended early. An import refuses the lines that were written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// The database cannot be used.
    #[error(transparent)]
    Database(Box<dyn Error + Send + Sync>),
    #[error("cannot write the export")]
    Write(#[source] io::Error),
}

/// Why nothing was imported, or why this is unknown.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("cannot read the export")]
    Read(#[source] io::Error),
    #[error("this is not an export of a store: its first line does not say so")]
    NotAnExport,
    #[error("the export has the format {found}, and this toolgate knows {known}; use a newer toolgate")]
    Newer { found: u32, known: u32 },
    #[error("line {line} is damaged: {reason}")]
    Damaged { line: u64, reason: String },
    /// Of a kind whose size no setting of a host changes.
    #[error("line {line} is too long: no toolgate writes a line of the kind `{kind}` with more than {max} bytes")]
    TooLong { line: u64, kind: &'static str, max: usize },
    #[error("line {line} is too long: it has a record of more than {max} bytes, and this import takes no larger one")]
    LargeRecord { line: u64, max: usize },
    #[error(
        "line {line} has too many values: its record takes more than {max} bytes of memory, and this import takes no more of one record"
    )]
    ManyValues { line: u64, max: u64 },
    #[error(
        "{turn} is too long: its records take more than {max} bytes of memory, and this import takes no more of one turn"
    )]
    LargeTurn { turn: TurnId, max: u64 },
    #[error("line {line} is of a newer toolgate: {reason}")]
    NewerRecord { line: u64, reason: String },
    #[error("the export ends after line {line} without its last line: it was cut off")]
    Truncated { line: u64 },
    #[error("the export is not as it was written: {0}")]
    Altered(String),
    #[error("{target} is not empty: it has {content}")]
    NotEmpty { target: String, content: String },
    #[error("the host `{host}` uses the database; stop all hosts on it")]
    InUse { host: String },
    #[error("the audit of the export cannot be verified")]
    Unverified(#[source] Tampering),
    #[error(
        "the database did not answer at the end, so all or nothing is imported; an import into a database that has it is refused"
    )]
    Unanswered(#[source] StoreFault),
    #[error("the audit ends at {found}, and the first line says {expected}")]
    OtherHead { expected: Head, found: Head },
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// The database cannot be used.
    #[error(transparent)]
    Database(Box<dyn Error + Send + Sync>),
}

/// One line. The lines of a file are in the order of these kinds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Line {
    /// The first line, with the head of the audit.
    Store {
        format: u32,
        position: u64,
        #[serde(with = "field")]
        hash: Digest,
    },
    /// The time that retention goes by.
    RetentionTime {
        #[serde(with = "field")]
        at: Timestamp,
    },
    /// An entry of the audit, by position.
    Commit {
        position: u64,
        #[serde(with = "field")]
        hash: Digest,
        source: Place,
        content: Stored,
    },
    /// By conversation.
    Owner {
        #[serde(with = "field")]
        conversation: ConversationId,
        #[serde(with = "field")]
        owner: PrincipalId,
    },
    /// A call id that no log names any more, because its turn was removed. By the length of the conversation's name, the name, and
    /// the id.
    Call {
        #[serde(with = "field")]
        conversation: ConversationId,
        #[serde(with = "field")]
        id: CallId,
        #[serde(with = "field")]
        turn: TurnId,
    },
    /// By id.
    Suspension(StoredRecord),
    /// By the time of the end and the turn. The bytes are its size, and the position is that of the commit that ended it.
    EndedTurn {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        position: Option<u64>,
        #[serde(with = "field")]
        end: TurnEnd,
        bytes: u64,
        record: StoredRecord,
    },
    /// A standing approval, by id.
    Standing {
        used: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revoked: Option<Revocation>,
        record: StoredRecord,
    },
    /// By the length of the conversation's name, the name, and the digest.
    Denial {
        #[serde(with = "field")]
        conversation: ConversationId,
        #[serde(with = "field")]
        alike: Digest,
        #[serde(with = "field")]
        at: Timestamp,
    },
    /// By the id of its subject, the number of its event, and the webhook.
    Delivery(StoredRecord),
    /// By turn, call and run.
    RunLog(StoredRecord),
    /// The state of a journal, by turn and call. Without a run, nothing is appended.
    Journal {
        #[serde(with = "field")]
        turn: TurnId,
        #[serde(with = "field")]
        call: CallIndex,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<u32>,
        length: u32,
    },
    /// By turn, call and number.
    JournalEntry {
        #[serde(with = "field")]
        turn: TurnId,
        #[serde(with = "field")]
        call: CallIndex,
        record: StoredRecord,
    },
    /// A value of a plugin, by key. Both are hexadecimal. The key is the namespace and the bucket, each after its length in two bytes,
    /// and the name.
    Value { key: Hex, value: Hex },
    /// A file that hosts on a database share, such as that of the tokens, by name. A data folder has files instead.
    Document { name: String, body: Hex },
    /// A component that hosts on a database share, with the record of its tools, by digest. A data folder has files instead.
    Component {
        #[serde(with = "field")]
        digest: Digest,
        bytes: Hex,
        record: Hex,
    },
    /// The last line, with the number and the digest of the lines before it.
    End {
        lines: u64,
        #[serde(with = "field")]
        digest: Digest,
    },
}

/// Where the record of a commit belongs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Place {
    Turn {
        #[serde(with = "field")]
        turn: TurnId,
        number: u32,
        #[serde(with = "field")]
        conversation: ConversationId,
    },
    Plugin,
    Started,
    Revoked,
    Removal,
}

/// The record of a commit, or its remains.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Stored {
    Record(StoredRecord),
    /// The commit at a later position removed it.
    Removed {
        #[serde(with = "field")]
        digest: Digest,
        by: u64,
    },
}

/// Who revoked a standing approval.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Revocation {
    #[serde(with = "field")]
    pub(crate) by: PrincipalId,
    #[serde(with = "field")]
    pub(crate) at: Timestamp,
}

/// The stored form of a record.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredRecord {
    version: u8,
    json: Box<RawValue>,
}

impl StoredRecord {
    /// `None`: the bytes are no JSON on one line behind a version, so no host wrote them.
    pub(crate) fn of(record: &[u8]) -> Option<Self> {
        let (&version, text) = record.split_first()?;
        let json: Box<RawValue> = serde_json::from_slice(text).ok()?;
        let is_whole = json.get().as_bytes() == text && !text.contains(&b'\n');
        is_whole.then_some(Self { version, json })
    }

    fn into_bytes(self) -> Vec<u8> {
        let mut bytes = String::from(Box::<str>::from(self.json)).into_bytes();
        bytes.insert(0, self.version);
        bytes
    }
}

/// Bytes as hexadecimal digits.
#[derive(Debug)]
pub(crate) struct Hex(pub(crate) Vec<u8>);

impl Serialize for Hex {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0))
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Digits)
    }
}

/// Reads hexadecimal digits without a copy of them.
struct Digits;

impl Visitor<'_> for Digits {
    type Value = Hex;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hexadecimal digits")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Hex, E> {
        let digit = |byte: u8| char::from(byte).to_digit(16).filter(|_| !byte.is_ascii_uppercase());
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok();
        let bytes = pairs.iter().map(byte).collect::<Option<Vec<u8>>>().filter(|_| rest.is_empty());
        bytes.map(Hex).ok_or_else(|| E::custom("expected hexadecimal digits"))
    }
}

impl Place {
    /// `None`: a commit of a turn needs a conversation.
    pub(crate) fn of(source: Source, conversation: Option<ConversationId>) -> Option<Self> {
        Some(match source {
            Source::Turn { turn, number } => Self::Turn { turn, number, conversation: conversation? },
            Source::Plugin => Self::Plugin,
            Source::Started => Self::Started,
            Source::Revoked => Self::Revoked,
            Source::Removal => Self::Removal,
        })
    }

    fn source(self) -> (Source, Option<ConversationId>) {
        match self {
            Self::Turn { turn, number, conversation } => (Source::Turn { turn, number }, Some(conversation)),
            Self::Plugin => (Source::Plugin, None),
            Self::Started => (Source::Started, None),
            Self::Revoked => (Source::Revoked, None),
            Self::Removal => (Source::Removal, None),
        }
    }
}

/// Compares the head of a verified store with that of the first line.
pub(crate) fn same_head(expected: Head, found: Head) -> Result<(), ImportError> {
    if expected == found { Ok(()) } else { Err(ImportError::OtherHead { expected, found }) }
}

/// An entry of a journal with the call that it belongs to.
pub(crate) struct EntryItem {
    pub(crate) turn: TurnId,
    pub(crate) call: CallIndex,
    pub(crate) entry: Recorded<Entry>,
}

const fn head(position: u64, hash: Digest) -> Head {
    Head { position: Position(position), hash }
}
