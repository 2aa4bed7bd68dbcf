#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| duramen_fuzz::run("record_query", data));
