//! How deep queries may be.
//!
//! To plan a query, and to compute its expressions, goes down as far as operators stand inside each
//! other, which is as far as a chain of them is long. So there is a bound on these, and stack for
//! as many.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Statement, Value, VisitMut, VisitorMut,
};
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

/// Conditions in a chain of `AND` or `OR` from which on it is made a tree of its own.
const CHAIN_CONDITIONS_MIN: usize = 32;

/// Lets long chains of `AND` and of `OR` be as deep as their length has digits: the planner looks
/// at all that is below each operator.
pub(crate) fn balance(statement: &mut Statement) {
    let ControlFlow::Continue(()) = statement.visit(&mut Chains);
}

struct Chains;

impl VisitorMut for Chains {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        let op = match &*expr {
            Expr::BinaryOp { op, .. } if chain_len(expr, op) >= CHAIN_CONDITIONS_MIN => op.clone(),
            _ => return ControlFlow::Continue(()),
        };
        let mut conditions = Vec::new();
        let mut rest = std::mem::replace(expr, Expr::value(Value::Null));
        loop {
            match rest {
                Expr::BinaryOp { left, op: between, right } if between == op => {
                    conditions.push(*right);
                    rest = *left;
                }
                first => {
                    conditions.push(first);
                    break;
                }
            }
        }
        *expr = tree(&mut conditions, &op);
        ControlFlow::Continue(())
    }
}

/// How many conditions are between operators that are one of the two.
fn chain_len(mut expr: &Expr, op: &BinaryOperator) -> usize {
    let mut len = 1;
    if !matches!(op, BinaryOperator::And | BinaryOperator::Or) {
        return len;
    }
    while let Expr::BinaryOp { left, op: between, .. } = expr
        && between == op
    {
        (expr, len) = (left, len + 1);
    }
    len
}

/// Conditions, the first one last, with an operator between each two.
fn tree(conditions: &mut Vec<Expr>, op: &BinaryOperator) -> Expr {
    let right = conditions.len() / 2;
    let mut first = conditions.split_off(right);
    let (left, right) = match (first.len(), conditions.len()) {
        (1, 0) => return first.remove(0),
        _ => (tree(&mut first, op), tree(conditions, op)),
    };
    Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) }
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

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::SelectItem;
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn depth(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryOp { left, right, .. } => 1 + depth(left).max(depth(right)),
            _ => 0,
        }
    }

    /// Chains once took the planner as long as the square of their length.
    #[test]
    fn long_chains_of_conditions_are_flat_and_say_the_same() {
        let conditions = |between: &str, len: usize| {
            let all: Vec<_> = (0..len).map(|n| format!("n = {n} AND m < {n}")).collect();
            all.join(between)
        };
        for (between, len, deepest) in [(" OR ", 3_000, 14), (" AND ", 3_000, 14), (" OR ", 9, 10)]
        {
            let sql = format!("SELECT {}", conditions(between, len));
            let deepest_found = with_stack(&sql, || {
                let mut parsed = Parser::parse_sql(&GenericDialect {}, &sql).unwrap();
                balance(&mut parsed[0]);
                assert_eq!(parsed[0].to_string(), sql);
                let Statement::Query(query) = &parsed[0] else { return usize::MAX };
                let select = query.body.as_select().unwrap();
                let SelectItem::UnnamedExpr(expr) = &select.projection[0] else {
                    return usize::MAX;
                };
                depth(expr)
            });
            assert_eq!(deepest_found, deepest, "{len} conditions and {between}");
        }
    }
}
