//! A few paths of RFC 9535: members by name, elements by index, all of them, at any depth.

use super::{Json, Refusal};

/// What a query goes down by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Whether any number of levels may lie between.
    pub is_descendant: bool,
    /// What it takes.
    pub selector: Selector,
}

/// What a segment takes of an array or object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// Everything.
    All,
    /// A field.
    Name(&'static str),
    /// An element.
    Index(usize),
}

/// The text of a query.
pub(crate) fn text(segments: &[Segment]) -> String {
    segments.iter().fold("$".to_owned(), |text, segment| {
        let dots = if segment.is_descendant { ".." } else { "" };
        match &segment.selector {
            Selector::All => format!("{text}{dots}[*]"),
            Selector::Name(name) => format!("{text}{dots}['{name}']"),
            Selector::Index(index) => format!("{text}{dots}[{index}]"),
        }
    })
}

impl Json {
    /// Replaces everything that a query finds.
    pub(crate) fn set_all(&mut self, query: &[Segment], value: &Self) -> Result<(), Refusal> {
        self.places(query).iter().try_for_each(|place| self.replace(place, value.clone()))
    }

    /// Removes everything that a query finds.
    pub(crate) fn remove_all(&mut self, query: &[Segment]) -> Result<(), Refusal> {
        self.places(query).iter().rev().try_for_each(|place| self.remove(place).map(drop))
    }

    /// How many places a query finds that are in no other one of them.
    pub(crate) fn count(&self, query: &[Segment]) -> u64 {
        self.places(query).len() as u64
    }

    /// The places that a query finds and that are in no other one of them, in their order.
    fn places(&self, query: &[Segment]) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        self.find(&[query], &mut Vec::new(), &mut found);
        found
    }

    /// `ways` are the parts of the query that may be left at a place.
    fn find(&self, ways: &[&[Segment]], at: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
        if ways.iter().any(|way| way.is_empty()) {
            found.push(at.clone());
            return;
        }
        let len = self.children().unwrap_or(0);
        for number in 0..len {
            let (token, child, is_element) = match self {
                Self::Array(elements) => (number.to_string(), &elements[number], true),
                Self::Object(fields) => (fields[number].0.clone(), &fields[number].1, false),
                _ => unreachable!("a scalar has no children"),
            };
            let mut left = Vec::new();
            for way in ways {
                let takes = match way[0].selector {
                    Selector::All => true,
                    Selector::Name(name) => !is_element && name == token,
                    Selector::Index(index) => is_element && index == number,
                };
                left.extend(takes.then_some(&way[1..]));
                left.extend(way[0].is_descendant.then_some(*way));
            }
            if !left.is_empty() {
                at.push(token);
                child.find(&left, at, found);
                at.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_something_found_is_no_place_of_its_own() {
        let query = |selector| [Segment { is_descendant: true, selector }];
        let mut value = Json::parse(r#"{"a":{"a":1},"b":[{"a":2},3]}"#);
        assert_eq!(value.count(&query(Selector::Name("a"))), 2);
        value.set_all(&query(Selector::Name("a")), &Json::Null).unwrap();
        assert_eq!(value.to_string(), r#"{"a":null,"b":[{"a":null},3]}"#);
        value.remove_all(&query(Selector::Index(1))).unwrap();
        assert_eq!(value.to_string(), r#"{"a":null,"b":[{"a":null}]}"#);
    }
}
