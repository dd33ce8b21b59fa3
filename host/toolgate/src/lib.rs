//! The library face and the binary.
