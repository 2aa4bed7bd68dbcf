//! A record as a line of NDJSON: its members behind the key. A member of the record that is called
//! as that is told apart by `$.` in front of its name, and so is one that is called so.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;

use serde_json::value::RawValue;

use crate::change::KEY;
use crate::record_file::Members;
use crate::record_json::string;

/// What the name of a member begins with that is called as the key.
const OWN: &str = "$.";

/// Writes a record, which is compact JSON, as a line with its key, which is JSON.
pub fn write_record(out: &mut dyn Write, key: &str, json: &str) -> io::Result<()> {
    let json = told_apart(json)?;
    let rest = json.strip_prefix('{').unwrap_or(&json);
    let comma = if rest == "}" { "" } else { "," };
    writeln!(out, "{{\"{KEY}\":{key}{comma}{rest}")
}

/// The record with other names for members that are called as the key.
fn told_apart(json: &str) -> io::Result<Cow<'_, str>> {
    if !json.contains(&format!("{KEY}\":")) {
        return Ok(Cow::Borrowed(json));
    }
    let Members(members) = serde_json::from_str(json)?;
    let member = |(name, value): &(String, &RawValue)| {
        let own = if is_own(name) { OWN } else { "" };
        format!("{}:{}", string(&format!("{own}{name}")), value.get())
    };
    let members: Vec<String> = members.iter().map(member).collect();
    Ok(Cow::Owned(format!("{{{}}}", members.join(","))))
}

/// Whether a member of a record with this name stands under another one.
fn is_own(name: &str) -> bool {
    name.strip_suffix(KEY).is_some_and(|own| own.replace(OWN, "").is_empty())
}

/// A change of a line that moves nothing in it: blanks, with a text at their end.
#[derive(Debug)]
pub(crate) struct Edit {
    place: Range<usize>,
    has_comma: bool,
    text: String,
}

impl Edit {
    fn blank(place: Range<usize>) -> Self {
        Self { place, has_comma: false, text: String::new() }
    }

    pub(crate) fn make(&self, line: &mut [u8]) {
        let line = &mut line[self.place.clone()];
        line.fill(b' ');
        if self.has_comma {
            line[0] = b',';
        }
        let at = line.len() - self.text.len();
        line[at..].copy_from_slice(self.text.as_bytes());
    }
}

/// What makes the record of a line, which has its key in the first member that is called so.
pub(crate) fn edits(line: &[u8], Members(members): &Members) -> Vec<Edit> {
    let key = members.iter().position(|(name, _)| name == KEY);
    let mut edits = Vec::new();
    let mut end = line.iter().position(|byte| *byte == b'{').map_or(0, |at| at + 1);
    let mut is_first = true;
    for (index, (name, value)) in members.iter().enumerate() {
        let before = end;
        let start = value.get().as_ptr().addr() - line.as_ptr().addr();
        end = start + value.get().len();
        if Some(index) == key {
            edits.push(Edit::blank(before..end));
            continue;
        }
        if let Some(name) = name.strip_prefix(OWN).filter(|name| is_own(name)) {
            let text = format!("{}:", string(name));
            edits.push(Edit { place: before..start, has_comma: !is_first, text });
        } else if is_first && index > 0 {
            // The key was in front of it, and a comma between them.
            let comma = line[before..start].iter().position(|byte| *byte == b',');
            edits.push(Edit::blank(before..comma.map_or(before, |comma| before + comma + 1)));
        }
        is_first = false;
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> String {
        let members = serde_json::from_str(line).unwrap();
        let edits = edits(line.as_bytes(), &members);
        let mut line = line.as_bytes().to_vec();
        for edit in edits {
            edit.make(&mut line);
        }
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_key_is_taken_out_of_a_line_in_which_all_else_stays_where_it_is() {
        assert_eq!(read(r#"{"_key":"k"}"#), "{          }");
        assert_eq!(read(r#"{"_key":"k","a":1}"#), r#"{           "a":1}"#);
        assert_eq!(read(r#"{"_key":"k" , "a,":1 }"#), r#"{             "a,":1 }"#);
        assert_eq!(read(r#" { "a":1 , "_key":"k" }"#), r#" { "a":1              }"#);
        assert_eq!(read(r#"{"a,b":1,"_key":"k"}"#), r#"{"a,b":1           }"#);
        assert_eq!(read(r#"{"a":1,"_key":"k","b":2}"#), r#"{"a":1           ,"b":2}"#);
        assert_eq!(read(r#"{"_key":"k","_key":1}"#), r#"{           "_key":1}"#);
        assert_eq!(read(r#"{"_key":"k","$._key":1}"#), r#"{             "_key":1}"#);
        assert_eq!(read(r#"{"$._key":1,"_key":"k"}"#), r#"{  "_key":1           }"#);
        assert_eq!(
            read(r#"{"a":1,"$.\u005fkey" : 2,"_key":0}"#),
            r#"{"a":1,         "_key":2         }"#
        );
    }

    #[test]
    fn members_called_as_the_key_are_read_as_they_were_written() {
        for record in [
            "{}",
            r#"{"_key":"abc","v":9}"#,
            r#"{"v":{"_key":1},"_key":null}"#,
            r#"{"$._key":1,"_key":2,"$.$._key":3,"a_key":4,"$_key":5}"#,
        ] {
            let mut line = Vec::new();
            write_record(&mut line, "7", record).unwrap();
            let line = String::from_utf8(line).unwrap();
            assert_eq!(
                line.matches("\"_key\":").count() - record.matches("{\"_key\":1}").count(),
                1
            );
            assert_eq!(read(line.trim_end()).replace(' ', ""), record, "{line}");
        }
    }
}
