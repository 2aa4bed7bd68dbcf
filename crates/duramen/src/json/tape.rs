//! A JSON value that was read: its nodes in document order, eight bytes each.
//!
//! Invariants:
//! - a container stands before its children and knows how many nodes it spans, so that its next
//!   sibling is found in one step;
//! - an object's fields are pairs of nodes, name then value, and no name comes twice;
//! - a string without escapes and every number lie in the text that was read; a string with
//!   escapes lies unescaped in a buffer of the tape.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::borrow::Cow;

use super::escape;
use super::parse::{self, ParseOptions};
use super::pointer::ArrayIndex;
use crate::error::Result;
use crate::limits::{COMMIT_BYTES_MAX, JSON_DEPTH_MAX};

/// A parsed JSON text.
#[derive(Debug)]
pub(crate) struct Tape<'t> {
    text: Cow<'t, [u8]>,
    unescaped: Vec<u8>,
    nodes: Vec<Node>,
}

/// The place of a value in its tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TapeIndex(u32);

/// A value without its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item<'t> {
    Null,
    Bool(bool),
    /// The number's text.
    Number(&'t [u8]),
    /// A string, unescaped; `plain` if no character of it needs an escape when printed.
    Text {
        bytes: &'t [u8],
        plain: bool,
    },
    Array {
        len: u32,
    },
    Object {
        len: u32,
    },
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    False,
    True,
    Number,
    /// A string without escapes, in the text.
    Plain,
    /// A string in the buffer that needs no escapes when printed, though it came with some.
    Unescaped,
    /// A string in the buffer that needs escapes when printed.
    Special,
    Array,
    Object,
}

/// One node: 4 bits of kind and two fields of 30 bits. They are (offset, bytes) of a string or
/// number, and (children, nodes spanned with itself) of a container.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node(u64);

const _: () = assert!(size_of::<Node>() == 8);
// Every offset, length and node count is below the text's length.
const _: () = assert!(COMMIT_BYTES_MAX <= 1 << Node::FIELD_BITS);

/// Where the nodes and the unescaped strings of a tape lie.
pub(crate) type TapeRoom = (Vec<Node>, Vec<u8>);

impl Node {
    const FIELD_BITS: u32 = 30;
    const FIELD_MASK: u64 = (1 << Self::FIELD_BITS) - 1;

    pub(super) fn new(kind: Kind, first: usize, second: usize) -> Self {
        let (first, second) = (first as u64, second as u64);
        debug_assert!(first <= Self::FIELD_MASK && second <= Self::FIELD_MASK);
        Self(((kind as u64) << (2 * Self::FIELD_BITS)) | (first << Self::FIELD_BITS) | second)
    }

    pub(super) fn kind(self) -> Kind {
        match self.0 >> (2 * Self::FIELD_BITS) {
            0 => Kind::Null,
            1 => Kind::False,
            2 => Kind::True,
            3 => Kind::Number,
            4 => Kind::Plain,
            5 => Kind::Unescaped,
            6 => Kind::Special,
            7 => Kind::Array,
            _ => Kind::Object,
        }
    }

    /// The offset of a string or number, the number of children of a container.
    pub(super) fn first(self) -> usize {
        (self.0 >> Self::FIELD_BITS & Self::FIELD_MASK) as usize
    }

    /// The bytes of a string or number, the nodes of a container with itself.
    pub(super) fn second(self) -> usize {
        (self.0 & Self::FIELD_MASK) as usize
    }

    /// How many nodes the value takes.
    pub(super) fn span(self) -> usize {
        match self.kind() {
            Kind::Array | Kind::Object => self.second(),
            _ => 1,
        }
    }
}

