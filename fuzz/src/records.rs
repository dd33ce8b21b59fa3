//! Stored records. Bytes are refused, or they are a value that can be written and read again.

use store::fuzzing::{KINDS, rewritten};

/// Reads the kind of a record and its bytes, as from a damaged or forged disk.
pub fn records(bytes: &[u8]) {
    let Some((kind, record)) = bytes.split_first() else { return };
    let kind = kind % KINDS;
    match rewritten(kind, record) {
        Ok(written) => {
            assert_eq!(rewritten(kind, &written).as_ref(), Ok(&written), "a written value is read back unchanged");
        }
        Err(reason) => assert!(!reason.is_empty()),
    }
}
