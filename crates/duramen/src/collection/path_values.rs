//! The values at a path of a record, and their sort keys.

use super::record_path::{RecordPath, RecordStep};
use super::sort_key;
use crate::error::Result;
use crate::json::{ParseOptions, Tape};
use crate::jsonpath::place::{At, Children, View};
use crate::jsonpath::value::Value;

/// The values at a path of a record, in their order.
pub(crate) fn values(view: View<'_>, record: &At, path: &RecordPath) -> Result<Vec<At>> {
    let mut found = vec![record.clone()];
    for step in path.steps() {
        let mut next = Vec::new();
        for at in &found {
            let opened = view.open(at)?;
            match step {
                RecordStep::Field(name) => next.extend(view.member(&opened, name)?),
                RecordStep::Elements if view.array_len(&opened)?.is_some() => {
                    let mut children = Children::of(&opened);
                    while let Some(child) = children.next(view)? {
                        next.push(child.at);
                    }
                }
                RecordStep::Elements => {}
            }
        }
        found = next;
    }
    Ok(found)
}

/// Appends the sort key of a value.
pub(crate) fn append_key(view: View<'_>, at: &At, out: &mut Vec<u8>) -> Result<()> {
    let is_scalar = match view.value(at)? {
        Value::Container(_) => false,
        value => value.datum().is_some_and(|state| sort_key::append_scalar(state, out)),
    };
    if !is_scalar {
        let mut text = Vec::new();
        view.append_json(at, &mut text)?;
        let tape = Tape::parse(&text, ParseOptions::default())?;
        sort_key::append_parsed(&tape, tape.root(), out);
    }
    Ok(())
}

/// The sort keys of the values at a path of a record, each once and in their order; that of a
/// missing value if there is none.
pub(crate) fn keys(view: View<'_>, record: &At, path: &RecordPath) -> Result<Vec<Vec<u8>>> {
    let mut keys = Vec::new();
    for at in values(view, record, path)? {
        let mut key = Vec::new();
        append_key(view, &at, &mut key)?;
        keys.push(key);
    }
    keys.sort_unstable();
    keys.dedup();
    if keys.is_empty() {
        let mut missing = Vec::new();
        sort_key::append_missing(&mut missing);
        keys.push(missing);
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CommitOptions, Database, KeyKind};

    fn key(json: &str) -> Vec<u8> {
        let tape = Tape::parse(json.as_bytes(), ParseOptions::default()).unwrap();
        let mut key = Vec::new();
        sort_key::append_parsed(&tape, tape.root(), &mut key);
        key
    }

    fn keys_of(json: &str, path: &str) -> Vec<Vec<u8>> {
        let db = Database::memory().unwrap();
        let records = db.create_collection("records", KeyKind::Text).unwrap();
        records.put("a", json, &CommitOptions::default()).unwrap();
        let head = records.head().unwrap();
        let (tree, revision) = head.snapshot.as_ref().unwrap().place();
        let record = tree.record(b"a", revision).unwrap().unwrap();
        keys(View { tree, revision }, &At::Node(record), &path.parse().unwrap()).unwrap()
    }

    #[test]
    fn each_value_at_a_path_has_its_key_once() {
        let long = "x".repeat(10_000);
        let array = r#"["y","x","y",[1,2],{"k":2},{"k":1}]"#;
        let json = format!(r#"{{"a":{{"b":1.0}},"n":null,"t":{array},"l":"{long}"}}"#);
        assert_eq!(keys_of(&json, "a.b"), [key("1")]);
        assert_eq!(keys_of(&json, "a"), [key(r#"{"b":1}"#)]);
        assert_eq!(keys_of(&json, "n"), [key("null")]);
        assert_eq!(keys_of(&json, "l"), [key(&format!("\"{long}\""))]);
        assert_eq!(keys_of(&json, "t[*].k"), [key("1"), key("2")]);
        assert_eq!(keys_of(&json, "t[*][*]"), [key("1"), key("2")]);
        assert_eq!(keys_of(&json, "t[*]")[..2], [key("\"x\""), key("\"y\"")]);
    }

    #[test]
    fn a_path_that_leads_nowhere_has_the_key_of_missing() {
        let mut missing = Vec::new();
        sort_key::append_missing(&mut missing);
        for path in ["b", "a.b", "t.k", "a[*]", "t[*].k", "t[*][*]"] {
            assert_eq!(keys_of(r#"{"a":1,"t":[]}"#, path), [missing.clone()], "{path}");
        }
    }
}
