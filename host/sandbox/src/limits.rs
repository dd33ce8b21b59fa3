//! The memory, tables and instances of a call, counted over its whole wasmtime store.

use std::sync::Arc;

use domain::Limits;
use wasmtime::ResourceLimiter;

use crate::pool::{Part, Reservation};

/// Counts what a call uses. It keeps the last refusal, because that is the likely cause of a later failure.
pub(crate) struct Meter {
    memory_left: usize,
    memory_max: usize,
    elements_left: usize,
    instances: usize,
    reservation: Arc<Reservation>,
    refused: Option<Refused>,
    /// Whether the guest must not see that the host has no memory left, because a later run may see something else.
    is_durable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Memory,
    /// The plugin may not use more of the memory of all guests.
    GuestMemory,
    Elements,
}

impl Meter {
    pub(crate) fn new(limits: &Limits, reservation: Arc<Reservation>, is_durable: bool) -> Self {
        Self {
            memory_left: limits.memory,
            memory_max: limits.memory,
            elements_left: limits.table_elements,
            instances: limits.instances,
            reservation,
            refused: None,
            is_durable,
        }
    }

    pub(crate) fn refused(&self) -> Option<Refused> {
        self.refused
    }

    /// The bytes that all guests together may use.
    pub(crate) fn budget(&self) -> usize {
        self.reservation.budget()
    }

    /// The bytes that the call has used at most, without the journal that it repeats.
    pub(crate) fn peak(&self) -> usize {
        self.reservation.peak()
    }

    /// Bytes of linear memory. It never shrinks, so this is also its peak.
    pub(crate) fn memory(&self) -> usize {
        self.memory_max.saturating_sub(self.memory_left)
    }
}

/// If growth is allowed and the engine then fails, the growth stays counted. The engine also reports failed growth that it
/// never asked about. Subtracting it would let a guest gain memory through impossible requests.
impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        let Some(left) = self.memory_left.checked_sub(more) else {
            self.refused = Some(Refused::Memory);
            return Ok(false);
        };
        if maximum.is_some_and(|maximum| desired > maximum) {
            // The memory is at its own declared maximum. The limit did not refuse it.
            return Ok(false);
        }
        if !self.reservation.covers(Part::Linear, self.memory_max.saturating_sub(left)) {
            self.refused = Some(Refused::GuestMemory);
            if self.is_durable {
                return Err(wasmtime::format_err!("the host has no memory left for a durable call"));
            }
            return Ok(false);
        }
        self.memory_left = left;
        Ok(true)
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
