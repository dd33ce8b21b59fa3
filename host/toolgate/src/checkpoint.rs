//! Signed checkpoints of the audit: a head of the chain, and the turns that retention removed since the checkpoint before.
//!
//! A file has a JSON text, its Ed25519 signature, and the public key. The key is in the data folder, in `audit-key`, or comes from
//! the secret that the hosts on one database share. A host makes it at its first start.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::SignedCheckpoint;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use dispatch::Handle;
use dispatch::ports::{Audit, ChainEntry, Clock, Head, Position, Store, StoreFault};
use domain::Timestamp;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::files::{existing, replace};
use crate::folder;
use crate::keys::Keys;

/// The folder with the checkpoints, in the data folder.
pub(crate) const FOLDER: &str = "checkpoints";

/// The checkpoints that are kept. The oldest are removed first.
const MAX_FILES: usize = 64;

/// The maximum size of a checkpoint's file, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// The format of the text that is written. All formats up to it are read.
const FORMAT: u32 = 1;

/// The prefix of every signed text. It separates these signatures from all others.
const DOMAIN: &[u8] = b"toolgate audit checkpoint 1\n";

/// The prefix of a public key. Its 32 bytes follow in base64url.
const ALGORITHM: &str = "ed25519:";

/// Removals that are read at a time.
const AT_ONCE: usize = 64;

/// The signed text of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditCheckpoint {
    format: u32,
    /// The position of the head.
    pub position: u64,
    /// The hash of the head, as `sha256:…`.
    pub hash: String,
    /// When it was signed.
    pub at: String,
    /// The removals after this position and up to `position` are listed.
    pub after: u64,
    /// The removed turns: one row for each rule, sorted by rule.
    pub removed: Vec<RemovedByRule>,
}

/// The member of every format. It is read first, because later formats may have other members and other signatures.
#[derive(Deserialize)]
struct Formatted {
    format: u32,
}

/// The turns that one rule removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovedByRule {
    /// The rule, as the audit names it.
    pub rule: String,
    /// The number of turns.
    pub turns: u64,
    /// The position of the first removal.
    pub first: u64,
    /// The position of the last removal.
    pub last: u64,
}

/// Counts removals by rule.
#[derive(Debug, Default)]
pub struct Removals(BTreeMap<String, RemovedByRule>);

impl Removals {
    /// Adds turns that the entry at this position removed. Positions must not decrease.
    pub fn add(&mut self, at: u64, rule: String, turns: u64) {
        let new = RemovedByRule { rule: rule.clone(), turns: 0, first: at, last: at };
        let row = self.0.entry(rule).or_insert(new);
        row.turns = row.turns.saturating_add(turns);
        row.last = at;
    }

    /// One row for each rule, sorted by rule.
    #[must_use]
    pub fn into_rows(self) -> Vec<RemovedByRule> {
        self.0.into_values().collect()
    }
}

/// The removals after a position and up to another one, as the audit of a store has them.
///
/// # Errors
/// [`StoreFault`]
pub async fn removals(
    audit: &(impl Audit + ?Sized),
    mut after: Position,
    to: Position,
) -> Result<Vec<RemovedByRule>, StoreFault> {
    let mut counted = Removals::default();
    while after < to {
        let page = audit.removals(after, AT_ONCE).await?;
        let Some((last, _)) = page.last() else { break };
        after = *last;
        for (at, removal) in page.into_iter().filter(|(at, removal)| *at <= to && !removal.turns.is_empty()) {
            let turns = u64::try_from(removal.turns.len()).unwrap_or(u64::MAX);
            counted.add(at.0, removal.rule.to_string(), turns);
        }
    }
    Ok(counted.into_rows())
}

/// Why a file is not a valid checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// It cannot be read as one.
    #[error("it is not a signed checkpoint that this version of toolgate can read: {0}")]
    Unknown(String),
    /// A newer toolgate wrote it.
    #[error("it has the format {found}, and this toolgate knows {known}; use a newer toolgate")]
    Newer {
        /// Its format.
        found: u32,
        /// The newest format that this toolgate reads.
        known: u32,
    },
    /// Its text was changed, or the key that it names did not sign it.
    #[error("its signature is not valid: the text, the signature or the key was changed")]
    Signature,
    /// Another key signed it.
    #[error("{found} signed it, and not {expected}")]
    OtherKey {
        /// The key that it names.
        found: String,
        /// The key that must have signed it.
        expected: String,
    },
}

