//! Whether two JSON values are the same, as RFC 6902 (section 4.6) counts it: numbers by their
//! value, objects without regard to the order of their members.

use std::cmp::Ordering;

use super::number;
use super::tape::{Item, Tape, TapeIndex};

/// Whether two values are the same. Both are at most as deep as what can be parsed.
pub(crate) fn are_equal(a: (&Tape<'_>, TapeIndex), b: (&Tape<'_>, TapeIndex)) -> bool {
    match (a.0.item(a.1), b.0.item(b.1)) {
        (Item::Number(a), Item::Number(b)) => {
            number::compare(number::classify(a), number::classify(b)).is_some_and(Ordering::is_eq)
        }
        (Item::Text { bytes: a, .. }, Item::Text { bytes: b, .. }) => a == b,
        (Item::Array { len }, Item::Array { len: other }) => {
            let mut pairs = a.0.elements(a.1).zip(b.0.elements(b.1));
            len == other && pairs.all(|(x, y)| are_equal((a.0, x), (b.0, y)))
        }
        (Item::Object { len }, Item::Object { len: other }) => {
            let (fields, others) = (by_name(a), by_name(b));
            let mut pairs = fields.iter().zip(&others);
            len == other && pairs.all(|(x, y)| x.0 == y.0 && are_equal((a.0, x.1), (b.0, y.1)))
        }
        (x, y) => x == y,
    }
}

/// The fields of an object, sorted by name.
fn by_name<'t>((tape, at): (&'t Tape<'_>, TapeIndex)) -> Vec<(&'t [u8], TapeIndex)> {
    let name = |name: Item<'t>| match name {
        Item::Text { bytes, .. } => bytes,
        _ => b"",
    };
    let mut fields: Vec<_> = tape.fields(at).map(|(field, value)| (name(field), value)).collect();
    fields.sort_unstable();
    fields
}

#[cfg(test)]
mod tests {
    use super::super::ParseOptions;
    use super::*;

    fn same(a: &str, b: &str) -> bool {
        let a = Tape::parse(a.as_bytes(), ParseOptions::default()).unwrap();
        let b = Tape::parse(b.as_bytes(), ParseOptions::default()).unwrap();
        are_equal((&a, a.root()), (&b, b.root()))
    }

    #[test]
    fn numbers_count_by_value_and_members_by_name() {
        let equal = [
            ("1", "1.0"),
            ("100", "1E2"),
            ("-0", "0"),
            (r#"{"a":1,"b":[{}]}"#, r#"{"b":[{}],"a":1.00}"#),
            (r#""\u0061""#, r#""a""#),
        ];
        for (a, b) in equal {
            assert!(same(a, b) && same(b, a), "{a} {b}");
        }
        let different = [
            ("1", r#""1""#),
            ("null", "false"),
            ("true", "false"),
            ("[1,2]", "[2,1]"),
            ("[1]", "[1,1]"),
            ("{}", "[]"),
            (r#"{"a":1}"#, r#"{"b":1}"#),
            (r#"{"a":1}"#, r#"{"a":1,"b":1}"#),
            ("9007199254740993", "9007199254740992"),
        ];
        for (a, b) in different {
            assert!(!same(a, b) && !same(b, a), "{a} {b}");
        }
    }
}
