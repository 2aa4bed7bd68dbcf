//! Reads the text of a query.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Span;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr, Query, Statement as Parsed, With};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use duramen::{Error, ErrorKind, Result};

use crate::allowance::Allowance;
use crate::copy::{Copy, Direction};
use crate::dialect::Sql;
use crate::ignored::{self, Ignored};
use crate::parameter::Parameter;
use crate::script::{Lines, SqlText};
use crate::table::{Table, Wanted};
use crate::words::{Role, Words};
use crate::{
    any_list, as_of_join, casts, change, copy, cte_names, depth, digits, distinct_from,
    empty_windows, field_names, from_first, function, headings, lateral_values, materialized,
    merged, named_windows, objects, parameter, repeated, rounding, row_values, spelling, syntax,
    system_time, unnest,
};

/// Words with which a query may need columns that it does not name, if only of other queries.
const WITH_OTHER_COLUMNS: [&str; 7] =
    ["SELECT", "JOIN", "UNION", "EXCEPT", "INTERSECT", "TABLE", "information_schema"];

/// Where the words and texts of a query stand.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    words: Arc<Words>,
    /// Whether what is planned is this text, so that places in it are those of the planner.
    is_planned: bool,
    /// The columns that the query may need.
    pub(crate) wanted: Wanted,
    /// What the queries of its `WITH`s are called.
    pub(crate) queries: Arc<[String]>,
    /// What stands before an `UPDATE` or `DELETE`.
    pub(crate) with: Option<Arc<With>>,
    /// How many operators and keywords of it stand inside each other at most.
    pub(crate) operators: usize,
    /// The tables that it was found to read.
    read: Arc<Mutex<Vec<Arc<Table>>>>,
    /// For how long the query goes on.
    pub(crate) allowance: Allowance,
}

impl Places {
    fn new(tokens: &[TokenWithSpan]) -> Self {
        let words = Arc::new(Words::new(tokens));
        Self { words, is_planned: true, wanted: wanted(tokens), ..Self::default() }
    }

    /// The same places of a query that goes on for so long.
    pub(crate) fn with_allowance(self, allowance: Allowance) -> Self {
        Self { allowance, ..self }
    }

    /// The same places, where what is planned was made of this text.
    pub(crate) fn of_statement(&self) -> Self {
        Self { is_planned: false, ..self.clone() }
    }

    /// Where a keyword is, for people.
    pub(crate) fn of_keyword(&self, keyword: &str) -> String {
        let first = self.words().filter(|word| word.eq_ignore_ascii_case(keyword)).min();
        first.map_or_else(String::new, |word| self.of(word, Role::Name))
    }

