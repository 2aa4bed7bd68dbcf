//! How deep queries may be.
//!
//! To plan a query, and to compute its expressions, goes down as far as operators stand inside each
//! other, which is as far as a chain of them is long. So there is a bound on these, and stack for
//! as many.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use duramen::{Error, ErrorKind, Result};

/// Operators and keywords that stand inside each other, or beside each other without a comma.
pub(crate) const OPERATORS_MAX: usize = 8_192;

/// Views inside each other.
pub(crate) const VIEWS_MAX: usize = 32;

/// Bytes of stack for what each operator goes down, and for all else.
const OPERATOR_STACK_BYTES: usize = 8 << 10;
const OTHER_STACK_BYTES: usize = 1 << 20;

/// Bytes of stack of a thread of queries; only what is used of it takes memory.
pub(crate) const STACK_BYTES: usize = OPERATORS_MAX * OPERATOR_STACK_BYTES + OTHER_STACK_BYTES;

/// Does something with a query where there is stack for all operators of its text.
pub(crate) fn with_stack<T>(sql: &str, run: impl FnOnce() -> T) -> T {
    // Two operators have something between them.
    let operators = (sql.len() / 2).min(OPERATORS_MAX);
    let bytes = operators * OPERATOR_STACK_BYTES + OTHER_STACK_BYTES;
    stacker::maybe_grow(bytes, bytes, run)
}

/// What was met in brackets so far.
#[derive(Default)]
struct Level {
    /// Operators of the parts that depend on those before, such as joined tables.
    chained: usize,
    /// Operators since the last comma, and the most of a part before it.
    part: usize,
    part_max: usize,
    /// Whether commas are between parts that depend on those before.
    is_chain: bool,
}

impl Level {
    fn operators(&self) -> usize {
        self.chained + self.part.max(self.part_max)
    }

    fn comma(&mut self) {
        if self.is_chain {
            self.chained += 1;
        } else {
            self.part_max = self.part_max.max(self.part);
            self.part = 0;
        }
    }

    fn word(&mut self, keyword: Keyword) {
        match keyword {
            Keyword::NoKeyword => return,
            Keyword::FROM | Keyword::WITH => self.is_chain = true,
            Keyword::SELECT
            | Keyword::VALUES
            | Keyword::WHERE
            | Keyword::GROUP
            | Keyword::ORDER
            | Keyword::SET => self.is_chain = false,
            _ => {}
        }
        match keyword {
            Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::JOIN => {
                self.chained += 1;
            }
            _ => self.part += 1,
        }
    }
}

/// How many operators and keywords stand inside each other at most; `Invalid` if they are too many.
pub(crate) fn operators(tokens: &[TokenWithSpan]) -> Result<usize> {
    let (mut outer, mut outer_operators) = (Vec::new(), 0);
    let (mut level, mut most) = (Level::default(), 0);
    for TokenWithSpan { token, span } in tokens {
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                level.part += 1;
                outer_operators += level.operators();
                outer.push(std::mem::take(&mut level));
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                if let Some(around) = outer.pop() {
                    let inner = std::mem::replace(&mut level, around).operators();
                    outer_operators -= level.operators();
                    level.part += inner;
                    if level.is_chain {
                        level.chained += std::mem::take(&mut level.part);
                    }
                }
            }
            Token::Comma => level.comma(),
            Token::SemiColon => level = Level::default(),
            Token::Word(word) => level.word(word.keyword),
            Token::Whitespace(_)
            | Token::EOF
            | Token::Number(..)
            | Token::Placeholder(_)
            | Token::SingleQuotedString(_) => {}
            _ => level.part += 1,
        }
        most = most.max(outer_operators + level.operators());
        if most > OPERATORS_MAX {
            return Err(too_many(span.start));
        }
    }
    Ok(most)
}

fn too_many(at: Location) -> Error {
    let message = format!(
        "more than {OPERATORS_MAX} operators and keywords without a comma between them (line {}, \
         column {}): name values in a list, IN (1, 2), or put them into a table and join that",
        at.line, at.column
    );
    Error::new(ErrorKind::Invalid, message)
}
