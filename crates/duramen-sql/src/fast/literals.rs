//! The literals of a query, apart from its text, so that queries that differ in these only share a
//! plan.

use crate::parameter::{Parameter, Placeholders};

/// Between literals that stand in for others, so that what is one more or less is told apart.
const STEP: i64 = 1_000;
/// The first of them: floats hold all of them exactly.
const FIRST: i64 = 1_125_899_906_000_000;
/// What texts that stand in for others begin with.
const MARK: char = '\u{1e}';
/// Bytes of a text that is looked into: plans of longer ones may be too deep for other threads than
/// those of queries.
const TEXT_BYTES_MAX: usize = 16 << 10;

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
    pub(super) fn of(sql: &str, values: &[Parameter]) -> Option<Self> {
        if sql.len() > TEXT_BYTES_MAX {
            return None;
        }
        let mut placeholders = Placeholders::default();
        let mut shape = Self { text: String::with_capacity(sql.len()), literals: Vec::new() };
        let mut rest = sql;
        // Of what a table is as of is part of its name.
        let mut is_moment = false;
        while let Some(first) = rest.chars().next() {
            let len = match first {
                '\'' => {
                    let end = quoted_end(rest, '\'')?;
                    let text = rest.get(1..end - 1)?;
                    shape.take(&rest[..end], Literal::Text(text.replace("''", "'")), is_moment);
                    end
                }
                '"' => quoted_end(rest, '"')?,
                '0'..='9' => {
                    let end = rest.find(|c: char| !is_word(c) && c != '.').unwrap_or(rest.len());
                    match rest[..end].parse() {
                        Ok(number) => shape.take(&rest[..end], Literal::Int(number), is_moment),
                        Err(_) => shape.text.push_str(&rest[..end]),
                    }
                    end
                }
                c if is_word(c) => {
                    let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
                    let word = &rest[..end];
                    let is_type = is_moment && word.eq_ignore_ascii_case("TIMESTAMP");
                    is_moment = is_type || word.eq_ignore_ascii_case("OF");
                    shape.text.push_str(word);
                    rest = &rest[end..];
                    continue;
                }
                '$' | '?' => {
                    let number = rest[1..].find(|c: char| !is_word(c)).unwrap_or(rest.len() - 1);
                    let end = if first == '?' { 1 } else { 1 + number };
                    let index = placeholders.index(&rest[..end]).ok()?;
                    shape.take_value(values.get(index)?, is_moment);
                    end
                }
                MARK => return None,
                c if rest.starts_with("--") || rest.starts_with("/*") => {
                    debug_assert!(c == '-' || c == '/');
                    return None;
                }
                c => c.len_utf8(),
            };
            if !matches!(first, '\'' | '$' | '?' | '0'..='9') {
                shape.text.push_str(&rest[..len]);
            }
            is_moment = is_moment && first.is_whitespace();
            rest = &rest[len..];
        }
        placeholders.are(values.len()).then_some(shape)
    }

    /// Takes the value of a placeholder as if its literal stood there.
    fn take_value(&mut self, value: &Parameter, is_moment: bool) {
        let sql = value.sql();
        match value {
            Parameter::Int(value) if *value >= 0 => {
                self.take(&sql, Literal::Int(*value), is_moment);
            }
            Parameter::Int(value) if *value > i64::MIN => {
                self.text.push_str("(-");
                self.take(&sql, Literal::Int(-value), is_moment);
                self.text.push(')');
            }
            Parameter::Text(text) => self.take(&sql, Literal::Text(text.clone()), is_moment),
            _ => self.text.push_str(&sql),
        }
    }

    fn take(&mut self, text: &str, literal: Literal, is_moment: bool) {
        if is_moment {
            self.text.push_str(text);
            return;
        }
        self.text.push(match literal {
            Literal::Int(_) => '?',
            Literal::Text(_) => '$',
        });
        self.literals.push(literal);
    }

    /// The query with other literals, which tell which ones they stand in for.
    pub(super) fn with_stand_ins(&self) -> String {
        let mut sql = String::with_capacity(self.text.len());
        let mut index = 0;
        let mut in_name = false;
        for c in self.text.chars() {
            in_name ^= c == '"';
            match c {
                '?' if !in_name => sql += &stand_in(index).to_string(),
                '$' if !in_name => sql.extend(["'", &MARK.to_string(), &index.to_string(), "'"]),
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
        (found.offset == 0).then_some(found)
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
        (shape.text, shape.literals)
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
        assert_eq!(text, "SELECT ? FROM t FOR SYSTEM_TIME AS OF 7 WHERE n = ?");
        assert_eq!(literals, [Literal::Int(1), Literal::Int(8)]);
        let (text, _) = shape("SELECT x FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '2024-05-01'");
        assert!(text.ends_with("'2024-05-01'"), "{text}");
    }

    #[test]
    fn texts_that_are_not_looked_into_have_no_shape() {
        for sql in ["SELECT 1 -- all", "SELECT /* all */ 1", "SELECT $1", "SELECT 'a", "SELECT \"a"]
        {
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
