//! The error type of the public interface.
//!
//! [`ErrorKind`] says what the caller should do; the message says what, where and what to do next.

use std::fmt;

/// What to do about a device that is full, at the end of what is said of it.
const MAKE_ROOM: &str = ": make room on the device, then go on: nothing that was committed is lost";

/// What the engine returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error with its kind, a message for people, and what caused it.
///
/// It is one pointer wide, so that results on hot paths stay small.
pub struct Error(Box<Content>);

#[derive(Debug)]
struct Content {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What the caller of a failed operation should do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// What was asked for does not exist: ask for something else.
    NotFound,
    /// Somebody else's change came first: read again and retry.
    Conflict,
    /// The input is wrong: correct it.
    Invalid,
    /// The engine cannot do this: use another way.
    Unsupported,
    /// Not permitted.
    Denied,
    /// A disk, a budget or a limit is full: make room.
    Full,
    /// Somebody else holds it: wait and retry.
    Busy,
    /// The caller asked to stop.
    Cancelled,
    /// The time allowed is over.
    TimedOut,
    /// The outcome of a write is not known: read to find out.
    Unknown,
    /// Stored bytes do not verify: restore them from a backup.
    Corrupt,
    /// A sync failed earlier: reopen the database.
    Poisoned,
    /// The operating system reported an error.
    Io,
    /// A defect of the engine: report it.
    Internal,
}

impl ErrorKind {
    /// The kind's name as output and exit codes document it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotFound => "NotFound",
            Self::Conflict => "Conflict",
            Self::Invalid => "Invalid",
            Self::Unsupported => "Unsupported",
            Self::Denied => "Denied",
            Self::Full => "Full",
            Self::Busy => "Busy",
            Self::Cancelled => "Cancelled",
            Self::TimedOut => "TimedOut",
            Self::Unknown => "Unknown",
            Self::Corrupt => "Corrupt",
            Self::Poisoned => "Poisoned",
            Self::Io => "Io",
            Self::Internal => "Internal",
        }
    }
}

impl Error {
    /// An error of `kind` that tells people `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Content { kind, message: message.into(), source: None }))
    }

    /// The same with what caused it.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The same with another message made of its own.
    #[must_use]
    pub(crate) fn reworded(mut self, reword: impl FnOnce(&str) -> String) -> Self {
        self.0.message = reword(&self.0.message);
        self
    }

    /// The same with `context` in front of its message.
    #[must_use]
    pub fn in_context(mut self, context: impl fmt::Display) -> Self {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// An error of the operating system while doing `what`; a full device is `Full`, and the
    /// message says what to do about it.
    pub fn io(what: impl fmt::Display, source: std::io::Error) -> Self {
        use std::io::ErrorKind as Os;
        if source.kind() == Os::NotADirectory {
            let message = format!("{what}: there is a file where a folder is expected");
            return Self::new(ErrorKind::Invalid, message).with_source(source);
        }
        if source.kind() == Os::IsADirectory {
            let message = format!("{what}: there is a folder where a file is expected");
            return Self::new(ErrorKind::Invalid, message).with_source(source);
        }
        let kind = match source.kind() {
            Os::InvalidData => ErrorKind::Invalid,
            Os::StorageFull | Os::QuotaExceeded | Os::FileTooLarge => ErrorKind::Full,
            Os::NotFound => ErrorKind::NotFound,
            Os::StaleNetworkFileHandle => ErrorKind::Conflict,
            Os::PermissionDenied | Os::ReadOnlyFilesystem => ErrorKind::Denied,
            _ => ErrorKind::Io,
        };
        // Room would not help one file that is too large.
        let is_full = matches!(source.kind(), Os::StorageFull | Os::QuotaExceeded);
        let advice = if is_full { MAKE_ROOM } else { "" };
        Self::new(kind, format!("{what}: {source}{advice}")).with_source(source)
    }

    /// The message without what to do about a full device, for who says something else of it.
    pub(crate) fn without_advice(&self) -> &str {
        self.message().strip_suffix(MAKE_ROOM).unwrap_or(self.message())
    }

    /// What the caller should do.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What happened, where, and what to do.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("source", &self.0.source)
            .finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it failed at was once all that was said.
    #[test]
    fn of_a_full_device_is_said_what_to_do() {
        let failed = |kind: std::io::ErrorKind| Error::io("cannot write a file", kind.into());
        for kind in [std::io::ErrorKind::StorageFull, std::io::ErrorKind::QuotaExceeded] {
            let error = failed(kind);
            assert_eq!(error.kind(), ErrorKind::Full);
            assert_eq!(error.message(), format!("cannot write a file: {kind}{MAKE_ROOM}"));
            assert_eq!(error.without_advice(), format!("cannot write a file: {kind}"));
        }
        let error = failed(std::io::ErrorKind::FileTooLarge);
        assert_eq!(error.kind(), ErrorKind::Full);
        assert_eq!(error.message(), error.without_advice());
    }
}