impl<'t> Item<'t> {
    /// The text of a string.
    pub(crate) fn text(&self) -> Option<&'t str> {
        match self {
            Self::Text { bytes, .. } => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

impl<'t> Tape<'t> {
    /// Reads one JSON value.
    ///
    /// An error is [`Invalid`](crate::ErrorKind::Invalid) and tells line, column and reason.
    pub(crate) fn parse(text: &'t [u8], options: ParseOptions) -> Result<Self> {
        parse::read(text, options, JSON_DEPTH_MAX)
    }

    /// Reads one JSON value that is to be inside of so many arrays and objects.
    pub(crate) fn parse_inside(
        text: &'t [u8],
        options: ParseOptions,
        levels: usize,
    ) -> Result<Self> {
        parse::read(text, options, JSON_DEPTH_MAX.saturating_sub(levels))
    }

    /// Reads one JSON value, the outermost levels of which hold values of their own: these may be
    /// as deep as any.
    pub(crate) fn parse_wrapped(
        text: &'t [u8],
        options: ParseOptions,
        levels: usize,
    ) -> Result<Self> {
        parse::read(text, options, JSON_DEPTH_MAX.saturating_add(levels))
    }

    /// A tape of `text` without nodes yet.
    pub(super) fn empty(text: &'t [u8]) -> Self {
        Self { text: Cow::Borrowed(text), unescaped: Vec::new(), nodes: Vec::new() }
    }

    /// The same in the room that another tape had.
    pub(super) fn with_room(text: &'t [u8], (mut nodes, mut unescaped): TapeRoom) -> Self {
        nodes.clear();
        unescaped.clear();
        Self { text: Cow::Borrowed(text), unescaped, nodes }
    }

    /// The room of the tape, for the next one.
    pub(crate) fn into_room(self) -> TapeRoom {
        (self.nodes, self.unescaped)
    }

    /// The same with a text of its own.
    pub(crate) fn into_owned(self) -> Tape<'static> {
        let text = Cow::Owned(self.text.into_owned());
        Tape { text, unescaped: self.unescaped, nodes: self.nodes }
    }

    /// The whole value.
    #[expect(clippy::unused_self, reason = "an index means something only beside its tape")]
    pub(crate) fn root(&self) -> TapeIndex {
        TapeIndex(0)
    }

    /// The value at `index` without its children.
    pub(crate) fn item(&self, index: TapeIndex) -> Item<'_> {
        self.item_of(self.node(index.at()))
    }

    /// The elements of the array at `index`; nothing if it is no array.
    pub(crate) fn elements(&self, index: TapeIndex) -> impl ExactSizeIterator<Item = TapeIndex> {
        self.children(index, Kind::Array)
    }

    /// The fields of the object at `index`, name and value; nothing if it is no object.
    pub(crate) fn fields(
        &self,
        index: TapeIndex,
    ) -> impl ExactSizeIterator<Item = (Item<'_>, TapeIndex)> {
        self.children(index, Kind::Object)
            .map(|value| (self.item_of(self.node(value.at().saturating_sub(1))), value))
    }

    /// Stands before the first child of the array or object at `index`; a scalar has none.
    pub(crate) fn below(&self, index: TapeIndex) -> TapeCursor {
        let node = self.node(index.at());
        let kind = node.kind();
        let left = if matches!(kind, Kind::Array | Kind::Object) { node.first() } else { 0 };
        let next = index.at().saturating_add(1);
        TapeCursor { next, left, taken: 0, is_object: kind == Kind::Object }
    }

    /// The next child of the container that the cursor came from.
    pub(crate) fn advance(&self, cursor: &mut TapeCursor) -> Option<TapeIndex> {
        cursor.left = cursor.left.checked_sub(1)?;
        let at = cursor.next.saturating_add(usize::from(cursor.is_object));
        cursor.next = at.saturating_add(self.nodes.get(at)?.span());
        cursor.taken = cursor.taken.saturating_add(1);
        Some(TapeIndex(narrow(at)))
    }

    /// The name of the member of an object whose value is at `index`.
    pub(crate) fn name_before(&self, index: TapeIndex) -> &[u8] {
        self.bytes(self.node(index.at().saturating_sub(1)))
    }

    /// The field or element of the value at `index` that a token of a JSON Pointer names.
    pub(crate) fn child(&self, index: TapeIndex, token: &str) -> Option<TapeIndex> {
        match self.item(index) {
            Item::Object { .. } => self.fields(index).find_map(|(name, value)| {
                let is_it = matches!(name, Item::Text { bytes, .. } if bytes == token.as_bytes());
                is_it.then_some(value)
            }),
            Item::Array { .. } => match ArrayIndex::parse(token)? {
                ArrayIndex::At(at) => self.elements(index).nth(at),
                ArrayIndex::End => None,
            },
            _ => None,
        }
    }

    /// The fields of the object at `index` that have these names, the first of each.
    pub(crate) fn named<const N: usize>(
        &self,
        index: TapeIndex,
        names: [&str; N],
    ) -> [Option<TapeIndex>; N] {
        let mut found = [None; N];
        for (name, value) in self.fields(index) {
            let Item::Text { bytes, .. } = name else { continue };
            let mut places = names.iter().zip(&mut found);
            if let Some((_, place)) = places.find(|(name, _)| name.as_bytes() == bytes) {
                *place = place.or(Some(value));
            }
        }
        found
    }

    /// How many arrays and objects lie inside each other in the value at `index`; 0 for a scalar.
    pub(crate) fn depth(&self, index: TapeIndex) -> usize {
        let mut depth = 0;
        // Where the containers end that are open at a node.
        let mut ends: Vec<usize> = Vec::new();
        for (at, node) in self.subtree(index).iter().enumerate() {
            while ends.pop_if(|end| *end <= at).is_some() {}
            if matches!(node.kind(), Kind::Array | Kind::Object) {
                ends.push(at.saturating_add(node.span()));
                depth = depth.max(ends.len());
            }
        }
        depth
    }

