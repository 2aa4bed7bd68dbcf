//! What a command prints on standard output: text for people, JSON lines for programs.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style as Paint};
use serde::Serialize;

use crate::Result;

/// How output looks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Style {
    /// One JSON object a line.
    pub(crate) json: bool,
    /// A person looks at it.
    pub(crate) terminal: bool,
    pub(crate) palette: Palette,
}

/// The colours of what has a meaning; none of them where colours are not wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Palette {
    pub(crate) revision: Paint,
    pub(crate) time: Paint,
    pub(crate) added: Paint,
    pub(crate) removed: Paint,
    pub(crate) replaced: Paint,
    pub(crate) heading: Paint,
}

impl Palette {
    const COLORED: Self = Self {
        revision: AnsiColor::Yellow.on_default(),
        time: AnsiColor::Cyan.on_default(),
        added: AnsiColor::Green.on_default(),
        removed: AnsiColor::Red.on_default(),
        replaced: AnsiColor::Yellow.on_default(),
        heading: Paint::new().bold(),
    };
}

impl Style {
    /// Colours on a terminal only, and not where `NO_COLOR` is set.
    pub(crate) fn of_standard_output(json: bool) -> Self {
        let stdout = io::stdout();
        let colored = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
        let palette = if colored { Palette::COLORED } else { Palette::default() };
        Self { json, terminal: stdout.is_terminal(), palette }
    }
}

/// One thing that a command prints.
pub(crate) trait Record: Serialize {
    /// Prints it for people.
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()>;
}

/// Where a command prints.
pub(crate) struct Output<'a> {
    stream: &'a mut dyn Write,
    pub(crate) style: Style,
}

impl<'a> Output<'a> {
    pub(crate) fn new(stream: &'a mut dyn Write, style: Style) -> Self {
        Self { stream, style }
    }

    /// Prints `record` as text or as a line of JSON.
    pub(crate) fn record(&mut self, record: &impl Record) -> Result<()> {
        if self.style.json {
            serde_json::to_writer(&mut *self.stream, record).map_err(io::Error::from)?;
            self.stream.write_all(b"\n")?;
        } else {
            record.print(&self.style.palette, self.stream)?;
        }
        Ok(())
    }

    /// Prints one line.
    pub(crate) fn line(&mut self, text: impl std::fmt::Display) -> Result<()> {
        Ok(writeln!(self.stream, "{text}")?)
    }

    /// Prints what a library writes by itself.
    pub(crate) fn stream(&mut self) -> &mut dyn Write {
        self.stream
    }

    /// The same, where the library tells as errors of its own what standard output failed of.
    pub(crate) fn written_by(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let mut kept = Kept { stream: &mut *self.stream, failed: None };
        let written = write(&mut kept);
        match kept.failed {
            Some(error) if written.is_err() => Err(error.into()),
            _ => written,
        }
    }

    /// Makes sure that all of it has left the process.
    pub(crate) fn flush(&mut self) -> Result<()> {
        Ok(self.stream.flush()?)
    }
}

/// A stream that keeps what it failed of.
struct Kept<'s> {
    stream: &'s mut dyn Write,
    failed: Option<io::Error>,
}

impl Kept<'_> {
    fn keep(&mut self, error: io::Error) -> io::Error {
        let kind = error.kind();
        // What was interrupted is tried again.
        if kind != io::ErrorKind::Interrupted {
            self.failed = Some(error);
        }
        kind.into()
    }
}

impl Write for Kept<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes).map_err(|error| self.keep(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush().map_err(|error| self.keep(error))
    }
}

/// `text` on one line: what would move the cursor is escaped.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    for character in text.trim_end().chars() {
        if character.is_control() {
            let _ = write!(line, "{}", character.escape_default());
        } else {
            line.push(character);
        }
    }
    Cow::Owned(line)
}

/// The JSON text `value`, cut where it would fill the screen.
pub(crate) fn shortened(value: &str) -> Cow<'_, str> {
    const CHARACTERS_MAX: usize = 100;
    match value.char_indices().nth(CHARACTERS_MAX) {
        None => Cow::Borrowed(value),
        Some((end, _)) => {
            let bytes = indicatif::HumanCount(u64::try_from(value.len()).unwrap_or(u64::MAX));
            Cow::Owned(format!("{} ... ({bytes} bytes)", &value[..end]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_a_document_cannot_move_the_cursor() {
        assert_eq!(one_line("a\u{1b}[2Jb\nc\n"), "a\\u{1b}[2Jb\\nc");
        assert_eq!(one_line("plain"), "plain");
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let long = "\u{e9}".repeat(101);
        assert_eq!(shortened(&long), format!("{} ... (202 bytes)", "\u{e9}".repeat(100)));
        assert_eq!(shortened("short"), "short");
    }
}
