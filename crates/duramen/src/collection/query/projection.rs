//! Parts of records: an object that has the places that were asked for, and no others.

use crate::collection::record_path::{RecordPath, RecordStep};
use crate::error::Result;
use crate::json::escape;
use crate::jsonpath::place::{At, Children, View};

/// The places that are taken, as a tree.
#[derive(Debug, Clone, Default)]
pub(super) struct Projection {
    /// The value there is taken as a whole.
    is_whole: bool,
    /// In the order in which they were first named.
    fields: Vec<(Box<str>, Self)>,
    elements: Option<Box<Self>>,
}

impl Projection {
    pub(super) fn of(paths: &[RecordPath]) -> Self {
        let mut whole = Self::default();
        for path in paths {
            let mut at = &mut whole;
            for step in path.steps() {
                at = match step {
                    RecordStep::Field(name) => at.field(name),
                    RecordStep::Elements => at.elements.get_or_insert_default(),
                };
            }
            at.is_whole = true;
        }
        whole
    }

    fn field(&mut self, name: &str) -> &mut Self {
        let index = self.fields.iter().position(|(known, _)| **known == *name);
        let index = index.unwrap_or_else(|| {
            self.fields.push((name.into(), Self::default()));
            self.fields.len() - 1
        });
        &mut self.fields[index].1
    }

    /// Appends what is taken of a value as JSON; false, and nothing is appended, if it has nothing
    /// of it. Paths are of bounded length, and so is the depth.
    pub(super) fn append(&self, view: View<'_>, at: &At, out: &mut Vec<u8>) -> Result<bool> {
        if self.is_whole {
            view.append_json(at, out)?;
            return Ok(true);
        }
        let opened = view.open(at)?;
        if let Some(elements) = &self.elements
            && view.array_len(&opened)?.is_some()
        {
            let mut children = Children::of(&opened);
            let mut between = b'[';
            while let Some(child) = children.next(view)? {
                let start = out.len();
                out.push(between);
                if elements.append(view, &child.at, out)? {
                    between = b',';
                } else {
                    out.truncate(start);
                }
            }
            if between == b'[' {
                out.push(between);
            }
            out.push(b']');
            return Ok(true);
        }
        let is_object = view.array_len(&opened)?.is_none() && view.len(&opened)?.is_some();
        if self.fields.is_empty() || !is_object {
            return Ok(false);
        }
        let mut between = b'{';
        for (name, field) in &self.fields {
            let Some(at) = view.member(&opened, name)? else { continue };
            let start = out.len();
            out.push(between);
            escape::write_text(name.as_bytes(), escape::is_plain(name.as_bytes()), out);
            out.push(b':');
            if field.append(view, &at, out)? {
                between = b',';
            } else {
                out.truncate(start);
            }
        }
        if between == b'{' {
            out.push(between);
        }
        out.push(b'}');
        Ok(true)
    }
}
