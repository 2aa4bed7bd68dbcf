//! Prints records that are objects of nothing but short texts, integers and truth values, as most
//! are: into a line of fixed length, where room is looked for once a member and names are copied as
//! blocks (benchmark B).

use crate::node::PathId;
use crate::state::{Datum, ShapeId};
use crate::tree::schema::Schema;

/// Bytes of a record that is printed so.
const LINE_BYTES: usize = 1_024;
/// Bytes of a name with what stands around it.
const NAME_BYTES: usize = 32;
/// Bytes of the longer truth value, rounded up.
const BOOL_BYTES: usize = 8;

/// The members of the shape that the last record had.
pub(super) struct FlatLine {
    shape: Option<ShapeId>,
    /// Nothing if there are none, or names are too long.
    members: Vec<Member>,
    line: Box<[u8; LINE_BYTES]>,
}

struct Member {
    path: PathId,
    /// With the brace or comma before it, and the colon.
    name: [u8; NAME_BYTES],
    len: usize,
}

impl FlatLine {
    pub(super) fn new() -> Self {
        Self { shape: None, members: Vec::new(), line: Box::new([0; LINE_BYTES]) }
    }

    /// Prints an object whose members have the states at hand; nothing if that takes more.
    #[inline]
    pub(super) fn print<'a, 'd: 'a>(
        &mut self,
        (schema, shape): (&Schema, ShapeId),
        at_hand: impl Fn(PathId) -> Option<&'a Datum<'d>>,
    ) -> Option<&[u8]> {
        if self.shape != Some(shape) {
            self.learn(schema, shape);
        }
        if self.members.is_empty() {
            return None;
        }
        let mut at = 0;
        for Member { path, name, len } in &self.members {
            let state = at_hand(*path)?;
            *self.line.get_mut(at..)?.first_chunk_mut()? = *name;
            at += len;
            at += write(state, self.line.get_mut(at..)?)?;
        }
        *self.line.get_mut(at)? = b'}';
        self.line.get(..=at)
    }

    fn learn(&mut self, schema: &Schema, shape: ShapeId) {
        self.shape = Some(shape);
        self.members.clear();
        for (index, field) in schema.shape(shape).iter().enumerate() {
            let rendered = schema.rendered(field);
            let len = rendered.len() + 1;
            let mut name = [if index == 0 { b'{' } else { b',' }; NAME_BYTES];
            let Some(room) = name.get_mut(1..len) else { return self.members.clear() };
            room.copy_from_slice(rendered);
            self.members.push(Member { path: field.path, name, len });
        }
    }
}

/// Writes a state and gives its length; nothing if it is another one, or there is no room.
#[inline]
fn write(state: &Datum<'_>, room: &mut [u8]) -> Option<usize> {
    match *state {
        Datum::Text { bytes, plain: true } => {
            let [open, text @ .., close] = room.get_mut(..bytes.len() + 2)? else { return None };
            (*open, *close) = (b'"', b'"');
            text.copy_from_slice(bytes);
            Some(bytes.len() + 2)
        }
        Datum::Int(value) => {
            let mut buffer = itoa::Buffer::new();
            let digits = buffer.format(value).as_bytes();
            room.get_mut(..digits.len())?.copy_from_slice(digits);
            Some(digits.len())
        }
        Datum::Bool(value) => {
            let (text, len) = if value { (b"true\0\0\0\0", 4) } else { (b"false\0\0\0", 5) };
            *room.first_chunk_mut::<BOOL_BYTES>()? = *text;
            Some(len)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CommitOptions, Database, KeyKind, ScanOptions};

    /// Records with names and lines around the lengths that are printed flat, and of other states.
    fn records() -> Vec<String> {
        let mut all: Vec<String> = [
            "{}",
            r#"{"":0}"#,
            r#"{"a":-9223372036854775808,"b":"","c":true,"d":false}"#,
            r#"{"a":1.50,"b":2e9,"c":123456789012345678901234567890}"#,
            r#"{"a":null,"b":1}"#,
            r#"{"a":"\"quoted\"\n","b":2}"#,
            r#"{"a":1,"b":{"c":"below","d":{"e":[]}},"f":[1,{"g":"h"}]}"#,
            r#"{"a\"b":1,"c":2}"#,
        ]
        .map(str::to_owned)
        .into();
        for len in NAME_BYTES - 6..NAME_BYTES + 2 {
            all.push(format!(r#"{{"{}":-1,"{}":true}}"#, "n".repeat(len), "m".repeat(len)));
        }
        for len in LINE_BYTES - 40..LINE_BYTES + 2 {
            let text = "x".repeat(len);
            all.push(format!(r#"{{"a":"{text}"}}"#));
            all.push(format!(r#"{{"a":"{text}","b":-12345}}"#));
            all.push(format!(r#"{{"a":"{text}","b":false}}"#));
        }
        all
    }

    #[test]
    fn records_of_whatever_members_are_printed_as_they_were_put() {
        let db = Database::memory().unwrap();
        let collection = db.create_collection("records", KeyKind::U64).unwrap();
        let records: Vec<String> = [records(), records()].concat();
        collection.put_many((0..).zip(records.clone()), &CommitOptions::default()).unwrap();
        for is_on_disk in [false, true] {
            if is_on_disk {
                db.checkpoint().unwrap();
            }
            let scanned = collection.scan(&ScanOptions::default()).unwrap();
            let found: Vec<String> = scanned.map(|record| record.unwrap().json).collect();
            assert_eq!(found, records);
        }
    }
}
