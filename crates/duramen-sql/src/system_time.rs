//! `FOR SYSTEM_TIME`: a table as it was, or the versions of its rows in a period.
//!
//! The parser does not know where the clause may stand, so that it is taken out of the tokens
//! before: the name of the table has it from then on, and its own name is its alias.

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{Dialect, Precedence};
use datafusion::sql::sqlparser::keywords::{Keyword, RESERVED_FOR_TABLE_ALIAS};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use duramen::{Error, ErrorKind, Result};

use crate::statement::Places;
use crate::{failure, function, moment};

/// What a name and the moment are joined by, which no name has.
const JOINT: char = '\u{1f}';

/// A table's name and which of its past is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableName<'n> {
    pub(crate) name: &'n str,
    pub(crate) period: Option<Period<'n>>,
}

/// Which of the past of a table. Moments are revisions, times or tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Period<'n> {
    /// As it was then.
    AsOf(&'n str),
    /// What stood from a moment on, before another one.
    FromTo(&'n str, &'n str),
    /// What stood from a moment on, up to and with another one.
    Between(&'n str, &'n str),
    /// All that ever stood.
    All,
}

impl<'n> TableName<'n> {
    pub(crate) fn of(text: &'n str) -> Self {
        let mut parts = text.split(JOINT);
        let name = parts.next().unwrap_or(text);
        let period = match (parts.next(), parts.next(), parts.next()) {
            (Some("AS OF"), Some(moment), _) => Some(Period::AsOf(moment)),
            (Some("FROM"), Some(a), Some(b)) => Some(Period::FromTo(a, b)),
            (Some("BETWEEN"), Some(a), Some(b)) => Some(Period::Between(a, b)),
            (Some("ALL"), ..) => Some(Period::All),
            _ => None,
        };
        Self { name, period }
    }
}

/// The tokens of a query that are left.
struct Rest<'t> {
    tokens: &'t [TokenWithSpan],
    dialect: &'t dyn Dialect,
}

impl Rest<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.first().map(|token| &token.token)
    }

    fn next(&mut self) -> Option<TokenWithSpan> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first.clone())
    }
}

/// Takes the clauses out of a query.
pub(crate) fn rewrite(
    tokens: Vec<TokenWithSpan>,
    dialect: &dyn Dialect,
) -> Result<Vec<TokenWithSpan>> {
    let tokens: Vec<_> = tokens.into_iter().filter(|token| !is_space(&token.token)).collect();
    if !tokens.iter().any(|token| is_word(&token.token, "SYSTEM_TIME")) {
        return Ok(tokens);
    }
    let mut left: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut rest = Rest { tokens: &tokens, dialect };
    while let Some(token) = rest.next() {
        let is_clause = is_word(&token.token, "FOR")
            && rest.peek().is_some_and(|next| is_word(next, "SYSTEM_TIME"));
        if !is_clause {
            left.push(token);
            continue;
        }
        rest.next();
        let period = period(&mut rest).map_err(|expected| refuse(&token, &expected))?;
        if ends_call(&left) {
            let behind = left.pop();
            let argument = Token::SingleQuotedString(format!("{JOINT}{period}"));
            let more = [Token::Comma, argument];
            left.extend(more.map(|of| TokenWithSpan { token: of, ..token.clone() }));
            left.extend(behind);
            continue;
        }
        let table = left.last_mut().and_then(|before| match &mut before.token {
            Token::Word(word) => Some(word),
            _ => None,
        });
        let table = table.ok_or_else(|| refuse(&token, "the name of a table before it"))?;
        let alias = table.value.clone();
        *table = quoted(format!("{}{JOINT}{period}", table.value));
        let has_alias = rest.peek().is_some_and(|next| match next {
            Token::Word(word) => {
                word.keyword == Keyword::AS || !RESERVED_FOR_TABLE_ALIAS.contains(&word.keyword)
            }
            _ => false,
        });
        if !has_alias {
            let word =
                |token_of: Word| TokenWithSpan { token: Token::Word(token_of), ..token.clone() };
            let keyword = Word { value: "AS".into(), quote_style: None, keyword: Keyword::AS };
            left.extend([word(keyword), word(quoted(alias))]);
        }
    }
    Ok(left)
}

