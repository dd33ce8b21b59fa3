//! The network of a native test: a function that answers.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Error, Request, Response};

/// What a test answers a request with.
pub(crate) type Answers = Rc<dyn Fn(&Request) -> Result<Response, Error>>;

thread_local! {
    /// Who answers the calls on this thread. A test sets it for the length of one call.
    static CURRENT: RefCell<Option<Answers>> = const { RefCell::new(None) };
}

/// Has the requests of `call` answered by this.
pub(crate) fn during<R>(answers: Option<Answers>, call: impl FnOnce() -> R) -> R {
    /// Puts back who answered before, after a panic too.
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
