//! How the process ends: the exit code of every outcome, and errors on standard error.

use std::error::Error as _;
use std::io;
use std::num::{IntErrorKind, ParseIntError};
use std::process::ExitCode;

use duramen::{Error, ErrorKind, nearest};
use serde::Serialize;

use crate::extension::similar;
use crate::notice::notice;

/// Characters of a wrong value that an error shows.
const SHOWN_CHARS_MAX: usize = 200;

/// The exit code once whoever read the output went away, which shells give to a program that
/// `SIGPIPE` ended.
const READER_GONE: u8 = 141;

/// A command that ran to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Success {
    /// It did what it was asked for.
    Done,
    /// `check` or `scrub` found damage, `repair` lost something, or `diff --exit-code` found a
    /// difference.
    Found,
    /// What ran in place of a built-in command ended with this code.
    Code(u8),
}

/// A command that did not run to its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The engine, or what it was given, is in the way.
    Engine(Error),
    /// The command line is wrong.
    Usage(String),
    /// Standard output takes no more.
    Output(io::Error),
    /// The same, of a command that may have changed something.
    Untold(io::Error),
    /// The user pressed Ctrl-C; the text says what is safe.
    Interrupted(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl Failure {
    /// Of a command that writes: what it did before it could not tell of it is not undone.
    pub(crate) fn after_writing(self) -> Self {
        match self {
            Self::Output(error) => Self::Untold(error),
            failure => failure,
        }
    }

    /// Whether whoever read the output went away, as `head` does when it has enough.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        let cause = match self {
            Self::Output(error) | Self::Untold(error) => Some(error),
            Self::Engine(error) => error.source().and_then(|source| source.downcast_ref()),
            Self::Usage(_) | Self::Interrupted(_) => None,
        };
        cause.is_some_and(|error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    fn code(&self) -> u8 {
        match self {
            Self::Engine(error) => code_of(error.kind()),
            Self::Usage(_) => 2,
            Self::Output(error) | Self::Untold(error) => code_of(output_kind(error)),
            Self::Interrupted(_) => 130,
        }
    }

    fn report(&self) -> Report {
        let (kind, message) = match self {
            Self::Engine(error) => (error.kind().name(), error.message().to_owned()),
            Self::Usage(message) => ("Usage", message.clone()),
            Self::Output(error) => {
                (output_kind(error).name(), format!("cannot write to standard output: {error}"))
            }
            Self::Untold(error) => {
                let message = format!(
                    "cannot write to standard output: {error}; what was changed is saved all the \
                     same: look at it before you repeat the command"
                );
                (output_kind(error).name(), message)
            }
            Self::Interrupted(message) => ("Interrupted", message.clone()),
        };
        Report { kind, message }
    }
}

/// What a write to standard output failed of: the device behind it may be full too.
fn output_kind(error: &io::Error) -> ErrorKind {
    Error::io("standard output", error.kind().into()).kind()
}

#[derive(Serialize)]
struct Report {
    kind: &'static str,
    message: String,
}

/// The exit codes that `docs/errors.md` lists.
fn code_of(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::NotFound => 10,
        ErrorKind::Conflict => 11,
        ErrorKind::Invalid => 12,
        ErrorKind::Unsupported => 13,
        ErrorKind::Denied => 14,
        ErrorKind::Full => 15,
        ErrorKind::Busy => 16,
        ErrorKind::Cancelled => 17,
        ErrorKind::TimedOut => 18,
        ErrorKind::Unknown => 19,
        ErrorKind::Corrupt => 20,
        ErrorKind::Poisoned => 21,
        ErrorKind::Io => 22,
        ErrorKind::Internal => 23,
    }
}

/// Ends the process.
pub(crate) fn finish(result: Result<Success, Failure>, json: bool) -> ExitCode {
    ExitCode::from(match result {
        Ok(success) => code(success),
        Err(failure) => end(&failure, json),
    })
}

/// The exit code of a failure, which is reported if there is somebody who wants to know.
fn end(failure: &Failure, json: bool) -> u8 {
    if failure.is_broken_pipe() { READER_GONE } else { report(failure, json) }
}

/// The exit code of a command that ran to its end.
pub(crate) fn code(success: Success) -> u8 {
    match success {
        Success::Done => 0,
        Success::Found => 1,
        Success::Code(code) => code,
    }
}

/// Reports what failed on standard error and gives the exit code.
pub(crate) fn report(failure: &Failure, json: bool) -> u8 {
    let report = failure.report();
    if json {
        notice!("{}", serde_json::json!({ "error": report }));
    } else {
        notice!("duramen: {}", report.message);
    }
    failure.code()
}

