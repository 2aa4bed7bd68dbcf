//! What is said of a pointer that leads nowhere: what is there instead, and what was perhaps meant.

use crate::error::{Error, ErrorKind};
use crate::json::JsonPointer;
use crate::key_text;
use crate::node::NodeId;
use crate::order::{self, Item, OrderCursor};
use crate::state::{Datum, Sequence};
use crate::tree::Tree;
use crate::tree::data::TreeData;
use crate::tree::group::Fault;
use crate::tree::schema::Label;
use crate::tree::serialize::Format;

/// Names of an object that are looked at for the one that was meant.
const NAMES_COMPARED_MAX: usize = 4_096;
/// Characters in which a name may differ from the one that was meant.
const DISTANCE_MAX: usize = 2;
/// Characters of a value that a message shows.
const SHOWN_CHARS_MAX: usize = 40;

/// What stands where a pointer ends.
enum There {
    Names(Vec<String>),
    Map(Sequence),
    Array(Sequence),
    Scalar,
    Nothing,
}

impl Tree {
    /// The error for a pointer that leads no further than to a node, `depth` tokens down.
    pub(crate) fn missing(
        &self,
        pointer: &JsonPointer,
        (node, depth): (NodeId, usize),
        revision: u32,
    ) -> Error {
        let mut there = JsonPointer::root();
        pointer.tokens().take(depth).for_each(|token| there.push(token));
        let shown = if depth == 0 { "the root".to_owned() } else { format!("\"{there}\"") };
        let token = pointer.tokens().nth(depth).unwrap_or_default();
        let hint = self.hint((node, revision), (&there, token), &shown);
        let hint = hint.unwrap_or_else(|_| format!("{shown} has no such member or element"));
        Error::new(ErrorKind::NotFound, format!("\"{pointer}\" is not there: {hint}"))
    }

    fn hint(
        &self,
        (node, revision): (NodeId, u32),
        (there, token): (&JsonPointer, &str),
        shown: &str,
    ) -> crate::Result<String> {
        let found = self.read(|data| {
            let text = |path| match data.schema.label(path) {
                Label::Field(name) => String::from_utf8_lossy(name).into_owned(),
                _ => String::new(),
            };
            Ok(match data.state(node, revision)? {
                Datum::Object(shape) => {
                    let fields = data.schema.shape(shape).iter();
                    There::Names(fields.map(|field| text(field.path)).collect())
                }
                Datum::Map(sequence) => There::Map(sequence),
                Datum::Array(sequence) => There::Array(sequence),
                Datum::Absent => There::Nothing,
                _ => There::Scalar,
            })
        })?;
        let names = match found {
            There::Names(names) => names,
            There::Map(sequence) => match self.integer_key((node, revision), token)? {
                Some(key) => {
                    let place = there.child(&*key);
                    return Ok(format!("records stand under 20 digits: the place is \"{place}\""));
                }
                None => self.names(node, sequence)?,
            },
            There::Array(sequence) => {
                let len = order::len(&&self.orders, sequence)?;
                let elements = if len == 1 { "element" } else { "elements" };
                return Ok(format!("{shown} is an array of {len} {elements}"));
            }
            There::Nothing => return Ok("there is no value".to_owned()),
            There::Scalar => {
                let mut text = Vec::new();
                self.append_json((node, revision), &Format::default(), &mut text)?;
                return Ok(format!("{shown} is {}", describe(&text)));
            }
        };
        Ok(match nearest(token, &names) {
            Some(name) => {
                format!("{shown} has no such member; did you mean \"{}\"?", there.child(name))
            }
            None => format!("{shown} has no such member"),
        })
    }

