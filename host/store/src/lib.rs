//! Backends of the store port: memory and sled.
