//! The path table and the shapes of a tree.
//!
//! Invariants:
//! - paths, spaces and shapes are append-only, and a path's number, space and column never change;
//! - the same additions in the same order give the same numbers, so that replay repeats them;
//! - trees with equal schemas may share one behind an `Arc`.

use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

use crate::error::{Error, ErrorKind, Result};
use crate::json::escape;
use crate::limits::{
    OBJECT_FIELDS_MAX, ORDINALS_MAX, PATHS_BEFORE_MAPS, PATHS_MAX, SCHEMA_TEXT_BYTES_MAX,
    SHAPES_MAX,
};
use crate::node::PathId;
use crate::state::{Datum, Sequence, ShapeId};

/// Bytes of a rendered name that is copied as a block.
const NAME_BYTES: usize = 24;

/// The path of the root, and the space of its ordinal 0.
pub(crate) const ROOT: PathId = PathId(0);

/// The number of an ordinal space: the root's, or that of one element or entry path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SpaceId(pub(crate) u32);

/// The last step of a label path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Label<'a> {
    Root,
    Field(&'a [u8]),
    Element,
    Entry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LabelKind {
    Root,
    Field,
    Element,
    Entry,
}

#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: u32,
    len: u32,
}

/// One path of the table.
#[derive(Debug, Clone)]
pub(crate) struct PathInfo {
    pub(crate) parent: PathId,
    kind: LabelKind,
    /// The space in which nodes of this path have their ordinals.
    pub(crate) space: SpaceId,
    /// The column of this path in the row groups of its space.
    pub(crate) column: u32,
    /// How many field names objects of this path have had.
    pub(crate) fields: u32,
    /// The path of array elements below this one.
    pub(crate) element: Option<PathId>,
    /// The path of map entries below this one.
    pub(crate) entry: Option<PathId>,
    /// Objects of this path are maps from their first field.
    pub(crate) always_map: bool,
    name: Span,
    rendered: Span,
}

/// A space and the paths that are columns of its row groups, the element or entry itself first.
#[derive(Debug, Clone)]
pub(crate) struct Space {
    pub(crate) path: PathId,
    pub(crate) columns: Vec<PathId>,
}

/// One field of a shape, with what printing it needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShapeField {
    pub(crate) path: PathId,
    pub(crate) column: u32,
    rendered: Span,
}

/// The paths, spaces and shapes of a tree.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    texts: Vec<u8>,
    paths: Vec<PathInfo>,
    spaces: Vec<Space>,
    shapes: Vec<Box<[ShapeField]>>,
    fields: HashTable<u32>,
    shape_index: HashTable<u32>,
}

/// How much of a schema there was at some moment; what came later can be cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SchemaExtent {
    pub(crate) paths: u32,
    pub(crate) shapes: u32,
}

impl SchemaExtent {
    /// Takes a state from disk, unless it names what a tree with so much of a schema cannot have.
    #[inline]
    pub(crate) fn vet(self, state: Datum<'_>) -> Result<Datum<'_>> {
        let can_be = match state {
            Datum::Object(shape) => shape.0 < self.shapes,
            Datum::Array(Sequence::Extent(extent)) | Datum::Map(Sequence::Extent(extent)) => {
                extent.first + u64::from(extent.count) <= ORDINALS_MAX
            }
            _ => true,
        };
        if can_be { Ok(state) } else { Err(impossible(state)) }
    }
}

#[cold]
fn impossible(state: Datum<'_>) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a cell has the state {state:?}, which cannot be"))
}

impl Schema {
    /// A schema with the root path only, whose objects are maps if `root_is_map`.
    pub(crate) fn new(root_is_map: bool) -> Self {
        let mut schema = Self {
            texts: Vec::new(),
            paths: Vec::new(),
            spaces: vec![Space { path: ROOT, columns: vec![ROOT] }],
            shapes: Vec::new(),
            fields: HashTable::new(),
            shape_index: HashTable::new(),
        };
        schema.paths.push(PathInfo {
            parent: ROOT,
            kind: LabelKind::Root,
            space: SpaceId(0),
            column: 0,
            fields: 0,
            element: None,
            entry: None,
            always_map: root_is_map,
            name: Span::default(),
            rendered: Span::default(),
        });
        schema
    }

    pub(crate) fn extent(&self) -> SchemaExtent {
        SchemaExtent { paths: index_u32(self.paths.len()), shapes: index_u32(self.shapes.len()) }
    }

    pub(crate) fn path(&self, path: PathId) -> &PathInfo {
        &self.paths[path.0 as usize]
    }

    pub(crate) fn has_path(&self, path: PathId) -> bool {
        (path.0 as usize) < self.paths.len()
    }

    pub(crate) fn label(&self, path: PathId) -> Label<'_> {
        let info = self.path(path);
        match info.kind {
            LabelKind::Root => Label::Root,
            LabelKind::Field => Label::Field(self.text(info.name)),
            LabelKind::Element => Label::Element,
            LabelKind::Entry => Label::Entry,
        }
    }

