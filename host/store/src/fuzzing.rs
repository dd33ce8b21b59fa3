//! Functions for the fuzz targets. They exist only with the feature `fuzzing`, and are not part of the crate's API.

use dispatch::ports::SuspensionRow;
use domain::event::{HostStarted, PluginEvent};

use crate::record::{self, Record};

/// How many kinds of record there are.
pub const KINDS: u8 = 4;

/// Reads a record and writes it again.
///
/// # Errors
/// Why the bytes are not a record.
pub fn rewritten(kind: u8, bytes: &[u8]) -> Result<Vec<u8>, String> {
    fn one<T: Record>(bytes: &[u8]) -> Result<Vec<u8>, String> {
        let value = T::read(bytes).map_err(|error| error.to_string())?;
        let mut out = Vec::new();
        value.write(&mut out).map_err(|error| error.to_string()).map(|()| out)
    }
    match kind {
        0 => {
            let events = record::read_events(bytes).map_err(|error| error.to_string())?;
            let mut out = Vec::new();
            record::write_events(&events, &mut out).map_err(|error| error.to_string()).map(|()| out)
        }
        1 => one::<SuspensionRow>(bytes),
        2 => one::<HostStarted>(bytes),
        _ => one::<PluginEvent>(bytes),
    }
}
