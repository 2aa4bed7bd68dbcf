//! The keys of a tree's cells: big-endian, so that their byte order is the order of reading.
//!
//! Every key begins with the tree (8 bytes) and a class (1 byte). `docs/format.md` lists them.

use sha2::{Digest, Sha256};

use crate::limits::RECORD_KEY_BYTES_MAX;
use crate::node::PathId;
use crate::revision::CommitSequence;
use crate::state::{BlobId, OrderId};
use crate::tree::group::GroupId;
use crate::tree::schema::SpaceId;

/// The number of a tree: 0 is the catalogue, another the ordinal of its entry there plus 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TreeId(pub(crate) u64);

impl TreeId {
    /// The catalogue of the series. A series has this number plus its own, which is 1 or more.
    pub(crate) const SERIES: Self = Self(1 << 63);

    /// Whether it is the number of a series, which is no tree.
    pub(crate) fn is_series(self) -> bool {
        self > Self::SERIES && self < SCHEMAS
    }

    /// Whether it is a catalogue, which is nobody's document.
    pub(crate) fn is_catalogue(self) -> bool {
        self == Self(0) || self == Self::SERIES
    }
}

/// What stands instead of a tree in the keys of schemas, which trees share.
const SCHEMAS: TreeId = TreeId(u64::MAX);

/// Bytes of an entry's key that stand in its cell's key; a longer one is cut and hashed.
/// As long as the key of a record may be, so that these are in order.
const ENTRY_KEY_BYTES_MAX: usize = RECORD_KEY_BYTES_MAX;

/// Where the name stands in the key of an entry's cell: behind tree, class, path and map.
const ENTRY_NAME_AT: usize = 8 + 1 + 4 + 8;

/// The kinds of cells of a row group, in key order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GroupCell {
    /// First states of consecutive slots; the number is the first slot.
    Base = 0,
    /// The array or map each slot's element is in.
    Parent = 1,
    /// The revision in which each slot was born.
    Born = 2,
    /// The keys of entries.
    Key = 3,
    /// Changes; the number is the first revision.
    Run = 4,
}

impl GroupCell {
    fn from_number(number: u8) -> Option<Self> {
        [Self::Base, Self::Parent, Self::Born, Self::Key, Self::Run]
            .get(usize::from(number))
            .copied()
    }
}

fn start(tree: TreeId, class: u8) -> Vec<u8> {
    let mut key = Vec::with_capacity(32);
    key.extend(tree.0.to_be_bytes());
    key.push(class);
    key
}

/// The tree's own facts: schema, high waters, revision count.
pub(crate) fn meta(tree: TreeId) -> Vec<u8> {
    start(tree, 0)
}

/// Paths and shapes that a tree has beyond the schema it shares, from these numbers on.
pub(crate) fn schema_piece(tree: TreeId, paths: u32, shapes: u32) -> Vec<u8> {
    let mut key = start(tree, 1);
    key.extend(paths.to_be_bytes());
    key.extend(shapes.to_be_bytes());
    key
}

/// All schema pieces of a tree.
pub(crate) fn schema_pieces(tree: TreeId) -> Vec<u8> {
    start(tree, 1)
}

/// The rows of revisions from `first` on.
pub(crate) fn rows(tree: TreeId, first: u64) -> Vec<u8> {
    let mut key = start(tree, 2);
    key.extend(first.to_be_bytes());
    key
}

/// All revision rows of a tree.
pub(crate) fn all_rows(tree: TreeId) -> Vec<u8> {
    start(tree, 2)
}

/// All cells of all row groups of a tree.
pub(crate) fn groups(tree: TreeId) -> Vec<u8> {
    start(tree, 3)
}

/// All cells of the row groups of a space.
pub(crate) fn space(tree: TreeId, space: SpaceId) -> Vec<u8> {
    let mut key = start(tree, 3);
    key.extend(space.0.to_be_bytes());
    key
}

/// All cells of a row group.
pub(crate) fn group(tree: TreeId, id: GroupId) -> Vec<u8> {
    let mut key = start(tree, 3);
    key.extend(id.space.0.to_be_bytes());
    key.extend(id.group.to_be_bytes());
    key
}

