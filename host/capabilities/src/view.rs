//! The view of a call for a capability: only its own state, the resource table and the usage.

use std::marker::PhantomData;

use wasmtime::component::{HasData, ResourceTable};

use crate::usage::Usage;

/// The part of a call that a host function works with. `S` is the state of one capability.
pub struct View<'a, S> {
    pub state: &'a mut S,
    pub table: &'a mut ResourceTable,
    pub usage: &'a Usage,
}

/// A call that has the state of a capability.
pub trait CallView<S>: Send + 'static {
    /// The view of one host call. It may end the guest with [`Stop::unwind`](crate::Stop::unwind), for example because
    /// the call has made too many host calls.
    fn view(&mut self) -> View<'_, S>;
}

/// Selects the state of a capability in a linker.
pub(crate) struct Has<S>(PhantomData<S>);

impl<S: 'static> HasData for Has<S> {
    type Data<'a> = View<'a, S>;
}
