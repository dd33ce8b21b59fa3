//! The configuration of a native test.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// Values by name.
pub(crate) type Values = BTreeMap<String, String>;

thread_local! {
    /// What calls on this thread are configured with. A test sets it for the length of one call.
    static CURRENT: RefCell<Values> = const { RefCell::new(Values::new()) };
}

/// Configures `call` so.
pub(crate) fn during<R>(values: Values, call: impl FnOnce() -> R) -> R {
    /// Puts the previous values back, after a panic too.
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
