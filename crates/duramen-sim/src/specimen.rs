//! The naive JSON value that the model keeps: scalars as their text, members in their order.

use std::fmt::{self, Write};

use crate::Random;

/// A JSON value. Scalars are the text that the engine is given and must give back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Json {
    Scalar(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// A place in a value, from the root on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Field(String),
    Element(usize),
    /// Behind the last element.
    End,
}

/// From this many fields on an object becomes a map in the engine.
const MAP_FIELDS: u64 = 257;
const DEPTH_MAX: usize = 4;

impl Json {
    /// What a path leads to.
    pub(crate) fn at(&self, path: &[Step]) -> Option<&Self> {
        let Some((step, rest)) = path.split_first() else { return Some(self) };
        match (self, step) {
            (Self::Object(members), Step::Field(name)) => {
                members.iter().find(|(other, _)| other == name)?.1.at(rest)
            }
            (Self::Array(elements), Step::Element(index)) => elements.get(*index)?.at(rest),
            _ => None,
        }
    }

    fn at_mut(&mut self, path: &[Step]) -> Option<&mut Self> {
        let Some((step, rest)) = path.split_first() else { return Some(self) };
        match (self, step) {
            (Self::Object(members), Step::Field(name)) => {
                members.iter_mut().find(|(other, _)| other == name)?.1.at_mut(rest)
            }
            (Self::Array(elements), Step::Element(index)) => elements.get_mut(*index)?.at_mut(rest),
            _ => None,
        }
    }

    /// Whether the engine keeps it as a map.
    pub(crate) fn is_map(&self) -> bool {
        matches!(self, Self::Object(members) if members.len() as u64 >= MAP_FIELDS)
    }

    /// Replaces what a path leads to, or adds it to its object or array.
    pub(crate) fn set(&mut self, path: &[Step], value: Self) {
        let Some((last, parent)) = path.split_last() else {
            *self = value;
            return;
        };
        match (self.at_mut(parent).expect("the path was drawn from the value"), last) {
            (Self::Object(members), Step::Field(name)) => {
                match members.iter_mut().find(|(other, _)| other == name) {
                    Some(member) => member.1 = value,
                    None => members.push((name.clone(), value)),
                }
            }
            (Self::Array(elements), Step::Element(index)) => elements[*index] = value,
            (Self::Array(elements), Step::End) => elements.push(value),
            (found, step) => panic!("{step:?} does not fit {found}"),
        }
    }

    /// Removes what a path leads to; it is not the root.
    pub(crate) fn remove(&mut self, path: &[Step]) {
        let (last, parent) = path.split_last().expect("the root is never removed");
        match (self.at_mut(parent).expect("the path was drawn from the value"), last) {
            (Self::Object(members), Step::Field(name)) => members.retain(|(n, _)| n != name),
            (Self::Array(elements), Step::Element(index)) => drop(elements.remove(*index)),
            (found, step) => panic!("{step:?} does not fit {found}"),
        }
    }

    /// A path to any value below; empty for the root itself.
    pub(crate) fn place(&self, random: &mut Random) -> Vec<Step> {
        let mut path = Vec::new();
        let mut value = self;
        loop {
            let (step, below) = match value {
                Self::Object(members) if !members.is_empty() => {
                    let (name, below) = &members[random.index(members.len())];
                    (Step::Field(name.clone()), below)
                }
                Self::Array(elements) if !elements.is_empty() => {
                    let index = random.index(elements.len());
                    (Step::Element(index), &elements[index])
                }
                _ => return path,
            };
            path.push(step);
            value = below;
            if random.one_in(3) {
                return path;
            }
        }
    }

    /// A path at which something can be set: an existing value, a new field or a new element.
    pub(crate) fn place_to_set(&self, random: &mut Random) -> Vec<Step> {
        let mut path = self.place(random);
        match self.at(&path) {
            Some(Self::Array(_)) if !random.one_in(4) => path.push(Step::End),
            Some(Self::Object(_)) if !random.one_in(4) => path.push(Step::Field(name(random))),
            _ => {}
        }
        path
    }

