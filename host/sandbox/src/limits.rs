//! What a call may take of memory, tables and instances, counted over everything in its store together.

use domain::Limits;
use wasmtime::ResourceLimiter;

/// Counts, and remembers what it refused, so that a guest that fails afterwards is known to have failed of it.
pub(crate) struct Meter {
    memory_left: usize,
    memory_most: usize,
    elements_left: usize,
    instances: usize,
    refused: Option<Refused>,
}

/// What was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Linear memory.
    Memory,
    /// Elements of a table.
    Elements,
}

impl Meter {
    /// A meter at its beginning.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            memory_left: limits.memory,
            memory_most: limits.memory,
            elements_left: limits.table_elements,
            instances: limits.instances,
            refused: None,
        }
    }

    /// What was refused last, if anything was.
    pub(crate) fn refused(&self) -> Option<Refused> {
        self.refused
    }

    /// The linear memory of the call in bytes. It never shrinks, so this is also its peak.
    pub(crate) fn memory(&self) -> usize {
        self.memory_most.saturating_sub(self.memory_left)
    }
}

/// Growth that was allowed and then fails stays counted. The engine also reports failures of growth that it never asked
/// about, so giving the last growth back would let a guest earn memory by asking for the impossible.
impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        match self.memory_left.checked_sub(more) {
            Some(left) if maximum.is_none_or(|maximum| desired <= maximum) => {
                self.memory_left = left;
                Ok(true)
            }
            // Beyond its own maximum the memory cannot grow, whatever the limit is: that is the guest's affair.
            Some(_) => Ok(false),
            None => {
                self.refused = Some(Refused::Memory);
                Ok(false)
            }
        }
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        match self.elements_left.checked_sub(more) {
            Some(left) if maximum.is_none_or(|maximum| desired <= maximum) => {
                self.elements_left = left;
                Ok(true)
            }
            Some(_) => Ok(false),
            None => {
                self.refused = Some(Refused::Elements);
                Ok(false)
            }
        }
    }

    fn instances(&self) -> usize {
        self.instances
    }
}
