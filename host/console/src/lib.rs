//! The web console at `/`, embedded in the binary.
