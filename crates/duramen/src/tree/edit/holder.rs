//! An array or object whose members change.

use crate::error::{Error, ErrorKind, Result};
use crate::json::{Item as Json, JsonPointer};
use crate::node::{NodeId, Ordinal};
use crate::order::{self, Item};
use crate::state::{ApartKind, Datum, Sequence, ShapeId};
use crate::tree::edit::index_of;
use crate::tree::locate::Place;
use crate::tree::writer::{Prior, Writer};

/// An array or object and how many members it has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holder {
    /// Its node, or that of the subtree stored whole that it is in.
    pub(super) node: NodeId,
    pub(super) form: Form,
    pub(super) is_object: bool,
    pub(super) len: u64,
}

/// How members are kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    Object(ShapeId),
    Map(Sequence),
    Array(Sequence),
    /// In a subtree stored whole that this many tokens lead to.
    Inside {
        depth: usize,
    },
}

impl Writer {
    /// The array or object at a place.
    pub(super) fn holder(&self, container: &JsonPointer) -> Result<Holder> {
        let (node, depth) = match self.tree.locate(container, self.revision)? {
            Place::Missing(..) => return Err(self.missing(container)),
            Place::Inside(node, depth) => return self.holder_inside((node, depth), container),
            Place::Node(node) => (node, container.tokens().len()),
        };
        let form = match self.prior(node)?.0 {
            Prior::Object(shape) => Form::Object(shape),
            Prior::Map(sequence) => Form::Map(sequence),
            Prior::Array(sequence) => Form::Array(sequence),
            Prior::Never | Prior::Scalar if self.is_opaque(node)? => {
                return self.holder_inside((node, depth), container);
            }
            Prior::Never | Prior::Scalar => return Err(self.no_members(container)),
        };
        let len = match form {
            Form::Object(shape) => self.shape_paths(shape)?.len() as u64,
            Form::Map(sequence) | Form::Array(sequence) => {
                order::len(&&self.tree.orders, sequence)?
            }
            Form::Inside { .. } => 0,
        };
        Ok(Holder { node, form, is_object: !matches!(form, Form::Array(_)), len })
    }

    /// The array or object that a place is in; an error is about the place.
    pub(super) fn holder_of(&self, place: &JsonPointer, container: &JsonPointer) -> Result<Holder> {
        self.holder(container).map_err(|error| match error.kind() {
            ErrorKind::NotFound => self.missing(place),
            _ => error,
        })
    }

    /// The same inside a subtree stored whole.
    pub(super) fn holder_inside(
        &self,
        (node, depth): (NodeId, usize),
        container: &JsonPointer,
    ) -> Result<Holder> {
        let found = self.read_inside(node, |tape| {
            let at = super::inside::walk(tape, (container, depth))?.1;
            Ok(match tape.item(at) {
                Json::Object { len } => Some((true, u64::from(len))),
                Json::Array { len } => Some((false, u64::from(len))),
                _ => None,
            })
        })?;
        let (is_object, len) = found.ok_or_else(|| self.no_members(container))?;
        Ok(Holder { node, form: Form::Inside { depth }, is_object, len })
    }

    /// Where the member stands that a token names, if there is one.
    pub(super) fn index(
        &self,
        (container, holder): (&JsonPointer, Holder),
        token: &str,
    ) -> Result<Option<u64>> {
        if !holder.is_object {
            return Ok(index_of(token).filter(|&index| index < holder.len));
        }
        if let Form::Inside { depth } = holder.form {
            return self.index_inside((holder.node, depth), container, token);
        }
        let Place::Node(child) = self.tree.locate(&container.child(token), self.revision)? else {
            return Ok(None);
        };
        match holder.form {
            Form::Object(shape) => {
                let paths = self.shape_paths(shape)?;
                Ok(paths.iter().position(|&path| path == child.path()).map(|index| index as u64))
            }
            Form::Map(sequence) => {
                order::position(&&self.tree.orders, sequence, self.item_of(holder.node, child))
            }
            Form::Array(_) | Form::Inside { .. } => Ok(None),
        }
    }

    /// The item of a map that a child of it is.
    pub(super) fn item_of(&self, map: NodeId, child: NodeId) -> Item {
        let entry = self.tree.data.read().schema.path(map.path()).entry;
        if entry == Some(child.path()) {
            Item::Ordinal(Ordinal(child.ordinal().0))
        } else {
            Item::Field(child.path())
        }
    }

    fn is_opaque(&self, at: NodeId) -> Result<bool> {
        self.tree.read(|data| {
            let state = data.state(at, self.revision)?;
            Ok(matches!(state, Datum::Opaque(_) | Datum::Apart { kind: ApartKind::Opaque, .. }))
        })
    }

    /// The error for a place with neither elements nor fields, where some are asked for.
    fn no_members(&self, container: &JsonPointer) -> Error {
        let shown = self.text(container).map(|text| crate::tree::missing::describe(&text));
        let shown = shown.unwrap_or_else(|_| "a scalar".to_owned());
        let message =
            format!("\"{container}\" is {shown}: only arrays and objects have something in them");
        Error::new(ErrorKind::NotFound, message)
    }
}
