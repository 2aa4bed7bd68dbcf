//! The targets of `duramen::fuzzing` by their names.

/// Runs one input of a target.
pub fn run(name: &str, data: &[u8]) {
    let target = duramen::fuzzing::TARGETS.iter().find(|target| target.name == name);
    (target.expect("a target of duramen::fuzzing").run)(data);
}