    /// The key under which a record is that people know by an integer, which is no such key.
    fn integer_key(
        &self,
        (map, revision): (NodeId, u32),
        token: &str,
    ) -> crate::Result<Option<String>> {
        if key_text::integer_of(token.as_bytes()).is_some() {
            return Ok(None);
        }
        let integers = i128::from(i64::MIN)..=u64::MAX.into();
        let Some(number) = token.parse().ok().filter(|number| integers.contains(number)) else {
            return Ok(None);
        };
        let key = key_text::text_of_integer(number);
        let found = self.entry_node(map, &key, revision)?;
        Ok(found.map(|_| String::from_utf8_lossy(&key).into_owned()))
    }

    /// The first names of a map.
    fn names(&self, map: NodeId, sequence: Sequence) -> crate::Result<Vec<String>> {
        let mut names = Vec::new();
        let mut cursor = OrderCursor::new(sequence);
        while names.len() < NAMES_COMPARED_MAX
            && let Some(extent) = cursor.next(&&self.orders)?
        {
            let left = (NAMES_COMPARED_MAX - names.len()) as u64;
            names.extend(self.read(|data| {
                let items = (0..extent.items().min(left)).map(|index| extent.item(index));
                items.map(|item| name_of(data, map, item)).collect::<Result<Vec<_>, Fault>>()
            })?);
        }
        Ok(names)
    }
}

/// The name of a member of a map.
fn name_of(data: &TreeData, map: NodeId, item: Item) -> Result<String, Fault> {
    let name = match (item, data.item_node(map, true, item)?) {
        (Item::Field(path), _) => match data.schema.label(path) {
            Label::Field(name) => name,
            _ => b"",
        },
        (Item::Ordinal(ordinal), child) => match data.key(data.address(child).space, ordinal.0)? {
            Datum::Text { bytes, .. } => bytes,
            _ => b"",
        },
    };
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// The name that is most like a token, if one is.
pub(crate) fn nearest<'n>(token: &str, names: &'n [String]) -> Option<&'n str> {
    let wanted = token.to_lowercase();
    let len = wanted.chars().count();
    let distance = |name: &str| {
        let name = name.to_lowercase();
        if name.chars().count().abs_diff(len) <= DISTANCE_MAX {
            let distance = strsim::osa_distance(&name, &wanted);
            // Of a short name most would have to be right.
            if distance <= DISTANCE_MAX && distance * 2 <= len.max(1) {
                return Some(distance);
            }
        }
        let is_part = len > 1 && (name.starts_with(&wanted) || wanted.starts_with(&name));
        (is_part && name.len() > 1).then_some(DISTANCE_MAX + 1)
    };
    let near = names.iter().filter_map(|name| Some((distance(name)?, name.as_str())));
    near.min_by_key(|&(distance, _)| distance).map(|(_, name)| name)
}

/// A scalar by its kind and its text, cut if it is long.
pub(crate) fn describe(text: &[u8]) -> String {
    let kind = match text.first() {
        Some(b'"') => "the string ",
        Some(b't' | b'f') => "the boolean ",
        Some(b'-' | b'0'..=b'9') => "the number ",
        _ => "",
    };
    format!("{kind}{}", shorten(text))
}

/// The text of a value, cut if it is long.
pub(crate) fn shorten(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    if text.chars().count() <= SHOWN_CHARS_MAX {
        return text.into_owned();
    }
    text.chars().take(SHOWN_CHARS_MAX).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_one_typed_wrong_or_cut_short() {
        let names: Vec<String> = ["name", "opening", "price", "b", ""].map(str::to_owned).to_vec();
        let near = |token| nearest(token, &names);
        assert_eq!(near("nmae"), Some("name"));
        assert_eq!(near("Name"), Some("name"));
        assert_eq!(near("prices"), Some("price"));
        assert_eq!(near("open"), Some("opening"));
        assert_eq!(near("a"), None);
        assert_eq!(near("colour"), None);
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let text = "\u{e4}".repeat(50);
        assert_eq!(shorten(text.as_bytes()), format!("{}...", "\u{e4}".repeat(40)));
        assert_eq!(shorten(b"short"), "short");
    }
}