    pub(crate) fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    pub(crate) fn space(&self, space: SpaceId) -> &Space {
        &self.spaces[space.0 as usize]
    }

    pub(crate) fn shape(&self, shape: ShapeId) -> &[ShapeField] {
        &self.shapes[shape.0 as usize]
    }

    /// The name and the colon as they are printed in front of a field's value.
    #[inline]
    pub(crate) fn rendered(&self, field: &ShapeField) -> &[u8] {
        self.text(field.rendered)
    }

    /// Writes that where there is room and gives its length: as a block, whatever it is, where the
    /// text behind it is long enough.
    #[inline]
    pub(crate) fn write_name(&self, field: &ShapeField, room: &mut [u8]) -> Option<usize> {
        let Span { start, len } = field.rendered;
        let block = self.texts.get(start as usize..).and_then(<[u8]>::first_chunk::<NAME_BYTES>);
        match (block, room.first_chunk_mut()) {
            (Some(block), Some(room)) if len as usize <= NAME_BYTES => *room = *block,
            _ => room.get_mut(..len as usize)?.copy_from_slice(self.rendered(field)),
        }
        Some(len as usize)
    }

    /// The same behind another field, with the comma.
    #[inline]
    pub(crate) fn rendered_next(&self, field: &ShapeField) -> &[u8] {
        let Span { start, len } = field.rendered;
        self.text(Span { start: start - 1, len: len + 1 })
    }

    /// The same for a field path.
    pub(crate) fn rendered_path(&self, path: PathId) -> &[u8] {
        self.text(self.path(path).rendered)
    }

    /// The path of a field of objects at `parent`, if any object there has had it.
    pub(crate) fn field(&self, parent: PathId, name: &[u8]) -> Option<PathId> {
        self.fields
            .find(hash_field(parent, name), |&path| {
                let info = &self.paths[path as usize];
                info.parent == parent && self.text(info.name) == name
            })
            .map(|&path| PathId(path))
    }

    /// Whether an object path can get one more field name: it has at most 256.
    pub(crate) fn has_room_for_field(&self, parent: PathId) -> bool {
        (self.path(parent).fields as usize) < OBJECT_FIELDS_MAX && !self.is_full()
    }

    /// Whether no path can be added.
    pub(crate) fn is_full(&self) -> bool {
        self.paths.len() >= PATHS_MAX as usize || self.texts.len() >= SCHEMA_TEXT_BYTES_MAX
    }

    /// Adds a path that is not there.
    pub(crate) fn add(&mut self, parent: PathId, label: Label<'_>) -> PathId {
        let number = index_u32(self.paths.len());
        let path = PathId(number);
        let (kind, name, rendered) = match label {
            Label::Root => unreachable!("the root is there from the start"),
            Label::Field(name) => {
                let raw = self.push_text(|texts| texts.extend_from_slice(name));
                self.texts.push(b',');
                let printed = self.push_text(|texts| {
                    escape::write_text(name, escape::is_plain(name), texts);
                    texts.push(b':');
                });
                (LabelKind::Field, raw, printed)
            }
            Label::Element => (LabelKind::Element, Span::default(), Span::default()),
            Label::Entry => (LabelKind::Entry, Span::default(), Span::default()),
        };
        let (space, column) = if kind == LabelKind::Field {
            let space = self.path(parent).space;
            let columns = &mut self.spaces[space.0 as usize].columns;
            columns.push(path);
            (space, index_u32(columns.len() - 1))
        } else {
            self.spaces.push(Space { path, columns: vec![path] });
            (SpaceId(index_u32(self.spaces.len() - 1)), 0)
        };
        let always_map = number >= PATHS_BEFORE_MAPS;
        self.paths.push(PathInfo {
            parent,
            kind,
            space,
            column,
            fields: 0,
            element: None,
            entry: None,
            always_map,
            name,
            rendered,
        });
        self.link(parent, path, kind);
        path
    }

    fn link(&mut self, parent: PathId, path: PathId, kind: LabelKind) {
        let info = &mut self.paths[parent.0 as usize];
        match kind {
            LabelKind::Root => {}
            LabelKind::Element => info.element = Some(path),
            LabelKind::Entry => info.entry = Some(path),
            LabelKind::Field => {
                info.fields += 1;
                let hash = hash_field(parent, self.text(self.path(path).name));
                let (paths, texts) = (&self.paths, &self.texts);
                self.fields.insert_unique(hash, path.0, |&other| {
                    let info = &paths[other as usize];
                    hash_field(info.parent, slice(texts, info.name))
                });
            }
        }
    }

