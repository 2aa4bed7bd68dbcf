//! What is wrong with a text that is no SQL, and what may have been meant.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{
    Location, Span, Token, TokenWithSpan, Tokenizer, TokenizerError, Whitespace, Word,
};
use duramen::{Error, ErrorKind, Result, nearest};

use crate::dialect::Sql;
use crate::failure;
use crate::script::SqlText;

/// The words that clauses begin with.
const CLAUSES: [&str; 28] = [
    "ANALYZE",
    "BETWEEN",
    "CREATE",
    "DELETE",
    "DISTINCT",
    "EXCEPT",
    "EXPLAIN",
    "FROM",
    "GROUP",
    "HAVING",
    "INNER",
    "INSERT",
    "INTERSECT",
    "INTO",
    "JOIN",
    "LEFT",
    "LIMIT",
    "OFFSET",
    "ORDER",
    "PARTITION",
    "QUALIFY",
    "RETURNING",
    "RIGHT",
    "SELECT",
    "UNION",
    "UPDATE",
    "VALUES",
    "WHERE",
];

/// Those behind which `BY` stands.
const BEFORE_BY: [&str; 3] = ["GROUP", "ORDER", "PARTITION"];

/// Words up to where the parser stopped among which the wrong one is sought: it goes on for a while
/// where a name may stand.
const WORDS_BEFORE: usize = 3;

/// Parts inside each other from which on the parser may have given up, where it says that it
/// expects something else: it goes down 50 levels, of which some take two.
const LEVELS_MANY: usize = 24;

const NESTED: &str =
    "it is nested too deeply: name inner parts in a WITH, or columns of a subquery in FROM";

/// The tokens of a text, at the places of what it is of.
pub(crate) fn tokens(sql: SqlText<'_>, dialect: &Sql) -> Result<Vec<TokenWithSpan>> {
    let tokens = Tokenizer::new(dialect, sql.text).tokenize_with_location();
    let mut tokens = tokens.map_err(|TokenizerError { message, location }| {
        let location = sql.place(location);
        of_tokens(&TokenizerError { message, location }.into(), sql.text, Vec::new())
    })?;
    for token in &mut tokens {
        token.span = Span::new(sql.place(token.span.start), sql.place(token.span.end));
    }
    Ok(tokens)
}