    /// A table is read.
    pub(crate) fn reads(&self, table: &Arc<Table>) {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(table));
    }

    /// The columns of the tables that are read.
    pub(crate) fn columns_read(&self) -> Vec<String> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let fields = read.iter().flat_map(|table| table.columns.schema.fields());
        fields.map(|field| field.name().clone()).collect()
    }

    /// The fields of objects, at any depth, in the tables that are read.
    pub(crate) fn fields_read(&self) -> Vec<String> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names = Vec::new();
        for field in read.iter().flat_map(|table| table.columns.schema.fields()) {
            add_fields(field.data_type(), &mut names);
        }
        names
    }

    /// Where a keyword is that is there once, for people.
    pub(crate) fn of_only_keyword(&self, keyword: &str) -> String {
        let mut words = self.words().filter(|word| word.eq_ignore_ascii_case(keyword));
        match (words.next(), words.next()) {
            (Some(word), None) => self.words.only(word).map_or_else(String::new, told),
            _ => String::new(),
        }
    }

    /// The words.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.words.all()
    }

    /// The words that are no texts.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.words.names()
    }

    /// Where a word is, for people: where it first is what it is to be.
    pub(crate) fn of(&self, word: &str, role: Role) -> String {
        self.words.place(word, role).map_or_else(String::new, told)
    }

    /// Whether a word is the name of a table somewhere, or one that is given.
    pub(crate) fn has_table(&self, word: &str) -> bool {
        self.words.has_role(word, Role::Table) || self.words.has_role(word, Role::Given)
    }

    /// Whether a word stands in double quotes, where others have single ones for texts.
    pub(crate) fn is_quoted(&self, word: &str) -> bool {
        self.words.is_quoted(word)
    }

    /// Where a text in quotes is, for people.
    pub(crate) fn of_text(&self, text: &str) -> String {
        self.words.text(text).map_or_else(String::new, told)
    }

    /// Where what the planner speaks of is, for people: in the part that it points at, or where the
    /// word is that is there once.
    pub(crate) fn of_spoken(&self, word: &str, part: Option<Span>) -> String {
        match part {
            Some(_) if self.is_planned => self.of_column(word, part),
            _ => self.words.only(word).map_or_else(String::new, told),
        }
    }

    /// Where a column stands that there is not: where the planner points, or wherever the word is
    /// if it is nothing else anywhere.
    pub(crate) fn of_missing(&self, column: &str, part: Option<Span>) -> Vec<Location> {
        if let Some(part) = part.filter(|_| self.is_planned) {
            return self.words.within(column, part).into_iter().collect();
        }
        let is_read = self.columns_read().iter().any(|read| read == column);
        if is_read || self.has_table(column) {
            return self.words.only(column).into_iter().collect();
        }
        self.words.called(column)
    }

    /// Where a word is no table, function or name that is given.
    pub(crate) fn of_name(&self, name: &str) -> Vec<Location> {
        self.words.having(name, Role::Name)
    }

    /// Where the name of a table stands: wherever it is, if no keyword before it tells.
    pub(crate) fn of_table(&self, name: &str) -> Vec<Location> {
        let places = self.words.having(name, Role::Table);
        if places.is_empty() { self.words.called(name) } else { places }
    }

    /// Where a column is, for people: in the part that the planner points at, if it does.
    pub(crate) fn of_column(&self, word: &str, part: Option<Span>) -> String {
        let part = part.filter(|_| self.is_planned);
        let place = part.and_then(|part| self.words.within(word, part));
        place.map_or_else(|| self.of(word, Role::Name), told)
    }
}

/// Adds the names of the fields within values of a type.
fn add_fields(kind: &DataType, names: &mut Vec<String>) {
    match kind {
        DataType::Struct(fields) => {
            for field in fields {
                names.push(field.name().clone());
                add_fields(field.data_type(), names);
            }
        }
        DataType::List(element) => add_fields(element.data_type(), names),
        _ => {}
    }
}

/// A place for people.
fn told(at: Location) -> String {
    format!(" (line {}, column {})", at.line, at.column)
}

/// The columns that a query may need: one SELECT, without others in it, names those it does.
fn wanted(tokens: &[TokenWithSpan]) -> Wanted {
    let tokens = tokens.iter().map(|token| &token.token);
    let tokens: Vec<_> = tokens.filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let is_word = |token: &Token, name: &str| match token {
        Token::Word(word) => word.value.eq_ignore_ascii_case(name),
        _ => false,
    };
    let is = |token: &&Token, names: &[&str]| names.iter().any(|name| is_word(token, name));
    let stars = tokens.iter().filter(|token| ***token == Token::Mul).count();
    let counts = tokens.windows(4).filter(|around| {
        is_word(around[0], "count")
            && matches!(around[1..], [Token::LParen, Token::Mul, Token::RParen])
    });
    // All columns of a table, without a SELECT.
    let is_bare = |around: &[&Token]| *around[0] == Token::LParen && is_word(around[1], "FROM");
    let is_one = tokens.first().is_some_and(|first| is(first, &["SELECT"]))
        && tokens[1..].iter().all(|token| !is(token, &WITH_OTHER_COLUMNS))
        && !tokens.windows(2).any(is_bare)
        && stars == counts.count();
    let words = tokens.iter().filter_map(|token| match token {
        Token::Word(word) => Some(word.value.clone()),
        _ => None,
    });
    if is_one { Wanted::Named(Arc::new(words.collect())) } else { Wanted::All }
}

