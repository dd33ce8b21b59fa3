//! Bindings of `wasi:config`, generated from `wit/v0.1/deps/config`.

#![allow(missing_docs, unreachable_pub, dead_code, reason = "generated from the interface")]

wasmtime::component::bindgen!({
    path: "../../wit/v0.1/deps/config",
    world: "imports",
    imports: { default: trappable },
});
