//! Random JSON documents, and random edits that make the next version of one.

use crate::json::Json;
use crate::random::Random;

/// How large what is made gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Values of a document, about.
    pub nodes: u64,
    /// Elements of an array.
    pub elements: u64,
    /// Fields of an object.
    pub fields: u64,
    /// Levels.
    pub depth: usize,
    /// One edit in so many adds hundreds of fields at once.
    pub wide_one_in: u64,
    /// A long string has up to so many letters.
    pub long: usize,
    /// One string in so many is long.
    pub long_one_in: u64,
}

impl Scale {
    /// A few dozen values.
    pub const SMALL: Self = Self {
        nodes: 100,
        elements: 6,
        fields: 6,
        depth: 5,
        wide_one_in: 60,
        long: 6_000,
        long_one_in: 20,
    };
    /// As small, with strings that are stored apart and fill files.
    pub const HEAVY: Self = Self { long: 60_000, long_one_in: 4, ..Self::SMALL };
    /// A few values until hundreds of fields are added, so that objects become maps.
    pub const WIDE: Self =
        Self { nodes: 64, elements: 2, fields: 6, depth: 3, wide_one_in: 3, ..Self::SMALL };
    /// Up to ten thousand values, a thousand elements, five hundred fields.
    pub const LARGE: Self = Self {
        nodes: 10_000,
        elements: 1_000,
        fields: 500,
        depth: 12,
        wide_one_in: 12,
        ..Self::SMALL
    };
}

const NAMES: [&str; 14] =
    ["a", "b", "c", "id", "name", "", "a/b", "m~n", "~1", "0", "-", "q\"", "\0", "\u{e9}\u{1f600}"];

const NUMBERS: [&str; 24] = [
    "0",
    "1",
    "2",
    "-1",
    "42",
    "-0",
    "0.5",
    "1.10",
    "1.1",
    "-0.0",
    "0.000",
    "1E22",
    "1e22",
    "1e-7",
    "1E+2",
    "1e400",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "123456789012345678901234567890",
    "999999999999999.999",
    "0.1234567890123456789",
    "3.141592653589793",
    "5e-324",
];

const TEXTS: [&str; 8] = [
    "",
    "x",
    "y",
    "null",
    "a \"quoted\" one",
    "line\nbreak\ttab\u{1f}",
    "\0",
    "gr\u{fc}n \u{1f333}",
];

/// Makes documents.
#[derive(Debug)]
pub struct Samples<'r> {
    random: &'r mut Random,
    scale: Scale,
}

impl<'r> Samples<'r> {
    /// Documents of a scale, drawn from `random`.
    pub fn new(random: &'r mut Random, scale: Scale) -> Self {
        Self { random, scale }
    }

    /// A whole document.
    pub fn document(&mut self) -> Json {
        match self.random.below(16) {
            0 => self.scalar(),
            1 if self.scale.depth > 5 => self.deep(),
            2 | 3 => self.table(),
            _ => {
                // Mostly small: a large document costs as much to compare as many small ones.
                let most = self.scale.nodes >> self.random.below(7);
                let mut budget = self.random.below(most + 1) + 1;
                self.value(self.scale.depth, &mut budget)
            }
        }
    }

    /// A small value.
    pub fn small(&mut self) -> Json {
        let mut budget = self.random.below(8);
        self.value(3, &mut budget)
    }

    fn value(&mut self, depth: usize, budget: &mut u64) -> Json {
        let is_root = depth == self.scale.depth;
        if depth == 0 || *budget == 0 || (!is_root && self.random.one_in(4)) {
            return self.scalar();
        }
        if self.random.one_in(2) {
            let wanted = 1 + self.random.below(self.scale.elements);
            let len = wanted.min(*budget);
            *budget -= len;
            return Json::Array((0..len).map(|_| self.value(depth - 1, budget)).collect());
        }
        let wanted = self.random.below(self.scale.fields.min(8)) + 1;
        let len = wanted.min(*budget);
        *budget -= len;
        let mut object = Json::Object(Vec::new());
        for _ in 0..len {
            let (name, value) = (self.name(), self.value(depth - 1, budget));
            set(&mut object, name, value);
        }
        object
    }

    /// A chain of arrays and objects almost as deep as JSON may nest.
    fn deep(&mut self) -> Json {
        let depth = 480 + self.random.below(32);
        (1..depth).fold(self.scalar(), |value, _| {
            if self.random.one_in(2) {
                Json::Array(vec![value])
            } else {
                Json::Object(vec![("d".to_owned(), value)])
            }
        })
    }

    /// An array of objects that are alike.
    fn table(&mut self) -> Json {
        let rows = 1 + self.random.below(self.scale.elements);
        let names: Vec<String> = (0..=self.random.below(5)).map(|_| self.name()).collect();
        let row = |samples: &mut Self| {
            let mut row = Json::Object(Vec::new());
            for name in &names {
                let value = samples.scalar();
                set(&mut row, name.clone(), value);
            }
            row
        };
        Json::Array((0..rows).map(|_| row(self)).collect())
    }