/// Makes one text of those behind each other that a new line is between, as SQL has it. Others are
/// refused: the parser would take the second one for a name.
pub(crate) fn joined(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let mut joined: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // Where a text is that nothing but spaces stand behind, and whether one of them is a new line.
    let mut last: Option<(usize, bool)> = None;
    for token in tokens {
        match (&token.token, last) {
            (Token::Whitespace(space), Some((at, is_apart))) => {
                let ends =
                    matches!(space, Whitespace::Newline | Whitespace::SingleLineComment { .. });
                last = Some((at, is_apart || ends));
            }
            (Token::SingleQuotedString(more), Some((at, true))) => {
                let before = joined.get_mut(at).map(|before| &mut before.token);
                if let Some(Token::SingleQuotedString(text)) = before {
                    text.push_str(more);
                }
                joined.truncate(at + 1);
                last = Some((at, false));
                continue;
            }
            (Token::SingleQuotedString(_), Some((_, false))) => {
                let at = told(token.span.start);
                let message = format!(
                    "two texts stand behind each other {at}: write || between them, or a name in \
                     double quotes"
                );
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            (Token::SingleQuotedString(_), None) => last = Some((joined.len(), false)),
            _ => last = None,
        }
        joined.push(token);
    }
    Ok(joined)
}

/// Why a text is no SQL.
pub(crate) fn wrong(error: &ParserError, sql: SqlText<'_>) -> Error {
    match tokens(sql, &Sql::of(sql.text)) {
        Ok(tokens) => of_tokens(error, sql.text, tokens),
        Err(wrong) => wrong,
    }
}

/// How many parts of a text stand inside each other at most: brackets, `CASE`, and signs or `NOT`
/// before each other.
fn levels(tokens: &[TokenWithSpan]) -> usize {
    let (mut around, mut before, mut most) = (0_usize, 0, 0);
    for TokenWithSpan { token, .. } in tokens {
        match token {
            Token::Whitespace(_) => continue,
            Token::Minus | Token::Plus | Token::Tilde => before += 1,
            Token::Word(word) if word.keyword == Keyword::NOT => before += 1,
            Token::LParen | Token::LBracket | Token::LBrace => around += 1,
            Token::RParen | Token::RBracket | Token::RBrace => around = around.saturating_sub(1),
            Token::Word(word) if word.keyword == Keyword::CASE => around += 1,
            Token::Word(word) if word.keyword == Keyword::END => around = around.saturating_sub(1),
            _ => before = 0,
        }
        most = most.max(around + before);
    }
    most
}

fn of_tokens(error: &ParserError, text: &str, mut tokens: Vec<TokenWithSpan>) -> Error {
    let why = match error {
        ParserError::ParserError(_) if levels(&tokens) >= LEVELS_MANY => NESTED,
        ParserError::TokenizerError(why) | ParserError::ParserError(why) => why.as_str(),
        ParserError::RecursionLimitExceeded => NESTED,
    };
    let end = tokens.last().map(|token| token.span.end);
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    let (at, stopped) = match end {
        Some(end) if why.ends_with("EOF") => {
            (format!(" at Line: {}, Column: {}", end.line, end.column), Some(end))
        }
        _ => (String::new(), place(why)),
    };
    let advice = stopped.and_then(|stopped| advice(text, &tokens, stopped));
    let advice = advice.map_or_else(String::new, |advice| format!(": {advice}"));
    Error::new(ErrorKind::Invalid, failure::cut(format!("this is no SQL: {why}{at}{advice}")))
}

/// Where the parser stopped.
fn place(why: &str) -> Option<Location> {
    let (_, place) = why.rsplit_once(" at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    Some(Location { line: line.parse().ok()?, column: column.parse().ok()? })
}

fn advice(text: &str, tokens: &[TokenWithSpan], stopped: Location) -> Option<String> {
    unclosed(tokens)
        .or_else(|| without_end(tokens))
        .or_else(|| without_by(tokens))
        .or_else(|| misspelt(text, tokens, stopped))
        .or_else(|| of_no_time(tokens))
        .or_else(|| with_exclusion(tokens))
}

/// What a window may leave out of its frame, which none does here.
fn with_exclusion(tokens: &[TokenWithSpan]) -> Option<String> {
    const LEFT_OUT: [Keyword; 4] = [Keyword::CURRENT, Keyword::GROUP, Keyword::TIES, Keyword::NO];
    let is = |token: &TokenWithSpan, keywords: &[Keyword]| match &token.token {
        Token::Word(word) => keywords.contains(&word.keyword),
        _ => false,
    };
    let mut pairs = tokens.windows(2);
    pairs.find(|pair| is(&pair[0], &[Keyword::EXCLUDE]) && is(&pair[1], &LEFT_OUT))?;
    Some("windows leave none of their rows out: subtract it, as in sum(n) OVER (..) - n".to_owned())
}

fn told(at: Location) -> String {
    format!("(line {}, column {})", at.line, at.column)
}

fn keyword(token: &TokenWithSpan) -> Option<&str> {
    match &token.token {
        Token::Word(Word { value, quote_style: None, .. }) => Some(value),
        _ => None,
    }
}

fn is(token: &TokenWithSpan, word: &str) -> bool {
    keyword(token).is_some_and(|value| value.eq_ignore_ascii_case(word))
}

/// A bracket that is alone.
fn unclosed(tokens: &[TokenWithSpan]) -> Option<String> {
    let mut open = Vec::new();
    for TokenWithSpan { token, span } in tokens {
        let begin = match token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                open.push((token, span.start));
                continue;
            }
            Token::RParen => Token::LParen,
            Token::RBracket => Token::LBracket,
            Token::RBrace => Token::LBrace,
            _ => continue,
        };
        match open.pop() {
            Some((opened, _)) if *opened == begin => {}
            Some((opened, at)) => {
                return Some(format!("the {opened} {} is not closed before {token}", told(at)));
            }
            None => return Some(format!("the {token} {} closes nothing", told(span.start))),
        }
    }
    let (token, at) = open.pop()?;
    Some(format!("the {token} {} is not closed", told(at)))
}

fn without_end(tokens: &[TokenWithSpan]) -> Option<String> {
    let mut cases = Vec::new();
    for token in tokens {
        if is(token, "CASE") {
            cases.push(token.span.start);
        } else if is(token, "END") {
            cases.pop();
        }
    }
    Some(format!("the CASE {} has no END", told(cases.pop()?)))
}

fn without_by(tokens: &[TokenWithSpan]) -> Option<String> {
    let mut pairs = tokens.iter().zip(tokens.iter().skip(1));
    let find = |(word, next): (&TokenWithSpan, &TokenWithSpan)| {
        let known = BEFORE_BY.iter().find(|known| is(word, known))?;
        let begins_clause = CLAUSES.iter().any(|clause| is(next, clause));
        let is_name = matches!(next.token, Token::Word(_)) && !is(next, "BY") && !begins_clause;
        is_name.then(|| format!("write BY behind {known} {}", told(word.span.start)))
    };
    pairs.find_map(find)
}

