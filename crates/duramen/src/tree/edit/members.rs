//! The members of arrays and objects that are nodes of their own.
//!
//! Each change says whether it was made; it is not for want of paths, and then nothing is staged.

use crate::error::Result;
use crate::node::{NodeId, PathId};
use crate::order::{self, OrderCursor};
use crate::state::{Datum, Extent, Sequence, ShapeId};
use crate::tree::compare::Extents;
use crate::tree::data::node;
use crate::tree::edit::{New, Range};
use crate::tree::writer::Writer;

impl Writer {
    /// Replaces elements of an array by new ones.
    pub(super) fn splice_array(
        &self,
        (array, sequence): (NodeId, Sequence),
        range: Range,
        new: &[New<'_>],
    ) -> Result<bool> {
        let path = self.tree.change(|data| Ok(data.element_or_add(array.path())))?;
        let Some(path) = path else { return Ok(false) };
        let removed = self.item_nodes((array, sequence), false, range)?;
        let mut extents = Extents::default();
        for new in new {
            let ordinal = self.tree.change(|data| {
                let space = data.schema.path(path).space;
                data.bear(space, array.ordinal().0, None)
            })?;
            self.put(node(path, ordinal), new.value.tape, new.value.at)?;
            extents.push(ordinal);
        }
        let sequence = self.splice_items(sequence, range, &extents.0)?;
        self.stage(array, Datum::Array(sequence))?;
        removed.into_iter().try_for_each(|element| self.erase(element))?;
        Ok(true)
    }

    /// Replaces fields of an object by new ones. It becomes a map if it outgrows its shape.
    pub(super) fn splice_object(
        &self,
        (object, shape): (NodeId, ShapeId),
        (index, remove): Range,
        new: &[New<'_>],
    ) -> Result<bool> {
        let old = self.shape_paths(shape)?;
        let names = new.iter().map(|new| new.name.unwrap_or_default().as_bytes());
        let added = names.map(|name| self.field_path(object.path(), name));
        let added: Option<Vec<PathId>> = added.collect::<Result<Vec<_>>>()?.into_iter().collect();
        let Some(added) = added else {
            return self.splice_outgrown(object, &old, ((index, remove), new));
        };
        let mut paths = old.clone();
        let range = place(index)..place(index + remove);
        let removed: Vec<PathId> = paths.splice(range, added.iter().copied()).collect();
        if !self.has_room_for_shape(&paths) {
            return self.splice_outgrown(object, &old, ((index, remove), new));
        }
        let shape = self.shape(&paths)?;
        self.stage(object, Datum::Object(shape))?;
        for path in removed {
            self.erase(node(path, object.ordinal().0))?;
        }
        for (new, path) in new.iter().zip(added) {
            self.put(node(path, object.ordinal().0), new.value.tape, new.value.at)?;
        }
        Ok(true)
    }

    /// The same for an object that becomes a map, its fields kept beside new entries.
    fn splice_outgrown(
        &self,
        object: NodeId,
        paths: &[PathId],
        (range, new): (Range, &[New<'_>]),
    ) -> Result<bool> {
        let sequence = self.fields_sequence(paths)?;
        self.splice_map((object, sequence), range, new)
    }

    /// Replaces members of a map by new ones.
    pub(super) fn splice_map(
        &self,
        (map, sequence): (NodeId, Sequence),
        range: Range,
        new: &[New<'_>],
    ) -> Result<bool> {
        let path = self.tree.change(|data| Ok(data.entry_or_add(map.path())))?;
        let Some(path) = path else { return Ok(false) };
        for removed in self.item_nodes((map, sequence), true, range)? {
            self.erase(removed)?;
        }
        let mut extents = Extents::default();
        for new in new {
            let name = new.name.unwrap_or_default().as_bytes();
            let plain = crate::json::escape::is_plain(name);
            let item = self.item_or_bear((map, path), name, plain)?;
            let child = self.item_node(map, true, item)?;
            self.put(child, new.value.tape, new.value.at)?;
            extents.push_item(item);
        }
        let sequence = self.splice_items(sequence, range, &extents.0)?;
        self.stage(map, Datum::Map(sequence))?;
        Ok(true)
    }

    /// Moves an element of an array, or a member of a map, to another place.
    pub(super) fn shift_item(
        &self,
        (container, sequence): (NodeId, Sequence),
        is_map: bool,
        (from, to): (u64, u64),
    ) -> Result<bool> {
        let Some(item) = order::get(&&self.tree.orders, sequence, from)? else { return Ok(true) };
        let mut extents = Extents::default();
        extents.push_item(item);
        let without = self.splice_items(sequence, (from, 1), &[])?;
        let sequence = self.splice_items(without, (to, 0), &extents.0)?;
        let state = if is_map { Datum::Map(sequence) } else { Datum::Array(sequence) };
        self.stage(container, state)?;
        Ok(true)
    }

    /// Moves a field of an object to another place.
    pub(super) fn shift_field(
        &self,
        (object, shape): (NodeId, ShapeId),
        (from, to): (u64, u64),
    ) -> Result<bool> {
        let mut paths = self.shape_paths(shape)?;
        let path = paths.remove(place(from));
        paths.insert(place(to), path);
        self.stage_fields(object, &paths)
    }

    /// Gives an object these fields in this order.
    pub(super) fn stage_fields(&self, object: NodeId, paths: &[PathId]) -> Result<bool> {
        if self.has_room_for_shape(paths) {
            let shape = self.shape(paths)?;
            self.stage(object, Datum::Object(shape))?;
            return Ok(true);
        }
        let path = self.tree.change(|data| Ok(data.entry_or_add(object.path())))?;
        if path.is_none() {
            return Ok(false);
        }
        let sequence = self.fields_sequence(paths)?;
        self.stage(object, Datum::Map(sequence))?;
        Ok(true)
    }

    fn has_room_for_shape(&self, paths: &[PathId]) -> bool {
        self.tree.data.read().schema.has_room_for_shape(paths)
    }

    fn fields_sequence(&self, paths: &[PathId]) -> Result<Sequence> {
        let fields: Vec<Extent> = paths.iter().map(|&path| Extent::field(path)).collect();
        self.splice_items(Sequence::EMPTY, (0, 0), &fields)
    }

    /// The nodes of a range of items.
    fn item_nodes(
        &self,
        (container, sequence): (NodeId, Sequence),
        is_map: bool,
        (index, count): Range,
    ) -> Result<Vec<NodeId>> {
        let mut nodes = Vec::new();
        let mut cursor = OrderCursor::new(sequence);
        cursor.seek(&&self.tree.orders, index)?;
        while (nodes.len() as u64) < count
            && let Some(extent) = cursor.next(&&self.tree.orders)?
        {
            for offset in 0..extent.items().min(count - nodes.len() as u64) {
                nodes.push(self.item_node(container, is_map, extent.item(offset))?);
            }
        }
        Ok(nodes)
    }
}

fn place(index: u64) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}
