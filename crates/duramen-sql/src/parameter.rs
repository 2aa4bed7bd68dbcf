//! Values that are given to a query apart from its text.

use std::borrow::Cow;

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use duramen::{Error, ErrorKind, Result};

use crate::digits;

/// A value for a placeholder of a query: `$1` is the first one, and so is the first `?`.
///
/// It stands where a literal could, and is never read as SQL: a text with quotes in it is a text.
///
/// ```
/// use duramen::Database;
/// use duramen_sql::{Format, Parameter, Session, SessionOptions};
///
/// let session = Session::new(Database::memory()?, SessionOptions::default());
/// let given = [Parameter::from("it's"), Parameter::from(2)];
/// let mut out = Vec::new();
/// session.query_with("SELECT $1 AS what, $2 + 1 AS n", &given)?.write(Format::Csv, &mut out)?;
/// assert_eq!(String::from_utf8_lossy(&out), "what,n\nit's,3\n");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// NULL.
    Null,
    /// TRUE or FALSE.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number that may be beyond those, such as a key.
    Unsigned(u64),
    /// Any other number; also those that are no number or infinite.
    Float(f64),
    /// A number as JSON writes it. What is saved as it stands has all of its digits; a query
    /// computes with it as with a literal, which is a float if it is none of the above integers.
    /// What is no number is a text.
    Number(String),
    /// A text; what takes times takes their texts, `2024-05-01T12:00:00Z` for one.
    Text(String),
}

/// Which placeholders of a text were met so far.
#[derive(Debug, Default)]
pub(crate) struct Placeholders {
    /// How many `?` there were.
    marks: usize,
    /// How many values are asked for.
    wanted: usize,
    has_numbers: bool,
}

impl Parameter {
    /// What stands for it in the tokens of a query.
    fn tokens(&self) -> Vec<Token> {
        let keyword = |value: &str, keyword| {
            let word = Word { value: value.to_owned(), quote_style: None, keyword };
            vec![Token::Word(word)]
        };
        let number = |text: String| Token::Number(text, false);
        // In brackets, so that it stays one value whatever stands around it.
        let negative =
            |text: String| vec![Token::LParen, Token::Minus, number(text), Token::RParen];
        match self {
            Self::Null => keyword("NULL", Keyword::NULL),
            Self::Bool(true) => keyword("TRUE", Keyword::TRUE),
            Self::Bool(false) => keyword("FALSE", Keyword::FALSE),
            Self::Int(value) if *value < 0 => negative(value.unsigned_abs().to_string()),
            Self::Int(value) => vec![number(value.to_string())],
            Self::Unsigned(value) => vec![number(value.to_string())],
            Self::Float(value) if !value.is_finite() => {
                let mut tokens = keyword("CAST", Keyword::CAST);
                tokens.extend([Token::LParen, Token::SingleQuotedString(value.to_string())]);
                tokens.extend(keyword("AS", Keyword::AS));
                tokens.extend(keyword("DOUBLE", Keyword::DOUBLE));
                tokens.push(Token::RParen);
                tokens
            }
            Self::Float(value) if value.is_sign_negative() => {
                negative(format!("{:e}", value.abs()))
            }
            Self::Float(value) => vec![number(format!("{value:e}"))],
            Self::Number(text) if digits::is_number(text) => match text.strip_prefix('-') {
                Some(positive) => negative(positive.to_owned()),
                None => vec![number(text.clone())],
            },
            Self::Number(text) | Self::Text(text) => {
                vec![Token::SingleQuotedString(text.clone())]
            }
        }
    }

    /// What stands for it in the text of a query.
    pub(crate) fn sql(&self) -> String {
        self.tokens().into_iter().map(|token| token.to_string() + " ").collect()
    }
}

impl Placeholders {
    /// Which value a placeholder stands for, counted from 0; `Err` says what is wrong with it.
    pub(crate) fn index(&mut self, placeholder: &str) -> std::result::Result<usize, &'static str> {
        let index = if placeholder == "?" {
            self.marks += 1;
            self.marks
        } else {
            self.has_numbers = true;
            let number = placeholder.strip_prefix('$').and_then(|number| number.parse().ok());
            number
                .filter(|number| *number > 0)
                .ok_or("is no placeholder: they are $1, $2 and so on, or ? each")?
        };
        if self.has_numbers && self.marks > 0 {
            return Err("stands beside another kind of placeholders: use $1, $2 or ? alone");
        }
        self.wanted = self.wanted.max(index);
        Ok(index - 1)
    }

    /// Whether so many values are what they ask for.
    pub(crate) fn are(&self, values: usize) -> bool {
        self.wanted == values
    }
}

/// Puts values in the place of placeholders.
pub(crate) fn bind(tokens: Vec<TokenWithSpan>, values: &[Parameter]) -> Result<Vec<TokenWithSpan>> {
    let mut bound = Vec::with_capacity(tokens.len());
    let mut met = Placeholders::default();
    for token in tokens {
        let Token::Placeholder(placeholder) = &token.token else {
            bound.push(token);
            continue;
        };
        let refuse = |why: &str| {
            let at = token.span.start;
            let message = format!("{placeholder} (line {}, column {}) {why}", at.line, at.column);
            Error::new(ErrorKind::Invalid, message)
        };
        let index = met.index(placeholder).map_err(refuse)?;
        let value = values.get(index).ok_or_else(|| {
            refuse(&format!("has no value: {} given with the query", counted(values.len())))
        })?;
        bound.extend(value.tokens().into_iter().map(|of| TokenWithSpan::new(of, token.span)));
    }
    if !met.are(values.len()) {
        let (wanted, given) = (met.wanted, counted(values.len()));
        let message = format!("the query takes {wanted} values, and {given} given with it");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(bound)
}

fn counted(values: usize) -> Cow<'static, str> {
    match values {
        0 => Cow::Borrowed("none is"),
        1 => Cow::Borrowed("1 is"),
        more => Cow::Owned(format!("{more} are")),
    }
}

impl From<bool> for Parameter {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Parameter {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for Parameter {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Parameter {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Parameter {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<Self>> From<Option<T>> for Parameter {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
