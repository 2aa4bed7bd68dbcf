//! The literals of a query, apart from its text, so that queries that differ in these only share a
//! plan.

use crate::parameter::{Parameter, Placeholders};

/// Between literals that stand in for others, so that what is one more or less is told apart.
const STEP: i64 = 1_000;
/// The first of them: floats hold all of them exactly.
const FIRST: i64 = 1_125_899_906_000_000;
/// What texts that stand in for others begin with, and what is in the place of an integer.
const MARK: char = '\u{1e}';
/// What is in the place of a text.
const TEXT_MARK: char = '\u{1f}';
/// Bytes of a text that is looked into: plans of longer ones may be too deep for other threads than
/// those of queries.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// Bytes of a value that is shorter than all that stand in for others.
const SHORT_BYTES_MAX: usize = 12;

/// A literal of a query.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Int(i64),
    Text(String),
}

/// A query without its literals.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    /// The text with a mark for each literal.
    pub(super) text: String,
    pub(super) literals: Vec<Literal>,
}

impl Shape {
    /// Of a query and the values for its placeholders; none if the text has what is not looked
    /// into, such as comments.
    ///
    /// A literal that is compared as it stands is apart. What others come to may not be told from
    /// what stands in for them, such as `LIKE 'a%'` and `upper('b')`: they stay in the text.
    pub(super) fn of(sql: &str, values: &[Parameter]) -> Option<Self> {
        if sql.len() > TEXT_BYTES_MAX || sql.contains([MARK, TEXT_MARK]) {
            return None;
        }
        let tokens = tokens(sql)?;
        let mut placeholders = Placeholders::default();
        let mut shape = Self { text: String::with_capacity(sql.len()), literals: Vec::new() };
        let mut before = Before::Other;
        for (at, token) in tokens.iter().enumerate() {
            let is_compared = || before.is_compared(next(&tokens[at + 1..]));
            match *token {
                Token::Space(space) => {
                    shape.text.push_str(space);
                    continue;
                }
                Token::Number(text) => shape.take_number(text, is_compared())?,
                Token::Text(text) => {
                    let value = text.get(1..text.len() - 1)?.replace("''", "'");
                    shape.take(text, Literal::Text(value), is_compared())?;
                }
                Token::Placeholder(text) => {
                    let index = placeholders.index(text).ok()?;
                    shape.take_value(values.get(index)?, is_compared())?;
                }
                Token::Word(word) if is_one_of(word, &OF_MOMENTS) => return None,
                Token::Word(text) | Token::Name(text) | Token::Operator(text) => {
                    shape.text.push_str(text);
                }
            }
            before = before.then(*token);
        }
        placeholders.are(values.len()).then_some(shape)
    }

    /// Takes the value of a placeholder as if its literal stood there.
    fn take_value(&mut self, value: &Parameter, is_compared: bool) -> Option<()> {
        let sql = value.sql();
        match value {
            Parameter::Int(value) if *value >= 0 => {
                self.take(&sql, Literal::Int(*value), is_compared)?;
            }
            Parameter::Int(value) if *value > i64::MIN && is_compared => {
                self.text.push_str("(-");
                self.take(&sql, Literal::Int(-value), is_compared)?;
                self.text.push(')');
            }
            Parameter::Text(text) => self.take(&sql, Literal::Text(text.clone()), is_compared)?,
            // What has digits may be that of a stand-in.
            _ if sql.len() > SHORT_BYTES_MAX => return None,
            _ => self.text.push_str(&sql),
        }
        Some(())
    }

    fn take_number(&mut self, text: &str, is_compared: bool) -> Option<()> {
        if let Ok(number) = text.parse() {
            return self.take(text, Literal::Int(number), is_compared);
        }
        self.text.push_str(text);
        #[expect(clippy::cast_precision_loss, reason = "it is far below others")]
        let is_alike = text.parse::<f64>().map_or(true, |number| number >= (FIRST - 1) as f64);
        (!is_alike).then_some(())
    }

    /// Takes a literal out, or leaves it in; none if it then could be taken for a stand-in.
    fn take(&mut self, text: &str, literal: Literal, is_compared: bool) -> Option<()> {
        if is_compared {
            self.text.push(if matches!(literal, Literal::Int(_)) { MARK } else { TEXT_MARK });
            self.literals.push(literal);
            return Some(());
        }
        let is_alike = match &literal {
            Literal::Int(value) => *value >= FIRST - 1,
            Literal::Text(text) => text.contains([MARK, TEXT_MARK]),
        };
        self.text.push_str(text);
        (!is_alike).then_some(())
    }

