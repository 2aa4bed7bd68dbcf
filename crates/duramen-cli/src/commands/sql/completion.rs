//! What the tab key offers in SQL: words, tables and columns.

use std::collections::BTreeSet;

use duramen::Database;
use duramen_sql::SessionOptions;
use duramen_sql::arrow::array::AsArray;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

use super::command::is_whole;

/// Words of SQL that are often written.
const WORDS: &[&str] = &[
    "ALL",
    "AND",
    "AS",
    "ASC",
    "ASOF JOIN",
    "AVG",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COALESCE",
    "COPY",
    "COUNT",
    "CREATE",
    "CROSS",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "EXPLAIN",
    "FOR SYSTEM_TIME ALL",
    "FOR SYSTEM_TIME AS OF",
    "FOR SYSTEM_TIME BETWEEN",
    "FOR SYSTEM_TIME FROM",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "IN",
    "INDEX",
    "INNER",
    "INSERT",
    "INTO",
    "IS",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "MATCH_CONDITION",
    "MAX",
    "MIN",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OVER",
    "PARTITION",
    "RETURNING",
    "RIGHT",
    "SELECT",
    "SET",
    "SHOW",
    "SUM",
    "TABLE",
    "THEN",
    "TO",
    "UNION",
    "UPDATE",
    "USING",
    "VALUES",
    "VIEW",
    "WHEN",
    "WHERE",
    "WITH",
];

/// The names of all columns, and of the tables that have them.
const NAMES: &str = "SELECT DISTINCT table_name, column_name FROM information_schema.columns \
                     WHERE table_schema <> 'information_schema'";

pub(super) struct Completion {
    names: BTreeSet<String>,
}

impl Completion {
    /// What a database has, and functions. Without its names there are still the words.
    pub(super) fn of(database: &Database) -> Self {
        let mut names = names(database).unwrap_or_default();
        names.extend(duramen_sql::functions().map(str::to_owned));
        Self { names }
    }

    fn candidates(&self, partial: &str) -> Vec<String> {
        if partial.is_empty() {
            return Vec::new();
        }
        let upper = partial.to_uppercase();
        let words = WORDS.iter().filter(|word| word.starts_with(&upper)).map(|word| {
            let is_lower = partial.chars().all(|character| !character.is_uppercase());
            if is_lower { word.to_lowercase() } else { (*word).to_owned() }
        });
        let names = self.names.iter().filter(|name| name.starts_with(partial)).cloned();
        names.chain(words).collect()
    }
}

fn names(database: &Database) -> duramen::Result<BTreeSet<String>> {
    let session = duramen_sql::Session::new(database.clone(), SessionOptions::default());
    let mut names = BTreeSet::new();
    for batch in session.query(NAMES)? {
        for column in batch?.columns() {
            if let Some(texts) = column.as_string_opt::<i32>() {
                names.extend(texts.iter().flatten().map(str::to_owned));
            }
        }
    }
    Ok(names)
}

/// Where the name begins that ends at the cursor.
fn begin(line: &str, position: usize) -> usize {
    let before = line.get(..position).unwrap_or_default();
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    before
        .rfind(|character| !is_part(character))
        .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8))
}

impl Completer for Completion {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let begin = begin(line, position);
        let candidates = self.candidates(line.get(begin..position).unwrap_or_default());
        let pair = |text: String| Pair { display: text.clone(), replacement: text };
        Ok((begin, candidates.into_iter().map(pair).collect()))
    }
}

impl Validator for Completion {
    /// A query goes on until its `;`.
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_whole(context.input()) {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}

impl Hinter for Completion {
    type Hint = String;
}

impl Highlighter for Completion {}
impl Helper for Completion {}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion() -> Completion {
        Completion { names: ["players", "score", "SetUp"].map(str::to_owned).into() }
    }

    #[test]
    fn names_are_offered_as_written_and_words_as_typed() {
        let offered = |partial| completion().candidates(partial);
        assert_eq!(offered("sc"), ["score"]);
        assert_eq!(offered("se"), ["select", "set"]);
        assert_eq!(offered("SE"), ["SELECT", "SET"]);
        assert_eq!(offered("Se"), ["SetUp", "SELECT", "SET"]);
        assert!(offered("").is_empty());
        assert_eq!(begin("SELECT p.sc", 11), 9);
        assert_eq!(begin("se", 2), 0);
    }

    #[test]
    fn functions_are_offered_beside_tables() {
        let db = Database::memory().unwrap();
        db.create_collection("harbours", duramen::KeyKind::Text).unwrap();
        let offered = |partial| Completion::of(&db).candidates(partial);
        assert_eq!(offered("ha"), ["harbours", "having"]);
        assert_eq!(offered("hi"), ["history"]);
        assert_eq!(offered("json_get_i"), ["json_get_int"]);
    }
}
