//! What can be asked of `duramen sql` that is no SQL, at a prompt and in scripts.

use duramen::{Clock, Error, ErrorKind, SystemClock};
use duramen_sql::SqlText;

use crate::Result;
use crate::exit::Failure;
use crate::output::Output;

/// What there is.
const COMMANDS: &[(&str, &str)] = &[
    ("\\d", "List the tables and views"),
    ("\\d TABLE", "List the columns of a table"),
    ("\\timing", "Say, or no longer say, how long each answer took; also with on or off"),
    ("\\q", "End, as exit, quit and Ctrl-D do"),
    ("\\?", "List these, as help does"),
];

const TABLES: &str = "SELECT table_schema AS \"schema\", table_name AS \"table\", table_type AS \
                      \"type\" FROM information_schema.tables WHERE table_schema <> \
                      'information_schema' ORDER BY 1, 2";

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Answers a query.
    Query(String),
    /// Says how long answers take, or not; the other way round if it does not say which.
    Timing(Option<bool>),
    Help,
    End,
}

/// Whether it is said how long answers take.
#[derive(Debug, Default)]
pub(super) struct Timing(bool);

impl Command {
    /// The command that a text is; none if it is SQL.
    pub(super) fn of(text: &str) -> Option<Result<Self>> {
        let text = text.trim();
        let plain = text.trim_end_matches(';').trim_end();
        if ["exit", "quit"].iter().any(|word| plain.eq_ignore_ascii_case(word)) {
            return Some(Ok(Self::End));
        }
        if plain.eq_ignore_ascii_case("help") {
            return Some(Ok(Self::Help));
        }
        // As other shells of SQL know some.
        if plain.strip_prefix('.').is_some_and(|of| of.starts_with(|c: char| c.is_alphabetic())) {
            return Some(Err(unknown(plain)));
        }
        let command = plain.strip_prefix('\\')?;
        let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        Some(match (word, rest.trim()) {
            ("d", "") => Ok(Self::Query(TABLES.to_owned())),
            ("d", table) => Ok(Self::Query(format!("DESCRIBE {table}"))),
            ("timing", "") => Ok(Self::Timing(None)),
            ("timing", "on") => Ok(Self::Timing(Some(true))),
            ("timing", "off") => Ok(Self::Timing(Some(false))),
            ("?", "") => Ok(Self::Help),
            ("q", "") => Ok(Self::End),
            _ => Err(unknown(text)),
        })
    }
}

fn unknown(text: &str) -> Failure {
    let message = format!("there is no command {text}: \\? lists those there are");
    Error::new(ErrorKind::Invalid, message).into()
}

impl Timing {
    /// Says how long answers take, or not; the other way round if it is not told which.
    pub(super) fn set(&mut self, is: Option<bool>, output: &mut Output) -> Result<()> {
        self.0 = is.unwrap_or(!self.0);
        output.line(format_args!("timing is {}", if self.0 { "on" } else { "off" }))
    }

    /// Answers, and says how long that took.
    pub(super) fn of(
        &self,
        output: &mut Output,
        answer: impl FnOnce(&mut Output) -> Result<()>,
    ) -> Result<()> {
        let begun = SystemClock.now();
        answer(output)?;
        if self.0 {
            let micros = SystemClock.now().0.saturating_sub(begun.0);
            output.line(format_args!("{}.{:03} ms", micros / 1_000, micros % 1_000))?;
        }
        Ok(())
    }
}

/// Lists what there is.
pub(super) fn help(output: &mut Output) -> Result<()> {
    COMMANDS.iter().try_for_each(|(name, about)| output.line(format_args!("{name:<10} {about}")))
}

/// Whether a text is a command, or statements that end.
pub(super) fn is_whole(text: &str) -> bool {
    let is_ended = || duramen_sql::statements(text).last().is_none_or(|last| last.is_ended);
    Command::of(text).is_some() || is_ended()
}

/// The statements and commands of a script. A command is a line of its own, between statements.
pub(super) fn parts(script: &str) -> Vec<SqlText<'_>> {
    let mut parts = Vec::new();
    // Where the statements begin that come next.
    let (mut begin, mut first_line) = (0, 1);
    let mut end = 0;
    for (line, number) in script.split_inclusive('\n').zip(1..) {
        let from = end;
        end += line.len();
        if Command::of(line).is_some() && is_whole(&script[begin..from]) {
            parts.extend(statements(&script[begin..from], first_line));
            parts.push(SqlText { text: line.trim(), line: number, column: 1 });
            (begin, first_line) = (end, number + 1);
        }
    }
    parts.extend(statements(&script[begin..], first_line));
    parts
}

fn statements(text: &str, first_line: u64) -> impl Iterator<Item = SqlText<'_>> {
    let found = duramen_sql::statements(text).into_iter();
    found.map(move |found| SqlText { line: found.text.line + first_line - 1, ..found.text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_sql() {
        let command = |text| Command::of(text).map(|command| command.unwrap());
        assert_eq!(command(" \\d players; "), Some(Command::Query("DESCRIBE players".into())));
        assert_eq!(command("\\timing  on"), Some(Command::Timing(Some(true))));
        assert_eq!(command("\\timing"), Some(Command::Timing(None)));
        for end in ["\\q", "exit", "QUIT;", " quit "] {
            assert_eq!(command(end), Some(Command::End), "{end}");
        }
        assert_eq!(command("Help"), Some(Command::Help));
        for sql in ["", "exits", "SELECT '\\d'", "exit 1", "help me", ".5"] {
            assert_eq!(command(sql), None, "{sql}");
        }
        for unknown in ["\\timing maybe", ".tables"] {
            assert!(Command::of(unknown).unwrap().is_err(), "{unknown}");
        }
    }

    #[test]
    fn a_query_is_whole_with_its_semicolon() {
        for whole in ["", "\\d players", "quit", "SELECT 1;", "SELECT ';';\n -- done"] {
            assert!(is_whole(whole), "{whole}");
        }
        for part in ["SELECT 1", "SELECT ';", "SELECT 1; SELECT", "'"] {
            assert!(!is_whole(part), "{part}");
        }
    }

    /// Commands once were SQL in scripts.
    #[test]
    fn commands_in_scripts_are_lines_between_statements() {
        let script =
            "\\d\nSELECT 1; SELECT '\n\\d\n';\n\\timing on\n\nSELECT\nexit\n;\nquit\nSELECT 2";
        let parts: Vec<_> = parts(script).iter().map(|part| (part.line, part.text)).collect();
        let expected = [
            (1, "\\d"),
            (2, "SELECT 1"),
            (2, "SELECT '\n\\d\n'"),
            (5, "\\timing on"),
            (7, "SELECT\nexit"),
            (10, "quit"),
            (11, "SELECT 2"),
        ];
        assert_eq!(parts, expected);
    }
}
