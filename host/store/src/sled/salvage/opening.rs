//! Opens a copy of the damaged database, with as much of it as possible.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use dispatch::ports::FaultKind;

use super::super::folder::{FORMAT, OLDEST, open_sled};
use super::super::tree::attempt;
use super::super::{keys, log, rebuild};
use super::{SalvageError, unless_damaged};
use crate::fault::{Cause as _, DatabaseError};
use crate::{OpenError, StoreSettings};

pub(super) struct Opened {
    pub(super) db: sled::Db,
    /// The format of its keys. If that is unknown, the oldest.
    pub(super) format: u8,
    /// Whether the end of the log may be lost.
    pub(super) is_cut: bool,
}

/// With the snapshot, sled reads only the end of the log and finds pages by their places. Each page has a checksum, so only
/// damaged ones are lost. Without it, sled replays the log, and lost pages get a message that it cannot read.
pub(super) fn opened(source: &Path, copy: &Path, settings: &StoreSettings) -> Result<Opened, SalvageError> {
    let failed = |source| SalvageError::Io { path: copy.to_owned(), source };
    let snapshot = whole_snapshot(&source.join("sled")).map_err(failed)?;
    let mut opened = replayed(source, copy, snapshot.as_deref(), settings).map_err(failed)?;
    if opened.as_ref().is_err_and(|cause| cause.kind() == FaultKind::Damaged) && snapshot.is_some() {
        opened = replayed(source, copy, None, settings).map_err(failed)?;
    }
    let (db, is_cut) = opened.map_err(|cause| OpenError::of(copy, &cause))?;
    let format = unless_damaged(attempt(|| db.get(keys::FORMAT)))?.flatten();
    match format.as_deref().and_then(|format| format.first().copied()) {
        Some(found) if found > FORMAT => Err(OpenError::Newer { path: copy.to_owned(), found, known: FORMAT }.into()),
        format => Ok(Opened { db, format: format.unwrap_or(OLDEST), is_cut }),
    }
}

/// Opens a mended copy. Returns whether sled did not get as far as the original log reaches, or lost a part of what it
/// replayed.
fn replayed(
    source: &Path,
    copy: &Path,
    snapshot: Option<&Path>,
    settings: &StoreSettings,
) -> io::Result<Result<(sled::Db, bool), DatabaseError>> {
    rebuild::copied(source, snapshot, copy)?;
    let database = copy.join("sled");
    let begin = rebuild::end_of(&database)?;
    let log = File::options().read(true).write(true).open(database.join("db"))?;
    let damaged = log::mend(&log, settings.segment_bytes)?;
    let lacks_pages = snapshot.is_none() && log::fill(&log, settings.segment_bytes)?;
    drop(log);
    let db = match open_sled(&database, settings) {
        Ok(db) => db,
        Err(cause) => return Ok(Err(cause)),
    };
    let original = File::open(source.join("sled/db"))?;
    let end = rebuild::end_of(&database)?;
    let is_behind =
        end < rebuild::end_of(&source.join("sled"))? || log::reaches(&original, settings.segment_bytes, end)?;
    let is_damaged = damaged.iter().any(|damage| *damage.lsns.end() >= begin);
    Ok(Ok((db, is_behind || is_damaged || lacks_pages)))
}

fn whole_snapshot(database: &Path) -> io::Result<Option<PathBuf>> {
    let Some(snapshot) = rebuild::newest(database)? else { return Ok(None) };
    Ok(rebuild::is_whole(&fs::read(&snapshot)?).then_some(snapshot))
}
