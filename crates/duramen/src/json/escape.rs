//! Strings as JSON prints them: the fewest escapes that RFC 8259 asks for, all else raw UTF-8.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

/// The lowest bit of each byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte of a word.
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Whether every character can stand between quotes as it is.
pub(crate) fn is_plain(bytes: &[u8]) -> bool {
    plain_prefix(bytes) == bytes.len()
}

/// How many bytes come before the first that cannot stand between quotes as it is: a quote, a
/// backslash or a control character.
#[inline]
pub(crate) fn plain_prefix(bytes: &[u8]) -> usize {
    // Most strings end in the first word, which costs less than a call (benchmark A0).
    let first = bytes.first_chunk();
    first
        .and_then(|first| plain_prefix_of_word(u64::from_le_bytes(*first)))
        .unwrap_or_else(|| long_plain_prefix(bytes))
}

/// The same of the eight bytes of a word, the first the lowest; none if all of them can stand as
/// they are.
#[inline]
pub(crate) fn plain_prefix_of_word(word: u64) -> Option<usize> {
    let marks = special_marks(word);
    (marks != 0).then_some((marks.trailing_zeros() >> 3) as usize)
}

fn long_plain_prefix(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let marks = special_marks(u64::from_le_bytes(*word));
        if marks != 0 {
            return (index << 3) | (marks.trailing_zeros() >> 3) as usize;
        }
    }
    let in_tail = tail.iter().position(|byte| is_special(*byte)).unwrap_or(tail.len());
    bytes.len().saturating_sub(tail.len()).saturating_add(in_tail)
}

/// Writes a string in its quotes; `plain` is what [`is_plain`] says of it.
#[inline]
pub(crate) fn write_text(bytes: &[u8], plain: bool, out: &mut Vec<u8>) {
    out.reserve(bytes.len().saturating_add(2));
    out.push(b'"');
    if plain {
        out.extend_from_slice(bytes);
    } else {
        write_escaped(bytes, out);
    }
    out.push(b'"');
}

/// A string as JSON.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    write_text(text.as_bytes(), false, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn write_escaped(mut rest: &[u8], out: &mut Vec<u8>) {
    while let Some((run, tail)) = rest.split_at_checked(plain_prefix(rest)) {
        out.extend_from_slice(run);
        let Some((&byte, tail)) = tail.split_first() else { return };
        write_escape(byte, out);
        rest = tail;
    }
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            out.extend_from_slice(b"\\u00");
            out.extend([byte >> 4, byte & 15].map(lower_hex));
            return;
        }
    };
    out.extend([b'\\', short]);
}

fn lower_hex(digit: u8) -> u8 {
    let letter = if digit < 10 { b'0' } else { b'a'.wrapping_sub(10) };
    letter.wrapping_add(digit)
}

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// A word whose lowest set bit is the highest bit of the first special byte of `word`. Bits above
/// that one may be wrong: a subtraction borrows only upward from a byte that was found.
fn special_marks(word: u64) -> u64 {
    let zero_in = |word: u64| word.wrapping_sub(ONES) & !word;
    let quote = zero_in(word ^ (ONES.wrapping_mul(b'"'.into())));
    let backslash = zero_in(word ^ (ONES.wrapping_mul(b'\\'.into())));
    let control = word.wrapping_sub(ONES.wrapping_mul(0x20)) & !word;
    (quote | backslash | control) & HIGHS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        write_text(text.as_bytes(), is_plain(text.as_bytes()), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_what_must_be_escaped_is() {
        assert_eq!(written(""), r#""""#);
        assert_eq!(written("a/b \u{7f} \u{2028} \u{1f600}"), "\"a/b \u{7f} \u{2028} \u{1f600}\"");
        assert_eq!(written("\"\\\u{8}\u{c}\n\r\t"), r#""\"\\\b\f\n\r\t""#);
        assert_eq!(written("\0\u{b}\u{1f}end"), r#""\u0000\u000b\u001fend""#);
    }

    proptest! {
        #[test]
        fn plain_prefix_ends_at_the_first_special_byte(
            bytes in prop::collection::vec(any::<u8>(), 0..40)
        ) {
            let reference = bytes.iter().position(|byte| is_special(*byte));
            prop_assert_eq!(plain_prefix(&bytes), reference.unwrap_or(bytes.len()));
        }

        #[test]
        fn written_text_reads_back_in_another_parser(text in ".{0,30}|[\0-\x7f]{0,30}") {
            let read: String = serde_json::from_str(&written(&text)).unwrap();
            prop_assert_eq!(read, text);
        }
    }
}
