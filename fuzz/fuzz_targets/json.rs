//! libFuzzer's way into [`toolgate_fuzz::json`].

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toolgate_fuzz::json(bytes));
