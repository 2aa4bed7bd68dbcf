//! Where the words and texts of a query stand.

use std::collections::{HashMap, HashSet};

use datafusion::common::Span;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};

/// Words behind which the name of a table stands.
const BEFORE_TABLES: [&str; 8] =
    ["FROM", "JOIN", "INTO", "UPDATE", "TABLE", "VIEW", "DESCRIBE", "COPY"];

/// What a word is in a query, as far as its neighbours tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A column or whatever else.
    Name,
    /// A name that is given here, behind `AS`.
    Given,
    Table,
    Function,
}

/// The words and texts of a query.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words {
    /// All places of each word, in their order.
    places: HashMap<String, Vec<(Location, Role)>>,
    /// Where each text in quotes first stands: there may be very many.
    texts: HashMap<String, Location>,
    /// The words that stand in double quotes.
    quoted: HashSet<String>,
}

impl Words {
    pub(crate) fn new(tokens: &[TokenWithSpan]) -> Self {
        let is_space = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
        let mut tokens = tokens.iter().filter(|token| !is_space(token)).peekable();
        let mut found = Self::default();
        // What stands before, and what the last word was.
        let (mut before, mut last) = (&Token::EOF, Role::Name);
        while let Some(token) = tokens.next() {
            let place = token.span.start;
            match &token.token {
                Token::SingleQuotedString(text) => {
                    found.texts.entry(text.clone()).or_insert(place);
                }
                Token::Word(word) => {
                    let next = tokens.peek().map(|next| &next.token);
                    last = role((before, last), next);
                    found.places.entry(word.value.clone()).or_default().push((place, last));
                    if word.quote_style == Some('"') {
                        found.quoted.insert(word.value.clone());
                    }
                }
                _ => {}
            }
            before = &token.token;
        }
        found
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        self.names().chain(self.texts.keys().map(String::as_str))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// Where a text in quotes first stands.
    pub(crate) fn text(&self, text: &str) -> Option<Location> {
        self.texts.get(text).copied()
    }

    /// Whether a word stands in double quotes somewhere.
    pub(crate) fn is_quoted(&self, word: &str) -> bool {
        self.quoted.contains(word)
    }

    /// Whether a word has a role somewhere.
    pub(crate) fn has_role(&self, word: &str, wanted: Role) -> bool {
        self.places.get(word).is_some_and(|places| places.iter().any(|(_, role)| *role == wanted))
    }

    /// Where a word first has a role; where it first stands if it never has it.
    pub(crate) fn place(&self, word: &str, wanted: Role) -> Option<Location> {
        let Some(places) = self.places.get(word) else { return self.text(word) };
        let having = places.iter().find(|(_, role)| *role == wanted);
        having.or_else(|| places.first()).map(|(place, _)| *place)
    }

    /// Where a word stands that is there once, or a text.
    pub(crate) fn only(&self, word: &str) -> Option<Location> {
        match self.places.get(word).map(Vec::as_slice) {
            Some([(place, _)]) => Some(*place),
            Some(_) => None,
            None => self.text(word),
        }
    }

    /// Where a word has a role.
    pub(crate) fn having(&self, word: &str, wanted: Role) -> Vec<Location> {
        let places = self.places.get(word).into_iter().flatten();
        places.filter(|(_, role)| *role == wanted).map(|(place, _)| *place).collect()
    }

    /// All places of a word but those where it is a name that is given.
    pub(crate) fn called(&self, word: &str) -> Vec<Location> {
        let places = self.places.get(word).into_iter().flatten();
        places.filter(|(_, role)| *role != Role::Given).map(|(place, _)| *place).collect()
    }

    /// Where a word last stands in a part of the text.
    pub(crate) fn within(&self, word: &str, part: Span) -> Option<Location> {
        let (begin, end) = (part.start, part.end);
        let is_within = |place: &Location| {
            let place = (place.line, place.column);
            (begin.line, begin.column) <= place && place <= (end.line, end.column)
        };
        let mut places = self.places.get(word).into_iter().flatten().map(|(place, _)| *place);
        places.rfind(is_within)
    }
}

/// What a word is behind a token and the role of the word before, with a token behind it.
fn role((before, last): (&Token, Role), next: Option<&Token>) -> Role {
    match before {
        // The parts of a name are what all of it is.
        Token::Period if last == Role::Table => return Role::Table,
        Token::Word(Word { value, quote_style: None, .. }) => {
            if BEFORE_TABLES.iter().any(|known| value.eq_ignore_ascii_case(known)) {
                return Role::Table;
            }
            if value.eq_ignore_ascii_case("AS") {
                return Role::Given;
            }
        }
        _ => {}
    }
    if next == Some(&Token::LParen) { Role::Function } else { Role::Name }
}

#[cfg(test)]
mod tests {
    use datafusion::common::Location as At;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::Sql;

    /// The first of the same words once was the place of all of them.
    #[test]
    fn words_are_told_apart_by_what_they_are() {
        let sql = "SELECT 'b', a AS b, b.a, b(b) FROM a.b";
        let tokens = Tokenizer::new(&Sql::of(sql), sql).tokenize_with_location().unwrap();
        let words = Words::new(&tokens);
        let column = |word, role| words.place(word, role).unwrap().column;
        assert_eq!(words.text("b").unwrap().column, 8);
        assert_eq!(column("b", Role::Given), 18);
        assert_eq!(column("b", Role::Name), 21);
        assert_eq!(column("b", Role::Function), 26);
        assert_eq!(column("b", Role::Table), 38);
        assert_eq!(column("a", Role::Function), 13);
        let part = Span { start: At { line: 1, column: 21 }, end: At { line: 1, column: 24 } };
        assert_eq!(words.within("a", part).unwrap().column, 23);
        assert!(words.within("FROM", part).is_none());
        assert_eq!(words.only("FROM").unwrap().column, 31);
        assert!(words.only("a").is_none());
    }
}
