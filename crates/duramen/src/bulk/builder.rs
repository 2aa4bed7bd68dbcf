//! Makes a parsed value the first state of a document, by the rules by which a put does.
//!
//! Invariant: paths, shapes, ordinals and values stored apart get their numbers in the order in
//! which `tree::compare` gives them, so that it makes no difference which way a value came in.

use std::sync::Arc;

use crate::bulk::columns::{Columns, Row};
use crate::bulk::guess::{Guesses, Token};
use crate::bulk::run::Runs;
use crate::collection::KeyKind;
use crate::error::Result;
use crate::json::{Item, Tape, TapeIndex, number};
use crate::limits::EXTENT_ITEMS_MAX;
use crate::node::{NodeId, PathId};
use crate::options::DocumentOptions;
use crate::state::{ApartKind, Datum, Extent, Sequence};
use crate::tree::cell_key::TreeId;
use crate::tree::compare::{check_member_name, name_of};
use crate::tree::data::{TreeData, node};
use crate::tree::schema::{Schema, ShapeField, SpaceId};

/// A document under construction.
#[derive(Debug)]
pub(super) struct Builder {
    /// Paths and shapes; it holds no states.
    pub(super) data: TreeData,
    pub(super) columns: Columns,
    pub(super) guesses: Guesses,
    pub(super) runs: Runs,
    options: Option<Arc<DocumentOptions>>,
}

impl Builder {
    /// A document without a value, of which `options` are declared.
    pub(super) fn new(tree: TreeId, options: Option<Arc<DocumentOptions>>) -> Self {
        Self {
            data: TreeData::new(Arc::new(Schema::new(false))),
            columns: Columns::new(tree),
            guesses: Guesses::default(),
            runs: Runs::default(),
            options,
        }
    }

    /// A new element of an array, or the root.
    pub(super) fn bear(&mut self, path: PathId, parent: u64) -> Result<NodeId> {
        let schema = &self.data.schema;
        let ordinal = self.columns.bear(schema, schema.path(path).space, parent)?;
        Ok(node(path, ordinal))
    }

    /// A new entry of a map, of a name or of the integer whose text is its name.
    #[inline]
    pub(super) fn bear_entry(&mut self, path: PathId, map: u64, name: Datum<'_>) -> Result<NodeId> {
        let entry = self.bear(path, map)?;
        self.columns.name(self.data.schema.path(path).space, name);
        Ok(entry)
    }

    /// Whether objects at a path are declared to be maps.
    pub(super) fn is_declared_map(&self, path: PathId) -> bool {
        self.options.as_ref().is_some_and(|options| options.is_map(&self.data.schema, path))
    }

    /// The type of the keys, if the document is a collection.
    pub(super) fn key_kind(&self) -> Option<KeyKind> {
        self.options.as_ref().and_then(|options| options.collection)
    }

    /// The ordinal that the next node of a path gets.
    pub(super) fn next(&self, path: PathId) -> u64 {
        self.columns.next(self.data.schema.path(path).space)
    }

    pub(super) fn set(&mut self, node: NodeId, state: Datum<'_>) {
        let info = self.data.schema.path(node.path());
        self.columns.set((info.space, info.column), node.ordinal().0, state);
    }

    /// The order of the items of a path born from `first` on.
    pub(super) fn sequence(&mut self, path: PathId, first: u64) -> Result<Sequence> {
        let next = self.next(path);
        let extents: Vec<Extent> = extents(first, next).collect();
        match extents[..] {
            [] => Ok(Sequence::EMPTY),
            [only] => Ok(Sequence::Extent(only)),
            _ => self.columns.sequence(&extents),
        }
    }

    /// Makes a node the value at `at`.
    pub(super) fn put(&mut self, node: NodeId, tape: &Tape<'_>, at: TapeIndex) -> Result<()> {
        let state = match tape.item(at) {
            Item::Array { .. } => return self.put_array(node, tape, at),
            Item::Object { .. } => return self.put_object(node, tape, at),
            Item::Null => Datum::Null,
            Item::Bool(value) => Datum::Bool(value),
            Item::Number(text) => number_state(&mut self.columns, text)?,
            Item::Text { bytes, plain } => {
                let kind = if plain { ApartKind::PlainText } else { ApartKind::Text };
                self.columns.state_of(kind, bytes)?
            }
        };
        self.set(node, state);
        Ok(())
    }

