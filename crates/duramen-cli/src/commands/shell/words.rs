//! The words of a line, quoted as a POSIX shell has it. `$` and `#` mean nothing here, so that
//! paths and ids need no quotes.

/// A word, and where it begins in the line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) start: usize,
    pub(super) text: String,
}

/// The words of a line that may end before it is whole.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) words: Vec<Word>,
    /// The quote that was not closed.
    pub(super) open_quote: Option<char>,
    /// The line ends behind a word, not in one.
    pub(super) ends_between: bool,
}

/// Splits a line.
pub(super) fn split(line: &str) -> Line {
    let mut found = Line { ends_between: true, ..Line::default() };
    let mut characters = line.char_indices();
    while let Some((start, character)) = characters.next() {
        match (found.open_quote, character) {
            (None, blank) if blank.is_whitespace() => {
                found.ends_between = true;
                continue;
            }
            _ if found.ends_between => {
                found.ends_between = false;
                found.words.push(Word { start, text: String::new() });
            }
            _ => {}
        }
        let Some(word) = found.words.last_mut() else { continue };
        match (found.open_quote, character) {
            (None, '\'' | '"') => found.open_quote = Some(character),
            (Some(quote), _) if quote == character => found.open_quote = None,
            (None, '\\') => word.text.extend(characters.next().map(|(_, escaped)| escaped)),
            (Some('"'), '\\') => match characters.next() {
                Some((_, escaped @ ('"' | '\\'))) => word.text.push(escaped),
                other => word.text.extend(Some('\\').into_iter().chain(other.map(|(_, c)| c))),
            },
            _ => word.text.push(character),
        }
    }
    found
}

/// `text` as one word.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "/~-_.=:".contains(character);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        split(line).words.into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn words_are_quoted_as_in_a_posix_shell() {
        assert_eq!(texts("  set  doc\t/a "), ["set", "doc", "/a"]);
        assert_eq!(texts(r#"set /a '{"b": 1}' "it's""#), ["set", "/a", r#"{"b": 1}"#, "it's"]);
        assert_eq!(texts(r#"a\ b "\"\\\n" '\' '' x'y'z"#), ["a b", r#""\\n"#, "\\", "", "xyz"]);
        assert_eq!(texts("query doc $.a[*] #12"), ["query", "doc", "$.a[*]", "#12"]);
    }

    #[test]
    fn an_unfinished_word_is_told() {
        assert_eq!(split("get 'a b").open_quote, Some('\''));
        assert!(split("get ").ends_between);
        assert!(!split("get d").ends_between);
        assert_eq!(split("get 'd").words[1], Word { start: 4, text: "d".to_owned() });
    }

    #[test]
    fn a_quoted_word_is_read_back() {
        for text in ["", "plain", "with space", "it's", r#"{"a":"\\"}"#, "$.a", "\u{e9}\u{301}"] {
            assert_eq!(texts(&quoted(text)), [text]);
        }
    }
}