    /// Whether a shape, if there is one of that number, has the fields of these names of objects at
    /// `object`, in this order.
    pub(crate) fn has_names<'n>(
        &self,
        shape: ShapeId,
        object: PathId,
        names: impl ExactSizeIterator<Item = &'n [u8]>,
    ) -> bool {
        let Some(fields) = self.shapes.get(shape.0 as usize) else { return false };
        let is_so = |(field, name): (&ShapeField, &[u8])| {
            let info = self.path(field.path);
            info.parent == object && self.text(info.name) == name
        };
        fields.len() == names.len() && fields.iter().zip(names).all(is_so)
    }

    /// The shape with these fields in this order.
    pub(crate) fn find_shape(&self, fields: &[PathId]) -> Option<ShapeId> {
        let found = self.shape_index.find(hash_shape(fields.iter().copied()), |&shape| {
            self.shapes[shape as usize].iter().map(|field| field.path).eq(fields.iter().copied())
        });
        found.map(|&shape| ShapeId(shape))
    }

    /// Whether an object can have the shape with these fields.
    pub(crate) fn has_room_for_shape(&self, fields: &[PathId]) -> bool {
        self.shapes.len() < SHAPES_MAX || self.find_shape(fields).is_some()
    }

    /// Adds a shape that is not there.
    pub(crate) fn add_shape(&mut self, fields: &[PathId]) -> ShapeId {
        let hash = hash_shape(fields.iter().copied());
        let number = index_u32(self.shapes.len());
        let shape: Box<[ShapeField]> = fields
            .iter()
            .map(|&path| {
                let info = self.path(path);
                ShapeField { path, column: info.column, rendered: info.rendered }
            })
            .collect();
        self.shapes.push(shape);
        let shapes = &self.shapes;
        self.shape_index.insert_unique(hash, number, |&other| {
            hash_shape(shapes[other as usize].iter().map(|field| field.path))
        });
        ShapeId(number)
    }

    /// Cuts off what was added after `extent` was taken.
    pub(crate) fn truncate(&mut self, extent: SchemaExtent) {
        if self.extent() == extent {
            return;
        }
        while index_u32(self.shapes.len()) > extent.shapes {
            let number = index_u32(self.shapes.len() - 1);
            let hash = hash_shape(self.shape(ShapeId(number)).iter().map(|field| field.path));
            if let Ok(entry) = self.shape_index.find_entry(hash, |&shape| shape == number) {
                entry.remove();
            }
            self.shapes.pop();
        }
        while index_u32(self.paths.len()) > extent.paths {
            self.remove_last_path();
        }
    }

    fn remove_last_path(&mut self) {
        let number = index_u32(self.paths.len() - 1);
        let info = self.paths[number as usize].clone();
        let parent = info.parent.0 as usize;
        match info.kind {
            LabelKind::Root => unreachable!("the root stays"),
            LabelKind::Element => self.paths[parent].element = None,
            LabelKind::Entry => self.paths[parent].entry = None,
            LabelKind::Field => {
                self.paths[parent].fields -= 1;
                let hash = hash_field(info.parent, self.text(info.name));
                if let Ok(entry) = self.fields.find_entry(hash, |&path| path == number) {
                    entry.remove();
                }
                self.spaces[info.space.0 as usize].columns.pop();
                self.texts.truncate(info.name.start as usize);
            }
        }
        if info.kind != LabelKind::Field {
            self.spaces.pop();
        }
        self.paths.pop();
    }

    /// A hash of the content: equal for schemas that were built by the same additions.
    pub(crate) fn content_hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.texts.hash(&mut hasher);
        for info in &self.paths {
            (info.parent.0, info.kind as u8, info.always_map).hash(&mut hasher);
        }
        for shape in &self.shapes {
            shape.len().hash(&mut hasher);
            shape.iter().for_each(|field| field.path.0.hash(&mut hasher));
        }
        hasher.finish()
    }

    /// Whether both were built by the same additions.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        self.texts == other.texts
            && self.paths.len() == other.paths.len()
            && self.shapes.len() == other.shapes.len()
            && self.paths.iter().zip(&other.paths).all(|(a, b)| {
                (a.parent, a.kind, a.always_map, a.name.len)
                    == (b.parent, b.kind, b.always_map, b.name.len)
            })
            && self
                .shapes
                .iter()
                .zip(&other.shapes)
                .all(|(a, b)| a.iter().map(|field| field.path).eq(b.iter().map(|field| field.path)))
    }

    fn text(&self, span: Span) -> &[u8] {
        slice(&self.texts, span)
    }

    fn push_text(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Span {
        let start = index_u32(self.texts.len());
        write(&mut self.texts);
        Span { start, len: index_u32(self.texts.len()) - start }
    }
}

fn slice(texts: &[u8], span: Span) -> &[u8] {
    &texts[span.start as usize..][..span.len as usize]
}

fn hash_field(parent: PathId, name: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    (parent.0, name).hash(&mut hasher);
    hasher.finish()
}

fn hash_shape(fields: impl Iterator<Item = PathId>) -> u64 {
    let mut hasher = FxHasher::default();
    fields.for_each(|path| path.0.hash(&mut hasher));
    hasher.finish()
}

/// An index of something whose count the limits keep far below 2^32.
pub(crate) fn index_u32(index: usize) -> u32 {
    u32::try_from(index).expect("limits keep counts below 2^32")
}
