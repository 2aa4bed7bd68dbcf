//! Cells that verify and say what cannot be: each is an error, however it is read.

use crate::Micros;
use crate::encoding::{RevisionRows, encode_column, encode_run};
use crate::io::Device;
use crate::manifest::Manifest;
use crate::node::{Move, Ordinal};
use crate::segment::tests::device::TestDevice;
use crate::segment::tests::{Cells, write};
use crate::state::{Extent, Sequence, ShapeId};
use crate::store::Store;
use crate::tree::Tree;
use crate::tree::data::{TreeData, node};
use crate::tree::group::Fault;
use crate::tree::locate::parent_of;
use crate::tree::schema::{Label, ROOT, SpaceId};
use crate::tree::serialize::Format;

use super::*;

const TREE: TreeId = TreeId(7);
/// The elements of the root, an array of them.
const ELEMENT: PathId = PathId(1);
const ELEMENTS: GroupId = GroupId { space: SpaceId(1), group: 0 };
/// A field of theirs, long enough to make a row group large.
const TEXT: PathId = PathId(2);
const REVISIONS: u64 = 10;
const SLOTS: u16 = 20;

type Cell = (PathId, GroupCell, u32, Vec<u8>);

fn column(states: &[Datum<'_>]) -> Vec<u8> {
    let mut cell = Vec::new();
    encode_column(states, &mut cell);
    cell
}

fn run(changes: &[(u16, u32, Datum<'_>)]) -> Vec<u8> {
    let mut cell = Vec::new();
    encode_run(changes, &mut cell);
    cell
}

/// What is right with the row group: 20 elements of an array, born in revision 1.
fn sound(is_large: bool) -> Vec<Cell> {
    let slots = usize::from(SLOTS);
    let length = if is_large { 4_000 } else { 10 };
    let texts: Vec<String> = (0..SLOTS).map(|slot| format!("{slot:0length$}")).collect();
    let text: Vec<Datum<'_>> =
        texts.iter().map(|text| Datum::Text { bytes: text.as_bytes(), plain: true }).collect();
    vec![
        (ELEMENT, GroupCell::Base, 0, column(&vec![Datum::Int(5); slots])),
        (ELEMENT, GroupCell::Parent, 0, column(&vec![Datum::Int(0); slots])),
        (ELEMENT, GroupCell::Born, 0, column(&vec![Datum::Int(1); slots])),
        (ELEMENT, GroupCell::Run, 2, run(&[(0, 2, Datum::Int(6)), (1, 3, Datum::Int(7))])),
        (TEXT, GroupCell::Base, 0, column(&text)),
    ]
}

/// A tree on disk with a row group of these cells; of equal keys the last cell holds.
fn tree(group: &[Cell], more: Cells) -> Tree {
    let mut schema = Schema::new(false);
    assert_eq!(schema.add(ROOT, Label::Element), ELEMENT);
    assert_eq!(schema.add(ELEMENT, Label::Field(b"text")), TEXT);
    let mut cells = more;
    for (path, kind, number, cell) in group {
        cells.insert(cell_key::group_cell(TREE, ELEMENTS, *path, (*kind, *number)), cell.clone());
    }
    let device: Arc<dyn Device> = Arc::new(TestDevice::default());
    let store = Store::open(&device, &Manifest::new(1, Micros(0)), &Memory::new(4 << 20)).unwrap();
    let info = write(&device, 1, &cells);
    store.add(store.open_segment(&info).unwrap());
    let data = TreeData::from_disk(Arc::new(schema), REVISIONS, &[1, SLOTS.into()], None);
    Tree::new(TreeCells::new(TREE, Arc::new(store)), data, 0, 0)
}

fn element(ordinal: u64) -> NodeId {
    NodeId::new(ELEMENT, Ordinal(ordinal))
}

/// Reads all there is to read of all elements.
fn read(tree: &Tree) -> Result<()> {
    for ordinal in 0..SLOTS.into() {
        for node in [element(ordinal), NodeId::new(TEXT, Ordinal(ordinal))] {
            for revision in 1..=10 {
                tree.read(|data| data.state(node, revision).map(drop))?;
                tree.append_json((node, revision), &Format::default(), &mut Vec::new())?;
            }
            tree.read(|data| data.version(node, 10).map(drop))?;
            tree.read(|data| data.created(node).map(drop))?;
            tree.read(|data| parent_of(data, node).map(drop))?;
            let mut trail = tree.trail(node, 10)?;
            tree.next_runs(&mut trail, 100, &mut Vec::new())?;
        }
        tree.read(|data| data.born(ELEMENTS.space, ordinal).map(drop))?;
    }
    Ok(())
}

#[test]
fn sound_cells_are_read() {
    for is_large in [false, true] {
        let tree = tree(&sound(is_large), Cells::new());
        let schema = Arc::clone(&tree.data.read().schema);
        let resident = tree.resident(ELEMENTS);
        let loaded = tree.cells.load_group(ELEMENTS, &schema, 10, resident).unwrap();
        assert_eq!(matches!(loaded, Loaded::Large(_)), is_large);
        read(&tree).unwrap();
        let state = |ordinal, revision| {
            tree.read(|data| match data.state(element(ordinal), revision)? {
                Datum::Int(value) => Ok(value),
                state => Err(Fault::Error(corrupt(format!("{state:?}")))),
            })
        };
        assert_eq!((state(0, 1).unwrap(), state(0, 2).unwrap(), state(1, 2).unwrap()), (5, 6, 5));
    }
}

#[test]
fn cells_that_say_what_cannot_be_are_errors() {
    let slots = usize::from(SLOTS);
    let int = Datum::Int(1);
    let object = Datum::Object(ShapeId(7));
    let wrong: Vec<(&str, Cell)> = vec![
        ("states beyond the row group", (ELEMENT, GroupCell::Base, 4_095, column(&[int, int]))),
        ("states far beyond it", (ELEMENT, GroupCell::Base, 65_535, column(&[int, int]))),
        ("states beyond 16 bits", (ELEMENT, GroupCell::Parent, 65_536, column(&[int]))),
        (
            "a parent of 41 bits",
            (ELEMENT, GroupCell::Parent, 0, { column(&vec![Datum::Int(1 << 40); slots]) }),
        ),
        (
            "a parent below 0",
            (ELEMENT, GroupCell::Parent, 0, { column(&vec![Datum::Int(-1); slots]) }),
        ),
        (
            "births in revision 0",
            (ELEMENT, GroupCell::Born, 0, { column(&vec![Datum::Int(0); slots]) }),
        ),
        (
            "births that are no numbers",
            (ELEMENT, GroupCell::Born, 0, { column(&vec![Datum::Null; slots]) }),
        ),
        ("an unknown shape", (ELEMENT, GroupCell::Base, 0, column(&vec![object; slots]))),
        ("a later unknown shape", (ELEMENT, GroupCell::Run, 2, run(&[(0, 2, object)]))),
        (
            "an extent past the last ordinal",
            (ELEMENT, GroupCell::Base, 0, {
                let extent = Extent { first: ORDINALS_MAX - 3, count: 4 };
                column(&vec![Datum::Array(Sequence::Extent(extent)); slots])
            }),
        ),
        ("a path of another space", (ROOT, GroupCell::Base, 0, column(&[int]))),
        ("a path that is not there", (PathId(3), GroupCell::Base, 0, column(&[int]))),
    ];
    for (what, cell) in wrong {
        for is_large in [false, true] {
            let mut cells = sound(is_large);
            cells.push(cell.clone());
            let error = read(&tree(&cells, Cells::new())).expect_err(what);
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
        }
    }
}

/// Only a row group that is read cell by cell asks for run pieces by their revisions.
#[test]
fn a_run_piece_under_a_key_of_another_revision_is_an_error() {
    let mut cells = sound(true);
    cells.push((ELEMENT, GroupCell::Run, 5, run(&[(0, 4, Datum::Int(1))])));
    assert_eq!(read(&tree(&cells, Cells::new())).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn a_change_of_a_slot_beyond_its_row_group_is_an_error_or_never_met() {
    let mut cells = sound(false);
    cells.push((ELEMENT, GroupCell::Run, 5, run(&[(5_000, 5, Datum::Int(1))])));
    assert_eq!(read(&tree(&cells, Cells::new())).unwrap_err().kind(), ErrorKind::Corrupt);
    let mut cells = sound(true);
    cells.push((ELEMENT, GroupCell::Run, 5, run(&[(5_000, 5, Datum::Int(1))])));
    read(&tree(&cells, Cells::new())).unwrap();
}

#[test]
fn elements_without_a_revision_of_birth_are_an_error() {
    let mut cells = sound(false);
    cells.retain(|(_, kind, ..)| *kind != GroupCell::Born);
    assert_eq!(read(&tree(&cells, Cells::new())).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn rows_that_name_paths_or_entries_that_name_ordinals_of_no_tree_are_errors() {
    let (mut cells, mut row) = (Cells::new(), Vec::new());
    let rows = RevisionRows {
        timestamps: vec![Micros(1)],
        committed: vec![Micros(1)],
        sequences: vec![crate::CommitSequence(1)],
        authors: vec![0],
        messages: vec![0],
        changed: vec![NodeId::new(PathId(9), Ordinal(0))],
        changed_ends: vec![1],
        moves: vec![Move { to: node(ROOT, 0), from: NodeId::new(PathId(9), Ordinal(0)) }],
        moves_ends: vec![1],
        ..RevisionRows::default()
    };
    rows.encode(&mut row);
    cells.insert(cell_key::rows(TREE, 1), row);
    let key = cell_key::entry(TREE, ELEMENT, 0, b"key");
    cells.insert(key, (1_u64 << 40).to_le_bytes().to_vec());
    let tree = tree(&sound(false), cells);
    assert_eq!(tree.changed(Revision(1)).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(tree.moves(Revision(1)).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(tree.cells.entry(ELEMENT, 0, b"key").unwrap_err().kind(), ErrorKind::Corrupt);
}
