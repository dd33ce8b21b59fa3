//! Stored records: bytes are refused, or they are a value whose own form is read as the same.

use store::fuzzing::{KINDS, rewritten};

/// The kind of record, then its bytes: what a damaged disk or a forged one may hold.
pub fn records(bytes: &[u8]) {
    let Some((kind, record)) = bytes.split_first() else { return };
    let kind = kind % KINDS;
    match rewritten(kind, record) {
        Ok(written) => {
            assert_eq!(rewritten(kind, &written).as_ref(), Ok(&written), "what is written is read as the same");
        }
        Err(reason) => assert!(!reason.is_empty()),
    }
}