/// What a text asks for.
pub(crate) enum Request {
    Read(Statement),
    Change(Box<Parsed>),
    Copy(Copy),
}

/// Whether a statement changes the database, so that it has to be open for writing.
///
/// # Errors
/// `Invalid` for what is no SQL, or takes other values than it is given.
pub fn writes<'t>(sql: impl Into<SqlText<'t>>, values: &[Parameter]) -> Result<bool> {
    let sql = sql.into();
    depth::with_stack(sql.text, || {
        Ok(match parse(sql, values)?.0 {
            Request::Read(_) => false,
            Request::Change(_) => true,
            Request::Copy(copy) => copy.direction == Direction::From,
        })
    })
}

/// Whether a statement makes a collection, so that it is of use where there is no database yet. One
/// that has a query for the records is not: it reads what there is.
///
/// # Errors
/// `Invalid` for what is no SQL, or takes other values than it is given; whatever else is wrong
/// with the collection that it is to make.
pub fn makes_table<'t>(sql: impl Into<SqlText<'t>>, values: &[Parameter]) -> Result<bool> {
    let sql = sql.into();
    depth::with_stack(sql.text, || {
        Ok(match parse(sql, values)?.0 {
            Request::Change(statement) => match &*statement {
                Parsed::CreateTable(table) => change::creation::check(table)?,
                _ => false,
            },
            Request::Read(_) | Request::Copy(_) => false,
        })
    })
}

/// Reads a text that is one statement, with values for its placeholders. It needs stack for the
/// operators in it.
pub(crate) fn parse<'t>(
    sql: impl Into<SqlText<'t>>,
    values: &[Parameter],
) -> Result<(Request, Places)> {
    let sql = sql.into();
    let dialect = Sql::of(sql.text);
    let mut tokens = syntax::joined(syntax::tokens(sql, &dialect)?)?;
    digits::in_decimal(&mut tokens)?;
    let mut places = Places::new(&tokens);
    places.operators = depth::operators(&tokens)?;
    let tokens = parameter::bind(tokens, values)?;
    digits::check(&tokens)?;
    let tokens = system_time::rewrite(tokens, &dialect)?;
    let mut tokens = from_first::rewrite(materialized::rewrite(tokens));
    function::rename(&mut tokens);
    dialect.look_ahead(&tokens);
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
    if let Some(copy) = copy::parse(&mut parser).map_err(|error| syntax::wrong(&error, sql))? {
        return Ok((Request::Copy(copy), places));
    }
    let mut statements = parser.parse_statements().map_err(|error| syntax::wrong(&error, sql))?;
    for statement in &mut statements {
        spell(statement, &mut places)?;
    }
    match (statements.pop(), statements.len()) {
        (Some(Parsed::Explain { statement, .. }), 0) if change::is_change(&statement) => {
            let message = "this SQL is not supported: EXPLAIN of what changes something: explain \
                           a SELECT with the same FROM and WHERE";
            Err(Error::new(ErrorKind::Unsupported, message))
        }
        (Some(mut statement), 0) if is_reading(&statement) => {
            digits::keep(&mut statement);
            rounding::rewrite(&mut statement);
            Ok((Request::Read(Statement::Statement(Box::new(statement))), places))
        }
        (Some(Parsed::CreateView(_)), 0) if !values.is_empty() => {
            let message = "a view takes no values: write them into its query";
            Err(Error::new(ErrorKind::Unsupported, message))
        }
        (Some(statement), 0) if change::is_change(&statement) => {
            Ok((Request::Change(Box::new(statement)), places))
        }
        (Some(statement), 0) => Err(unsupported(&statement)),
        (None, _) => Err(Error::new(ErrorKind::Invalid, "there is no query: give one")),
        (Some(_), more) => {
            let message = format!("there are {} queries: give one at a time", more + 1);
            Err(Error::new(ErrorKind::Invalid, message))
        }
    }
}