    /// The query with other literals, which tell which ones they stand in for.
    pub(super) fn with_stand_ins(&self) -> String {
        let mut sql = String::with_capacity(self.text.len());
        let mut index = 0;
        for c in self.text.chars() {
            match c {
                MARK => sql += &stand_in(index).to_string(),
                TEXT_MARK => sql.extend(["'", &MARK.to_string(), &index.to_string(), "'"]),
                c => {
                    sql.push(c);
                    continue;
                }
            }
            index += 1;
        }
        sql
    }
}

fn stand_in(index: usize) -> i64 {
    i64::try_from(index).unwrap_or(0).wrapping_mul(STEP).wrapping_add(FIRST)
}

/// Where a literal is in a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) index: usize,
    is_negative: bool,
    /// What is added to it.
    offset: i64,
}

impl Place {
    /// Which literal an integer stands in for, if it does.
    pub(super) fn of_integer(value: i64) -> Option<Self> {
        let from_first = value.checked_abs()?.checked_sub(FIRST)?.checked_add(1)?;
        let (index, offset) = (from_first.div_euclid(STEP), from_first.rem_euclid(STEP) - 1);
        let is_negative = value < 0;
        let offset = if is_negative { -offset } else { offset };
        let index = usize::try_from(index).ok().filter(|_| offset.abs() <= 1)?;
        Some(Self { index, is_negative, offset })
    }

    /// Which literal a text stands in for, if it does.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let index = text.strip_prefix(MARK)?.parse().ok()?;
        Some(Self { index, is_negative: false, offset: 0 })
    }

    /// Which literal a float stands in for, if it does.
    pub(super) fn of_float(value: f64) -> Option<Self> {
        #[expect(clippy::cast_possible_truncation, reason = "what it stands in for is an integer")]
        let found = Self::of_integer(value as i64)?;
        (value.fract() == 0.0 && found.offset == 0).then_some(found)
    }

    /// The integer in its place.
    pub(super) fn integer(self, literals: &[Literal]) -> Option<i64> {
        let Literal::Int(value) = literals.get(self.index)? else { return None };
        let value = if self.is_negative { value.checked_neg()? } else { *value };
        value.checked_add(self.offset)
    }

    /// The text in its place.
    pub(super) fn text(self, literals: &[Literal]) -> Option<&str> {
        match literals.get(self.index)? {
            Literal::Text(text) => Some(text),
            Literal::Int(_) => None,
        }
    }
}

