//! Hands the compiler's version to the program, for `machine.json`.

use std::process::Command;

fn main() {
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(compiler).arg("--version").output();
    let version = version.map(|found| String::from_utf8_lossy(&found.stdout).trim().to_owned());
    println!("cargo:rustc-env=DURAMEN_BENCH_RUSTC={}", version.unwrap_or_default());
    println!("cargo:rerun-if-changed=build.rs");
}
