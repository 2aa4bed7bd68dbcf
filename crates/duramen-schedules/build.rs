//! Puts the scheduler's locks and the planted defects into the engine's sources.

fn main() {
    println!("cargo:rustc-cfg=shuttle");
    println!("cargo:rustc-cfg=duramen_teeth");
    // Features of the engine that are not built here.
    println!("cargo:rustc-check-cfg=cfg(feature, values(\"fuzzing\", \"typed\"))");
    println!("cargo:rerun-if-changed=build.rs");
}
