//! Several values in one argument.

use std::str::FromStr;

/// Values with commas between them. A comma in brackets or in quotes is a part of the value, as in
/// `["Name, first"],age`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T: FromStr> FromStr for List<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        parts(text).into_iter().map(|part| part.trim().parse()).collect::<Result<_, _>>().map(Self)
    }
}

fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_in_a_name_is_no_end() {
        let cases: [(&str, &[&str]); 6] = [
            ("a,b:desc", &["a", "b:desc"]),
            ("a, b", &["a", " b"]),
            (r#"["Name, first"]:desc,age"#, &[r#"["Name, first"]:desc"#, "age"]),
            (r#"a["x\",]"],b[*]"#, &[r#"a["x\",]"]"#, "b[*]"]),
            ("a,,b", &["a", "", "b"]),
            ("", &[""]),
        ];
        for (text, expected) in cases {
            assert_eq!(parts(text), expected);
        }
        assert_eq!("1, 2".parse(), Ok(List(vec![1, 2])));
        assert!("1,x".parse::<List<u8>>().is_err());
    }
}