/// One cell of a row group.
pub(crate) fn group_cell(
    tree: TreeId,
    id: GroupId,
    path: PathId,
    (kind, number): (GroupCell, u32),
) -> Vec<u8> {
    let mut key = group_path(tree, id, path);
    key.push(kind as u8);
    key.extend(number.to_be_bytes());
    key
}

/// All cells of one path in a row group.
pub(crate) fn group_path(tree: TreeId, id: GroupId, path: PathId) -> Vec<u8> {
    let mut key = group(tree, id);
    key.extend(path.0.to_be_bytes());
    key
}

/// All run pieces of one path in a row group.
pub(crate) fn runs(tree: TreeId, id: GroupId, path: PathId) -> Vec<u8> {
    let mut key = group_path(tree, id, path);
    key.push(GroupCell::Run as u8);
    key
}

/// What the key of a cell says beside its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellKey {
    Meta,
    SchemaPiece {
        paths: u32,
        shapes: u32,
    },
    Rows {
        first: u64,
    },
    Group {
        id: GroupId,
        path: PathId,
        kind: GroupCell,
        number: u32,
    },
    Order(OrderId),
    Entry {
        space: PathId,
    },
    Blob(BlobId),
    Hash {
        revision: u64,
    },
    Kept,
    /// The facts of an index.
    Index {
        index: u32,
    },
    /// Entries of an index in a slab.
    IndexSlab {
        index: u32,
        slab: u32,
    },
    /// Points of a series.
    Points(PointsKey),
    /// A column of a rollup of a series.
    Rollup(RollupColumn, PointsKey),
    /// How far a rollup of a series reaches.
    Rolled {
        rollup: i64,
    },
    /// What a commit deleted of a series.
    Deletes {
        sequence: CommitSequence,
    },
    /// When commits were made that changed series.
    Commits {
        first: CommitSequence,
    },
    Schema(u128),
}

/// What the key of a block of points says: where it is among those of its series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PointsKey {
    /// The first time in the block.
    pub(crate) first: i64,
    /// The least sequence in it.
    pub(crate) sequence: CommitSequence,
}

/// Bytes that the keys of a column of a rollup begin with: series, class, rollup, slice, column.
pub(crate) const ROLLUP_COLUMN_BYTES: usize = 8 + 1 + 8 + 8 + 1;

/// Where a column of a rollup stands among those of its series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RollupColumn {
    /// The rollup's number.
    pub(crate) rollup: i64,
    /// The number of a span of windows that are written together.
    pub(crate) slice: i64,
    pub(crate) column: u8,
}

/// The tree and what else a key says; none if no cell has such a key.
pub(crate) fn parse(key: &[u8]) -> Option<(TreeId, CellKey)> {
    let (tree, rest) = key.split_first_chunk::<8>()?;
    let tree = TreeId(u64::from_be_bytes(*tree));
    let (&class, rest) = rest.split_first()?;
    let long = || rest.try_into().ok().map(u64::from_be_bytes);
    let cell = match class {
        0 if tree == SCHEMAS => CellKey::Schema(u128::from_be_bytes(rest.try_into().ok()?)),
        0 => rest.is_empty().then_some(CellKey::Meta)?,
        1 => {
            let (paths, shapes) = split_u32(rest)?;
            CellKey::SchemaPiece { paths, shapes: u32::from_be_bytes(shapes.try_into().ok()?) }
        }
        2 => CellKey::Rows { first: long()? },
        3 => {
            let (space, rest) = split_u32(rest)?;
            let (group, _) = split_u32(rest)?;
            let (path, kind, number) = parse_group_cell(key)?;
            let id = GroupId { space: SpaceId(space), group };
            CellKey::Group { id, path, kind, number }
        }
        4 => CellKey::Order(OrderId(long()?)),
        5 => {
            let (space, rest) = split_u32(rest)?;
            rest.first_chunk::<8>()?;
            CellKey::Entry { space: PathId(space) }
        }
        6 => CellKey::Blob(BlobId(long()?)),
        7 => CellKey::Hash { revision: long()? },
        8 => rest.is_empty().then_some(CellKey::Kept)?,
        9 => {
            let (index, rest) = split_u32(rest)?;
            match split_u32(rest) {
                None => rest.is_empty().then_some(CellKey::Index { index })?,
                Some((slab, _)) => CellKey::IndexSlab { index, slab },
            }
        }
        10 => CellKey::Points(parse_points(rest)?),
        11 => CellKey::Deletes { sequence: CommitSequence(long()?) },
        12 => CellKey::Commits { first: CommitSequence(long()?) },
        13 => {
            let (rollup, rest) = split_time(rest)?;
            let (slice, rest) = split_time(rest)?;
            let (&column, rest) = rest.split_first()?;
            CellKey::Rollup(RollupColumn { rollup, slice, column }, parse_points(rest)?)
        }
        14 => CellKey::Rolled { rollup: unbiased(long()?) },
        _ => return None,
    };
    Some((tree, cell))
}

