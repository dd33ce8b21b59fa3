//! Lets sled use the space of obsolete pages again.
//!
//! sled writes every change to the end of its log. It uses a segment of the log again once the last page of the segment
//! was written elsewhere. When a segment is mostly obsolete, sled moves the pages that are left in it. It moves all of
//! them in its background thread, which this store does not start, because a write without a sync would not survive a
//! loss of power. Otherwise, it moves one page each time it writes a page as a whole. That is too seldom: pages that
//! never change, such as old entries of the audit, keep almost empty segments, and the file grows with every write.
//!
//! So the committing thread changes a small page of its own. Each time sled writes this page as a whole, it moves one
//! other page. The size of the flush tells whether there was one to move. Some pages on sled's list were written elsewhere
//! since they came on it, so a few flushes in a row must move nothing.

use dispatch::ports::{FaultKind, StoreFault};

use super::tree::Tree;
use crate::fault::fault;

/// The name of the tree with the small page.
pub(super) const CLEANING: &str = "cleaning";

const KEY: &[u8] = b"n";

/// sled writes a page as a whole with every tenth change.
const CHANGES: u64 = 10;

/// The pages that sled may move before a flush. sled keeps no page in a segment that is larger than a quarter of it.
const PAGES: u64 = 4;

/// The size of a flush that has moved no page is at most this. It depends on the position in the log and on the number of
/// the small page.
const MAX_QUIET: usize = 1_200;

/// A flush that is larger by this many bytes has moved a page.
const MARGIN: usize = 128;

/// When no page is left, this many flushes in a row move nothing.
const QUIET_STEPS: usize = 4;

#[derive(Clone)]
pub(super) struct Cleaning {
    tree: Tree,
    /// The last value. sled does not write a value that is there already.
    last: u64,
    /// The size of the smallest flush.
    quiet: usize,
    /// The flushes in a row that have moved no page.
    quiet_steps: usize,
}

impl Cleaning {
    pub(super) fn new(tree: sled::Tree) -> Self {
        Self { tree: Tree::new(tree), last: 0, quiet: MAX_QUIET, quiet_steps: QUIET_STEPS }
    }

    /// There may be pages to move again.
    pub(super) const fn begin(&mut self) {
        self.quiet_steps = 0;
    }

    /// Whether no page is left to move.
    pub(super) const fn is_done(&self) -> bool {
        self.quiet_steps >= QUIET_STEPS
    }

    /// Moves some pages out of obsolete segments and flushes them. Returns the bytes that it wrote, and whether it
    /// moved a page.
    pub(super) fn step(&mut self) -> Result<(usize, bool), StoreFault> {
        for _ in 0..PAGES * CHANGES {
            self.last = self.last.wrapping_add(1);
            self.tree.insert(KEY, &self.last.to_be_bytes()).map_err(fault("free space in the database"))?;
        }
        let written = self.tree.flush().map_err(fault("free space in the database"))?;
        self.quiet = self.quiet.min(written);
        let moved = written > self.quiet + MARGIN;
        self.quiet_steps = if moved { 0 } else { self.quiet_steps + 1 };
        Ok((written, moved))
    }

    pub(super) fn close(&self, kind: FaultKind) {
        self.tree.close(kind);
    }

    pub(super) fn reopen(&self, tree: sled::Tree) {
        self.tree.reopen(tree);
    }
}
