//! The configuration of a real call: wasi:config, interface `store`.

mod bindings {
    #![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated; the documentation is in wit/")]
    wit_bindgen::generate!({
        path: "../../wit/v0.1",
        world: "wasi:config/imports@0.2.0-rc.1",
    });
}

use bindings::wasi::config::store::{self, Error};

pub(super) fn get(name: &str) -> Result<Option<String>, String> {
    store::get(name).map_err(|error| match error {
        Error::Upstream(why) | Error::Io(why) => why,
    })
}
