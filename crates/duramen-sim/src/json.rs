//! A naive JSON value: fields in their order, numbers as they were written.
//!
//! It is what the engine is compared with, so it shares nothing with it: its own reading and
//! printing, JSON Pointer (RFC 6901) and JSON Patch (RFC 6902) by their letter, copies everywhere.

use std::fmt;

mod changes;
pub(crate) mod query;
mod undo;

pub use changes::Side;
pub use query::{Segment, Selector};

/// A JSON value that keeps the order of fields and the text of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, by its text.
    Number(String),
    /// A string, unescaped.
    Text(String),
    /// An array.
    Array(Vec<Json>),
    /// An object.
    Object(Vec<(String, Json)>),
}

/// With more fields than these an object becomes a map in the engine.
const FIELDS_MAX: usize = 256;

/// Why a place cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing is there.
    Missing,
    /// The root is in nothing: it cannot be removed, moved or named.
    Root,
    /// It would fit into nothing there.
    Unfit,
    /// Something else is there.
    Taken,
}

impl Json {
    /// Reads a text that is known to be JSON.
    ///
    /// # Panics
    /// If it is not.
    pub fn parse(text: &str) -> Self {
        let mut reader = Reader { rest: text };
        let value = reader.value();
        reader.space();
        assert!(reader.rest.is_empty(), "left over: {}", reader.rest);
        value
    }

    /// How many values it is made of.
    pub fn nodes(&self) -> usize {
        let below: usize = match self {
            Self::Array(elements) => elements.iter().map(Self::nodes).sum(),
            Self::Object(fields) => fields.iter().map(|(_, value)| value.nodes()).sum(),
            _ => 0,
        };
        1 + below
    }

    /// How many fields all objects in it have together.
    pub(crate) fn fields(&self) -> usize {
        match self {
            Self::Array(elements) => elements.iter().map(Self::fields).sum(),
            Self::Object(fields) => {
                fields.len() + fields.iter().map(|(_, value)| value.fields()).sum::<usize>()
            }
            _ => 0,
        }
    }

    /// Whether the engine keeps an object in it as a map.
    pub fn has_map(&self) -> bool {
        match self {
            Self::Array(elements) => elements.iter().any(Self::has_map),
            Self::Object(fields) => {
                fields.len() > FIELDS_MAX || fields.iter().any(|(_, value)| value.has_map())
            }
            _ => false,
        }
    }

    /// Another value that is like this one.
    pub(crate) fn altered(&self) -> Self {
        let mut value = self.clone();
        match &mut value {
            Self::Object(fields) => match fields.iter().position(|(name, _)| name == "altered") {
                Some(at) => drop(fields.remove(at)),
                None => fields.push(("altered".to_owned(), Self::Null)),
            },
            Self::Array(elements) if elements.last() == Some(&Self::Null) => drop(elements.pop()),
            Self::Array(elements) => elements.push(Self::Null),
            scalar => *scalar = Self::Object(vec![("altered".to_owned(), scalar.clone())]),
        }
        value
    }

    /// The kind as the engine names it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// How many elements or members it has, if it is an array or object.
    pub fn children(&self) -> Option<usize> {
        match self {
            Self::Array(elements) => Some(elements.len()),
            Self::Object(fields) => Some(fields.len()),
            _ => None,
        }
    }

    /// The same value with the fields of every object sorted.
    pub fn sorted(&self) -> Self {
        match self {
            Self::Array(elements) => Self::Array(elements.iter().map(Self::sorted).collect()),
            Self::Object(fields) => {
                let mut fields: Vec<_> =
                    fields.iter().map(|(name, value)| (name.clone(), value.sorted())).collect();
                fields.sort_by(|(a, _), (b, _)| a.cmp(b));
                Self::Object(fields)
            }
            scalar => scalar.clone(),
        }
    }

