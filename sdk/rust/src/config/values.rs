//! The configuration of a native test.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// Values by name.
pub(crate) type Values = BTreeMap<String, String>;

thread_local! {
    /// The configuration of calls on this thread. A test sets it for one call.
    static CURRENT: RefCell<Values> = const { RefCell::new(Values::new()) };
}

/// Runs `call` with this configuration.
pub(crate) fn during<R>(values: Values, call: impl FnOnce() -> R) -> R {
    /// Restores the previous values, even after a panic.
    struct Restore(Values);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(std::mem::take(&mut self.0));
        }
    }
    let _restore = Restore(CURRENT.replace(values));
    call()
}

pub(super) fn get(name: &str) -> Result<Option<String>, String> {
    Ok(CURRENT.with_borrow(|values| values.get(name).cloned()))
}
