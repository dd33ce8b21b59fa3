//! libFuzzer's way into [`toolgate_fuzz::rules`].

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toolgate_fuzz::rules(bytes));