    /// The value one step down.
    pub fn child(&self, token: &str) -> Option<&Self> {
        match self {
            Self::Array(elements) => elements.get(index(token)?),
            Self::Object(fields) => {
                fields.iter().find(|(name, _)| name == token).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    fn child_mut(&mut self, token: &str) -> Option<&mut Self> {
        match self {
            Self::Array(elements) => elements.get_mut(index(token)?),
            Self::Object(fields) => {
                fields.iter_mut().find(|(name, _)| name == token).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// What a path of unescaped tokens names.
    pub fn at(&self, path: &[String]) -> Option<&Self> {
        path.iter().try_fold(self, |value, token| value.child(token))
    }

    /// The same, to change it.
    pub fn at_mut(&mut self, path: &[String]) -> Option<&mut Self> {
        path.iter().try_fold(self, |value, token| value.child_mut(token))
    }

    /// What a path names if it leads through objects only.
    pub fn at_names(&self, path: &[String]) -> Option<&Self> {
        path.iter().try_fold(self, |value, token| match value {
            Self::Object(_) => value.child(token),
            _ => None,
        })
    }

    /// Sets what a path names, as `duramen set` does.
    pub fn set(&mut self, path: &[String], value: Self) -> Result<(), Refusal> {
        let Some((last, parent)) = path.split_last() else {
            *self = value;
            return Ok(());
        };
        match self.at_mut(parent).ok_or(Refusal::Missing)? {
            Self::Object(fields) => {
                match fields.iter_mut().find(|(name, _)| name == last) {
                    Some((_, old)) => *old = value,
                    None => fields.push((last.clone(), value)),
                }
                Ok(())
            }
            Self::Array(elements) => {
                let len = elements.len();
                let at = if last == "-" { len } else { index(last).ok_or(Refusal::Missing)? };
                match at.cmp(&len) {
                    std::cmp::Ordering::Less => elements[at] = value,
                    std::cmp::Ordering::Equal => elements.push(value),
                    std::cmp::Ordering::Greater => return Err(Refusal::Missing),
                }
                Ok(())
            }
            _ => Err(Refusal::Missing),
        }
    }

    /// Removes what a path names.
    pub fn remove(&mut self, path: &[String]) -> Result<Self, Refusal> {
        let Some((last, parent)) = path.split_last() else { return Err(Refusal::Root) };
        match self.at_mut(parent).ok_or(Refusal::Missing)? {
            Self::Object(fields) => {
                let at = fields.iter().position(|(name, _)| name == last);
                Ok(fields.remove(at.ok_or(Refusal::Missing)?).1)
            }
            Self::Array(elements) => {
                let at = index(last).filter(|&at| at < elements.len());
                Ok(elements.remove(at.ok_or(Refusal::Missing)?))
            }
            _ => Err(Refusal::Missing),
        }
    }

    /// Applies one operation of a JSON Patch.
    ///
    /// # Panics
    /// If the operation does not hold here, or is none of add, remove and replace.
    pub fn patch(&mut self, operation: &Self) {
        let text = |name: &str| match operation.child(name) {
            Some(Self::Text(text)) => text.clone(),
            other => panic!("{name} of a patch is {other:?}"),
        };
        let value = || operation.child("value").expect("an operation has a value").clone();
        let path = tokens(&text("path"));
        match text("op").as_str() {
            "remove" => drop(self.remove(&path).expect("what is removed is there")),
            "replace" => *self.at_mut(&path).expect("what is replaced is there") = value(),
            "add" => self.add(&path, value()),
            other => panic!("unexpected operation {other}"),
        }
    }

    fn add(&mut self, path: &[String], value: Self) {
        let (last, parent) = path.split_last().expect("the root is not added");
        match self.at_mut(parent).expect("the parent is there") {
            Self::Array(elements) => {
                let at = if last == "-" { elements.len() } else { index(last).expect("an index") };
                elements.insert(at, value);
            }
            Self::Object(fields) => {
                assert!(fields.iter().all(|(name, _)| name != last), "{last} is there already");
                fields.push((last.clone(), value));
            }
            scalar => panic!("{scalar} has no members"),
        }
    }

    /// The value as the engine prints it in a format without metadata.
    pub fn render(&self, format: &duramen::Format) -> String {
        let mut out = String::new();
        self.render_at(format, 0, &mut out);
        out
    }

    fn render_at(&self, format: &duramen::Format, level: usize, out: &mut String) {
        let (opening, closing, len) = match self {
            Self::Array(elements) => ('[', ']', elements.len()),
            Self::Object(fields) => ('{', '}', fields.len()),
            scalar => return out.push_str(&scalar.to_string()),
        };
        let most = format.max_children.and_then(|most| usize::try_from(most).ok());
        let most = most.map_or(len, |most| most.min(len));
        let shown = if format.max_level.is_some_and(|most| level >= most) { 0 } else { most };
        let line = |levels: usize, out: &mut String| {
            if format.pretty {
                out.push('\n');
                out.push_str(&"  ".repeat(levels));
            }
        };
        out.push(opening);
        for child in 0..shown {
            if child > 0 {
                out.push(',');
            }
            line(level + 1, out);
            let value = match self {
                Self::Object(fields) => {
                    quote(&fields[child].0, out);
                    out.push_str(if format.pretty { ": " } else { ":" });
                    &fields[child].1
                }
                Self::Array(elements) => &elements[child],
                _ => unreachable!("scalars are printed above"),
            };
            value.render_at(format, level + 1, out);
        }
        if shown > 0 {
            line(level, out);
        }
        out.push(closing);
    }
}

impl fmt::Display for Json {
    /// Compact JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(text) => out.push_str(text),
            Self::Text(text) => quote(text, &mut out),
            _ => out = self.render(&duramen::Format::default()),
        }
        f.write_str(&out)
    }
}

/// The unescaped tokens of a JSON Pointer.
pub fn tokens(pointer: &str) -> Vec<String> {
    let unescape = |token: &str| token.replace("~1", "/").replace("~0", "~");
    pointer.split('/').skip(1).map(unescape).collect()
}

/// The JSON Pointer of unescaped tokens.
pub fn pointer(path: &[String]) -> String {
    path.iter().fold(String::new(), |text, token| {
        text + "/" + &token.replace('~', "~0").replace('/', "~1")
    })
}

/// The index that a token means: digits without a leading zero.
fn index(token: &str) -> Option<usize> {
    let digits = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
    let plain = token == "0" || !token.starts_with('0');
    (digits && plain).then(|| token.parse().unwrap_or(usize::MAX))
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..'\u{20}' => out.extend(["\\u", &format!("{:04x}", u32::from(character))]),
            other => out.push(other),
        }
    }
    out.push('"');
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\n', '\r', '\t']);
    }

    /// Goes over `token` if it comes next.
    fn take(&mut self, token: &str) -> bool {
        self.space();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn value(&mut self) -> Json {
        for (word, value) in
            [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))]
        {
            if self.take(word) {
                return value;
            }
        }
        if self.take("[") {
            return Json::Array(self.list("]", Self::value));
        }
        if self.take("{") {
            return Json::Object(self.list("}", |reader| {
                assert!(reader.take("\""), "a name comes before {}", reader.rest);
                let name = reader.text();
                assert!(reader.take(":"), "a colon comes before {}", reader.rest);
                (name, reader.value())
            }));
        }
        if self.take("\"") {
            return Json::Text(self.text());
        }
        Json::Number(self.number().to_owned())
    }