/// Prints the help that was asked for, or what is wrong with the command line.
pub(crate) fn refuse(mut error: clap::Error, json: bool) -> u8 {
    leave_slips(&mut error);
    let error = &error;
    if !error.use_stderr() {
        let failure = match error.print() {
            Ok(()) => return 0,
            Err(error) => Failure::Output(error),
        };
        return end(&failure, json);
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return 2;
    }
    let mut text = text(error);
    if let Some(meant) = meant_command(error) {
        let (told, usage) = text.split_once('\n').unwrap_or((text.as_str(), ""));
        text = format!("{told}; did you mean {meant}?\n{usage}");
    }
    if is_wrong_value(error) {
        let message = text.split("\n\nFor more information").next().unwrap_or_default();
        return report(&Error::new(ErrorKind::Invalid, message).into(), json);
    }
    report(&Failure::Usage(text.trim_end().to_owned()), json)
}

/// Leaves of what clap suggests what a slip of the hand makes of it: by likeness alone, `nope` is
/// `top`.
fn leave_slips(error: &mut clap::Error) {
    use clap::error::{ContextKind, ContextValue};
    let kinds = [
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ];
    for (given, suggested) in kinds {
        let Some(ContextValue::String(name)) = error.get(given) else { continue };
        let is_slip = match error.get(suggested) {
            Some(ContextValue::String(known)) => nearest(name, [known]).is_some(),
            Some(ContextValue::Strings(known)) => nearest(name, known).is_some(),
            _ => continue,
        };
        if !is_slip {
            error.remove(suggested);
        }
    }
}

/// The command that was perhaps meant by one that is not there, where clap does not tell.
fn meant_command(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue};
    match (error.get(ContextKind::InvalidSubcommand), error.get(ContextKind::SuggestedSubcommand)) {
        (Some(ContextValue::String(name)), None) => similar(name),
        _ => None,
    }
}

/// Whether a value is none of its type, which is input like any other. One that begins as an option
/// is an option that there is not.
fn is_wrong_value(error: &clap::Error) -> bool {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else {
        return false;
    };
    let is_given = match error.kind() {
        ErrorKind::ValueValidation => true,
        // An empty one stands for one that is missing.
        ErrorKind::InvalidValue => !value.is_empty(),
        _ => false,
    };
    is_given && !value.starts_with("--")
}

/// What is wrong with the command line, as clap tells it, but for what is wrong with a number, and
/// for a long value, which is cut.
pub(crate) fn text(error: &clap::Error) -> String {
    use clap::error::{ContextKind, ContextValue};
    let text = error.render().to_string();
    let mut text = text.strip_prefix("error: ").map(str::to_owned).unwrap_or(text);
    if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue)
        && let Some((end, _)) = value.char_indices().nth(SHOWN_CHARS_MAX)
    {
        text = text.replacen(value.as_str(), &format!("{}...", &value[..end]), 1);
    }
    let Some(wrong) = error.source().and_then(|source| source.downcast_ref::<ParseIntError>())
    else {
        return text;
    };
    let told = match wrong.kind() {
        IntErrorKind::PosOverflow => "it is too large a number",
        IntErrorKind::Zero => "it takes a whole number, 1 or more",
        _ => "it takes a whole number, 0 or more",
    };
    text.replacen(&format!(": {wrong}"), &format!(": {told}"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of it stood in the error, however long it was.
    #[test]
    fn a_long_value_that_is_wrong_is_cut() {
        let number = clap::Arg::new("count").value_parser(clap::value_parser!(u32));
        let command = clap::Command::new("duramen").arg(number);
        let wrong = "\u{e4}".repeat(40_000);
        let text = text(&command.try_get_matches_from(["duramen", &wrong]).unwrap_err());
        assert!(text.contains(&format!("'{}...'", "\u{e4}".repeat(200))), "{text}");
        assert!(text.len() < 1_000, "{text}");
    }

    #[test]
    fn only_slips_of_the_hand_are_suggested() {
        let command = |name| clap::Command::new(name);
        let shell = command("duramen").subcommands([command("top"), command("latest")]);
        let told = |name: &str| {
            let mut error = shell.clone().try_get_matches_from(["duramen", name]).unwrap_err();
            leave_slips(&mut error);
            text(&error)
        };
        assert!(told("lastest").contains("'latest'"), "{}", told("lastest"));
        assert!(!told("nope").contains("top"), "{}", told("nope"));
    }

    #[test]
    fn a_reader_that_went_away_is_seen_through_the_engine() {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(Failure::Output(gone()).is_broken_pipe());
        assert!(Failure::Engine(Error::io("writing", gone())).is_broken_pipe());
        assert!(!Failure::Engine(Error::new(ErrorKind::Io, "else")).is_broken_pipe());
    }

    #[test]
    fn a_full_device_behind_standard_output_is_full() {
        let code = |kind: io::ErrorKind| Failure::Output(kind.into()).code();
        assert_eq!(code(io::ErrorKind::StorageFull), code_of(ErrorKind::Full));
        assert_eq!(code(io::ErrorKind::TimedOut), code_of(ErrorKind::Io));
    }

    #[test]
    fn exit_codes_follow_the_order_of_the_kinds() {
        assert_eq!(code_of(ErrorKind::NotFound), 10);
        assert_eq!(code_of(ErrorKind::Busy), 16);
        assert_eq!(code_of(ErrorKind::Internal), 23);
    }
}