/// Whether tokens end with the call of a table function.
fn ends_call(tokens: &[TokenWithSpan]) -> bool {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().rev() {
        match &token.token {
            Token::RParen => depth += 1,
            Token::LParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            let before = at.checked_sub(1).and_then(|before| tokens.get(before));
            let name = before.map(|before| &before.token);
            return token.token == Token::LParen
                && name.is_some_and(|name| {
                    matches!(name, Token::Word(word)
                    if function::is_known(&word.value))
                });
        }
    }
    false
}

/// The period behind `FOR SYSTEM_TIME` as a part of a name, or what was expected.
fn period(rest: &mut Rest<'_>) -> Result<String, String> {
    let first = rest.next().map(|token| token.token);
    let is = |word: &str| first.as_ref().is_some_and(|token| is_word(token, word));
    if is("AS") {
        expect(rest, "OF", "OF behind AS")?;
        return Ok(format!("AS OF{JOINT}{}", moment(rest)?));
    }
    let (word, between) = match () {
        () if is("ALL") => return Ok("ALL".to_owned()),
        () if is("FROM") => ("FROM", "TO"),
        () if is("BETWEEN") => ("BETWEEN", "AND"),
        () => return Err("AS OF, FROM ... TO, BETWEEN ... AND or ALL".to_owned()),
    };
    let first = moment(rest)?;
    let expected = if word == "FROM" { "TO and a moment" } else { "AND and a moment" };
    expect(rest, between, expected)?;
    Ok(format!("{word}{JOINT}{first}{JOINT}{}", moment(rest)?))
}

fn moment(rest: &mut Rest<'_>) -> Result<String, String> {
    let expected = "a revision such as 7, a time or tag in quotes such as '2024-05-01', or a time \
                    such as now() - INTERVAL '1 day'";
    match rest.peek() {
        Some(Token::Number(text, _) | Token::SingleQuotedString(text)) => {
            let text = text.clone();
            rest.next();
            Ok(text)
        }
        Some(Token::Word(_) | Token::LParen) => computed(rest, expected),
        _ => Err(expected.to_owned()),
    }
}

/// The time that an expression is, as text.
fn computed(rest: &mut Rest<'_>, expected: &str) -> Result<String, String> {
    let mut parser = Parser::new(rest.dialect).with_tokens_with_locations(rest.tokens.to_vec());
    // Up to an AND.
    let above = rest.dialect.prec_value(Precedence::Between);
    let parsed = parser.parse_subexpr(above).map_err(|_| expected.to_owned())?;
    rest.tokens = rest.tokens.get(parser.index()..).unwrap_or_default();
    if matches!(parsed, Expr::Subquery(_)) {
        return Err(format!("{expected}, and no subquery: ask for it before"));
    }
    let time = moment::computed(parsed).map_err(|why| {
        format!("{expected}: {}", failure::query(why, &Places::default()).message())
    })?;
    time.ok_or_else(|| expected.to_owned())
}

fn expect(rest: &mut Rest<'_>, word: &str, expected: &str) -> Result<(), String> {
    let found = rest.next().is_some_and(|token| is_word(&token.token, word));
    if found { Ok(()) } else { Err(expected.to_owned()) }
}

fn refuse(clause: &TokenWithSpan, expected: &str) -> Error {
    let at = clause.span.start;
    let message = format!(
        "this is no SQL: FOR SYSTEM_TIME at line {}, column {} expects {expected}",
        at.line, at.column
    );
    Error::new(ErrorKind::Invalid, message)
}

fn quoted(value: String) -> Word {
    Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword }
}

fn is_space(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
}

fn is_word(token: &Token, expected: &str) -> bool {
    matches!(token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected))
}