/// Reads a file with a checkpoint and checks its signature. Returns the checkpoint and the public key that signed it. That
/// key proves something only if it is known from elsewhere: pass it as `known`.
///
/// # Errors
/// [`CheckpointError`]
pub fn verify(file: &str, known: Option<&str>) -> Result<(AuditCheckpoint, String), CheckpointError> {
    let unknown = |error: serde_json::Error| CheckpointError::Unknown(error.to_string());
    let signed: SignedCheckpoint = serde_json::from_str(file).map_err(unknown)?;
    let Formatted { format } = serde_json::from_str(&signed.checkpoint).map_err(unknown)?;
    if format > FORMAT {
        return Err(CheckpointError::Newer { found: format, known: FORMAT });
    }
    if let Some(expected) = known.filter(|known| *known != signed.public_key) {
        return Err(CheckpointError::OtherKey { found: signed.public_key, expected: expected.to_owned() });
    }
    let key = signed.public_key.strip_prefix(ALGORITHM).and_then(|key| BASE64.decode(key).ok());
    let key = key.ok_or_else(|| CheckpointError::Unknown("its public key is not an Ed25519 key".to_owned()))?;
    let signature = BASE64.decode(&signed.signature).map_err(|_| CheckpointError::Signature)?;
    let text = [DOMAIN, signed.checkpoint.as_bytes()].concat();
    UnparsedPublicKey::new(&ED25519, key).verify(&text, &signature).map_err(|_| CheckpointError::Signature)?;
    let checkpoint: AuditCheckpoint = match format {
        1 => serde_json::from_str(&signed.checkpoint).map_err(unknown)?,
        found => return Err(CheckpointError::Unknown(format!("no toolgate writes the format {found}"))),
    };
    Ok((checkpoint, signed.public_key))
}

/// The key that signs checkpoints.
struct Key(Ed25519KeyPair);

impl Key {
    /// Reads the key, or makes it.
    fn open(keys: &Keys) -> io::Result<Self> {
        let (seed, is_new) = keys.audit()?;
        let key = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|error| io::Error::other(error.to_string()))?;
        let key = Self(key);
        let public_key = key.public();
        if is_new {
            tracing::warn!(
                public_key,
                "made a new key that signs checkpoints of the audit; keep the public key elsewhere"
            );
        }
        Ok(key)
    }

    fn public(&self) -> String {
        format!("{ALGORITHM}{}", BASE64.encode(self.0.public_key()))
    }

    /// Signs a checkpoint. Returns the file's text.
    fn sign(&self, checkpoint: &AuditCheckpoint) -> io::Result<String> {
        let text = serde_json::to_string(checkpoint)?;
        let signature = BASE64.encode(self.0.sign(&[DOMAIN, text.as_bytes()].concat()));
        let signed = SignedCheckpoint { checkpoint: text, signature, public_key: self.public() };
        Ok(serde_json::to_string_pretty(&signed)? + "\n")
    }
}

/// The public key that verifies the checkpoints of a host. Makes the key if it is missing.
///
/// # Errors
/// When the key cannot be read or written.
pub(crate) fn public_key(keys: &Keys) -> io::Result<String> {
    Key::open(keys).map(|key| key.public())
}

/// If turns were removed since the newest checkpoint, signs the head and these removals, and writes them to `checkpoints` in
/// the data folder, with the key in the folder.
///
/// # Errors
/// When the audit cannot be read, or the key or the file cannot be read or written.
pub async fn write(audit: &(impl Audit + ?Sized), data: &Path, now: Timestamp) -> io::Result<Option<PathBuf>> {
    write_with(audit, data, Keys::Folder(data.to_owned()), now).await
}

async fn write_with(
    audit: &(impl Audit + ?Sized),
    data: &Path,
    keys: Keys,
    now: Timestamp,
) -> io::Result<Option<PathBuf>> {
    let head = audit.head().await.map_err(io::Error::other)?;
    let data = data.to_owned();
    let after = last(audit, &data.join(FOLDER), head.position).await?;
    let removed = removals(audit, after, head.position).await.map_err(io::Error::other)?;
    if removed.is_empty() {
        return Ok(None);
    }
    let Head { position: Position(position), hash } = head;
    let (hash, at) = (hash.to_string(), domain::rfc3339(now));
    let checkpoint = AuditCheckpoint { format: FORMAT, position, hash, at, after: after.0, removed };
    let save = move || save(&data, &Key::open(&keys)?, &checkpoint);
    tokio::task::spawn_blocking(save).await.map_err(io::Error::other)?.map(Some)
}

/// The position of the newest checkpoint in a folder that is of this audit. A file of another history does not count: the
/// store may have been restored from a backup.
async fn last(audit: &(impl Audit + ?Sized), folder: &Path, head: Position) -> io::Result<Position> {
    for position in positions(folder)?.into_iter().rev().filter(|at| (1..=head.0).contains(at)) {
        let Some((checkpoint, _)) = usable(folder, position)? else { continue };
        let entry = audit.chain(Position(position - 1), 1).await.map_err(io::Error::other)?;
        let is_of_audit = |entry: &ChainEntry| entry.head.hash.to_string() == checkpoint.hash;
        if checkpoint.position == position && entry.first().is_some_and(is_of_audit) {
            return Ok(Position(position));
        }
    }
    Ok(Position(0))
}