    fn put_opaque(&mut self, node: NodeId, tape: &Tape<'_>, at: TapeIndex) -> Result<()> {
        let mut text = Vec::new();
        tape.write(at, &mut text);
        let state = self.columns.state_of(ApartKind::Opaque, &text)?;
        self.set(node, state);
        Ok(())
    }

    fn put_array(&mut self, array: NodeId, tape: &Tape<'_>, at: TapeIndex) -> Result<()> {
        let Some(path) = self.data.element_or_add(array.path()) else {
            return self.put_opaque(array, tape, at);
        };
        let first = self.next(path);
        for at in tape.elements(at) {
            let element = self.bear(path, array.ordinal().0)?;
            self.put(element, tape, at)?;
        }
        let sequence = self.sequence(path, first)?;
        self.set(array, Datum::Array(sequence));
        Ok(())
    }

    fn put_object(&mut self, object: NodeId, tape: &Tape<'_>, at: TapeIndex) -> Result<()> {
        tape.fields(at).try_for_each(|(name, _)| check_member_name(name_of(name).0))?;
        let path = object.path();
        let names = tape.fields(at).map(|(name, _)| name_of(name).0);
        let is_declared = self.is_declared_map(path);
        let paths = (!is_declared).then(|| self.data.paths_of_fields(path, names, false));
        let Some(paths) = paths.flatten() else { return self.put_map(object, tape, at) };
        for (&path, (_, value)) in paths.iter().zip(tape.fields(at)) {
            self.put(node(path, object.ordinal().0), tape, value)?;
        }
        self.set_object(object, &paths);
        Ok(())
    }

    /// Makes a node an object with these fields.
    pub(super) fn set_object(&mut self, object: NodeId, paths: &[PathId]) {
        let shape = self.data.shape_or_add(paths);
        self.guesses.learn(&self.data.schema, object.path(), (paths, shape));
        self.set(object, Datum::Object(shape));
    }

    fn put_map(&mut self, map: NodeId, tape: &Tape<'_>, at: TapeIndex) -> Result<()> {
        let Some(path) = self.data.entry_or_add(map.path()) else {
            return self.put_opaque(map, tape, at);
        };
        let first = self.next(path);
        for (name, value) in tape.fields(at) {
            let (bytes, plain) = name_of(name);
            let name = Datum::Text { bytes, plain };
            let entry = self.bear_entry(path, map.ordinal().0, name)?;
            self.put(entry, tape, value)?;
        }
        let sequence = self.sequence(path, first)?;
        self.set(map, Datum::Map(sequence));
        Ok(())
    }

    /// Makes a node the value at the begin of `text`, if its shapes are guessed: the value's bytes.
    pub(super) fn put_guessed(&mut self, node: NodeId, text: &[u8]) -> Result<Option<usize>> {
        let bytes = self.guess(node.path(), text);
        if bytes.is_some() {
            self.put_tokens(node, text)?;
        }
        Ok(bytes)
    }

    /// Reads the value of a path at the begin of `text`, if its shapes are guessed: its bytes.
    pub(super) fn guess(&mut self, path: PathId, text: &[u8]) -> Option<usize> {
        self.guesses.read(&self.data.schema, path, text)
    }

    /// The value of a field of the object that was guessed last.
    pub(super) fn guessed_field(&self, field: PathId) -> Option<Token> {
        self.guesses.field(&self.data.schema, field)
    }

    /// Makes a node the value that all of `text` is, if its shapes are guessed: whether they are.
    pub(super) fn put_guessed_whole(&mut self, node: NodeId, text: &[u8]) -> Result<bool> {
        let bytes = self.guess(node.path(), text);
        let is_whole = bytes == Some(text.len());
        if is_whole {
            self.put_tokens(node, text)?;
        }
        Ok(is_whole)
    }

