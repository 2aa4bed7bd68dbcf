//! Where a new member goes, and putting it there.

use std::borrow::Cow;

use crate::error::{Error, ErrorKind, Result};
use crate::json::{Item, JsonPointer};
use crate::jsonpath;
use crate::position::Position;
use crate::target::Target;
use crate::tree::compare::check_member_name;
use crate::tree::edit::holder::Holder;
use crate::tree::edit::{Given, New, check_depth, split_last};
use crate::tree::writer::Writer;

/// A place among the members of an array or object.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) container: JsonPointer,
    pub(super) holder: Holder,
    /// In front of the member that stands there now.
    pub(super) index: u64,
}

impl Writer {
    /// The place that a target names.
    pub(crate) fn resolve<'t>(&self, target: &'t Target) -> Result<Cow<'t, JsonPointer>> {
        let node = match target {
            Target::Pointer(pointer) => return Ok(Cow::Borrowed(pointer)),
            Target::Path(path) => {
                return jsonpath::only_pointer(&self.tree, self.revision, path).map(Cow::Owned);
            }
            Target::Node(node) => *node,
        };
        let pointer = self.tree.pointer_of(node, self.revision)?;
        pointer.map(Cow::Owned).ok_or_else(|| {
            let message = format!("the value {node} is not there now");
            Error::new(ErrorKind::NotFound, message)
        })
    }

    /// Adds an element, or with a name a field that is not there.
    pub(crate) fn insert(
        &self,
        position: &Position,
        name: Option<&str>,
        value: Given<'_>,
    ) -> Result<()> {
        let slot = self.slot(position)?;
        self.check_name(&slot, name)?;
        self.fill(&slot, New { name, value })
    }

    /// Adds an element at the end of an array.
    pub(crate) fn append(&self, array: &Target, value: Given<'_>) -> Result<()> {
        let container = self.resolve(array)?.into_owned();
        let holder = self.array(&container)?;
        let index = holder.len;
        self.fill(&Slot { container, holder, index }, New { name: None, value })
    }

    /// Replaces `remove` elements of an array from `index` on by those of another array.
    pub(crate) fn splice_elements(
        &self,
        array: &Target,
        (index, remove): (u64, u64),
        values: Given<'_>,
    ) -> Result<()> {
        let container = self.resolve(array)?;
        let holder = self.array(&container)?;
        let end = index.checked_add(remove).filter(|&end| end <= holder.len);
        if end.is_none() {
            let message = format!(
                "\"{container}\" has {} elements: {remove} from index {index} on are not there",
                holder.len
            );
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        if !matches!(values.tape.item(values.at), Item::Array { .. }) {
            let message = "a splice takes its new elements as a JSON array, such as [1,2]";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        check_depth(&container, values)?;
        let tape = values.tape;
        let new: Vec<New<'_>> = tape
            .elements(values.at)
            .map(|at| New { name: None, value: Given { tape, at } })
            .collect();
        self.splice((&container, holder), (index, remove), &new)
    }

    /// Where a position is.
    pub(super) fn slot(&self, position: &Position) -> Result<Slot> {
        match position {
            Position::Before(target) => self.beside(target, 0),
            Position::After(target) => self.beside(target, 1),
            Position::First(target) | Position::Last(target) => {
                let container = self.resolve(target)?.into_owned();
                let holder = self.holder(&container)?;
                let is_first = matches!(position, Position::First(_));
                let index = if is_first { 0 } else { holder.len };
                Ok(Slot { container, holder, index })
            }
        }
    }

    fn beside(&self, target: &Target, behind: u64) -> Result<Slot> {
        let pointer = self.resolve(target)?;
        let Some((container, token)) = split_last(&pointer) else {
            let message = "nothing stands beside the root: name a place in it";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        let holder = self.holder(&container)?;
        let index = self.index((&container, holder), token)?;
        let index = index.ok_or_else(|| self.missing(&pointer))? + behind;
        Ok(Slot { container, holder, index })
    }

    /// Refuses a name that a new member cannot have at a place.
    pub(super) fn check_name(&self, slot: &Slot, name: Option<&str>) -> Result<()> {
        let container = &slot.container;
        let (kind, message) = match (slot.holder.is_object, name) {
            (false, None) => return Ok(()),
            (false, Some(name)) => {
                let message =
                    format!("\"{container}\" is an array: {name:?} can be no member's name");
                (ErrorKind::Invalid, message)
            }
            (true, None) => {
                let message = format!("\"{container}\" is an object: give the new member a name");
                (ErrorKind::Invalid, message)
            }
            (true, Some(name)) => {
                check_member_name(name.as_bytes())?;
                if self.index((container, slot.holder), name)?.is_none() {
                    return Ok(());
                }
                let place = container.child(name);
                let message = format!(
                    "there is a \"{place}\" already: set or replace it, or take another name"
                );
                (ErrorKind::Conflict, message)
            }
        };
        Err(Error::new(kind, message))
    }

    /// Puts a new member at a place.
    pub(super) fn fill(&self, slot: &Slot, new: New<'_>) -> Result<()> {
        check_depth(&slot.container.child(""), new.value)?;
        self.splice((&slot.container, slot.holder), (slot.index, 0), &[new])
    }

    fn array(&self, container: &JsonPointer) -> Result<Holder> {
        let holder = self.holder(container)?;
        if !holder.is_object {
            return Ok(holder);
        }
        let message =
            format!("\"{container}\" is an object, not an array: insert a member with its name");
        Err(Error::new(ErrorKind::Invalid, message))
    }
}
