//! The file of ended sessions: lines that are appended and synced, and all of it written anew when most of them say nothing
//! any more.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use domain::Timestamp;
use server::SessionMark;

use super::known::{Known, Row};
use crate::keys::private;

/// So many lines may say nothing any more before the file is written anew, and as many again as there are that do.
const SPARE: usize = 1_024;

/// The file, open to be appended to.
#[derive(Debug)]
pub(super) struct EndedLog {
    path: PathBuf,
    file: File,
    lines: usize,
    /// After a write that failed nobody knows what is in the file: it is written anew before anything else is.
    is_broken: bool,
}

/// What a file says, without what has expired. A file that is not there says nothing.
pub(super) fn read(path: &Path, now: Timestamp) -> io::Result<Known> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let mut known = Known::default();
    // A line without its end was not synced when the host was killed, and so nobody was told of it.
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let row = parse(line).ok_or_else(|| io::Error::other(format!("{line:?} is no ended session")))?;
        known.take(row, now);
    }
    // What expired and was the last of its holder is not looked at again by itself.
    let mut left = Known::default();
    known.to_rows().filter(|row| now < expires(row)).for_each(|row| left.take(row, now));
    Ok(left)
}

impl EndedLog {
    /// Writes the file anew and keeps it open.
    pub(super) fn open(path: &Path, known: &Known) -> io::Result<Self> {
        let (file, lines) = write_anew(path, known)?;
        Ok(Self { path: path.to_owned(), file, lines, is_broken: false })
    }

    /// Appends these sessions, with which everything that has ended is `all`. On disk when it returns.
    pub(super) fn append(&mut self, sessions: &[SessionMark], all: &Known) -> io::Result<()> {
        if self.is_broken || self.lines + sessions.len() > 2 * all.rows() + SPARE {
            self.is_broken = true;
            (self.file, self.lines) = write_anew(&self.path, all)?;
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

/// A file with what has ended and nothing else, in its place whole or not at all.
fn write_anew(path: &Path, known: &Known) -> io::Result<(File, usize)> {
    let beside = path.with_extension("new");
    let mut file = private(&beside)?;
    let lines: Vec<String> = known.to_rows().map(|row| line(&row)).collect();
    file.write_all(lines.concat().as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())?;
    Ok((OpenOptions::new().append(true).open(path)?, lines.len()))
}

fn line(row: &Row) -> String {
    let way = |by_link: bool| if by_link { "link" } else { "login" };
    match row {
        Row::Session(session) => {
            let SessionMark { id, token, by_link, expires } = session;
            format!("ended {id:032x} {token} {} {}\n", way(*by_link), expires.millis())
        }
        Row::Before((token, by_link), until) => format!("before {token} {} {}\n", way(*by_link), until.millis()),
        Row::Nameless(id, expires) => format!("{id:032x} {}\n", expires.millis()),
    }
}

fn parse(line: &str) -> Option<Row> {
    let way = |text: &str| match text {
        "login" => Some(false),
        "link" => Some(true),
        _ => None,
    };
    let time = |text: &str| text.parse().ok().map(Timestamp::from_millis);
    let id = |text: &str| u128::from_str_radix(text, 16).ok();
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["ended", session, token, by_link, expires] => Some(Row::Session(SessionMark {
            id: id(session)?,
            token: token.parse().ok()?,
            by_link: way(by_link)?,
            expires: time(expires)?,
        })),
        ["before", token, by_link, until] => Some(Row::Before((token.parse().ok()?, way(by_link)?), time(until)?)),
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
