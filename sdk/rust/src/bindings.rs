//! Bindings to the interface, generated from `wit/`.
//!
//! wit-component drops imports that a component never calls, so a plugin imports only what its tools use. This module
//! is public only for the macros, and may change at any time.

#![allow(missing_docs, unreachable_pub, reason = "generated; the documentation is in wit/")]

/// The world of plugins that only declare tools.
pub mod declarations {
    wit_bindgen::generate!({
        path: "../../wit/v0.1",
        world: "toolgate:plugin/declarations",
        pub_export_macro: true,
        export_macro_name: "export_declarations",
        default_bindings_module: "toolgate_sdk::bindings::declarations",
    });
}

/// The additional exports of a plugin with server tools. They need a world of their own, because the export macros of
/// the interface's worlds `declarations` and `plugin` would have the same names. wit-component merges both worlds.
pub mod server {
    wit_bindgen::generate!({
        path: "../../wit/v0.1",
        inline: "package toolgate:sdk; world server { export toolgate:plugin/server@0.1.2; }",
        world: "toolgate:sdk/server",
        with: {
            "toolgate:plugin/tool-types@0.1.2": crate::bindings::declarations::toolgate::plugin::tool_types,
        },
        pub_export_macro: true,
        export_macro_name: "export_server",
        default_bindings_module: "toolgate_sdk::bindings::server",
    });
}

/// The world of policies.
pub mod policy {
    wit_bindgen::generate!({
        path: "../../wit/policy/v0.1",
        world: "toolgate:policy/policy",
        pub_export_macro: true,
        export_macro_name: "export_policy",
        default_bindings_module: "toolgate_sdk::bindings::policy",
    });
}
