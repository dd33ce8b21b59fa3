//! The file of revoked sessions. Lines are appended and synced. When most lines are obsolete, the file is rewritten.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use domain::Timestamp;
use server::{OpenedBy, SessionMark};

use super::known::{Known, Row};
use crate::files::{existing, replace};

/// The file is rewritten when it has more obsolete lines than current ones, by this number.
const SPARE: usize = 1_024;

/// The file, open to be appended to.
#[derive(Debug)]
pub(super) struct RevokedLog {
    path: PathBuf,
    file: File,
    lines: usize,
    /// After a failed write the content of the file is unknown. It must be rewritten first.
    is_broken: bool,
}

/// Reads the sessions of a file, without expired ones. A missing file has none.
pub(super) fn read(path: &Path, now: Timestamp) -> io::Result<Known> {
    parse_all(&existing(std::fs::read(path))?.unwrap_or_default(), path, now)
}

/// The sessions in a text, without expired ones. Errors name its place.
pub(super) fn parse_all(text: &[u8], path: &Path, now: Timestamp) -> io::Result<Known> {
    let mut known = Known::default();
    // A line without its end was not synced before a kill, so no caller got an answer for it. The same is true of a line
    // with zeros, which a loss of power leaves where nothing was synced.
    let lines = text.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
    for (number, line) in (1..).zip(lines).filter(|(_, line)| !line.contains(&0)) {
        let row = std::str::from_utf8(line).ok().and_then(parse).ok_or_else(|| damaged(path, number))?;
        known.take(row, now);
    }
    // Drops expired rows whose holder has no other row.
    let mut left = Known::default();
    known.to_rows().filter(|row| now < expires(row)).for_each(|row| left.take(row, now));
    Ok(left)
}

/// The error for a line that cannot be read. Dropping it could make a revoked session valid again.
fn damaged(path: &Path, line: usize) -> io::Error {
    io::Error::other(format!(
        "line {line} of {} is damaged, so some revoked sessions are unknown; restore the file from a backup, or remove it \
         together with `session-key`, which ends every session and one-time link",
        path.display()
    ))
}

impl RevokedLog {
    /// Rewrites the file and keeps it open.
    pub(super) fn open(path: &Path, known: &Known) -> io::Result<Self> {
        let (file, lines) = rewrite(path, known)?;
        Ok(Self { path: path.to_owned(), file, lines, is_broken: false })
    }

    /// Appends these sessions; `all` includes them. They are on disk when it returns.
    pub(super) fn append(&mut self, sessions: &[SessionMark], all: &Known) -> io::Result<()> {
        if self.is_broken || self.lines + sessions.len() > 2 * all.rows() + SPARE {
            self.is_broken = true;
            (self.file, self.lines) = rewrite(&self.path, all)?;
            self.is_broken = false;
            return Ok(());
        }
        let lines: String = sessions.iter().map(|session| line(&Row::Session(*session))).collect();
        let written = self.file.write_all(lines.as_bytes()).and_then(|()| self.file.sync_data());
        self.is_broken = written.is_err();
        self.lines += sessions.len();
        written
    }
}

/// Replaces the file with the current rows.
fn rewrite(path: &Path, known: &Known) -> io::Result<(File, usize)> {
    replace(path, &text(known))?;
    Ok((OpenOptions::new().append(true).open(path)?, known.rows()))
}

/// All sessions as a text.
pub(super) fn text(known: &Known) -> Vec<u8> {
    known.to_rows().map(|row| line(&row)).collect::<String>().into_bytes()
}

fn line(row: &Row) -> String {
    let word = |opened_by: OpenedBy| match opened_by {
        OpenedBy::LogIn => "login",
        OpenedBy::Link => "link",
    };
    match row {
        Row::Session(session) => {
            let SessionMark { id, token, opened_by, expires } = session;
            format!("ended {id:032x} {token} {} {}\n", word(*opened_by), expires.millis())
        }
        Row::Before((token, opened_by), until) => format!("before {token} {} {}\n", word(*opened_by), until.millis()),
        Row::Nameless(id, expires) => format!("{id:032x} {}\n", expires.millis()),
    }
}

fn parse(line: &str) -> Option<Row> {
    let opened_by = |text: &str| match text {
        "login" => Some(OpenedBy::LogIn),
        "link" => Some(OpenedBy::Link),
        _ => None,
    };
    let time = |text: &str| text.parse().ok().map(Timestamp::from_millis);
    let id = |text: &str| u128::from_str_radix(text, 16).ok();
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["ended", session, token, word, expires] => Some(Row::Session(SessionMark {
            id: id(session)?,
            token: token.parse().ok()?,
            opened_by: opened_by(word)?,
            expires: time(expires)?,
        })),
        ["before", token, word, until] => Some(Row::Before((token.parse().ok()?, opened_by(word)?), time(until)?)),
        [session, expires] => Some(Row::Nameless(id(session)?, time(expires)?)),
        _ => None,
    }
}

fn expires(row: &Row) -> Timestamp {
    match row {
        Row::Session(session) => session.expires,
        Row::Before(_, expires) | Row::Nameless(_, expires) => *expires,
    }
}
