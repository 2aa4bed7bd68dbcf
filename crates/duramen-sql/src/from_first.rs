//! Queries that begin with `FROM` and have more than tables: `FROM t WHERE a = 1` is
//! `FROM t SELECT * WHERE a = 1`, which the parser knows. `TABLE t` is `FROM t`.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Where a query is, in the brackets that it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A statement or bracket begins.
    Begins,
    /// Before the query that a statement has, or that is behind `WITH`.
    Before,
    /// Behind `UNION` and its like.
    United,
    /// In the tables of a query that began with them.
    InTables,
    Within,
}

/// Writes `SELECT *` behind the tables of queries that begin with them and have none.
pub(crate) fn rewrite(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let may_begin = |token: &TokenWithSpan| {
        matches!(keyword(&token.token), Some(Keyword::FROM | Keyword::TABLE))
    };
    if !tokens.iter().any(may_begin) {
        return tokens;
    }
    let mut written = Vec::with_capacity(tokens.len() + 2);
    let mut levels = vec![State::Begins];
    let mut tokens = tokens.into_iter().peekable();
    while let Some(mut token) = tokens.next() {
        let begins = matches!(levels.last(), Some(State::Begins | State::United));
        let is_named = tokens.peek().is_some_and(|next| matches!(next.token, Token::Word(_)));
        if begins && is_named && keyword(&token.token) == Some(Keyword::TABLE) {
            token.token = word(("FROM", Keyword::FROM));
        }
        match token.token {
            Token::LParen => {
                if let Some(state @ (State::Begins | State::United)) = levels.last_mut() {
                    *state = State::Within;
                }
                levels.push(State::Begins);
            }
            Token::RParen if levels.len() > 1 => _ = levels.pop(),
            Token::SemiColon => levels = vec![State::Begins],
            _ => {
                if let Some(state) = levels.last_mut() {
                    let next = state.next(keyword(&token.token));
                    if *state == State::InTables && ends_tables(keyword(&token.token)) {
                        let select = ("SELECT", Keyword::SELECT);
                        written.push(TokenWithSpan::new(word(select), token.span));
                        written.push(TokenWithSpan::new(Token::Mul, token.span));
                    }
                    *state = next;
                }
            }
        }
        written.push(token);
    }
    written
}

impl State {
    /// Behind a token that is a keyword, or none.
    fn next(self, keyword: Option<Keyword>) -> Self {
        match (self, keyword) {
            (_, Some(Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT))
            | (Self::United, Some(Keyword::ALL | Keyword::DISTINCT)) => Self::United,
            (Self::Begins | Self::Before | Self::United, Some(Keyword::FROM)) => Self::InTables,
            (
                Self::Begins,
                Some(Keyword::WITH | Keyword::INSERT | Keyword::EXPLAIN | Keyword::CREATE),
            ) => Self::Before,
            (
                Self::Before,
                Some(Keyword::SELECT | Keyword::VALUES | Keyword::UPDATE | Keyword::DELETE),
            )
            | (Self::InTables, Some(Keyword::SELECT))
            | (Self::Begins | Self::United | Self::Within, _) => Self::Within,
            (Self::InTables, other) if ends_tables(other) => Self::Within,
            (Self::Before | Self::InTables, _) => self,
        }
    }
}

/// Whether what comes is of the query, and stands behind its `SELECT`.
fn ends_tables(keyword: Option<Keyword>) -> bool {
    matches!(keyword, Some(Keyword::WHERE | Keyword::GROUP | Keyword::HAVING | Keyword::QUALIFY))
}

fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(Word { keyword, quote_style: None, .. }) => Some(*keyword),
        _ => None,
    }
}

fn word((value, keyword): (&str, Keyword)) -> Token {
    Token::Word(Word { value: value.to_owned(), quote_style: None, keyword })
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::Sql;

    fn rewritten(text: &str) -> String {
        let dialect = Sql::of(text);
        let tokens = Tokenizer::new(&dialect, text).tokenize_with_location().unwrap();
        let is_space = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
        let tokens = tokens.into_iter().filter(|token| !is_space(token)).collect();
        let words = rewrite(tokens).into_iter().map(|token| token.token.to_string());
        words.filter(|word| word != "EOF").collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_stands_behind_tables_gets_its_select() {
        for (text, expected) in [
            ("FROM t WHERE a = 1 ORDER BY b", "FROM t SELECT * WHERE a = 1 ORDER BY b"),
            ("from t join u on a = b where c", "from t join u on a = b SELECT * where c"),
            ("TABLE t", "FROM t"),
            ("(TABLE t) UNION TABLE u LIMIT 1", "( FROM t ) UNION FROM u LIMIT 1"),
            ("INSERT INTO x FROM y WHERE a", "INSERT INTO x FROM y SELECT * WHERE a"),
            (
                "INSERT INTO x ( a ) FROM y GROUP BY a",
                "INSERT INTO x ( a ) FROM y SELECT * GROUP BY a",
            ),
            ("EXPLAIN FROM t WHERE a", "EXPLAIN FROM t SELECT * WHERE a"),
            ("CREATE VIEW v AS FROM t WHERE a", "CREATE VIEW v AS FROM t SELECT * WHERE a"),
            (
                "WITH u AS ( FROM t WHERE a ) FROM u WHERE b",
                "WITH u AS ( FROM t SELECT * WHERE a ) FROM u SELECT * WHERE b",
            ),
            (
                "FROM t WHERE a UNION ALL FROM u WHERE b",
                "FROM t SELECT * WHERE a UNION ALL FROM u SELECT * WHERE b",
            ),
            (
                "SELECT a IN ( FROM t WHERE b ) FROM u WHERE c",
                "SELECT a IN ( FROM t SELECT * WHERE b ) FROM u WHERE c",
            ),
        ] {
            assert_eq!(rewritten(text), expected);
        }
    }

    #[test]
    fn other_queries_stay() {
        for text in [
            "FROM t SELECT a WHERE b",
            "FROM t",
            "FROM t ORDER BY a LIMIT 1",
            "SELECT * EXCEPT ( a ) FROM t WHERE b",
            "SELECT extract ( year FROM a ) , b IS DISTINCT FROM c FROM t WHERE d",
            "SELECT substring ( a FROM 1 ) FROM ( SELECT 1 ) WHERE b",
            "WITH a AS ( SELECT 1 FROM t WHERE b ) SELECT 1 FROM a WHERE b",
            "WITH a AS ( SELECT 1 ) DELETE FROM t WHERE b",
            "DELETE FROM t WHERE a",
            "INSERT INTO x SELECT 1 FROM t WHERE a",
            "UPDATE t SET a = 1 FROM u WHERE b",
            "SELECT 1 FROM t WHERE a UNION ( SELECT 1 FROM t WHERE a )",
            "COPY ( SELECT 1 FROM t WHERE a ) TO 'b'",
            "CREATE TABLE t ( a INT )",
            "DROP TABLE t",
            "SELECT count ( table ) , table FROM t",
        ] {
            assert_eq!(rewritten(text), text);
        }
    }
}
