//! Loads plugins: bytes, rules, metadata, the live catalog, the watched folder.
