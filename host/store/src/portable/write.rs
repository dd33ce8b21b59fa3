//! Writing lines.

use std::io::Write;

use dispatch::ports::Head;
use domain::Digest;
use sha2::{Digest as _, Sha256};

use super::{ExportError, FORMAT, Line, Moved};

/// Writes lines, and counts and hashes them.
pub(crate) struct LineWriter<'a> {
    out: &'a mut dyn Write,
    hash: Sha256,
    moved: Moved,
    text: Vec<u8>,
}

impl<'a> LineWriter<'a> {
    /// Writes the first line.
    pub(crate) fn begin(out: &'a mut dyn Write, head: Head) -> Result<Self, ExportError> {
        let moved = Moved { lines: 0, head };
        let mut lines = Self { out, hash: Sha256::new(), moved, text: Vec::new() };
        lines.line(&Line::Store { format: FORMAT, position: head.position.0, hash: head.hash })?;
        Ok(lines)
    }

    pub(crate) fn line(&mut self, line: &Line) -> Result<(), ExportError> {
        self.text.clear();
        serde_json::to_writer(&mut self.text, line).map_err(|error| ExportError::Write(error.into()))?;
        self.text.push(b'\n');
        self.hash.update(&self.text);
        self.moved.lines += 1;
        self.out.write_all(&self.text).map_err(ExportError::Write)
    }

    /// Writes the last line.
    pub(crate) fn end(mut self) -> Result<Moved, ExportError> {
        let (moved, digest) = (self.moved, Digest::from_bytes(self.hash.clone().finalize().into()));
        self.line(&Line::End { lines: moved.lines, digest })?;
        self.out.flush().map_err(ExportError::Write)?;
        Ok(moved)
    }
}
