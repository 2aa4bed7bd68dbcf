//! Reads the text of a query.

use std::collections::HashMap;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::Statement as Parsed;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use duramen::{Error, ErrorKind, Result};

use crate::system_time;

/// Where the words of a query first stand.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places(HashMap<String, Location>);

impl Places {
    fn new(tokens: &[TokenWithSpan]) -> Self {
        let mut places = HashMap::new();
        for token in tokens {
            if let Token::Word(word) = &token.token {
                places.entry(word.value.clone()).or_insert(token.span.start);
            }
        }
        Self(places)
    }

    /// Where a word is, for people.
    pub(crate) fn of(&self, word: &str) -> String {
        let at = self.0.get(word);
        at.map_or_else(String::new, |at| format!(" (line {}, column {})", at.line, at.column))
    }
}

/// Reads a text that is one query.
pub(crate) fn parse(sql: &str) -> Result<(Statement, Places)> {
    let dialect = GenericDialect {};
    let tokens = Tokenizer::new(&dialect, sql).tokenize_with_location();
    let tokens = tokens.map_err(|error| wrong(&ParserError::from(error)))?;
    let places = Places::new(&tokens);
    let tokens = system_time::rewrite(tokens)?;
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
    let mut statements = parser.parse_statements().map_err(|error| wrong(&error))?;
    match (statements.pop(), statements.len()) {
        (Some(statement), 0) if !is_reading(&statement) => {
            let message = "a query only reads: give a SELECT, EXPLAIN, DESCRIBE or SHOW";
            Err(Error::new(ErrorKind::Unsupported, message))
        }
        (Some(statement), 0) => Ok((Statement::Statement(Box::new(statement)), places)),
        (None, _) => Err(Error::new(ErrorKind::Invalid, "there is no query: give one")),
        (Some(_), more) => {
            let message = format!("there are {} queries: give one at a time", more + 1);
            Err(Error::new(ErrorKind::Invalid, message))
        }
    }
}

fn is_reading(statement: &Parsed) -> bool {
    matches!(
        statement,
        Parsed::Query(_)
            | Parsed::Explain { .. }
            | Parsed::ExplainTable { .. }
            | Parsed::ShowTables { .. }
            | Parsed::ShowColumns { .. }
    )
}

fn wrong(error: &ParserError) -> Error {
    let why = match error {
        ParserError::TokenizerError(why) | ParserError::ParserError(why) => why.as_str(),
        ParserError::RecursionLimitExceeded => "it is nested too deeply",
    };
    Error::new(ErrorKind::Invalid, format!("this is no SQL: {why}"))
}