    /// Any small value.
    pub(crate) fn random(random: &mut Random, depth: usize) -> Self {
        if depth >= DEPTH_MAX {
            return Self::scalar(random);
        }
        let len = random.below(6);
        match random.below(7) {
            0 | 1 => {
                let mut members: Vec<(String, Self)> = Vec::new();
                for _ in 0..len {
                    let name = name(random);
                    if members.iter().all(|(other, _)| *other != name) {
                        members.push((name, Self::random(random, depth + 1)));
                    }
                }
                Self::Object(members)
            }
            2 => Self::Array((0..len).map(|_| Self::random(random, depth + 1)).collect()),
            3 => Self::Array((0..len).map(|_| Self::record(random)).collect()),
            _ => Self::scalar(random),
        }
    }

    /// A document: an object of some fields, seldom anything else or one with very many.
    pub(crate) fn document(random: &mut Random) -> Self {
        match random.below(40) {
            0 => Self::random(random, 0),
            1 => Self::Object(
                (0..MAP_FIELDS + random.below(20))
                    .map(|n| (format!("entry{n}"), Self::scalar(random)))
                    .collect(),
            ),
            _ => Self::Object(
                (0..=random.below(8)).map(|n| (format!("f{n}"), Self::random(random, 1))).collect(),
            ),
        }
    }

    /// A string of `bytes` bytes.
    pub(crate) fn text_of(random: &mut Random, bytes: usize) -> Self {
        let letters =
            (0..bytes).map(|_| char::from(b'a' + u8::try_from(random.below(26)).unwrap_or(0)));
        Self::Scalar(format!("\"{}\"", letters.collect::<String>()))
    }

    fn record(random: &mut Random) -> Self {
        let fields = ["id", "name", "score"].into_iter();
        Self::Object(fields.map(|name| (name.to_owned(), Self::scalar(random))).collect())
    }

    fn scalar(random: &mut Random) -> Self {
        let small = random.below(10);
        Self::Scalar(match random.below(12) {
            0 => "null".to_owned(),
            1 => "true".to_owned(),
            2 => "false".to_owned(),
            3 => format!("{small}.{}5", random.below(10)),
            4 => format!("-{}", random.bits() >> 2),
            5 => "1E22".to_owned(),
            6 => "\"\\u0000 \\\"quoted\\\" \\n\"".to_owned(),
            7 => format!("\"w{small}\""),
            8 if random.one_in(8) => return Self::text_of(random, 5_000),
            8 => String::from("\"\""),
            _ => random.below(1_000).to_string(),
        })
    }
}

fn name(random: &mut Random) -> String {
    match random.below(12) {
        0 => "a/b".to_owned(),
        1 => "~".to_owned(),
        n => format!("f{n}"),
    }
}

impl fmt::Display for Json {
    /// Compact JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(text) => f.write_str(text),
            Self::Array(elements) => {
                f.write_char('[')?;
                for (at, element) in elements.iter().enumerate() {
                    f.write_str(if at > 0 { "," } else { "" })?;
                    element.fmt(f)?;
                }
                f.write_char(']')
            }
            Self::Object(members) => {
                f.write_char('{')?;
                for (at, (name, value)) in members.iter().enumerate() {
                    f.write_str(if at > 0 { "," } else { "" })?;
                    write!(f, "\"{name}\":{value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

/// The JSON Pointer of a path.
pub(crate) fn pointer(path: &[Step]) -> duramen::JsonPointer {
    let mut pointer = duramen::JsonPointer::root();
    for step in path {
        match step {
            Step::Field(name) => pointer.push(name.as_str()),
            Step::Element(index) => pointer.push(index.to_string()),
            Step::End => pointer.push("-"),
        }
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_prints_as_it_is_changed() {
        let field = |name: &str| Step::Field(name.to_owned());
        let one = || Json::Scalar("1".to_owned());
        let mut value = Json::Object(vec![("a".to_owned(), Json::Array(Vec::new()))]);
        value.set(&[field("a"), Step::End], one());
        value.set(&[field("a"), Step::End], Json::Object(Vec::new()));
        value.set(&[field("a"), Step::Element(1), field("b")], one());
        value.set(&[field("c")], Json::Scalar("null".to_owned()));
        assert_eq!(value.to_string(), r#"{"a":[1,{"b":1}],"c":null}"#);
        value.remove(&[field("a"), Step::Element(0)]);
        value.set(&[field("a")], one());
        assert_eq!(value.to_string(), r#"{"a":1,"c":null}"#);
        assert_eq!(pointer(&[field("a/b"), Step::Element(3), Step::End]).to_string(), "/a~1b/3/-");
    }
}
