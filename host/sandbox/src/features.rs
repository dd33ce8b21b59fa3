//! The proposals of WebAssembly that the engine accepts. `docs/engine-features.md` has the reason for each.
//!
//! Every proposal that no toolchain for tools needs is off, because strangers' components can reach its part of the
//! compiler and of the engine. A proposal that is not in this table is off as well.

use wasmtime::{Config, WasmFeatures};

/// Every proposal with its name, in the order of the documentation.
const DECIDED: &[(&str, WasmFeatures, bool)] = &[
    ("mutable-globals", WasmFeatures::MUTABLE_GLOBAL, true),
    ("saturating-float-to-int", WasmFeatures::SATURATING_FLOAT_TO_INT, true),
    ("sign-extension", WasmFeatures::SIGN_EXTENSION, true),
    ("multi-value", WasmFeatures::MULTI_VALUE, true),
    ("bulk-memory", WasmFeatures::BULK_MEMORY, true),
    ("reference-types", WasmFeatures::REFERENCE_TYPES, true),
    ("floats", WasmFeatures::FLOATS, true),
    ("simd", WasmFeatures::SIMD, true),
    ("extended-const", WasmFeatures::EXTENDED_CONST, true),
    ("component-model", WasmFeatures::COMPONENT_MODEL, true),
    ("relaxed-simd", WasmFeatures::RELAXED_SIMD, false),
    ("tail-call", WasmFeatures::TAIL_CALL, false),
    ("multi-memory", WasmFeatures::MULTI_MEMORY, true),
    ("memory64", WasmFeatures::MEMORY64, false),
    ("custom-page-sizes", WasmFeatures::CUSTOM_PAGE_SIZES, false),
    ("memory-control", WasmFeatures::MEMORY_CONTROL, false),
    ("threads", WasmFeatures::THREADS, false),
    ("shared-everything-threads", WasmFeatures::SHARED_EVERYTHING_THREADS, false),
    ("function-references", WasmFeatures::FUNCTION_REFERENCES, false),
    ("gc", WasmFeatures::GC, false),
    ("gc-types", WasmFeatures::GC_TYPES, false),
    ("custom-descriptors", WasmFeatures::CUSTOM_DESCRIPTORS, false),
    ("exceptions", WasmFeatures::EXCEPTIONS, false),
    ("legacy-exceptions", WasmFeatures::LEGACY_EXCEPTIONS, false),
    ("stack-switching", WasmFeatures::STACK_SWITCHING, false),
    ("wide-arithmetic", WasmFeatures::WIDE_ARITHMETIC, false),
    ("compact-imports", WasmFeatures::COMPACT_IMPORTS, false),
    ("component-model-async", WasmFeatures::CM_ASYNC, false),
    ("component-model-async-stackful", WasmFeatures::CM_ASYNC_STACKFUL, false),
    ("component-model-more-async-builtins", WasmFeatures::CM_MORE_ASYNC_BUILTINS, false),
    ("component-model-threading", WasmFeatures::CM_THREADING, false),
    ("component-model-error-context", WasmFeatures::CM_ERROR_CONTEXT, false),
    ("component-model-gc", WasmFeatures::CM_GC, false),
    ("component-model-map", WasmFeatures::CM_MAP, false),
    ("component-model-memory64", WasmFeatures::CM64, false),
    ("component-model-fixed-length-lists", WasmFeatures::CM_FIXED_LENGTH_LISTS, false),
    ("component-model-implements", WasmFeatures::CM_IMPLEMENTS, false),
    ("component-model-values", WasmFeatures::CM_VALUES, false),
    ("component-model-nested-names", WasmFeatures::CM_NESTED_NAMES, false),
    ("component-model-canonical-names", WasmFeatures::CM_CANON_NAMES, false),
];

pub(crate) fn decide(config: &mut Config) {
    config.wasm_features(WasmFeatures::all(), false);
    for (_, feature, on) in DECIDED {
        if *on {
            config.wasm_features(*feature, true);
        }
    }
    // Not a proposal: it makes relaxed instructions behave the same everywhere, if they are ever on.
    config.relaxed_simd_deterministic(true).shared_memory(false);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new version of the engine brings new proposals. This test fails until the table has them.
    #[test]
    fn every_proposal_is_decided_once() {
        let mut known = WasmFeatures::empty();
        for (name, feature, _) in DECIDED {
            assert!(!known.intersects(*feature), "{name} is decided twice");
            known |= *feature;
        }
        let undecided: Vec<_> = (WasmFeatures::all() - known).iter_names().map(|(name, _)| name).collect();
        assert_eq!(undecided, Vec::<&str>::new());
    }

    #[test]
    fn documentation_matches_every_decision() {
        let page = include_str!("../../../docs/engine-features.md");
        let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
        for (name, _, on) in DECIDED {
            let row = format!("| `{name}` | {} | ", if *on { "on" } else { "off" });
            assert!(rows.iter().any(|line| line.starts_with(&row)), "docs/engine-features.md lacks the row {row}");
        }
        assert_eq!(rows.len(), DECIDED.len(), "docs/engine-features.md has a row of something that does not exist");
    }
}