    fn list<T>(&mut self, end: &str, item: impl Fn(&mut Self) -> T) -> Vec<T> {
        let mut items = Vec::new();
        while !self.take(end) {
            assert!(items.is_empty() || self.take(","), "a comma comes before {}", self.rest);
            items.push(item(self));
        }
        items
    }

    fn number(&mut self) -> &'a str {
        let digits = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let end = self.rest.find(|c| !digits(c)).unwrap_or(self.rest.len());
        assert!(end > 0, "a value comes before {}", self.rest);
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        number
    }

    fn text(&mut self) -> String {
        let mut text = String::new();
        loop {
            let at = self.rest.find(['"', '\\']).expect("a string ends");
            text.push_str(&self.rest[..at]);
            let is_end = self.rest[at..].starts_with('"');
            self.rest = &self.rest[at + 1..];
            if is_end {
                return text;
            }
            text.push(self.escape());
        }
    }

    fn escape(&mut self) -> char {
        let character = self.rest.chars().next().expect("an escape goes on");
        self.rest = &self.rest[1..];
        match character {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (digits, rest) = self.rest.split_at(4);
                self.rest = rest;
                let code = u32::from_str_radix(digits, 16).expect("four hexadecimal digits");
                char::from_u32(code).expect("the engine escapes no surrogates")
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_reads_and_prints_the_same() {
        let text = r#"{"b":[1,-0,1.50,1E+2,{}],"a":"\u0000\"\n\\/","":[[],null,true,false]}"#;
        assert_eq!(Json::parse(text).to_string(), text);
    }

    #[test]
    fn patches_apply_by_the_letter() {
        let mut value = Json::parse(r#"{"a":[1,2],"b~/":3}"#);
        for operation in [
            r#"{"op":"add","path":"/a/1","value":9}"#,
            r#"{"op":"remove","path":"/a/0"}"#,
            r#"{"op":"replace","path":"/b~0~1","value":{"c":[]}}"#,
            r#"{"op":"add","path":"/b~0~1/c/-","value":null}"#,
        ] {
            value.patch(&Json::parse(operation));
        }
        assert_eq!(value.to_string(), r#"{"a":[9,2],"b~/":{"c":[null]}}"#);
    }

    #[test]
    fn setting_and_removing_follow_the_pointer() {
        let mut value = Json::parse(r#"{"a":[1]}"#);
        let at = |pointer: &str| tokens(pointer);
        assert_eq!(value.set(&at("/a/1"), Json::Null), Ok(()));
        assert_eq!(value.set(&at("/a/01"), Json::Null), Err(Refusal::Missing));
        assert_eq!(value.set(&at("/a/3"), Json::Null), Err(Refusal::Missing));
        assert_eq!(value.remove(&[]), Err(Refusal::Root));
        assert_eq!(value.remove(&at("/a/0")), Ok(Json::Number("1".into())));
        assert_eq!(value.to_string(), r#"{"a":[null]}"#);
    }
}