fn parse_points(rest: &[u8]) -> Option<PointsKey> {
    let (first, sequence) = split_time(rest)?;
    let sequence = CommitSequence(u64::from_be_bytes(sequence.try_into().ok()?));
    Some(PointsKey { first, sequence })
}

fn split_time(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (time, rest) = bytes.split_first_chunk::<8>()?;
    Some((unbiased(u64::from_be_bytes(*time)), rest))
}

fn split_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*number), rest))
}

/// The path, kind and number in the key of a row group's cell.
pub(crate) fn parse_group_cell(key: &[u8]) -> Option<(PathId, GroupCell, u32)> {
    let rest: &[u8; 9] = key.get(17..)?.try_into().ok()?;
    let (path, rest) = split_u32(rest)?;
    let (&kind, number) = rest.split_first()?;
    let number = u32::from_be_bytes(number.try_into().ok()?);
    Some((PathId(path), GroupCell::from_number(kind)?, number))
}

/// An order block.
pub(crate) fn order(tree: TreeId, id: OrderId) -> Vec<u8> {
    let mut key = orders(tree);
    key.extend(id.0.to_be_bytes());
    key
}

/// All order blocks of a tree.
pub(crate) fn orders(tree: TreeId) -> Vec<u8> {
    start(tree, 4)
}

/// The entry of a map with a key; `space` is the path of the entries.
pub(crate) fn entry(tree: TreeId, space: PathId, map: u64, name: &[u8]) -> Vec<u8> {
    let mut key = entries(tree);
    key.extend(space.0.to_be_bytes());
    key.extend(map.to_be_bytes());
    put_entry_name(&mut key, name);
    key
}

/// The entries of all maps.
pub(crate) fn entries(tree: TreeId) -> Vec<u8> {
    start(tree, 5)
}

/// Appends the name of an entry as it stands in the key of its cell.
pub(crate) fn put_entry_name(key: &mut Vec<u8>, name: &[u8]) {
    if name.len() <= ENTRY_KEY_BYTES_MAX {
        key.extend_from_slice(name);
    } else {
        key.extend_from_slice(&name[..ENTRY_KEY_BYTES_MAX]);
        key.extend(Sha256::digest(name));
    }
}

/// The name in the key of an entry's cell, as far as it stands there.
pub(crate) fn entry_name(key: &[u8]) -> &[u8] {
    let name = key.get(ENTRY_NAME_AT..).unwrap_or_default();
    name.get(..ENTRY_KEY_BYTES_MAX).unwrap_or(name)
}

/// A key at or behind all keys of entries with a prefix.
pub(crate) fn last(prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    key.resize(prefix.len() + ENTRY_KEY_BYTES_MAX + 1, 0xff);
    key
}

/// A key behind those of all entries with a prefix and a smaller name; none if there is none.
pub(crate) fn before(prefix: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let (last, rest) = name.split_last()?;
    let key = [prefix, rest].concat();
    Some(match last.checked_sub(1) {
        None => key,
        Some(less) => self::last(&[key.as_slice(), &[less]].concat()),
    })
}

/// A value stored apart.
pub(crate) fn blob(tree: TreeId, id: BlobId) -> Vec<u8> {
    let mut key = blobs(tree);
    key.extend(id.0.to_be_bytes());
    key
}

