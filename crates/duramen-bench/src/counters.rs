//! Counters of a process that do not swing as times do.

use std::path::PathBuf;

use crate::files;

/// Read and write calls of a process and the bytes it handed to write calls, from `/proc`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    /// Read system calls.
    pub(crate) reads: u64,
    /// Write system calls.
    pub(crate) writes: u64,
    /// Bytes handed to write calls.
    pub(crate) written_bytes: u64,
}

impl Calls {
    /// The counters of a process so far; `None` where the system does not tell.
    pub(crate) fn of(process: u32) -> Option<Self> {
        let path = PathBuf::from(format!("/proc/{process}/io"));
        Self::parse(&files::read_text(&path).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.strip_prefix(':')?.trim().parse().ok()
        };
        Some(Self {
            reads: field("syscr")?,
            writes: field("syscw")?,
            written_bytes: field("wchar")?,
        })
    }

    /// What has been added since an earlier look.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(before.reads),
            writes: self.writes.saturating_sub(before.writes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
        }
    }

    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            written_bytes: self.written_bytes + other.written_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_name() {
        let text = "rchar: 9\nwchar: 77\nsyscr: 5\nsyscw: 6\nread_bytes: 0\nwrite_bytes: 1\n";
        let calls = Calls { reads: 5, writes: 6, written_bytes: 77 };
        assert_eq!(Calls::parse(text), Some(calls));
        assert_eq!(Calls::parse("syscr: 5\n"), None);
    }
}
