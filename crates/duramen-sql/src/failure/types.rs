//! Names of types in what the planner says.

/// Those of Arrow, and those of SQL.
const NAMES: [(&str, &str); 22] = [
    ("Utf8View", "TEXT"),
    ("Utf8", "TEXT"),
    ("LargeUtf8", "TEXT"),
    ("Boolean", "BOOLEAN"),
    ("Int8", "TINYINT"),
    ("Int16", "SMALLINT"),
    ("Int32", "INTEGER"),
    ("Int64", "BIGINT"),
    ("UInt8", "TINYINT UNSIGNED"),
    ("UInt16", "SMALLINT UNSIGNED"),
    ("UInt32", "INTEGER UNSIGNED"),
    ("UInt64", "BIGINT UNSIGNED"),
    ("Float32", "REAL"),
    ("Float64", "DOUBLE"),
    ("Date32", "DATE"),
    ("Timestamp", "TIMESTAMP"),
    ("Time64", "TIME"),
    ("Interval", "INTERVAL"),
    ("Duration", "INTERVAL"),
    ("Decimal128", "DECIMAL"),
    ("Decimal256", "DECIMAL"),
    ("Struct", "an object"),
];

/// Types whose brackets have units and fields, which nobody needs to know.
const WITH_UNITS: [&str; 5] = ["TIMESTAMP", "TIME", "INTERVAL", "DECIMAL", "an object"];

/// A text with the types of SQL in place of Arrow's, but in double quotes and behind dots, where
/// names are.
/// `List(Int64)` is `BIGINT[]`, and the constant `Int64(7)` is `7`.
pub(super) fn named(text: &str) -> String {
    let mut named = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            first if first.is_ascii_alphanumeric() || first == '_' => {
                let is_other = |character: char| !(character.is_alphanumeric() || character == '_');
                rest.find(is_other).unwrap_or(rest.len())
            }
            first => first.len_utf8(),
        };
        let (word, behind) = rest.split_at(length);
        if named.ends_with('.') {
            named.push_str(word);
            rest = behind;
            continue;
        }
        let (word, behind) = replaced(word, behind);
        named.push_str(&word);
        rest = behind;
    }
    named
}

/// What stands for a word, and what is left behind it.
fn replaced<'t>(word: &str, behind: &'t str) -> (String, &'t str) {
    let bracket = bracketed(behind);
    if let ("List" | "LargeList", Some((inner, behind))) = (word, bracket) {
        return (format!("{}[]", named(inner)), behind);
    }
    let Some((_, name)) = NAMES.iter().find(|(arrow, _)| *arrow == word) else {
        return (word.to_owned(), behind);
    };
    match bracket {
        None => ((*name).to_owned(), behind),
        Some((_, behind)) if WITH_UNITS.contains(name) => ((*name).to_owned(), behind),
        Some((value, behind)) => (value.replace('"', "'"), behind),
    }
}

/// What is in the brackets that a text begins with, and what is behind them.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let mut in_quotes = false;
    for (at, character) in text.strip_prefix('(')?.char_indices() {
        match character {
            '"' => in_quotes = !in_quotes,
            '(' if !in_quotes => depth += 1,
            ')' if !in_quotes && depth > 0 => depth -= 1,
            ')' if !in_quotes => return Some((&text[1..=at], &text[at + 2..])),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_constants_of_arrow_are_those_of_sql() {
        for (said, told) in [
            ("sum(Utf8View)", "sum(TEXT)"),
            ("Int64 + List(Utf8View), or", "BIGINT + TEXT[], or"),
            ("Timestamp(\u{b5}s, \"UTC\") - Int64", "TIMESTAMP - BIGINT"),
            ("Struct(\"a\": non-null Int64, \"b)\": Utf8) x", "an object x"),
            ("p.score > Int64(1) OR Utf8(\"a b\") = name", "p.score > 1 OR 'a b' = name"),
            ("the column \"Int64\" of Int64s (x", "the column \"Int64\" of Int64s (x"),
            ("List(Struct(\"a\": Int64))", "an object[]"),
            ("p.Timestamp is Timestamp(ns)", "p.Timestamp is TIMESTAMP"),
            ("Decimal128(10, 2) \"open", "DECIMAL \"open"),
            ("\u{e9}Int64", "\u{e9}BIGINT"),
        ] {
            assert_eq!(named(said), told);
        }
    }
}
