//! The command `duramen`.

fn main() {}
