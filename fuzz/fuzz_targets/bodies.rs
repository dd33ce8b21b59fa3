//! libFuzzer's way into [`toolgate_fuzz::bodies`].

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toolgate_fuzz::bodies(bytes));