/// A part of the text of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'t> {
    Space(&'t str),
    Word(&'t str),
    /// A quoted name.
    Name(&'t str),
    Number(&'t str),
    Text(&'t str),
    Placeholder(&'t str),
    /// Characters of operators that stand together, or another one.
    Operator(&'t str),
}

/// What stands before a part of a query, as far as it tells what is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// What a comparison may begin behind.
    Begin,
    /// An operator that compares, also with a minus behind it; BETWEEN, and AND.
    Comparison,
    /// AND, which may be that of BETWEEN.
    And,
    In,
    /// A literal, a comma or the bracket of a list of IN.
    List,
    /// A literal in such a list.
    Listed,
    Other,
}

/// Words behind which a comparison may begin.
const BEGINS: [&str; 5] = ["WHERE", "OR", "NOT", "HAVING", "WHEN"];

/// Functions of the moment, which are computed when a query is planned.
const OF_MOMENTS: [&str; 9] = [
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "GEN_RANDOM_UUID",
    "NOW",
    "RANDOM",
    "TODAY",
    "UUID",
    "LOCALTIMESTAMP",
];

/// Words behind a comparison.
const ENDS: [&str; 11] = [
    "AND",
    "OR",
    "GROUP",
    "ORDER",
    "LIMIT",
    "HAVING",
    "OFFSET",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "THEN",
];

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|of| of.eq_ignore_ascii_case(word))
}

fn is_comparison(operator: &str) -> bool {
    let operator = operator.strip_suffix('-').unwrap_or(operator);
    ["=", "<>", "!=", "<", "<=", ">", ">="].contains(&operator)
}

impl Before {
    /// Whether a literal here is compared as it stands, where something comes next.
    fn is_compared(self, next: Option<Token<'_>>) -> bool {
        let is_end = match next {
            None | Some(Token::Operator(")" | "," | ";")) => true,
            Some(Token::Word(word)) => is_one_of(word, &ENDS),
            _ => false,
        };
        match self {
            Self::Comparison => is_end,
            Self::List => matches!(next, Some(Token::Operator(")" | ","))),
            Self::Begin => matches!(next, Some(Token::Operator(next)) if is_comparison(next)),
            Self::And => {
                is_end || matches!(next, Some(Token::Operator(next)) if is_comparison(next))
            }
            Self::In | Self::Listed | Self::Other => false,
        }
    }

    fn then(self, token: Token<'_>) -> Self {
        match (self, token) {
            (_, Token::Word(word)) if is_one_of(word, &BEGINS) => Self::Begin,
            (_, Token::Word(word)) if word.eq_ignore_ascii_case("AND") => Self::And,
            (_, Token::Word(word)) if word.eq_ignore_ascii_case("BETWEEN") => Self::Comparison,
            (_, Token::Word(word)) if word.eq_ignore_ascii_case("IN") => Self::In,
            (Self::In, Token::Operator("(")) | (Self::Listed, Token::Operator(",")) => Self::List,
            (Self::List | Self::Comparison | Self::And, Token::Operator("-")) => self,
            (_, Token::Operator("(")) => Self::Begin,
            (_, Token::Operator(operator)) if is_comparison(operator) => Self::Comparison,
            (Self::List, Token::Number(_) | Token::Text(_) | Token::Placeholder(_)) => Self::Listed,
            _ => Self::Other,
        }
    }
}

/// The next part that is no space.
fn next<'t>(tokens: &[Token<'t>]) -> Option<Token<'t>> {
    tokens.iter().copied().find(|token| !matches!(token, Token::Space(_)))
}

/// The parts of a query; none if it has what is not looked into.
fn tokens<'t>(sql: &'t str) -> Option<Vec<Token<'t>>> {
    let mut tokens = Vec::with_capacity(sql.len() / 4);
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let until = |is_part: fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (token, end): (fn(&'t str) -> Token<'t>, usize) = match first {
            // A word right before it says how it is read.
            '\'' if matches!(tokens.last(), Some(Token::Word(_))) => return None,
            '\'' => (Token::Text, quoted_end(rest, '\'')?),
            '"' => (Token::Name, quoted_end(rest, '"')?),
            '0'..='9' => (Token::Number, until(|c| is_word(c) || c == '.')),
            '?' => (Token::Placeholder, 1),
            '$' => {
                (Token::Placeholder, 1 + rest[1..].find(|c| !is_word(c)).unwrap_or(rest.len() - 1))
            }
            c if is_word(c) => (Token::Word, until(is_word)),
            c if c.is_whitespace() => (Token::Space, until(char::is_whitespace)),
            c if is_operator(c) => (Token::Operator, until(is_operator)),
            c => (Token::Operator, c.len_utf8()),
        };
        let (text, behind) = rest.split_at(end);
        if first != '\'' && first != '"' && (text.contains("--") || text.contains("/*")) {
            return None;
        }
        tokens.push(token(text));
        rest = behind;
    }
    Some(tokens)
}

