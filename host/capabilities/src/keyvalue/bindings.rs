//! Bindings of `wasi:keyvalue`, generated from `wit/v0.1/deps/keyvalue`.

#![allow(missing_docs, unreachable_pub, dead_code, reason = "generated from the interface")]

wasmtime::component::bindgen!({
    path: "../../wit/v0.1/deps/keyvalue",
    world: "imports",
    imports: { default: async | trappable },
    with: {
        "wasi:keyvalue/store.bucket": super::handles::Bucket,
        "wasi:keyvalue/atomics.cas": super::handles::Cas,
    },
});
