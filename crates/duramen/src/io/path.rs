//! The paths that devices take: relative, `/`-separated, inside the device.

use std::io;

/// Refuses a path that is not relative and inside the device; the empty path is the root.
pub fn check_path(path: &str) -> io::Result<()> {
    if path.is_empty() || path.split('/').all(is_name) {
        return Ok(());
    }
    let message = format!("{path:?} is not a relative path inside the device");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// The directory and the name of a file's path; refuses the root and what [`check_path`] refuses.
pub fn split_path(path: &str) -> io::Result<(&str, &str)> {
    check_path(path)?;
    if path.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the root is not a file"));
    }
    Ok(path.rsplit_once('/').unwrap_or(("", path)))
}

/// Whether a name is a number of at least 8 digits with something behind it, as the engine names
/// its files: it leaves others alone.
pub(crate) fn is_numbered(name: &str, end: &str, is_digit: fn(&u8) -> bool) -> bool {
    let digits = name.strip_suffix(end).unwrap_or_default();
    digits.len() >= 8 && digits.as_bytes().iter().all(is_digit)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['\\', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_inside_the_device_pass() {
        for good in ["", "LOCK", "journal/00000001.journal", "a/b/..c", "a b"] {
            assert!(check_path(good).is_ok(), "{good:?}");
        }
        for bad in ["..", "../x", "a/../../b", "/etc/passwd", "a//b", "a/", ".", "a\\b", "a\0"] {
            let error = check_path(bad).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{bad:?}");
        }
    }

    #[test]
    fn a_path_splits_into_directory_and_name() {
        assert_eq!(split_path("LOCK").unwrap(), ("", "LOCK"));
        assert_eq!(split_path("a/b/c").unwrap(), ("a/b", "c"));
        assert!(split_path("").is_err());
    }
}
