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
/// Slips that are taken for such in a name, and characters of it for each.
const SLIPS_MAX: usize = 3;
const CHARACTERS_PER_SLIP: usize = 3;
/// Characters of a name from which on it may be one cut short.
const CUT_SHORT_CHARS_MIN: usize = 3;
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
                format!(
                    "{shown} has no such member; did you mean \"{}\"?",
                    there.child(name.as_str())
                )
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

/// The name among others that a slip of the hand makes of one, or that it is cut short of: up to a
/// third of its characters are missing, too many, others or in another order (optimal string
/// alignment distance), whatever their case.
///
/// ```
/// assert_eq!(duramen::nearest("plyaers", ["players", "places"]), Some("players"));
/// assert_eq!(duramen::nearest("third", ["other"]), None);
/// ```
pub fn nearest<N: AsRef<str>>(name: &str, others: impl IntoIterator<Item = N>) -> Option<N> {
    let name = name.to_lowercase();
    let len = name.chars().count();
    let distance = |other: &str| {
        let other = other.to_lowercase();
        let other_len = other.chars().count();
        let slips_max = SLIPS_MAX.min(len.max(other_len) / CHARACTERS_PER_SLIP);
        if other_len.abs_diff(len) <= slips_max {
            let slips = strsim::osa_distance(&other, &name);
            if slips <= slips_max {
                return Some((slips, 0));
            }
        }
        let is_cut = len >= CUT_SHORT_CHARS_MIN && other.starts_with(&name);
        is_cut.then_some((SLIPS_MAX + 1, other_len))
    };
    let near = others.into_iter().filter_map(|other| Some((distance(other.as_ref())?, other)));
    near.min_by_key(|(distance, _)| *distance).map(|(_, other)| other)
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
        let near = |token| nearest(token, ["name", "opening", "price", "b", ""]);
        assert_eq!(near("nmae"), Some("name"));
        assert_eq!(near("Name"), Some("name"));
        assert_eq!(near("prices"), Some("price"));
        assert_eq!(near("prise"), Some("price"));
        assert_eq!(near("open"), Some("opening"));
        assert_eq!(near("openign"), Some("opening"));
        assert_eq!(near("B"), Some("b"));
        for other in ["a", "n", "no", "time", "none", "names_of_all", "colour", "pen"] {
            assert_eq!(near(other), None, "{other}");
        }
    }

    /// A likeness was enough once, of which short names have much by chance.
    #[test]
    fn a_name_of_its_own_is_none_typed_wrong() {
        assert_eq!(nearest("third", ["other"]), None);
        assert_eq!(nearest("c1", ["c2"]), None);
        assert_eq!(nearest("temperature_indoors", ["temperature_outside"]), None);
        assert_eq!(nearest("play", ["players_of_old", "players"]), Some("players"));
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let text = "\u{e4}".repeat(50);
        assert_eq!(shorten(text.as_bytes()), format!("{}...", "\u{e4}".repeat(40)));
        assert_eq!(shorten(b"short"), "short");
    }
}
