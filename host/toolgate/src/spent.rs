//! Ids that count no more: used links, sessions that somebody logged out of. One file, a line for each, appended and synced
//! before anybody is told; written anew without what has expired whenever a host starts.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use domain::Timestamp;
use server::NotSpent;

use crate::keys::private;

/// The most ids of one file: about 5 MB. Each expires within days.
const MOST: usize = 100_000;

/// The ids of one file. The folder has one host, and the host one of these for each file.
#[derive(Debug, Clone)]
pub(crate) struct SpentFile(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Ids with the time at which they expire.
    ids: HashMap<u128, Timestamp>,
    file: File,
    /// After a write that failed nobody knows what is in the file, and nothing more is spent.
    broken: bool,
}

impl SpentFile {
    /// Reads the file, or makes it, and leaves out what has expired.
    pub(crate) fn open(path: &Path, now: Timestamp) -> io::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        // A line without its end was not synced when the host was killed, and so nobody was told of it.
        let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let mut ids = HashMap::new();
        for line in whole {
            let (id, expires) = read(line).ok_or_else(|| io::Error::other(format!("{line:?} is no id with a time")))?;
            if now < expires {
                ids.insert(id, expires);
            }
        }
        let beside: PathBuf = path.with_extension("new");
        let mut file = private(&beside)?;
        file.write_all(ids.iter().map(|(id, expires)| line(*id, *expires)).collect::<String>().as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())?;
        let file = OpenOptions::new().append(true).open(path)?;
        Ok(Self(Arc::new(Mutex::new(State { ids, file, broken: false }))))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn spend(&mut self, id: u128, expires: Timestamp, now: Timestamp) -> Result<bool, NotSpent> {
        if self.ids.contains_key(&id) {
            return Ok(false);
        }
        if self.ids.len() >= MOST {
            self.ids.retain(|_, expires| now < *expires);
        }
        if self.ids.len() >= MOST {
            return Err(NotSpent::Full);
        }
        if self.broken {
            return Err(NotSpent::Fault("an earlier write failed; start the host anew".to_owned()));
        }
        let written = self.file.write_all(line(id, expires).as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            self.broken = true;
            return Err(NotSpent::Fault(format!("a used link or an ended session was not written down: {error}")));
        }
        self.ids.insert(id, expires);
        Ok(true)
    }
}

#[async_trait]
impl server::Spent for SpentFile {
    fn has(&self, id: u128) -> bool {
        self.state().ids.contains_key(&id)
    }

    async fn spend(&self, id: u128, expires: Timestamp, now: Timestamp) -> Result<bool, NotSpent> {
        let this = self.clone();
        let spent = tokio::task::spawn_blocking(move || this.state().spend(id, expires, now)).await;
        spent.unwrap_or_else(|error| Err(NotSpent::Fault(error.to_string())))
    }
}

fn line(id: u128, expires: Timestamp) -> String {
    format!("{id:032x} {}\n", expires.millis())
}

fn read(line: &str) -> Option<(u128, Timestamp)> {
    let (id, expires) = line.split_once(' ')?;
    Some((u128::from_str_radix(id, 16).ok()?, Timestamp::from_millis(expires.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn an_id_is_spent_once_and_stays_so_over_a_restart_until_it_expires() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("used-links");
        let spent = SpentFile::open(&path, at(0)).unwrap();
        assert!(spent.state().spend(1, at(10), at(0)).unwrap() && !spent.state().spend(1, at(10), at(0)).unwrap());
        assert!(spent.state().spend(2, at(20), at(0)).unwrap());
        drop(spent);
        let spent = SpentFile::open(&path, at(10)).unwrap();
        assert_eq!(spent.state().ids, HashMap::from([(2, at(20))]), "what has expired is forgotten");
        assert!(!spent.state().spend(2, at(20), at(10)).unwrap());
    }

    #[test]
    fn a_line_that_a_kill_cut_off_was_told_to_nobody_and_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("used-links");
        std::fs::write(&path, format!("{}{:032x} 9", line(1, at(10)), 2)).unwrap();
        let spent = SpentFile::open(&path, at(0)).unwrap();
        assert!(spent.state().spend(2, at(20), at(0)).unwrap());
        drop(spent);
        assert_eq!(SpentFile::open(&path, at(0)).unwrap().state().ids.len(), 2);
        std::fs::write(&path, "anything else\n").unwrap();
        assert!(SpentFile::open(&path, at(0)).is_err(), "a file that means nothing is not taken for an empty one");
    }

    #[test]
    fn of_many_at_once_exactly_one_spends_it() {
        let folder = tempfile::tempdir().unwrap();
        let spent = SpentFile::open(&folder.path().join("used-links"), at(0)).unwrap();
        let all: Vec<bool> = std::thread::scope(|scope| {
            let threads = [(); 8].map(|()| scope.spawn(|| spent.state().spend(7, at(10), at(0)).unwrap()));
            threads.map(|thread| thread.join().unwrap()).into()
        });
        assert_eq!(all.into_iter().filter(|first| *first).count(), 1);
    }
}
