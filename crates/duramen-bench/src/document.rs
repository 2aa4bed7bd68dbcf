//! The documents of sections V and H, and how they change.
//!
//! Invariant: a document's structure never changes, so the length of its text under any renderer
//! is a constant plus the lengths of its scalars; every read is checked against that.

use std::fmt::Write as _;

const STRINGS: usize = 36;
const INTEGERS: usize = 8;
const BOOLS: usize = 4;
const HEADER_SCALARS: usize = 1 + STRINGS + INTEGERS + BOOLS;
const ITEM_SCALARS: usize = 3;
const TAIL: &str = "0123456789abcdef0123456789";

/// Items in the document of section V.
pub(crate) const ITEMS: usize = 20;

/// The initial document of section H.
pub(crate) const LARGE_HISTORY: &str =
    r#"{"counter":0,"label":"large-history-bench","tags":["a","b","c"]}"#;

/// One scalar set to a new value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// JSON Pointer (RFC 6901) to the scalar.
    pub(crate) pointer: String,
    /// The new value as JSON text.
    pub(crate) value: String,
}

/// The document of section V, with any number of items.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    values: Vec<String>,
}

impl Document {
    /// The document with so many items; [`ITEMS`] gives the one of 2.4 KB.
    pub(crate) fn new(items: usize) -> Self {
        let mut values = vec!["0".to_owned()];
        values.extend((0..STRINGS).map(|index| format!("\"value-{index}-{TAIL}\"")));
        values.extend((0..INTEGERS).map(|index| (index * 7 + 1).to_string()));
        values.extend((0..BOOLS).map(|index| (index % 2 == 0).to_string()));
        for index in 0..items {
            values.push(index.to_string());
            values.push(format!("\"item-{index}\""));
            values.push((index * 3).to_string());
        }
        Self { values }
    }

    /// The smallest such document whose text has at least `bytes` bytes.
    pub(crate) fn with_bytes(bytes: usize) -> Self {
        let mut items = ITEMS;
        loop {
            let document = Self::new(items);
            let len = document.render().len();
            if len >= bytes {
                return document;
            }
            items += ((bytes - len) / 48).max(1);
        }
    }

    /// How many scalars it has.
    pub(crate) fn scalars(&self) -> usize {
        self.values.len()
    }

    /// Where a scalar stands.
    pub(crate) fn pointer(index: usize) -> String {
        let Some(in_items) = index.checked_sub(HEADER_SCALARS) else {
            return format!("/{}", header_name(index));
        };
        let name = ["id", "name", "qty"][in_items % ITEM_SCALARS];
        format!("/items/{}/{name}", in_items / ITEM_SCALARS)
    }

    /// Sets a scalar to a value of its kind that it has in no other round.
    pub(crate) fn change(&mut self, index: usize, round: u64) -> Change {
        let old = &self.values[index];
        let value = match old.as_bytes()[0] {
            b'"' => format!("\"value-{index}-{round}-{TAIL}\""),
            b't' => "false".to_owned(),
            b'f' => "true".to_owned(),
            _ => (round * 31 + index as u64).to_string(),
        };
        self.values[index].clone_from(&value);
        Change { pointer: Self::pointer(index), value }
    }

    /// Sets the counter.
    pub(crate) fn set_counter(&mut self, value: u64) -> Change {
        self.values[0] = value.to_string();
        Change { pointer: "/counter".to_owned(), value: value.to_string() }
    }

    /// The compact JSON text.
    pub(crate) fn render(&self) -> String {
        let mut text = String::with_capacity(self.values.len() * 24);
        for (index, value) in self.values.iter().take(HEADER_SCALARS).enumerate() {
            let opening = if index == 0 { '{' } else { ',' };
            let _ = write!(text, "{opening}\"{}\":{value}", header_name(index));
        }
        text.push_str(",\"items\":[");
        let items = self.values.get(HEADER_SCALARS..).unwrap_or_default();
        for (index, item) in items.chunks_exact(ITEM_SCALARS).enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let [id, name, quantity] = item else { continue };
            let _ = write!(text, "{comma}{{\"id\":{id},\"name\":{name},\"qty\":{quantity}}}");
        }
        text.push_str("]}");
        text
    }
}

/// The text of an item as it is at first.
pub(crate) fn item(index: u64) -> String {
    format!("{{\"id\":{index},\"name\":\"item-{index}\",\"qty\":{}}}", index * 3)
}

fn header_name(index: usize) -> String {
    match index {
        0 => "counter".to_owned(),
        _ if index <= STRINGS => format!("s{}", index - 1),
        _ if index <= STRINGS + INTEGERS => format!("i{}", index - 1 - STRINGS),
        _ => format!("b{}", index - 1 - STRINGS - INTEGERS),
    }
}

/// Bytes that a renderer with a space after each colon and comma adds to a compact text.
pub(crate) fn spaces_when_spaced(compact: &str) -> u64 {
    let mut inside = false;
    let mut spaces = 0;
    for byte in compact.bytes() {
        match byte {
            // The documents here have no escapes in their strings.
            b'"' => inside = !inside,
            b':' | b',' if !inside => spaces += 1,
            _ => {}
        }
    }
    spaces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_is_the_one_of_section_v() {
        let text = Document::new(ITEMS).render();
        assert!(text.starts_with(
            "{\"counter\":0,\"s0\":\"value-0-0123456789abcdef0123456789\",\"s1\":\"value-1-"
        ));
        assert!(text.contains(",\"i0\":1,\"i1\":8,"));
        assert!(text.contains("\"i7\":50,\"b0\":true,\"b1\":false,\"b2\":true,\"b3\":false,"));
        assert!(text.contains("\"items\":[{\"id\":0,\"name\":\"item-0\",\"qty\":0},{\"id\":1,"));
        assert!(text.ends_with("{\"id\":19,\"name\":\"item-19\",\"qty\":57}]}"));
        assert!((2_300..2_600).contains(&text.len()), "{} bytes", text.len());
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }

    #[test]
    fn every_pointer_names_the_scalar_that_a_change_sets() {
        let mut document = Document::new(ITEMS);
        for index in 0..document.scalars() {
            let change = document.change(index, 3);
            let tree: serde_json::Value = serde_json::from_str(&document.render()).unwrap();
            let value: serde_json::Value = serde_json::from_str(&change.value).unwrap();
            assert_eq!(tree.pointer(&change.pointer), Some(&value), "{}", change.pointer);
        }
    }

    #[test]
    fn larger_documents_have_the_size_asked_for() {
        for bytes in [2_400, 100_000, 1_000_000] {
            let len = Document::with_bytes(bytes).render().len();
            assert!((bytes..bytes + bytes / 10 + 300).contains(&len), "{len} for {bytes}");
        }
    }

    #[test]
    fn spaces_are_counted_outside_strings_only() {
        assert_eq!(spaces_when_spaced(r#"{"a,:":1,"b":[1,2]}"#), 4);
    }
}
