//! Measures the free space of the data folder's disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dispatch::ports::Disk;
use tokio::task::{JoinHandle, spawn_blocking};

/// How often the free space is measured. A measurement may block, so submissions use the last one.
const INTERVAL: Duration = Duration::from_secs(1);

/// The last measurement, or [`UNKNOWN`].
struct FolderDisk(AtomicU64);

const UNKNOWN: u64 = u64::MAX;

impl Disk for FolderDisk {
    fn free(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|free| *free != UNKNOWN)
    }
}

/// The disk of a folder, measured once, and the task that measures it again and again.
pub(crate) async fn measured(folder: &Path) -> (Arc<dyn Disk>, JoinHandle<()>) {
    let disk = Arc::new(FolderDisk(AtomicU64::new(free(folder.to_owned()).await)));
    let (measured, folder) = (disk.clone(), folder.to_owned());
    let measuring = tokio::spawn(async move {
        let mut now = tokio::time::interval(INTERVAL);
        loop {
            now.tick().await;
            measured.0.store(free(folder.clone()).await, Ordering::Relaxed);
        }
    });
    (disk, measuring)
}

/// The bytes that a user without privileges can write.
async fn free(folder: PathBuf) -> u64 {
    let measured = spawn_blocking(move || rustix::fs::statvfs(&folder)).await;
    match measured {
        Ok(Ok(disk)) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Ok(Err(error)) => {
            tracing::debug!(%error, "the free space of the data folder is unknown");
            UNKNOWN
        }
        // The runtime ends.
        Err(_) => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn free_space_of_a_folder_is_measured() {
        let folder = tempfile::tempdir().expect("a folder");
        let (disk, measuring) = measured(folder.path()).await;
        measuring.abort();
        assert!(disk.free().is_some_and(|free| free > 0));
        let (disk, measuring) = measured(&folder.path().join("missing")).await;
        measuring.abort();
        assert_eq!(disk.free(), None);
    }
}
