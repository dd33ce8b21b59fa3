//! A consistent copy of a store that is in use: its state after one commit.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use dispatch::ports::{Head, StoreFault};
use tokio::sync::oneshot;

use super::committer::Work;
use super::{SledStore, chain};
use crate::fault::fault;

const COPY: &str = "copy the store";

/// sled's files. Without its snapshot it reads the whole log.
const FILES: [&str; 2] = ["db", "conf"];

impl SledStore {
    /// Copies the store in `from` to a new folder, as it is after one commit, and returns the head of that commit. Writes
    /// wait while the database is copied; reads go on. Large records are linked, because they never change.
    ///
    /// # Errors
    /// [`StoreFault`]; the new folder may have some files.
    pub async fn copy(&self, from: &Path, to: &Path) -> Result<Head, StoreFault> {
        // Until the large records are linked, none of them is removed.
        let _removing = self.reclaiming.lock().await;
        let (resume, until) = oneshot::channel::<()>();
        self.ask(COPY, |paused| Work::Pause(paused, until)).await??;
        let (reader, values) = (self.reader.clone(), self.values.clone());
        let (from, to) = (from.to_owned(), to.to_owned());
        let copied = tokio::task::spawn_blocking(move || {
            // The thread goes on when this is dropped.
            let resume = resume;
            fs::create_dir_all(to.join("sled")).map_err(fault(COPY))?;
            let head = values.quiet(|| {
                reader.tree.flush().map_err(fault(COPY))?;
                FILES.iter().try_for_each(|name| {
                    fs::copy(from.join("sled").join(name), to.join("sled").join(name)).map(drop).map_err(fault(COPY))
                })?;
                chain::head(&reader.tree)
            })?;
            drop(resume);
            fs::create_dir(to.join("blobs")).map_err(fault(COPY))?;
            for digest in reader.blobs.list()? {
                let name = digest.hex();
                link(&from.join("blobs").join(&name), &to.join("blobs").join(&name)).map_err(fault(COPY))?;
            }
            Ok(head)
        });
        copied.await.map_err(fault(COPY))?
    }
}

/// Links a file that never changes, or copies it where that is not possible.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to).or_else(|_| {
        // The target must be new: through a link, the copy would empty the record itself.
        let mut copy = File::create_new(to)?;
        io::copy(&mut File::open(from)?, &mut copy)?;
        copy.sync_all()
    })
}
