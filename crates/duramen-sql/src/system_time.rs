//! `FOR SYSTEM_TIME AS OF`: a table as it was.
//!
//! The parser does not know where the clause may stand, so that it is taken out of the tokens
//! before: the name of the table has it from then on, and its own name is its alias.

use datafusion::sql::sqlparser::keywords::{Keyword, RESERVED_FOR_TABLE_ALIAS};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use duramen::{Error, ErrorKind, Result, Revision};

/// What a name and the moment are joined by, which no name has.
const JOINT: char = '\u{1f}';

/// A table's name and as of when it is asked for: a revision, time or tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableName<'n> {
    pub(crate) name: &'n str,
    pub(crate) as_of: Option<&'n str>,
}

impl<'n> TableName<'n> {
    pub(crate) fn of(text: &'n str) -> Self {
        match text.split_once(JOINT) {
            Some((name, moment)) => Self { name, as_of: Some(moment) },
            None => Self { name: text, as_of: None },
        }
    }

    /// The name of a table at a revision.
    pub(crate) fn at(name: &str, revision: Revision) -> String {
        format!("{name}{JOINT}{revision}")
    }
}

/// Takes the clauses out of a query.
pub(crate) fn rewrite(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let mut left: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut rest = tokens.into_iter().filter(|token| !is_space(&token.token)).peekable();
    while let Some(token) = rest.next() {
        let is_clause = is_word(&token.token, "FOR")
            && rest.peek().is_some_and(|next| is_word(&next.token, "SYSTEM_TIME"));
        if !is_clause {
            left.push(token);
            continue;
        }
        rest.next();
        let mut next = || rest.next();
        let moment = as_of(&mut next).map_err(|expected| refuse(&token, &expected))?;
        let table = left.last_mut().and_then(|before| match &mut before.token {
            Token::Word(word) => Some(word),
            _ => None,
        });
        let table = table.ok_or_else(|| refuse(&token, "the name of a table before it"))?;
        let alias = table.value.clone();
        *table = quoted(format!("{}{JOINT}{moment}", table.value));
        let has_alias = rest.peek().is_some_and(|next| match &next.token {
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

/// The moment behind `FOR SYSTEM_TIME`, or what was expected.
fn as_of(next: &mut dyn FnMut() -> Option<TokenWithSpan>) -> Result<String, String> {
    let mut expect = |word: &str| match next() {
        Some(token) if is_word(&token.token, word) => Ok(()),
        _ => Err("AS OF and a revision, or a time or tag in quotes".to_owned()),
    };
    expect("AS")?;
    expect("OF")?;
    let mut token = next();
    if token.as_ref().is_some_and(|token| is_word(&token.token, "TIMESTAMP")) {
        token = next();
    }
    match token.map(|token| token.token) {
        Some(Token::Number(number, _)) => Ok(number),
        Some(Token::SingleQuotedString(text)) => Ok(text),
        _ => Err("a revision such as 7, or a time or tag such as '2024-05-01'".to_owned()),
    }
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
