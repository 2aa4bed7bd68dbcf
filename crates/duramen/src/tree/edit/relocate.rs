//! Values that go from one place to another: moves, copies and new names.

use crate::error::{Error, ErrorKind, Result};
use crate::json::{ArrayIndex, JsonPointer, ParseOptions, Tape};
use crate::position::Position;
use crate::target::Target;
use crate::tree::edit::place::Slot;
use crate::tree::edit::{Given, New, check_depth, index_of, no_element, split_last};
use crate::tree::writer::Writer;

impl Writer {
    /// Moves a value to a place in an array or object. Within one array, or under its own name
    /// within one object, it goes on as the same node.
    pub(crate) fn move_to(
        &self,
        from: &Target,
        position: &Position,
        name: Option<&str>,
    ) -> Result<()> {
        let from = self.resolve(from)?;
        let Some((source, token)) = split_last(&from) else { return Err(moved_root()) };
        if !self.is_there(&from)? {
            return Err(self.missing(&from));
        }
        let slot = self.slot(position)?;
        if slot.container.tokens_from(&from).is_some() {
            return Err(moved_into_itself(&from, &slot.container));
        }
        let is_from_object = self.holder(&source)?.is_object;
        let name = match (slot.holder.is_object, name) {
            (true, None) if is_from_object => Some(token),
            (_, name) => name,
        };
        if slot.container == source {
            return self.move_beside((&from, token), &slot, name);
        }
        self.check_name(&slot, name)?;
        let text = self.text(&from)?;
        let tape = Tape::parse(&text, ParseOptions::default())?;
        let value = Given::whole(&tape);
        check_depth(&slot.container.child(""), value)?;
        let departure = self.depart(&from)?;
        self.remove(&from)?;
        let container = after_removal(&slot.container, &from, is_from_object);
        let slot = Slot { holder: self.holder(&container)?, container, ..slot };
        self.fill(&slot, New { name, value })?;
        let token = name.map_or_else(|| slot.index.to_string(), str::to_owned);
        self.arrive(departure, &slot.container.child(token))
    }

    /// The same within one array or object.
    fn move_beside(
        &self,
        (from, token): (&JsonPointer, &str),
        slot: &Slot,
        name: Option<&str>,
    ) -> Result<()> {
        let Slot { container, holder, index: place } = slot;
        let index = self.index((container, *holder), token)?;
        let index = index.ok_or_else(|| self.missing(from))?;
        // An element has an index, which is no name that it could keep.
        if !(holder.is_object && name == Some(token)) {
            self.check_name(slot, name)?;
        }
        let to = if *place > index { place - 1 } else { *place };
        if to != index {
            self.shift((container, *holder), index, to)?;
        }
        match name {
            Some(name) if name != token => self.rename_member(from, name),
            _ => Ok(()),
        }
    }

    /// Moves a value as JSON Patch does: it is removed, then added.
    pub(crate) fn move_as_patch(&self, from: &JsonPointer, to: &JsonPointer) -> Result<()> {
        if !self.is_there(from)? {
            return Err(self.missing(from));
        }
        if from == to {
            return Ok(());
        }
        if to.tokens_from(from).is_some() {
            return Err(moved_into_itself(from, to));
        }
        let Some((source, token)) = split_last(from) else { return Err(moved_root()) };
        let holder = self.holder(&source)?;
        if let (Some((container, end)), false) = (split_last(to), holder.is_object)
            && container == source
        {
            let last = holder.len - 1;
            let index = if end == "-" { Some(last) } else { index_of(end) };
            let index = index.filter(|&index| index <= last).ok_or_else(|| no_element(to, last))?;
            let from = index_of(token).ok_or_else(|| self.missing(from))?;
            return self.shift((&source, holder), from, index);
        }
        let text = self.text(from)?;
        let tape = Tape::parse(&text, ParseOptions::default())?;
        let departure = self.depart(from)?;
        self.remove(from)?;
        self.add(to, Given::whole(&tape))?;
        let to = self.named(to)?;
        self.arrive(departure, &to)
    }

    /// Copies a value to a place in an array or object.
    pub(crate) fn copy(
        &self,
        from: &Target,
        position: &Position,
        name: Option<&str>,
    ) -> Result<()> {
        let from = self.resolve(from)?;
        let text = self.text(&from)?;
        let own_name = match split_last(&from) {
            Some((source, token)) if self.holder(&source)?.is_object => Some(token),
            _ => None,
        };
        let tape = Tape::parse(&text, ParseOptions::default())?;
        self.insert_copy((Given::whole(&tape), own_name), position, name)
    }

