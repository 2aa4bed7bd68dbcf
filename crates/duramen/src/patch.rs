//! JSON Patch (RFC 6902) on the staged state of a tree.
//!
//! All of a patch is read before its first operation is made, so that one with a wrong form
//! changes nothing at all.

use crate::error::{Error, ErrorKind, Result};
use crate::json::equality::are_equal;
use crate::json::{Item, JsonPointer, ParseOptions, Tape, TapeIndex};
use crate::tree::edit::Given;
use crate::tree::missing::{nearest, shorten};
use crate::tree::writer::Writer;

pub(crate) mod merge;

/// The array of operations and an operation, around a value.
const WRAPPING: usize = 2;

const NAMES: [&str; 6] = ["add", "remove", "replace", "move", "copy", "test"];

/// One operation of a patch.
#[derive(Debug)]
struct Operation<'t> {
    name: &'t str,
    path: JsonPointer,
    action: Action<'t>,
}

#[derive(Debug)]
enum Action<'t> {
    Add(Given<'t>),
    Remove,
    Replace(Given<'t>),
    Move(JsonPointer),
    Copy(JsonPointer),
    Test(Given<'t>),
}

/// Applies a patch to the value at `base`, operation by operation. An error names the operation,
/// counted from 1, and why it failed.
pub(crate) fn apply(writer: &Writer, base: &JsonPointer, patch: &[u8]) -> Result<()> {
    let tape = Tape::parse_wrapped(patch, ParseOptions { strict: true }, WRAPPING)?;
    let operations = read(&tape, base)?;
    let count = operations.len();
    for (number, operation) in (1..).zip(&operations) {
        operation.apply(writer).map_err(|error| {
            let Operation { name, path, .. } = operation;
            let error =
                error.in_context(format!("operation {number} of {count} ({name} \"{path}\")"));
            told_from(base, error)
        })?;
        writer.let_go_much()?;
    }
    Ok(())
}

/// An error about a record at `base`: its pointers begin there, as those of the patch do.
fn told_from(base: &JsonPointer, error: Error) -> Error {
    if base.is_root() {
        return error;
    }
    error.reworded(|message| {
        let message = message.replace(&format!("\"{base}\""), "the record");
        message.replace(&format!("\"{base}/"), "\"/")
    })
}

fn read<'t>(tape: &'t Tape<'t>, base: &JsonPointer) -> Result<Vec<Operation<'t>>> {
    if !matches!(tape.item(tape.root()), Item::Array { .. }) {
        let message = "a JSON Patch is an array of operations, such as \
                       [{\"op\":\"add\",\"path\":\"/a\",\"value\":1}]";
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let elements = tape.elements(tape.root());
    let count = elements.len();
    let operation = |(number, at)| {
        Fields { tape, at, base }
            .operation()
            .map_err(|error: Error| error.in_context(format!("operation {number} of {count}")))
    };
    (1..).zip(elements).map(operation).collect()
}

/// The members of one operation.
struct Fields<'t, 'b> {
    tape: &'t Tape<'t>,
    at: TapeIndex,
    /// What the pointers begin at.
    base: &'b JsonPointer,
}

impl<'t> Fields<'t, '_> {
    fn operation(&self) -> Result<Operation<'t>> {
        if !matches!(self.tape.item(self.at), Item::Object { .. }) {
            return Err(invalid("an operation is an object with \"op\" and \"path\"".to_owned()));
        }
        let name = self.text("op")?;
        let action = match name {
            "add" => Action::Add(self.value()?),
            "remove" => Action::Remove,
            "replace" => Action::Replace(self.value()?),
            "move" => Action::Move(self.pointer("from")?),
            "copy" => Action::Copy(self.pointer("from")?),
            "test" => Action::Test(self.value()?),
            _ => {
                let meant = nearest(name, NAMES).map(|name| format!("; did you mean {name:?}?"));
                let meant = meant.unwrap_or_else(|| format!(": use {}", NAMES.join(", ")));
                return Err(invalid(format!("there is no operation {name:?}{meant}")));
            }
        };
        Ok(Operation { name, path: self.pointer("path")?, action })
    }

    fn value(&self) -> Result<Given<'t>> {
        Ok(Given { tape: self.tape, at: self.member("value")? })
    }

    fn pointer(&self, name: &str) -> Result<JsonPointer> {
        let pointer = JsonPointer::parse(self.text(name)?);
        let pointer = pointer.map_err(|error| error.in_context(format!("{name:?}")))?;
        let tokens: Vec<String> = pointer.tokens().map(str::to_owned).collect();
        Ok(self.base.below(&tokens))
    }

    fn text(&self, name: &str) -> Result<&'t str> {
        let text = match self.tape.item(self.member(name)?) {
            Item::Text { bytes, .. } => std::str::from_utf8(bytes).ok(),
            _ => None,
        };
        text.ok_or_else(|| invalid(format!("its member {name:?} is not a string")))
    }

    fn member(&self, name: &str) -> Result<TapeIndex> {
        let member = self.tape.child(self.at, name);
        member.ok_or_else(|| invalid(format!("its member {name:?} is missing")))
    }
}

impl Operation<'_> {
    fn apply(&self, writer: &Writer) -> Result<()> {
        match &self.action {
            Action::Add(value) => writer.add(&self.path, *value),
            Action::Remove => writer.remove(&self.path),
            Action::Replace(value) => writer.replace(&self.path, *value),
            Action::Move(from) => writer.move_as_patch(from, &self.path),
            Action::Copy(from) => writer.copy_as_patch(from, &self.path),
            Action::Test(value) => test(writer, &self.path, *value),
        }
    }
}

fn test(writer: &Writer, path: &JsonPointer, expected: Given<'_>) -> Result<()> {
    let text = writer.text(path)?;
    let found = Tape::parse(&text, ParseOptions::default())?;
    if are_equal((&found, found.root()), (expected.tape, expected.at)) {
        return Ok(());
    }
    let mut wanted = Vec::new();
    expected.tape.write(expected.at, &mut wanted);
    let message = format!("the value is {}, not {}", shorten(&text), shorten(&wanted));
    Err(Error::new(ErrorKind::Conflict, message))
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}