fn is_operator(c: char) -> bool {
    matches!(
        c,
        '=' | '<'
            | '>'
            | '!'
            | '+'
            | '-'
            | '*'
            | '/'
            | '%'
            | '^'
            | '&'
            | '|'
            | '~'
            | ':'
            | '@'
            | '#'
    )
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The bytes up to the end of a quoted text, quotes that stand twice within.
fn quoted_end(text: &str, quote: char) -> Option<usize> {
    let mut at = 1;
    loop {
        at += text.get(at..)?.find(quote)? + 1;
        if !text[at..].starts_with(quote) {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(sql: &str) -> (String, Vec<Literal>) {
        let shape = Shape::of(sql, &[]).unwrap();
        (shape.text.replace(MARK, "?").replace(TEXT_MARK, "$"), shape.literals)
    }

    #[test]
    fn literals_are_apart_from_the_text() {
        let (text, literals) =
            shape("SELECT a1 FROM \"t $?\" WHERE n > -5 AND s = 'it''s' OR r < 1.5");
        assert_eq!(text, "SELECT a1 FROM \"t $?\" WHERE n > -? AND s = $ OR r < 1.5");
        assert_eq!(literals, [Literal::Int(5), Literal::Text("it's".into())]);
    }

    #[test]
    fn what_a_table_is_as_of_is_part_of_the_text() {
        let sql = "SELECT 1 FROM t FOR SYSTEM_TIME AS OF 7 WHERE n = 8";
        let (text, literals) = shape(sql);
        assert_eq!(text, "SELECT 1 FROM t FOR SYSTEM_TIME AS OF 7 WHERE n = ?");
        assert_eq!(literals, [Literal::Int(8)]);
        let (text, _) = shape("SELECT x FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '2024-05-01'");
        assert!(text.ends_with("'2024-05-01'"), "{text}");
    }

    /// What they come to may not be told from what stands in for them.
    #[test]
    fn literals_that_are_no_operands_of_comparisons_stay() {
        let cases = [
            ("s LIKE 'a%' AND n = 5", "s LIKE 'a%' AND n = ?"),
            ("s = upper('b') OR s = 'b'", "s = upper('b') OR s = $"),
            ("f > 2 + 1 OR f < 1+2", "f > 2 + 1 OR f < 1+2"),
            ("f > 2::DOUBLE AND n=-5", "f > 2::DOUBLE AND n=-?"),
            ("n BETWEEN 1 AND 2 AND 3 < n", "n BETWEEN ? AND ? AND ? < n"),
            ("n BETWEEN 1 + 1 AND 2", "n BETWEEN 1 + 1 AND ?"),
            ("n IN (1, -2, 3 + 4, 5)", "n IN (?, -?, 3 + 4, 5)"),
            ("s NOT IN ('a','b') AND m->'k' = 'v'", "s NOT IN ($,$) AND m->'k' = $"),
            ("f(n, 5) = 6 AND (n = 7)", "f(n, 5) = ? AND (n = ?)"),
            ("n = 5 = true OR n - 5 > 3", "n = 5 = true OR n - 5 > ?"),
            ("d > DATE '2024-05-01' LIMIT 3", "d > DATE '2024-05-01' LIMIT 3"),
            ("s = 'a' || 'b' OR s = 'a' 'b'", "s = 'a' || 'b' OR s = 'a' 'b'"),
            ("s LIKE 'b' ESCAPE 'c' OR s = 'b'", "s LIKE 'b' ESCAPE 'c' OR s = $"),
        ];
        for (text, expected) in cases {
            let sql = format!("SELECT count(*) FROM t WHERE {text}");
            assert_eq!(shape(&sql).0, format!("SELECT count(*) FROM t WHERE {expected}"));
        }
    }

    #[test]
    fn texts_that_are_not_looked_into_have_no_shape() {
        for sql in [
            "SELECT 1 -- all",
            "SELECT /* all */ 1",
            "SELECT $1",
            "SELECT 'a",
            "SELECT \"a",
            "SELECT E'a'",
            "SELECT a FROM t WHERE t < now()",
            "SELECT 1125899906000000",
            "SELECT 1125899906000000.0",
        ] {
            assert_eq!(Shape::of(sql, &[]), None, "{sql}");
        }
    }

    #[test]
    fn stand_ins_lead_back_to_their_literals() {
        let shape = Shape::of("n > 5 AND s = 'a' AND m = -9223372036854775807", &[]).unwrap();
        let literals = &shape.literals;
        assert_eq!(Place::of_integer(stand_in(0) + 1).unwrap().integer(literals), Some(6));
        assert_eq!(Place::of_integer(stand_in(0) - 1).unwrap().integer(literals), Some(4));
        let negative = Place::of_integer(-stand_in(2)).unwrap();
        assert_eq!(negative.integer(literals), Some(-i64::MAX));
        let below = Place::of_integer(-stand_in(2) - 1).unwrap();
        assert_eq!(below.integer(literals), Some(i64::MIN));
        assert_eq!(Place::of_text("\u{1e}1").unwrap().text(literals), Some("a"));
        assert_eq!(Place::of_integer(stand_in(0) + 2), None);
        assert!(Place::of_integer(7).is_none() && Place::of_text("a").is_none());
        let sql = shape.with_stand_ins();
        assert!(sql.contains(&stand_in(0).to_string()) && sql.contains("'\u{1e}1'"), "{sql}");
    }
}
