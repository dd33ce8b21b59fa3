//! The network of a native test: a function that returns the responses.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Error, Request, Response};

/// The function that returns a test's responses.
pub(crate) type Answers = Rc<dyn Fn(&Request) -> Result<Response, Error>>;

thread_local! {
    /// The function for calls on this thread. A test sets it for one call.
    static CURRENT: RefCell<Option<Answers>> = const { RefCell::new(None) };
}

/// Runs `call` with this function as its network.
pub(crate) fn during<R>(answers: Option<Answers>, call: impl FnOnce() -> R) -> R {
    /// Restores the previous function, even after a panic.
    struct Restore(Option<Answers>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _restore = Restore(CURRENT.replace(answers));
    call()
}

pub(super) fn send(request: &Request) -> Result<Response, Error> {
    let answers = CURRENT.with_borrow(Clone::clone);
    let answers = answers.ok_or_else(|| Error::Denied("this test answers no requests".to_owned()))?;
    answers(request)
}
