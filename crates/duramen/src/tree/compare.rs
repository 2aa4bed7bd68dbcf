//! Saving a whole value over an earlier one: only what differs is staged.
//!
//! Objects are compared by name. Arrays keep their common ends; between them, items with equal
//! content are matched by a longest common subsequence within a cost cap, and what is left pairs
//! up by position in place. A change of type at a place is a change of the same node. A value
//! that was removed and comes back is compared with what it last was: same nodes, with a gap.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use twox_hash::XxHash3_64;

use crate::alignment::{Pairing, align};
use crate::error::{Error, ErrorKind, Result};
use crate::json::{self, Tape, TapeIndex, number};
use crate::limits::{INLINE_BYTES_MAX, MEMBER_NAME_BYTES_MAX};
use crate::node::{NodeId, Ordinal, PathId};
use crate::order::Item;
use crate::state::{ApartKind, Datum, Extent, Sequence, ShapeId};
use crate::tree::data::{TreeData, node};
use crate::tree::group::Fault;
use crate::tree::schema::Label;
use crate::tree::serialize::Format;
use crate::tree::writer::{Prior, Writer};

/// A field of the new value.
#[derive(Debug, Clone, Copy)]
struct Field<'t> {
    name: &'t [u8],
    plain: bool,
    value: TapeIndex,
}

/// The fields of an object: most have few.
type Fields<'t> = SmallVec<[Field<'t>; 8]>;

/// An array, the path of its elements, and the value that it is to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elements<'t> {
    array: NodeId,
    path: PathId,
    pub(crate) tape: &'t Tape<'t>,
}

/// Items of a map looked at while the tree's lock is held.
const ITEMS_AT_A_TIME: usize = 256;
/// Items among which one that stands a little further on is looked for.
const NEAR_ITEMS: usize = 8;

impl Writer {
    /// Makes a node the value at `at`; what is equal already stays.
    pub(crate) fn put(&self, node: NodeId, tape: &Tape<'_>, at: TapeIndex) -> Result<()> {
        match tape.item(at) {
            json::Item::Array { .. } => self.put_array(node, tape, at),
            json::Item::Object { .. } => self.put_object(node, tape, at),
            scalar => {
                if let Prior::Object(_) | Prior::Array(_) | Prior::Map(_) = self.prior(node)?.0 {
                    self.erase_children(node)?;
                }
                self.put_scalar(node, &scalar)
            }
        }
    }

