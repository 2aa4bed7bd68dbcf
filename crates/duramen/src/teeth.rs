//! Defects planted on purpose, in builds with `--cfg duramen_teeth` alone: `DURAMEN_TEETH` names
//! the
//! one that is active, and the suites of `duramen-sim` must find it.

use std::ffi::OsString;
use std::sync::OnceLock;

/// Whether this defect is active.
pub(crate) fn bites(defect: &str) -> bool {
    static PLANTED: OnceLock<Option<OsString>> = OnceLock::new();
    let planted = PLANTED.get_or_init(|| std::env::var_os("DURAMEN_TEETH"));
    planted.as_ref().is_some_and(|planted| planted == defect)
}