    /// Makes a node the value that was guessed last, which `text` begins with.
    pub(super) fn put_tokens(&mut self, node: NodeId, text: &[u8]) -> Result<()> {
        let Self { data, columns, guesses, runs, .. } = self;
        runs.note(&data.schema, node.path(), guesses.tokens());
        let (schema, mut tokens) = (&*data.schema, guesses.tokens().iter());
        let info = schema.path(node.path());
        let at = ((info.space, info.column), node);
        Filler { schema, columns, text }.put(at, &mut tokens)
    }
}

/// Puts guessed values in place.
struct Filler<'s, 't> {
    schema: &'s Schema,
    columns: &'s mut Columns,
    text: &'t [u8],
}

impl Filler<'_, '_> {
    fn put(
        &mut self,
        (column, node): ((SpaceId, u32), NodeId),
        tokens: &mut std::slice::Iter<'_, Token>,
    ) -> Result<()> {
        let Some(token) = tokens.next() else { return Ok(()) };
        let ordinal = node.ordinal().0;
        let state = match *token {
            Token::Number { at, len } => number_state(self.columns, slice(self.text, at, len))?,
            Token::Object(shape) => {
                self.put_fields((column.0, ordinal), self.schema.shape(shape), tokens)?;
                Datum::Object(shape)
            }
            Token::Array { path, len } => {
                let space = self.schema.path(path).space;
                let first = self.columns.next(space);
                for _ in 0..len {
                    let element = self.columns.bear(self.schema, space, ordinal)?;
                    self.put(((space, 0), self::node(path, element)), tokens)?;
                }
                let first = if len == 0 { 0 } else { first };
                Datum::Array(Sequence::Extent(Extent { first, count: len }))
            }
            scalar => {
                self.columns.row(column.0, ordinal).set_scalar(column.1, scalar, self.text);
                return Ok(());
            }
        };
        self.columns.set(column, ordinal, state);
        Ok(())
    }

    fn put_fields(
        &mut self,
        (space, ordinal): (SpaceId, u64),
        mut fields: &[ShapeField],
        tokens: &mut std::slice::Iter<'_, Token>,
    ) -> Result<()> {
        while let Some((field, rest)) = fields.split_first() {
            // Most fields are scalars: they are set without looking the row up for each.
            let mut row = self.columns.row(space, ordinal);
            let mut scalars = 0;
            for (field, token) in fields.iter().zip(tokens.as_slice()) {
                if !row.set_scalar(field.column, *token, self.text) {
                    break;
                }
                scalars += 1;
            }
            if scalars > 0 {
                tokens.nth(scalars - 1);
                fields = &fields[scalars..];
                continue;
            }
            self.put(((space, field.column), self::node(field.path, ordinal)), tokens)?;
            fields = rest;
        }
        Ok(())
    }
}

impl Row<'_> {
    /// Sets the state in a column to that of a token that is one by itself; false if it is not.
    #[inline]
    fn set_scalar(&mut self, column: u32, token: Token, text: &[u8]) -> bool {
        // Each kind is pushed by itself, so that it is known where it is packed (benchmark A0).
        match token {
            Token::Null => self.next(column).push(Datum::Null),
            Token::Bool(value) => self.next(column).push(Datum::Bool(value)),
            Token::Int(value) => self.next(column).push(Datum::Int(value)),
            Token::Text { at, len } => {
                let bytes = slice(text, at, len);
                self.next(column).push(Datum::Text { bytes, plain: true });
            }
            Token::Number { .. } | Token::Object(_) | Token::Array { .. } => return false,
        }
        true
    }
}

#[inline]
fn slice(text: &[u8], at: u32, len: u32) -> &[u8] {
    &text[at as usize..][..len as usize]
}

fn number_state<'t>(columns: &mut Columns, text: &'t [u8]) -> Result<Datum<'t>> {
    match number::classify(text) {
        Datum::Digits(text) => columns.state_of(ApartKind::Digits, text),
        state => Ok(state),
    }
}

/// The ordinals from `first` to before `end` as extents.
fn extents(first: u64, end: u64) -> impl Iterator<Item = Extent> {
    let starts = (first..end).step_by(EXTENT_ITEMS_MAX as usize);
    starts.map(move |first| {
        let count = (end - first).min(u64::from(EXTENT_ITEMS_MAX));
        Extent { first, count: u32::try_from(count).unwrap_or(EXTENT_ITEMS_MAX) }
    })
}