    /// Writes the value as compact JSON, the one text of all equal values.
    pub(crate) fn write(&self, index: TapeIndex, out: &mut Vec<u8>) {
        // Containers that are open: what closes each, and how many of its nodes are due.
        let mut open: Vec<(Kind, usize)> = Vec::new();
        for node in self.subtree(index) {
            self.write_node(*node, out);
            let kind = node.kind();
            match kind {
                Kind::Array => open.push((kind, node.first())),
                Kind::Object => open.push((kind, node.first().saturating_mul(2))),
                _ => finish_child(&mut open, out),
            }
            while let Some((kind, 0)) = open.last() {
                out.push(if *kind == Kind::Array { b']' } else { b'}' });
                open.pop();
                finish_child(&mut open, out);
            }
        }
    }

    fn write_node(&self, node: Node, out: &mut Vec<u8>) {
        match self.item_of(node) {
            Item::Null => out.extend_from_slice(b"null"),
            Item::Bool(false) => out.extend_from_slice(b"false"),
            Item::Bool(true) => out.extend_from_slice(b"true"),
            Item::Number(text) => out.extend_from_slice(text),
            Item::Text { bytes, plain } => escape::write_text(bytes, plain, out),
            Item::Array { .. } => out.push(b'['),
            Item::Object { .. } => out.push(b'{'),
        }
    }

    fn children(&self, index: TapeIndex, kind: Kind) -> Children<'_> {
        let node = self.node(index.at());
        let left = if node.kind() == kind { node.first() } else { 0 };
        let step = usize::from(kind == Kind::Object);
        Children { nodes: &self.nodes, next: index.at().saturating_add(1), left, step }
    }

    fn subtree(&self, index: TapeIndex) -> &[Node] {
        let tail = self.nodes.get(index.at()..).unwrap_or_default();
        tail.get(..self.node(index.at()).span()).unwrap_or_default()
    }

    fn item_of(&self, node: Node) -> Item<'_> {
        match node.kind() {
            Kind::Null => Item::Null,
            Kind::False => Item::Bool(false),
            Kind::True => Item::Bool(true),
            Kind::Number => Item::Number(self.bytes(node)),
            Kind::Plain | Kind::Unescaped => Item::Text { bytes: self.bytes(node), plain: true },
            Kind::Special => Item::Text { bytes: self.bytes(node), plain: false },
            Kind::Array => Item::Array { len: narrow(node.first()) },
            Kind::Object => Item::Object { len: narrow(node.first()) },
        }
    }

    /// The bytes of a string or number.
    pub(super) fn bytes(&self, node: Node) -> &[u8] {
        let source = match node.kind() {
            Kind::Unescaped | Kind::Special => &self.unescaped,
            _ => &*self.text,
        };
        let tail = source.get(node.first()..).unwrap_or_default();
        tail.get(..node.second()).unwrap_or_default()
    }

    /// The node at `at`; null beyond the end.
    pub(super) fn node(&self, at: usize) -> Node {
        self.nodes.get(at).copied().unwrap_or(Node::new(Kind::Null, 0, 0))
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(super) fn nodes_mut(&mut self) -> &mut Vec<Node> {
        &mut self.nodes
    }

    pub(super) fn unescaped_mut(&mut self) -> &mut Vec<u8> {
        &mut self.unescaped
    }
}

/// Counts a finished node off its container and writes what stands after it.
fn finish_child(open: &mut [(Kind, usize)], out: &mut Vec<u8>) {
    let Some((kind, due)) = open.last_mut() else { return };
    *due = due.saturating_sub(1);
    if *kind == Kind::Object && *due % 2 == 1 {
        out.push(b':');
    } else if *due > 0 {
        out.push(b',');
    }
}

/// A place among the children of an array or object, which borrows nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TapeCursor {
    next: usize,
    left: usize,
    taken: u64,
    is_object: bool,
}

impl TapeCursor {
    /// The index of the next child; none in an object.
    pub(crate) fn index(self) -> Option<u64> {
        (!self.is_object).then_some(self.taken)
    }
}

/// Children of a container: `step` nodes, then a value, `left` times.
#[derive(Debug)]
pub(super) struct Children<'a> {
    nodes: &'a [Node],
    next: usize,
    left: usize,
    step: usize,
}

impl Iterator for Children<'_> {
    type Item = TapeIndex;

    fn next(&mut self) -> Option<TapeIndex> {
        self.left = self.left.checked_sub(1)?;
        let at = self.next.saturating_add(self.step);
        self.next = at.saturating_add(self.nodes.get(at)?.span());
        Some(TapeIndex(narrow(at)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Children<'_> {}

impl TapeIndex {
    fn at(self) -> usize {
        self.0 as usize
    }
}

/// Counts and places on a tape fit in 30 bits.
fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