/// The newest checkpoint in a data folder that is not damaged.
///
/// # Errors
/// When the folder or the file cannot be read.
pub(crate) fn newest(data: &Path) -> io::Result<Option<SignedCheckpoint>> {
    let folder = data.join(FOLDER);
    // A newer one may replace it meanwhile.
    for position in positions(&folder)?.into_iter().rev() {
        if let Some((_, text)) = usable(&folder, position)? {
            return Ok(Some(serde_json::from_str(&text)?));
        }
    }
    Ok(None)
}

/// The checkpoint at a position, and the text of its file. `None` if the file is missing or damaged.
fn usable(folder: &Path, position: u64) -> io::Result<Option<(AuditCheckpoint, String)>> {
    let Some(text) = read(folder, position)? else { return Ok(None) };
    match verify(&text, None) {
        Ok((checkpoint, _)) => Ok(Some((checkpoint, text))),
        // An older one would repeat the removals of this one.
        Err(error @ CheckpointError::Newer { .. }) => {
            Err(io::Error::other(format!("{}: {error}", path_of(folder, position).display())))
        }
        Err(error) => {
            tracing::warn!(%error, position, "a checkpoint is damaged, and an older one is used instead");
            Ok(None)
        }
    }
}

fn path_of(folder: &Path, position: u64) -> PathBuf {
    folder.join(format!("{position}.json"))
}

