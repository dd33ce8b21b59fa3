//! The file that says where a host left the database, after a failure that only a new start ends. The start compares the database
//! with it. Without the comparison, a program that restarts the host would decide to go on without lost commits.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use dispatch::ports::{Checkpoint, Head};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::PostgresError;
use super::fence::Mark;
use super::rows::{self, column};
use super::session::{Failure, Session};

#[derive(Serialize, Deserialize)]
struct Left {
    /// After the last transaction that the host relied on, as the log writes it.
    head: String,
    owner: String,
    /// Of that head, and of later transactions that may have happened.
    marks: Vec<String>,
}

/// The entry of the audit at the kept position, and the mark of the kept host, unless its row was removed.
const FOUND: &str = "SELECT head.position AS head, commits.hash, hosts.mark FROM head LEFT JOIN commits ON commits.position = $1 \
    LEFT JOIN hosts ON name = $2 AND owner::text = $3";

/// Writes the file of a host that has failed. `unanswered` are the marks of transactions after the last one that may have happened.
pub(super) fn keep(file: Option<&Path>, owner: Uuid, last: Mark, unanswered: &[Uuid]) {
    let Some(file) = file else { return };
    let marks = std::iter::once(&last.id).chain(unanswered).map(Uuid::to_string).collect();
    let left = Left { head: last.head.to_string(), owner: owner.to_string(), marks };
    if let Err(error) = left.write(file) {
        let file = file.display();
        tracing::error!(%file, %error, "the next start cannot find out whether the database lacks commits");
    }
}

/// A host has started.
pub(super) fn remove(file: Option<&Path>) {
    if let Some(file) = file
        && let Err(error) = fs::remove_file(file)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(file = %file.display(), %error, "the next start compares the database with this file again");
    }
}

impl Left {
    /// After a kill, the file is the old or the new one.
    fn write(&self, file: &Path) -> io::Result<()> {
        let beside = file.with_extension("new");
        let mut new = File::create(&beside)?;
        new.write_all(&serde_json::to_vec(self)?)?;
        new.sync_all()?;
        fs::rename(&beside, file)?;
        file.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }
}

/// Refuses a database that lacks what the host of this name relied on. The session has the lock of the head.
pub(super) async fn check(session: &Session, file: Option<&Path>, name: &str) -> Result<(), PostgresError> {
    let Some(file) = file else { return Ok(()) };
    let unreadable = |reason: String| PostgresError::Left { file: file.to_owned(), reason };
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable(error.to_string())),
    };
    let left: Left = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    let head = left.head.parse::<Checkpoint>().map_err(|error| unreadable(error.to_string()))?;
    let position = head.position.ok_or_else(|| unreadable("it has no position".to_owned()))?;
    let found = session.query(FOUND, &[&rows::signed(position.0), &name, &left.owner]).await;
    let compared = found.and_then(|found| {
        let row = found.first().ok_or_else(|| rows::damaged("the head of the audit"))?;
        let hash: Option<Vec<u8>> = column(row, "hash")?;
        let mark: Option<Uuid> = column(row, "mark")?;
        let has_commit = position == Head::START.position || hash.is_some_and(|hash| hash == head.hash.as_bytes());
        let has_mark = mark.is_none_or(|mark| left.marks.contains(&mark.to_string()));
        let found = rows::position(row, "head")?;
        Ok::<_, Failure>((found, found >= position && has_commit && has_mark))
    });
    match compared.map_err(PostgresError::refused("compare itself with the last state that this host knows"))? {
        (_, true) => Ok(()),
        (found, false) => Err(PostgresError::LostCommits { file: file.to_owned(), left: position.0, found: found.0 }),
    }
}