    fn scalar(&mut self) -> Json {
        match self.random.below(8) {
            0 => Json::Null,
            1 => Json::Bool(self.random.one_in(2)),
            2 | 3 => Json::Number(self.random.choose(&NUMBERS).to_owned()),
            4 => Json::Number(self.random.below(100).to_string()),
            _ => Json::Text(self.text()),
        }
    }

    fn text(&mut self) -> String {
        if !self.random.one_in(self.scale.long_one_in) {
            return self.random.choose(&TEXTS).to_owned();
        }
        if self.random.one_in(2) {
            return "\u{1f333}\n".repeat(800 + self.random.index(400));
        }
        let words = self.scale.long / 5;
        "long ".repeat(words - self.random.index(words / 3))
    }

    /// A name of a field.
    pub(crate) fn name(&mut self) -> String {
        match self.random.below(4) {
            0 => format!("k{}", self.random.below(20)),
            _ => self.random.choose(&NAMES).to_owned(),
        }
    }

    /// A path to a value of a document, any of them.
    pub fn path(&mut self, document: &Json) -> Vec<String> {
        let mut path = Vec::new();
        let mut at = document;
        while (path.is_empty() && !self.random.one_in(40)) || !self.random.one_in(4) {
            let token = match at {
                Json::Array(elements) if !elements.is_empty() => {
                    self.random.index(elements.len()).to_string()
                }
                Json::Object(fields) if !fields.is_empty() => {
                    fields[self.random.index(fields.len())].0.clone()
                }
                _ => break,
            };
            at = at.child(&token).expect("a child of this value");
            path.push(token);
        }
        path
    }

    /// A path that may lead nowhere.
    pub fn any_path(&mut self, document: &Json) -> Vec<String> {
        let mut path = self.path(document);
        if self.random.one_in(3) {
            let token = match self.random.below(6) {
                0 => "-".to_owned(),
                1 => "01".to_owned(),
                2 => "99999999999999999999999".to_owned(),
                3 => self.random.below(4).to_string(),
                _ => self.name(),
            };
            path.push(token);
        }
        path
    }

    /// The next version of a document.
    pub fn edit(&mut self, document: &mut Json) {
        for _ in 0..=self.random.below(3) {
            let mut path = self.path(document);
            if self.random.one_in(2) {
                // Objects and arrays change more than scalars do.
                path.pop();
            }
            let is_scalar_root = path.is_empty() && document.children().is_none();
            if is_scalar_root && self.random.one_in(2) {
                *document = self.document();
            }
            let place = document.at_mut(&path).expect("a path of this document");
            self.edit_place(place);
        }
    }

    fn edit_place(&mut self, place: &mut Json) {
        match place {
            Json::Object(fields) if !self.random.one_in(20) => self.edit_object(fields),
            Json::Array(elements) if !self.random.one_in(20) => self.edit_array(elements),
            other => {
                *other = if self.random.one_in(3) { self.small() } else { self.scalar() };
            }
        }
    }

    fn edit_object(&mut self, fields: &mut Vec<(String, Json)>) {
        if self.random.one_in(self.scale.wide_one_in) {
            let (first, count) = (self.random.below(100), 100 + self.random.below(250));
            for number in first..first + count {
                let name = format!("w{number}");
                if fields.iter().all(|(other, _)| *other != name) {
                    fields.push((name, Json::Number(number.to_string())));
                }
            }
            return;
        }
        let at = self.random.index(fields.len() + 1).min(fields.len().saturating_sub(1));
        match self.random.below(6) {
            0 if fields.len() > 1 => self.random.shuffle(fields),
            1 if !fields.is_empty() => fields.rotate_left(at),
            2 | 3 if !fields.is_empty() => drop(fields.remove(at)),
            4 if !fields.is_empty() && fields.len() > 40 => fields.truncate(at),
            _ => {
                let (name, value) = (self.name(), self.small());
                if fields.iter().all(|(other, _)| *other != name) {
                    let at = self.random.index(fields.len() + 1);
                    fields.insert(at, (name, value));
                }
            }
        }
    }

    fn edit_array(&mut self, elements: &mut Vec<Json>) {
        let len = elements.len();
        if len == 0 {
            return elements.push(self.small());
        }
        let (at, other) = (self.random.index(len), self.random.index(len));
        match self.random.below(9) {
            0 => drop(elements.remove(at)),
            1 => elements.insert(at, self.small()),
            2 => elements.push(self.small()),
            3 => {
                let moved = elements.remove(at);
                elements.insert(other, moved);
            }
            4 => elements.insert(other, elements[at].clone()),
            5 => elements.swap(at, other),
            6 => drop(elements.drain(at.min(other)..at.max(other))),
            7 => elements.reverse(),
            _ => elements[at] = self.small(),
        }
    }
}

/// Sets a field of an object.
fn set(object: &mut Json, name: String, value: Json) {
    object.set(&[name], value).expect("an object takes any field");
}