/// All values of a tree that are stored apart.
pub(crate) fn blobs(tree: TreeId) -> Vec<u8> {
    start(tree, 6)
}

/// The content hash of a revision.
pub(crate) fn hash(tree: TreeId, revision: u64) -> Vec<u8> {
    let mut key = hashes(tree);
    key.extend(revision.to_be_bytes());
    key
}

/// All content hashes of a tree.
pub(crate) fn hashes(tree: TreeId) -> Vec<u8> {
    start(tree, 7)
}

/// Which revisions of a tree are kept.
pub(crate) fn kept(tree: TreeId) -> Vec<u8> {
    start(tree, 8)
}

/// The facts of an index.
pub(crate) fn index(tree: TreeId, index: u32) -> Vec<u8> {
    let mut key = indexes(tree);
    key.extend(index.to_be_bytes());
    key
}

/// All cells of entries of an index in a slab; the first entry of each follows.
pub(crate) fn index_slab(tree: TreeId, index: u32, slab: u32) -> Vec<u8> {
    let mut key = self::index(tree, index);
    key.extend(slab.to_be_bytes());
    key
}

/// All cells of all indexes of a tree.
pub(crate) fn indexes(tree: TreeId) -> Vec<u8> {
    start(tree, 9)
}

/// All points of a series.
pub(crate) fn all_points(series: TreeId) -> Vec<u8> {
    start(series, 10)
}

/// A block of points in a column: those of a series, or one of a rollup.
pub(crate) fn points(column: &[u8], key: PointsKey) -> Vec<u8> {
    let mut bytes = column.to_vec();
    bytes.extend(biased(key.first).to_be_bytes());
    bytes.extend(key.sequence.0.to_be_bytes());
    bytes
}

/// The columns of all rollups of a series.
pub(crate) fn all_rollups(series: TreeId) -> Vec<u8> {
    start(series, 13)
}

/// All columns of a rollup of a series.
pub(crate) fn rollups(series: TreeId, rollup: i64) -> Vec<u8> {
    let mut bytes = all_rollups(series);
    bytes.extend(biased(rollup).to_be_bytes());
    bytes
}

/// A column of a rollup of a series.
pub(crate) fn rollup(series: TreeId, place: RollupColumn) -> Vec<u8> {
    let mut bytes = rollups(series, place.rollup);
    bytes.extend(biased(place.slice).to_be_bytes());
    bytes.push(place.column);
    bytes
}

/// How far a rollup of a series reaches.
pub(crate) fn rolled(series: TreeId, rollup: i64) -> Vec<u8> {
    let mut bytes = start(series, 14);
    bytes.extend(biased(rollup).to_be_bytes());
    bytes
}

/// Everything that was deleted of a series.
pub(crate) fn all_deletes(series: TreeId) -> Vec<u8> {
    start(series, 11)
}

/// What a commit deleted of a series.
pub(crate) fn deletes(series: TreeId, sequence: CommitSequence) -> Vec<u8> {
    let mut key = all_deletes(series);
    key.extend(sequence.0.to_be_bytes());
    key
}

/// When the commits from `first` on were made that changed series.
pub(crate) fn commits(first: CommitSequence) -> Vec<u8> {
    let mut key = all_commits();
    key.extend(first.0.to_be_bytes());
    key
}

/// When any commits were made that changed series.
pub(crate) fn all_commits() -> Vec<u8> {
    start(TreeId::SERIES, 12)
}

/// A time so that the order of its big-endian bytes is that of times.
fn biased(time: i64) -> u64 {
    time.cast_unsigned() ^ 1 << 63
}

fn unbiased(biased: u64) -> i64 {
    (biased ^ 1 << 63).cast_signed()
}

/// The number of a schema that trees share: the first half of its cell's SHA-256, so that nobody
/// can make two with one number.
pub(crate) fn schema_number(cell: &[u8]) -> u128 {
    let digest: [u8; 32] = Sha256::digest(cell).into();
    digest.first_chunk().map_or(0, |first| u128::from_be_bytes(*first))
}

/// A schema that trees share, by its number.
pub(crate) fn schema(content: u128) -> Vec<u8> {
    let mut key = start(SCHEMAS, 0);
    key.extend(content.to_be_bytes());
    key
}