    /// Bears an element of an array, or with a key an entry of a map, that is the value at `at`;
    /// its ordinal. There is nothing to compare it with, so what stands in columns is put there
    /// under one lock.
    pub(crate) fn bear(
        &self,
        (path, parent): (PathId, u64),
        key: Option<(&[u8], bool)>,
        (tape, at): (&Tape<'_>, TapeIndex),
    ) -> Result<u64> {
        let bear = |data: &mut TreeData| data.bear(data.schema.path(path).space, parent, key);
        let is_object = matches!(tape.item(at), json::Item::Object { .. });
        if !is_object || self.is_declared_map(path) {
            let ordinal = self.tree.change(bear)?;
            self.put(node(path, ordinal), tape, at)?;
            return Ok(ordinal);
        }
        let fields = fields_of(tape, at)?;
        let (ordinal, rest) = self.tree.change(|data| {
            let ordinal = bear(data)?;
            let names = fields.iter().map(|field| field.name);
            let Some(shape) = data.shape_of_names(path, names) else { return Ok((ordinal, None)) };
            let mut rest = Vec::new();
            let schema = Arc::clone(&data.schema);
            let members = schema.shape(shape).iter().map(|member| member.path);
            let states = members.zip(&fields).filter_map(|(path, field)| {
                let state = inline(&tape.item(field.value));
                if state.is_none() {
                    rest.push((path, field.value));
                }
                Some((path, state?))
            });
            let new = node(path, ordinal);
            data.stage_new(new, states.chain([(path, Datum::Object(shape))]))?;
            Ok((ordinal, Some(rest)))
        })?;
        match rest {
            None => self.put(node(path, ordinal), tape, at)?,
            Some(rest) => {
                let mut rest = rest.into_iter();
                rest.try_for_each(|(path, value)| self.put(node(path, ordinal), tape, value))?;
            }
        }
        Ok(ordinal)
    }

    fn put_scalar(&self, node: NodeId, scalar: &json::Item<'_>) -> Result<()> {
        match *scalar {
            json::Item::Null => self.stage(node, Datum::Null),
            json::Item::Bool(value) => self.stage(node, Datum::Bool(value)),
            json::Item::Number(text) => match number::classify(text) {
                Datum::Digits(text) => self.stage_bytes(node, ApartKind::Digits, text),
                state => self.stage(node, state),
            },
            json::Item::Text { bytes, plain } => {
                let kind = if plain { ApartKind::PlainText } else { ApartKind::Text };
                self.stage_bytes(node, kind, bytes)
            }
            json::Item::Array { .. } | json::Item::Object { .. } => {
                unreachable!("containers are put apart from scalars")
            }
        }
    }

    /// Stores a subtree whole, for want of paths.
    fn put_opaque(&self, node: NodeId, tape: &Tape<'_>, at: TapeIndex) -> Result<()> {
        self.erase_children(node)?;
        let mut text = Vec::new();
        tape.write(at, &mut text);
        self.stage_bytes(node, ApartKind::Opaque, &text)
    }

    fn put_array(&self, array: NodeId, tape: &Tape<'_>, at: TapeIndex) -> Result<()> {
        let path = self.tree.change(|data| Ok(data.element_or_add(array.path())))?;
        let Some(path) = path else { return self.put_opaque(array, tape, at) };
        let old = match self.prior(array)?.0 {
            Prior::Array(sequence) => sequence,
            Prior::Never | Prior::Scalar => Sequence::EMPTY,
            Prior::Object(_) | Prior::Map(_) => {
                self.erase_children(array)?;
                Sequence::EMPTY
            }
        };
        let new: Vec<TapeIndex> = tape.elements(at).collect();
        let sequence = self.put_elements((array, path), old, tape, &new)?;
        self.stage(array, Datum::Array(sequence))
    }

    fn put_elements(
        &self,
        (array, path): (NodeId, PathId),
        old: Sequence,
        tape: &Tape<'_>,
        new: &[TapeIndex],
    ) -> Result<Sequence> {
        let items = self.items(old)?.into_iter().map(|item| match item {
            Item::Ordinal(ordinal) => Ok(NodeId::new(path, ordinal)),
            Item::Field(_) => self.item_node(array, false, item),
        });
        let olds = items.collect::<Result<Vec<NodeId>>>()?;
        let (prefix, suffix) = self.common_ends(&olds, tape, new)?;
        let olds = &olds[prefix..olds.len() - suffix];
        let new = &new[prefix..new.len() - suffix];
        let elements = Elements { array, path, tape };
        let ordinals = match self.id_field(array.path()).filter(|_| !olds.is_empty()) {
            Some(field) => self.put_identified(elements, &field, olds, new)?,
            None => match self.put_in_place(elements, olds, new)? {
                Some(ordinals) => ordinals,
                None => self.put_aligned(elements, olds, new)?,
            },
        };
        self.place(old, prefix, olds, &ordinals)
    }

    /// Makes elements, by their content and places, those of the new value; their ordinals in its
    /// order.
    pub(crate) fn put_aligned(
        &self,
        elements: Elements<'_>,
        olds: &[NodeId],
        new: &[TapeIndex],
    ) -> Result<Vec<u64>> {
        let tape = elements.tape;
        let mut ordinals = Vec::with_capacity(new.len());
        for pairing in self.pair(olds, tape, new)? {
            match pairing {
                // Equal hashes are no proof: what they say is equal is compared as well.
                Pairing::Same { old, new: at, items } | Pairing::Update { old, new: at, items } => {
                    let olds = &olds[old..old + items];
                    self.put_each(olds, tape, &new[at..at + items])?;
                    ordinals.extend(olds.iter().map(|old| old.ordinal().0));
                }
                Pairing::Remove { old, items } => {
                    olds[old..old + items].iter().try_for_each(|&old| self.erase(old))?;
                }
                Pairing::Insert { new: at, items } => {
                    for &at in &new[at..at + items] {
                        ordinals.push(self.bear_element(elements, at)?);
                    }
                }
            }
        }
        Ok(ordinals)
    }

    /// Makes a new element of an array; its ordinal.
    pub(crate) fn bear_element(&self, elements: Elements<'_>, at: TapeIndex) -> Result<u64> {
        let Elements { array, path, tape } = elements;
        self.bear((path, array.ordinal().0), None, (tape, at))
    }

    /// The order in which `ordinals` stand for the elements `olds`, of which the first is at
    /// `start`.
    fn place(
        &self,
        order: Sequence,
        start: usize,
        olds: &[NodeId],
        ordinals: &[u64],
    ) -> Result<Sequence> {
        let is_kept = |(old, new): &(&NodeId, &u64)| old.ordinal().0 == **new;
        let prefix = olds.iter().zip(ordinals).take_while(is_kept).count();
        let (olds, ordinals) = (&olds[prefix..], &ordinals[prefix..]);
        let suffix = olds.iter().rev().zip(ordinals.iter().rev()).take_while(is_kept).count();
        let (removed, ordinals) = (olds.len() - suffix, &ordinals[..ordinals.len() - suffix]);
        if removed == 0 && ordinals.is_empty() {
            return Ok(order);
        }
        let mut extents = Extents::default();
        for &ordinal in ordinals {
            extents.push(ordinal);
        }
        self.splice_items(order, ((start + prefix) as u64, removed as u64), &extents.0)
    }

    /// How many elements at the start and at the end are equal.
    fn common_ends(
        &self,
        olds: &[NodeId],
        tape: &Tape<'_>,
        new: &[TapeIndex],
    ) -> Result<(usize, usize)> {
        let mut texts = Texts::default();
        let shorter = olds.len().min(new.len());
        let mut prefix = 0;
        loop {
            prefix += self.same_at_start(&olds[prefix..], tape, &new[prefix..])?;
            if prefix >= shorter || !texts.are_equal(self, olds[prefix], tape, new[prefix])? {
                break;
            }
            prefix += 1;
        }
        let (olds, new) = (&olds[prefix..], &new[prefix..]);
        let shorter = shorter - prefix;
        let mut suffix = 0;
        loop {
            let (olds, new) = (&olds[..olds.len() - suffix], &new[..new.len() - suffix]);
            let same = self.same_at_end(olds, tape, new)?;
            suffix += same;
            if suffix >= shorter {
                break;
            }
            let (old, at) = (olds[olds.len() - 1 - same], new[new.len() - 1 - same]);
            if !texts.are_equal(self, old, tape, at)? {
                break;
            }
            suffix += 1;
        }
        Ok((prefix, suffix))
    }

    fn pair(&self, olds: &[NodeId], tape: &Tape<'_>, new: &[TapeIndex]) -> Result<Vec<Pairing>> {
        let mut texts = Texts::default();
        if olds.is_empty() || new.is_empty() || (olds.len() == 1 && new.len() == 1) {
            return Ok(align(&vec![0; olds.len()], &vec![1; new.len()]));
        }
        let mut old_hashes = Vec::with_capacity(olds.len());
        for &old in olds {
            old_hashes.push(XxHash3_64::oneshot(texts.stored(self, old)?));
        }
        let new_hashes: Vec<u64> =
            new.iter().map(|&at| XxHash3_64::oneshot(texts.given(tape, at))).collect();
        Ok(align(&old_hashes, &new_hashes))
    }

    fn put_object(&self, object: NodeId, tape: &Tape<'_>, at: TapeIndex) -> Result<()> {
        if self.put_members(object, tape, at)? {
            return Ok(());
        }
        let fields = fields_of(tape, at)?;
        let prior = self.prior(object)?.0;
        if let Prior::Map(sequence) = prior {
            let old = self.items(sequence)?;
            return self.put_map(object, (&old, Some(sequence)), tape, (at, &fields));
        }
        let has_shape = matches!(prior, Prior::Object(_));
        let Some(paths) = self.field_paths((object, has_shape), &fields)? else {
            let old = match prior {
                Prior::Object(shape) => {
                    self.shape_paths(shape)?.into_iter().map(Item::Field).collect()
                }
                _ => Vec::new(),
            };
            return self.put_map(object, (&old, None), tape, (at, &fields));
        };
        match prior {
            Prior::Object(shape) => {
                let kept: FxHashSet<PathId> = paths.iter().copied().collect();
                for path in self.shape_paths(shape)? {
                    if !kept.contains(&path) {
                        self.erase(node(path, object.ordinal().0))?;
                    }
                }
            }
            Prior::Array(_) => self.erase_children(object)?,
            Prior::Never | Prior::Scalar | Prior::Map(_) => {}
        }
        for (field, &path) in fields.iter().zip(&paths) {
            self.put(node(path, object.ordinal().0), tape, field.value)?;
        }
        let shape = self.shape(&paths)?;
        self.stage(object, Datum::Object(shape))
    }

    pub(crate) fn shape(&self, paths: &[PathId]) -> Result<ShapeId> {
        self.tree.change(|data| Ok(data.shape_or_add(paths)))
    }

    /// The paths of an object's fields; none if the object has to be a map. One that is declared a
    /// map is, unless it has a shape already and the new value no new name.
    fn field_paths(
        &self,
        (object, has_shape): (NodeId, bool),
        fields: &[Field<'_>],
    ) -> Result<Option<Vec<PathId>>> {
        let path = object.path();
        let is_declared = self.is_declared_map(path);
        if is_declared && !has_shape {
            return Ok(None);
        }
        let names = fields.iter().map(|field| field.name);
        self.tree.change(|data| Ok(data.paths_of_fields(path, names.clone(), is_declared)))
    }

    fn put_map(
        &self,
        map: NodeId,
        (old, sequence): (&[Item], Option<Sequence>),
        tape: &Tape<'_>,
        (at, fields): (TapeIndex, &[Field<'_>]),
    ) -> Result<()> {
        let path = self.tree.change(|data| Ok(data.entry_or_add(map.path())))?;
        let Some(path) = path else { return self.put_opaque(map, tape, at) };
        if sequence.is_none() && old.is_empty() {
            self.erase_children(map)?;
        }
        let items = self.map_items((map, path), old, fields)?;
        let mut nodes = Vec::with_capacity(items.len());
        for items in items.chunks(ITEMS_AT_A_TIME) {
            let data = self.tree.data.read();
            for &item in items {
                nodes.push(data.item_node(map, true, item)?);
            }
        }
        let values: Vec<TapeIndex> = fields.iter().map(|field| field.value).collect();
        self.put_each(&nodes, tape, &values)?;
        let kept: FxHashSet<Item> = items.iter().copied().collect();
        for &item in old.iter().filter(|item| !kept.contains(item)) {
            self.erase(self.item_node(map, true, item)?)?;
        }
        let sequence = self.reorder(sequence, old, &items)?;
        self.stage(map, Datum::Map(sequence))
    }

    /// The items of a map that have, or are to have, these names.
    fn map_items(
        &self,
        (map, path): (NodeId, PathId),
        old: &[Item],
        fields: &[Field<'_>],
    ) -> Result<Vec<Item>> {
        let mut items = Vec::with_capacity(fields.len());
        let mut in_step = old;
        loop {
            let same = self.named_so(path, in_step, &fields[items.len()..])?;
            items.extend_from_slice(&in_step[..same]);
            in_step = &in_step[same..];
            let Some(field) = fields.get(items.len()) else { return Ok(items) };
            let item = self.item_or_bear((map, path), field.name, field.plain)?;
            items.push(item);
            // Of a few members that went none is looked for again and again.
            let near = in_step.iter().take(NEAR_ITEMS);
            if let Some(at) = { near }.position(|near| *near == item) {
                in_step = &in_step[at + 1..];
            }
        }
    }

    /// How many items, from the first on, have the names of these members.
    fn named_so(&self, path: PathId, items: &[Item], fields: &[Field<'_>]) -> Result<usize> {
        let mut all = 0;
        for (items, fields) in items.chunks(ITEMS_AT_A_TIME).zip(fields.chunks(ITEMS_AT_A_TIME)) {
            let mut same = 0;
            self.tree.read(|data| {
                while let (Some(&item), Some(field)) = (items.get(same), fields.get(same))
                    && is_named(data, path, item, field.name)?
                {
                    same += 1;
                }
                Ok(())
            })?;
            all += same;
            if same < items.len().min(fields.len()) {
                break;
            }
        }
        Ok(all)
    }

    /// The item of a map with a name: the entry or field that has or ever had it, else a new entry.
    pub(crate) fn item_or_bear(
        &self,
        (map, path): (NodeId, PathId),
        name: &[u8],
        plain: bool,
    ) -> Result<Item> {
        if let Some(item) = self.item(map, path, name)? {
            return Ok(item);
        }
        let ordinal = self.tree.change(|data| {
            let space = data.schema.path(path).space;
            data.bear(space, map.ordinal().0, Some((name, plain)))
        })?;
        Ok(Item::Ordinal(Ordinal(ordinal)))
    }

    /// The entry or field of a map that has this name, else one that ever had it.
    fn item(&self, map: NodeId, path: PathId, name: &[u8]) -> Result<Option<Item>> {
        let field = self.tree.read(|data| -> Result<Option<(Item, bool)>, Fault> {
            let Some(field) = data.schema.field(map.path(), name) else { return Ok(None) };
            let version = data.version(node(field, map.ordinal().0), self.revision)?;
            Ok(version.map(|(_, state)| (Item::Field(field), !state.is_absent())))
        })?;
        if let Some((item, true)) = field {
            return Ok(Some(item));
        }
        let entry = self.entry(map, path, name)?;
        let entry = entry.map(|ordinal| Item::Ordinal(Ordinal(ordinal)));
        Ok(entry.or(field.map(|(item, _)| item)))
    }

    /// The order `items`, made from the one it had where that is less to write.
    fn reorder(&self, from: Option<Sequence>, old: &[Item], items: &[Item]) -> Result<Sequence> {
        let (from, old) = from.map_or((Sequence::EMPTY, [].as_slice()), |from| (from, old));
        let prefix = old.iter().zip(items).take_while(|(a, b)| a == b).count();
        let (old, items) = (&old[prefix..], &items[prefix..]);
        let suffix = old.iter().rev().zip(items.iter().rev()).take_while(|(a, b)| a == b).count();
        let (old, items) = (&old[..old.len() - suffix], &items[..items.len() - suffix]);
        if old.is_empty() && items.is_empty() {
            return Ok(from);
        }
        let mut order = Extents::default();
        for &item in items {
            order.push_item(item);
        }
        self.splice_items(from, (prefix as u64, old.len() as u64), &order.0)
    }
}

fn is_named(data: &TreeData, path: PathId, item: Item, name: &[u8]) -> Result<bool, Fault> {
    Ok(match item {
        Item::Field(field) => {
            data.schema.has_path(field) && data.schema.label(field) == Label::Field(name)
        }
        Item::Ordinal(ordinal) => {
            let space = data.schema.path(path).space;
            data.key(space, ordinal.0)? == Datum::Text { bytes: name, plain: true }
        }
    })
}

/// Extents under construction: consecutive ordinals are joined.
#[derive(Debug, Default)]
pub(crate) struct Extents(pub(crate) Vec<Extent>);

impl Extents {
    const COUNT_MAX: u32 = (1 << 24) - 1;

    pub(crate) fn push_item(&mut self, item: Item) {
        match item {
            Item::Field(path) => self.0.push(Extent::field(path)),
            Item::Ordinal(ordinal) => self.push(ordinal.0),
        }
    }

    pub(crate) fn push(&mut self, ordinal: u64) {
        match self.0.last_mut() {
            Some(last)
                if last.count > 0
                    && last.count < Self::COUNT_MAX
                    && last.first + u64::from(last.count) == ordinal =>
            {
                last.count += 1;
            }
            _ => self.0.push(Extent { first: ordinal, count: 1 }),
        }
    }
}

/// Room for the texts of two values that are compared.
#[derive(Debug, Default)]
struct Texts {
    stored: Vec<u8>,
    given: Vec<u8>,
}

impl Texts {
    fn stored(&mut self, writer: &Writer, node: NodeId) -> Result<&[u8]> {
        self.stored.clear();
        let root = (node, writer.revision);
        writer.tree.append_json(root, &Format::default(), &mut self.stored)?;
        Ok(&self.stored)
    }

    fn given(&mut self, tape: &Tape<'_>, at: TapeIndex) -> &[u8] {
        self.given.clear();
        tape.write(at, &mut self.given);
        &self.given
    }

    fn are_equal(
        &mut self,
        writer: &Writer,
        node: NodeId,
        tape: &Tape<'_>,
        at: TapeIndex,
    ) -> Result<bool> {
        self.stored(writer, node)?;
        self.given(tape, at);
        // What is not there prints as null does.
        Ok(self.stored == self.given && (self.stored != b"null" || writer.prior(node)?.1))
    }
}

/// Refuses a name that no member can have.
pub(crate) fn check_member_name(name: &[u8]) -> Result<()> {
    if name.len() <= MEMBER_NAME_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "a member has a name of {} bytes: at most {MEMBER_NAME_BYTES_MAX} are allowed",
        name.len()
    );
    Err(Error::new(ErrorKind::Invalid, message))
}

/// The fields of an object, their names checked.
fn fields_of<'t>(tape: &'t Tape<'_>, at: TapeIndex) -> Result<Fields<'t>> {
    let mut fields = Fields::new();
    for (name, value) in tape.fields(at) {
        let (name, plain) = name_of(name);
        check_member_name(name)?;
        fields.push(Field { name, plain, value });
    }
    Ok(fields)
}

/// The state of a value that stands in a column: of no array or object, and of no long text.
pub(crate) fn inline<'t>(value: &json::Item<'t>) -> Option<Datum<'t>> {
    let state = match *value {
        json::Item::Null => Datum::Null,
        json::Item::Bool(value) => Datum::Bool(value),
        json::Item::Number(text) => number::classify(text),
        json::Item::Text { bytes, plain } => Datum::Text { bytes, plain },
        json::Item::Array { .. } | json::Item::Object { .. } => return None,
    };
    match state {
        Datum::Text { bytes, .. } | Datum::Digits(bytes) if bytes.len() > INLINE_BYTES_MAX => None,
        state => Some(state),
    }
}

/// The bytes of a field's name, and whether it needs no escapes.
pub(crate) fn name_of(name: json::Item<'_>) -> (&[u8], bool) {
    match name {
        json::Item::Text { bytes, plain } => (bytes, plain),
        _ => unreachable!("names are strings"),
    }
}
