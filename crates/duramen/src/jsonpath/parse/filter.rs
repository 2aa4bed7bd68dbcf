//! Filters: logical expressions, comparisons and functions, each of its type (RFC 9535, 2.4.3).

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::sync::Arc;

use super::{Fault, Parsed, Parser};
use crate::jsonpath::pattern::Pattern;
use crate::jsonpath::syntax::{
    Comparable, Logical, Matching, Operator, Origin, Path, PatternSource,
};
use crate::jsonpath::value::Value;

/// A part of an expression whose use decides what it has to be.
enum Operand {
    Path(Path),
    Value(Comparable),
    /// What only is true or false.
    Test(Logical),
}

impl Parser<'_> {
    pub(super) fn logical(&mut self) -> Parsed<Logical> {
        self.nested(|parser| {
            let any = parser.joined("||", Self::conjunction)?;
            Ok(single(any).unwrap_or_else(Logical::Or))
        })
    }

    fn conjunction(&mut self) -> Parsed<Logical> {
        let all = self.joined("&&", Self::basic)?;
        Ok(single(all).unwrap_or_else(Logical::And))
    }

    fn joined(
        &mut self,
        operator: &str,
        part: impl Fn(&mut Self) -> Parsed<Logical>,
    ) -> Parsed<Vec<Logical>> {
        let mut parts = vec![part(self)?];
        loop {
            let before = self.rest;
            self.skip_space();
            if !self.take(operator) {
                self.rest = before;
                return Ok(parts);
            }
            self.skip_space();
            parts.push(part(self)?);
        }
    }

    fn basic(&mut self) -> Parsed<Logical> {
        let is_negated = self.take("!");
        if is_negated {
            self.skip_space();
        }
        let negated = |logical| if is_negated { Logical::Not(Box::new(logical)) } else { logical };
        if self.take("(") {
            self.skip_space();
            let inner = self.logical()?;
            self.skip_space();
            if !self.take(")") {
                return Err(self.expected("')', '&&' or '||'"));
            }
            return Ok(negated(inner));
        }
        let start = self.rest.len();
        let left = self.operand()?;
        let before = self.rest;
        self.skip_space();
        let place = self.rest.len();
        let Some(operator) = self.operator() else {
            self.rest = before;
            return test(left, start).map(negated);
        };
        if is_negated {
            let what = "'!' negates a test or parentheses: put the comparison in parentheses";
            return Err(Fault { rest: place, what: what.to_owned() });
        }
        let left = comparable(left, start)?;
        self.skip_space();
        let start = self.rest.len();
        let right = comparable(self.operand()?, start)?;
        Ok(Logical::Compare(left, operator, right))
    }

    fn operator(&mut self) -> Option<Operator> {
        let operators = [
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        let found = operators.into_iter().find(|(text, _)| self.take(text));
        found.map(|(_, operator)| operator)
    }

    fn operand(&mut self) -> Parsed<Operand> {
        let literal = |value| Ok(Operand::Value(Comparable::Literal(value)));
        match self.peek() {
            Some('@' | '$') => Ok(Operand::Path(self.path()?)),
            Some('\'' | '"') => literal(Value::text(self.string()?.as_bytes())),
            Some('-' | '0'..='9') => literal(self.number()?),
            Some('a'..='z') => self.word(),
            _ => Err(self.expected("a query, a literal, a function, '!' or '('")),
        }
    }

    fn path(&mut self) -> Parsed<Path> {
        let origin = if self.take("$") { Origin::Root } else { Origin::Current };
        if origin == Origin::Current && !self.take("@") {
            return Err(self.expected("a query, which begins with '@' or '$',"));
        }
        // Segments nest only through filters, which count.
        Ok(Path { origin, segments: self.segments()? })
    }

    /// `true`, `false`, `null` or a function.
    fn word(&mut self) -> Parsed<Operand> {
        let start = self.rest.len();
        let word = self.take_while(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if self.take("(") {
            self.skip_space();
            return self.nested(|parser| parser.function(word, start));
        }
        let value = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            _ => {
                let what = format!(
                    "{word:?} is neither true, false, null nor a function: put text in quotes"
                );
                return Err(Fault { rest: start, what });
            }
        };
        Ok(Operand::Value(Comparable::Literal(value)))
    }

    /// The arguments of a function, behind its parenthesis, and what it makes of them.
    fn function(&mut self, name: &str, start: usize) -> Parsed<Operand> {
        let operand = match name {
            "length" => Operand::Value(Comparable::Length(Box::new(self.value_argument()?))),
            "count" => Operand::Value(Comparable::Count(self.path()?)),
            "value" => Operand::Value(Comparable::ValueOf(self.path()?)),
            "match" | "search" => Operand::Test(self.matching(name == "match")?),
            _ => {
                let what =
                    format!("there is no function {name:?}: length, count, match, search, value");
                return Err(Fault { rest: start, what });
            }
        };
        self.skip_space();
        if self.take(")") { Ok(operand) } else { Err(self.expected("')'")) }
    }

    fn matching(&mut self, is_whole: bool) -> Parsed<Logical> {
        let text = self.value_argument()?;
        self.skip_space();
        if !self.take(",") {
            return Err(self.expected("',' and a pattern"));
        }
        self.skip_space();
        let start = self.rest.len();
        let pattern = match self.value_argument()? {
            Comparable::Literal(Value::Text(pattern)) => {
                let pattern = String::from_utf8_lossy(&pattern);
                let pattern = Pattern::new(&pattern, is_whole)
                    .map_err(|error| Fault { rest: start, what: error.message().to_owned() })?;
                PatternSource::Literal(Arc::new(pattern))
            }
            other => PatternSource::Found(other),
        };
        Ok(Logical::Matches(Box::new(Matching { text, pattern, is_whole })))
    }

    fn value_argument(&mut self) -> Parsed<Comparable> {
        let start = self.rest.len();
        comparable(self.operand()?, start)
    }
}

fn single(mut parts: Vec<Logical>) -> Result<Logical, Box<[Logical]>> {
    match (parts.len(), parts.pop()) {
        (1, Some(only)) => Ok(only),
        (_, last) => {
            parts.extend(last);
            Err(parts.into())
        }
    }
}

fn test(operand: Operand, rest: usize) -> Parsed<Logical> {
    let what = match operand {
        Operand::Path(path) => return Ok(Logical::Exists(path)),
        Operand::Test(test) => return Ok(test),
        Operand::Value(Comparable::Literal(_)) => {
            "a literal alone is neither true nor false: compare it with something"
        }
        Operand::Value(_) => "the function gives a value: compare it with something",
    };
    Err(Fault { rest, what: what.to_owned() })
}

fn comparable(operand: Operand, rest: usize) -> Parsed<Comparable> {
    let what = match operand {
        Operand::Value(value) => return Ok(value),
        Operand::Path(path) => match path.into_singular() {
            Ok(singular) => return Ok(Comparable::Singular(singular)),
            Err(_) => {
                "the query can find several values: name one of them, or use count() or value()"
            }
        },
        Operand::Test(_) => "the function is true or false and cannot be compared",
    };
    Err(Fault { rest, what: what.to_owned() })
}
