//! Texts of several statements, which `;` ends.

use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::dialect::Sql;

/// A text of SQL, and the place at which it begins in another one: errors tell places in that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqlText<'t> {
    /// The text.
    pub text: &'t str,
    /// The line that it begins in, from 1.
    pub line: u64,
    /// The character of the line, from 1.
    pub column: u64,
}

impl<'t> From<&'t str> for SqlText<'t> {
    fn from(text: &'t str) -> Self {
        Self { text, line: 1, column: 1 }
    }
}

impl<'t> From<&'t String> for SqlText<'t> {
    fn from(text: &'t String) -> Self {
        Self::from(text.as_str())
    }
}

impl SqlText<'_> {
    /// A place in the text as one in what that is of.
    pub(crate) fn place(&self, within: Location) -> Location {
        let before = if within.line == 1 { self.column.saturating_sub(1) } else { 0 };
        let line = within.line + self.line.saturating_sub(1);
        Location::new(line, within.column + before)
    }

    /// A place in what the text is of as one in the text.
    pub(crate) fn within(&self, place: Location) -> Location {
        let line = place.line - self.line.saturating_sub(1).min(place.line);
        let before = if line == 1 { self.column.saturating_sub(1) } else { 0 };
        Location::new(line, place.column - before.min(place.column))
    }
}

/// A statement of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptStatement<'t> {
    /// Its text without the `;`.
    pub text: SqlText<'t>,
    /// Whether a `;` ends it.
    pub is_ended: bool,
}

/// The statements of a text. What is no SQL from some place on, such as a text whose quote is
/// open, is one statement from there.
///
/// ```
/// let found = duramen_sql::statements("SELECT ';';\n\nSELECT 2");
/// let texts: Vec<_> = found.iter().map(|statement| statement.text.text).collect();
/// assert_eq!(texts, ["SELECT ';'", "SELECT 2"]);
/// assert_eq!(found[1].text.line, 3);
/// assert!(!found[1].is_ended);
/// ```
pub fn statements(script: &str) -> Vec<ScriptStatement<'_>> {
    let mut tokens: Vec<TokenWithSpan> = Vec::new();
    let dialect = Sql::of(script);
    // What was read before an error stays.
    let _ = Tokenizer::new(&dialect, script).tokenize_with_location_into_buf(&mut tokens);
    let lines = Lines::of(script);
    let mut statements = Vec::new();
    let mut begin: Option<Location> = None;
    for token in &tokens {
        match (&token.token, begin) {
            (Token::SemiColon, Some(from)) => {
                statements.push(lines.statement(from, Some(token.span.start)));
                begin = None;
            }
            (Token::Whitespace(_) | Token::SemiColon, _) | (_, Some(_)) => {}
            (_, None) => begin = Some(token.span.start),
        }
    }
    let read = tokens.last().map_or(Location::new(1, 1), |token| token.span.end);
    let rest = script.get(lines.offset(read)..).unwrap_or_default();
    if begin.is_none() && !rest.trim().is_empty() {
        begin = Some(read);
    }
    statements.extend(begin.map(|from| lines.statement(from, None)));
    statements
}

/// Where the lines of a text begin.
pub(crate) struct Lines<'t> {
    text: &'t str,
    begins: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let begins = [0].into_iter().chain(ends.map(|(end, _)| end + 1)).collect();
        Self { text, begins }
    }

    /// The byte at which a place is.
    pub(crate) fn offset(&self, place: Location) -> usize {
        let number = |number: u64| usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
        let begin = self.begins.get(number(place.line)).copied().unwrap_or(self.text.len());
        let line = self.text.get(begin..).unwrap_or_default();
        begin + line.chars().take(number(place.column)).map(char::len_utf8).sum::<usize>()
    }

    fn statement(&self, from: Location, until: Option<Location>) -> ScriptStatement<'t> {
        let end = until.map_or(self.text.len(), |until| self.offset(until));
        let text = self.text.get(self.offset(from)..end).unwrap_or_default().trim_end();
        let text = SqlText { text, line: from.line, column: from.column };
        ScriptStatement { text, is_ended: until.is_some() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(script: &str) -> Vec<(&str, u64, bool)> {
        let found = statements(script).into_iter();
        found.map(|found| (found.text.text, found.text.line, found.is_ended)).collect()
    }

    #[test]
    fn statements_end_at_semicolons_that_are_no_text() {
        let script = "-- first;\nSELECT ';', \"a;b\" /* ; */;;\n  SELECT '\u{e4}'\n FROM t ; ";
        let expected =
            [("SELECT ';', \"a;b\" /* ; */", 2, true), ("SELECT '\u{e4}'\n FROM t", 3, true)];
        assert_eq!(split(script), expected);
        assert_eq!(split(" \n-- nothing\n"), []);
    }

    #[test]
    fn places_in_a_statement_are_those_of_the_script() {
        let found = statements("SELECT 1; SELECT\n 2");
        let at = |line, column| found[1].text.place(Location::new(line, column));
        assert_eq!((at(1, 8), at(2, 2)), (Location::new(1, 18), Location::new(2, 2)));
    }

    #[test]
    fn what_is_not_closed_is_the_last_statement() {
        assert_eq!(
            split("SELECT 1; SELECT 'a; b"),
            [("SELECT 1", 1, true), ("SELECT 'a; b", 1, false)]
        );
        assert_eq!(split("SELECT 1;\n'a"), [("SELECT 1", 1, true), ("'a", 2, false)]);
    }
}
