//! A plugin with legal declarations that imports an interface that no host grants.

use toolgate_sdk::prelude::*;

mod bindings {
    wit_bindgen::generate!({
        inline: "
            package evil:backdoor@1.0.0;
            interface door { open: func() -> string; }
            world intruder { import door; }
        ",
    });
}

toolgate_sdk::plugin! {
    Tool::server("open_door", "Opens the door.", |_: NoArguments, _: &Call| Ok(bindings::evil::backdoor::door::open())),
}