/// A word where the parser stopped, or shortly before, that is almost one of a clause, with which
/// it comes further.
fn misspelt(text: &str, tokens: &[TokenWithSpan], stopped: Location) -> Option<String> {
    let read = tokens.partition_point(|token| token.span.start <= stopped);
    (0..read).rev().take(WORDS_BEFORE).find_map(|at| {
        let token = tokens.get(at)?;
        let word = keyword(token)?;
        // Words that one begins with are many, and none of them is a slip.
        let is_as_long = |known: &&str| known.len().abs_diff(word.len()) <= 1;
        let meant = nearest(word, CLAUSES.into_iter().filter(is_as_long))?;
        if meant.eq_ignore_ascii_case(word) {
            return None;
        }
        let mut tokens = tokens.to_vec();
        tokens.get_mut(at)?.token = Token::make_keyword(meant);
        let is_meant = comes_further(text, tokens, stopped);
        is_meant.then(|| format!("did you mean {meant} by {word} {}?", told(token.span.start)))
    })
}

/// Whether the parser goes on behind where it stopped, with other tokens for a text.
fn comes_further(text: &str, tokens: Vec<TokenWithSpan>, stopped: Location) -> bool {
    let Some(end) = tokens.last().map(|token| token.span.end) else { return false };
    let dialect = Sql::of(text);
    dialect.look_ahead(&tokens);
    match Parser::new(&dialect).with_tokens_with_locations(tokens).parse_statements() {
        Err(ParserError::ParserError(why)) => place(&why).unwrap_or(end) > stopped,
        Err(_) => false,
        Ok(_) => true,
    }
}

/// `t AS OF 1`, without what says that it is a time.
fn of_no_time(tokens: &[TokenWithSpan]) -> Option<String> {
    let mut triples = tokens.windows(3);
    let of_no_time = triples.find(|three| match three {
        [before, first, second] => {
            is(first, "AS") && is(second, "OF") && !is(before, "SYSTEM_TIME")
        }
        _ => false,
    })?;
    let at = of_no_time.get(1)?.span.start;
    Some(format!("write FOR SYSTEM_TIME before AS OF {}", told(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_been_meant_is_told() {
        for (sql, expected) in [
            ("SELECT a FORM t", "did you mean FROM by FORM (line 1, column 10)?"),
            ("SELCT a FROM t", "did you mean SELECT by SELCT (line 1, column 1)?"),
            ("SELECT a FROM t WERE a > 1", "did you mean WHERE by WERE (line 1, column 17)?"),
            ("INSERT INTO t VALEUS (1)", "did you mean VALUES by VALEUS (line 1, column 15)?"),
            ("SELECT a FROM t GRUOP BY a", "did you mean GROUP by GRUOP (line 1, column 17)?"),
            ("SELECT a FROM t ORDER a", "write BY behind ORDER (line 1, column 17)"),
            ("SELECT rank() OVER (PARTITION a)", "write BY behind PARTITION (line 1, column 21)"),
            ("SELECT * FROM (SELECT a FROM t", "the ( (line 1, column 15) is not closed"),
            ("SELECT count(* FROM t", "the ( (line 1, column 13) is not closed"),
            ("SELECT (a] FROM t", "the ( (line 1, column 8) is not closed before ]"),
            ("SELECT a) FROM t", "the ) (line 1, column 9) closes nothing"),
            ("SELECT CASE WHEN a THEN 1 FROM t", "the CASE (line 1, column 8) has no END"),
            ("SELECT * FROM t AS OF 1", "write FOR SYSTEM_TIME before AS OF (line 1, column 17)"),
        ] {
            let error = Parser::parse_sql(&Sql::of(sql), sql).unwrap_err();
            let told = wrong(&error, sql.into()).to_string();
            assert!(told.ends_with(&format!(": {expected}")), "{told}");
        }
        for (sql, expected) in [
            ("SELECT a FROM t WHERE", "found: EOF at Line: 1, Column: 22"),
            // A name that is like a word is none where the word would be as wrong.
            ("SELECT value x y FROM t", "found: y at Line: 1, Column: 16"),
            ("SELECT a + value +", "found: EOF at Line: 1, Column: 19"),
            ("SELECT order FROM t x y", "found: y at Line: 1, Column: 23"),
        ] {
            let error = Parser::parse_sql(&Sql::of(sql), sql).unwrap_err();
            let told = wrong(&error, sql.into()).to_string();
            assert!(told.ends_with(expected), "{told}");
        }
    }
}