/// The text of a file. Bytes in it that are not text are damage, which [`verify`] finds.
fn read(folder: &Path, position: u64) -> io::Result<Option<String>> {
    let Some(file) = existing(File::open(path_of(folder, position)))? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn save(data: &Path, key: &Key, checkpoint: &AuditCheckpoint) -> io::Result<PathBuf> {
    let (folder, text) = (data.join(FOLDER), key.sign(checkpoint)?);
    folder::private(&folder)?;
    let path = path_of(&folder, checkpoint.position);
    replace(&path, text.as_bytes())?;
    let positions = positions(&folder)?;
    for oldest in &positions[..positions.len().saturating_sub(MAX_FILES)] {
        fs::remove_file(path_of(&folder, *oldest))?;
    }
    File::open(&folder)?.sync_all()?;
    Ok(path)
}

/// The positions of the checkpoints in a folder, in ascending order.
fn positions(folder: &Path) -> io::Result<Vec<u64>> {
    let mut positions = Vec::new();
    for file in existing(fs::read_dir(folder))?.into_iter().flatten() {
        let name = file?.file_name();
        positions.extend(name.to_str().and_then(|name| name.strip_suffix(".json")?.parse::<u64>().ok()));
    }
    positions.sort_unstable();
    Ok(positions)
}

/// Writes a checkpoint after each run of retention that removed turns, for as long as the host runs. The first one is for
/// removals after which the last host was killed.
///
/// # Errors
/// When the key cannot be read or written.
pub(crate) fn start(
    audit: Option<Arc<dyn Store>>,
    handle: &Handle,
    (data, keys): (&Path, Keys),
    clock: Arc<dyn Clock>,
) -> io::Result<Option<JoinHandle<()>>> {
    let Some(audit) = audit else { return Ok(None) };
    let public_key = public_key(&keys)?;
    tracing::info!(public_key, "the public key of signed checkpoints of the audit");
    let (mut removals, data, handle) = (handle.removals(), data.to_owned(), handle.clone());
    Ok(Some(tokio::spawn(async move {
        loop {
            // Of the hosts on one database, one writes them.
            if handle.share().is_first() {
                write_and_log(audit.as_ref(), &data, &keys, clock.now()).await;
            }
            if removals.changed().await.is_err() {
                return;
            }
        }
    })))
}

async fn write_and_log(audit: &dyn Store, data: &Path, keys: &Keys, now: Timestamp) {
    match write_with(audit, data, keys.clone(), now).await {
        Ok(Some(path)) => tracing::info!(path = %path.display(), "wrote a signed checkpoint of the audit"),
        Ok(None) => {}
        Err(error) => tracing::error!(%error, "a signed checkpoint of the audit could not be written"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(data: &tempfile::TempDir) -> Key {
        Key::open(&Keys::Folder(data.path().to_owned())).unwrap()
    }

    fn checkpoint(position: u64) -> AuditCheckpoint {
        let mut removals = Removals::default();
        removals.add(2, "old".to_owned(), 3);
        removals.add(3, "large".to_owned(), 1);
        removals.add(4, "old".to_owned(), 2);
        let (hash, at) = (String::new(), "now".to_owned());
        AuditCheckpoint { format: FORMAT, position, hash, at, after: 1, removed: removals.into_rows() }
    }

    #[test]
    fn changed_text_and_other_keys_are_refused() {
        let (data, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = key_of(&data).sign(&checkpoint(5)).unwrap();
        let (read, key) = verify(&file, None).unwrap();
        assert_eq!(read, checkpoint(5));
        assert!(verify(&file, Some(&key)).is_ok());
        let changed = file.replace(r#"\"turns\":5"#, r#"\"turns\":4"#);
        assert!(changed != file && matches!(verify(&changed, None), Err(CheckpointError::Signature)));
        let by_other = key_of(&other).sign(&checkpoint(5)).unwrap();
        let (_, other_key) = verify(&by_other, None).unwrap();
        assert!(matches!(verify(&by_other, Some(&key)), Err(CheckpointError::OtherKey { .. })));
        let claimed = by_other.replace(&other_key, &key);
        assert!(matches!(verify(&claimed, Some(&key)), Err(CheckpointError::Signature)));
    }

    /// A file as a newer toolgate may write it: with other members, another signature and another kind of key.
    fn newer() -> String {
        let checkpoint = r#"{"format":2,"tree":{"size":9},"at":"now"}"#.to_owned();
        let signed =
            SignedCheckpoint { checkpoint, signature: "c2lnbmVk".to_owned(), public_key: "ml-dsa:a".to_owned() };
        serde_json::to_string(&signed).unwrap()
    }

    #[test]
    fn newer_and_unknown_formats_are_different_errors() {
        let refused = verify(&newer(), Some("ed25519:other")).unwrap_err();
        assert!(matches!(refused, CheckpointError::Newer { found: 2, known: 1 }), "{refused}");
        assert_eq!(refused.to_string(), "it has the format 2, and this toolgate knows 1; use a newer toolgate");
        let data = tempfile::tempdir().unwrap();
        let old = AuditCheckpoint { format: 0, ..checkpoint(5) };
        let refused = verify(&key_of(&data).sign(&old).unwrap(), None).unwrap_err();
        assert!(
            matches!(&refused, CheckpointError::Unknown(why) if why == "no toolgate writes the format 0"),
            "{refused}"
        );
    }

    #[tokio::test]
    async fn newer_checkpoint_is_neither_skipped_nor_replaced() {
        let (data, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = key_of(&data);
        save(data.path(), &key, &checkpoint(1)).unwrap();
        let path = data.path().join(FOLDER).join("2.json");
        fs::write(&path, newer()).unwrap();
        let why = format!("{}: it has the format 2, and this toolgate knows 1; use a newer toolgate", path.display());
        assert_eq!(newest(data.path()).unwrap_err().to_string(), why);

        let audit = store::open(folder.path(), &store::StoreSettings::default()).unwrap();
        let refused = last(&audit, &data.path().join(FOLDER), Position(5)).await.unwrap_err();
        assert_eq!(refused.to_string(), why);
        assert_eq!(fs::read_to_string(&path).unwrap(), newer());
    }

    #[test]
    fn removals_are_counted_by_rule() {
        let row = |rule: &str, turns, first, last| RemovedByRule { rule: rule.to_owned(), turns, first, last };
        assert_eq!(checkpoint(5).removed, [row("large", 1, 3, 3), row("old", 5, 2, 4)]);
    }

    #[test]
    fn newest_checkpoint_is_given_that_is_not_damaged() {
        let data = tempfile::tempdir().unwrap();
        let key = key_of(&data);
        let paths = [1, 2, 3, 4].map(|position| save(data.path(), &key, &checkpoint(position)).unwrap());
        let signed = fs::read_to_string(&paths[1]).unwrap();
        fs::write(&paths[1], signed.replace(r#"\"turns\":5"#, r#"\"turns\":4"#)).unwrap();
        fs::write(&paths[2], &signed[..signed.len() / 2]).unwrap();
        fs::write(&paths[3], b"\xff").unwrap();
        let first = newest(data.path()).unwrap().unwrap();
        assert_eq!(serde_json::from_str::<AuditCheckpoint>(&first.checkpoint).unwrap(), checkpoint(1));
        fs::remove_file(&paths[0]).unwrap();
        assert!(newest(data.path()).unwrap().is_none());
    }

    #[test]
    fn oldest_files_are_removed() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join(FOLDER);
        let last = u64::try_from(MAX_FILES).unwrap() + 2;
        let key = key_of(&data);
        for position in 1..=last {
            save(data.path(), &key, &checkpoint(position)).unwrap();
        }
        assert_eq!(positions(&folder).unwrap(), (3..=last).collect::<Vec<_>>());
    }
}