    /// Adds a copy of a value to an array, or to an object under `name` or else the name that it
    /// has where it comes from.
    pub(crate) fn insert_copy(
        &self,
        (value, own_name): (Given<'_>, Option<&str>),
        position: &Position,
        name: Option<&str>,
    ) -> Result<()> {
        let slot = self.slot(position)?;
        let name = name.or(own_name.filter(|_| slot.holder.is_object));
        self.check_name(&slot, name)?;
        self.fill(&slot, New { name, value })
    }

    /// Copies a value as JSON Patch does: what is there is added in another place.
    pub(crate) fn copy_as_patch(&self, from: &JsonPointer, to: &JsonPointer) -> Result<()> {
        let text = self.text(from)?;
        let tape = Tape::parse(&text, ParseOptions::default())?;
        self.add(to, Given::whole(&tape))
    }

    /// Gives a field another name, in its place.
    pub(crate) fn rename_field(&self, field: &Target, name: &str) -> Result<()> {
        let from = self.resolve(field)?;
        let Some((container, token)) = split_last(&from) else {
            let message = "the root has no name: name a field of an object";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        let holder = self.holder(&container)?;
        if !holder.is_object {
            let message = format!("\"{from}\" is an element of an array: only fields have names");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        if !self.is_there(&from)? {
            return Err(self.missing(&from));
        }
        if name == token {
            return Ok(());
        }
        self.check_name(&Slot { container, holder, index: 0 }, Some(name))?;
        self.rename_member(&from, name)
    }

    fn rename_member(&self, from: &JsonPointer, name: &str) -> Result<()> {
        let Some((container, token)) = split_last(from) else { return Err(moved_root()) };
        let text = self.text(from)?;
        let tape = Tape::parse(&text, ParseOptions::default())?;
        let holder = self.holder(&container)?;
        let index = self.index((&container, holder), token)?;
        let index = index.ok_or_else(|| self.missing(from))?;
        let departure = self.depart(from)?;
        let new = New { name: Some(name), value: Given::whole(&tape) };
        self.splice((&container, holder), (index, 1), &[new])?;
        self.arrive(departure, &container.child(name))
    }

    /// The place that a pointer led to when something was added: `-` is the last element.
    fn named(&self, pointer: &JsonPointer) -> Result<JsonPointer> {
        let Some((container, "-")) = split_last(pointer) else { return Ok(pointer.clone()) };
        let holder = self.holder(&container)?;
        if holder.is_object {
            return Ok(pointer.clone());
        }
        Ok(container.child((holder.len - 1).to_string()))
    }
}

/// Where a place is once something before it was removed.
fn after_removal(place: &JsonPointer, removed: &JsonPointer, is_object: bool) -> JsonPointer {
    let Some((container, token)) = split_last(removed).filter(|_| !is_object) else {
        return place.clone();
    };
    let (Some(removed), Some([step, rest @ ..])) = (index_of(token), place.tokens_from(&container))
    else {
        return place.clone();
    };
    match ArrayIndex::parse(step) {
        Some(ArrayIndex::At(index)) if index as u64 > removed => {
            container.child((index - 1).to_string()).below(rest)
        }
        _ => place.clone(),
    }
}

fn moved_root() -> Error {
    let message = "the root cannot be moved: copy it, or move a member of it";
    Error::new(ErrorKind::Invalid, message)
}

fn moved_into_itself(from: &JsonPointer, to: &JsonPointer) -> Error {
    let message = format!("\"{from}\" cannot be moved into itself: \"{to}\" is in it");
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_behind_a_removed_element_moves_up_and_no_other() {
        let pointer = |text| JsonPointer::parse(text).unwrap();
        let after = |place, removed, is_object| {
            after_removal(&pointer(place), &pointer(removed), is_object).to_string()
        };
        assert_eq!(after("/a/2/x", "/a/1", false), "/a/1/x");
        assert_eq!(after("/a/0/x", "/a/1", false), "/a/0/x");
        assert_eq!(after("/a", "/a/1", false), "/a");
        assert_eq!(after("/b/2", "/a/1", false), "/b/2");
        assert_eq!(after("/a/2", "/a/1", true), "/a/2");
        assert_eq!(after("/2", "/1/0", false), "/2");
    }
}