/// Why a statement is none of those that there are.
fn unsupported(statement: &Parsed) -> Error {
    let advice = match statement {
        Parsed::StartTransaction { .. }
        | Parsed::Commit { .. }
        | Parsed::Rollback { .. }
        | Parsed::Savepoint { .. } => {
            "each statement is one commit, or nothing: several at once are a transaction of a \
             program"
        }
        Parsed::Truncate(_) => "TRUNCATE: write DELETE FROM t",
        Parsed::Merge(_) => "MERGE: write INSERT INTO t .. ON CONFLICT (_key) DO UPDATE SET ..",
        Parsed::AlterTable(_) => {
            "ALTER TABLE: fields come with the records that have them, and what is declared is a \
             record of the table \"duramen/tables\""
        }
        Parsed::Set(_) | Parsed::Pragma { .. } => "settings: limits are options of the session",
        _ => {
            "give a SELECT, EXPLAIN, DESCRIBE, SHOW, INSERT, UPDATE, DELETE, COPY, or CREATE or \
             DROP a TABLE, INDEX or VIEW"
        }
    };
    Error::new(ErrorKind::Unsupported, format!("this SQL is not supported: {advice}"))
}

/// Spells a statement as the planner knows it.
fn spell(statement: &mut Parsed, places: &mut Places) -> Result<()> {
    places.queries = cte_names::rewrite(statement).into();
    headings::rewrite(statement);
    objects::rewrite(statement);
    places.with = spelling::with_before(statement).map(Arc::new);
    spelling::with_into_source(statement);
    distinct_from::regroup(statement);
    merged::rewrite(statement)?;
    named_windows::rewrite(statement)?;
    empty_windows::rewrite(statement);
    spelling::rewrite(statement);
    row_values::rewrite(statement);
    any_list::rewrite(statement);
    spelling::arrays_into_calls(statement);
    lateral_values::rewrite(statement);
    unnest::rewrite(statement);
    field_names::rewrite(statement);
    repeated::rewrite(statement);
    casts::rewrite(statement);
    as_of_join::rewrite(statement, places)?;
    depth::balance(statement);
    let Some(Ignored { keyword, what, advice }) = ignored::find(statement) else { return Ok(()) };
    let at = places.of_keyword(keyword);
    let message = format!("this SQL is not supported: {what}{at}: {advice}");
    Err(Error::new(ErrorKind::Unsupported, message))
}

/// An expression whose text was made here, so that nothing in it has a place.
pub(crate) fn expression(text: &str) -> std::result::Result<Expr, ParserError> {
    let dialect = Sql::of(text);
    let tokens = Tokenizer::new(&dialect, text).tokenize()?;
    Parser::new(&dialect).with_tokens(tokens).parse_expr()
}

/// A query whose text was made here.
pub(crate) fn query(text: &str) -> std::result::Result<Query, ParserError> {
    let dialect = Sql::of(text);
    let tokens = Tokenizer::new(&dialect, text).tokenize()?;
    Parser::new(&dialect).with_tokens(tokens).parse_query().map(|query| *query)
}

/// The query of a `CREATE VIEW`, as it is written.
pub(crate) fn view_query(sql: &str) -> Result<String> {
    let tokens = syntax::tokens(SqlText::from(sql), &Sql::of(sql))?;
    let mut depth = 0;
    for token in &tokens {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::Word(word) if depth == 0 && word.keyword == Keyword::AS => {
                let end = Lines::of(sql).offset(token.span.end);
                let query = sql.get(end..).unwrap_or_default();
                return Ok(query.trim().trim_end_matches(';').trim_end().to_owned());
            }
            _ => {}
        }
    }
    Err(Error::new(ErrorKind::Invalid, "this is no SQL: CREATE VIEW needs AS and a query"))
}

fn is_reading(statement: &Parsed) -> bool {
    matches!(
        statement,
        Parsed::Query(_)
            | Parsed::Explain { .. }
            | Parsed::ExplainTable { .. }
            | Parsed::ShowTables { .. }
            | Parsed::ShowColumns { .. }
            | Parsed::ShowFunctions { .. }
    )
}
