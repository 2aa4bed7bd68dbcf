use super::*;
use crate::encoding::{encode_column, encode_order_block, encode_run};
use crate::state::{Extent, ShapeId};
use crate::tree::schema::{Label, ROOT};

/// A tree of `$.a` and `$.l[*]` with 3 revisions, 2 elements, 4 order blocks and a value.
fn bounds() -> Bounds {
    let mut schema = Schema::new(false);
    let fields = [b"a", b"l"].map(|name| schema.add(ROOT, Label::Field(name)));
    schema.add(fields[1], Label::Element);
    schema.add_shape(&fields);
    let high_waters = vec![1, 2];
    Bounds { schema: Arc::new(schema), revisions: 3, high_waters, orders: 4, blobs: 1, kinds: None }
}

fn group(space: u32, path: u32, kind: GroupCell, number: u32) -> CellKey {
    let id = GroupId { space: SpaceId(space), group: 0 };
    CellKey::Group { id, path: PathId(path), kind, number }
}

fn check_states(key: CellKey, states: &[Datum<'_>]) -> Result<()> {
    let mut cell = Vec::new();
    encode_column(states, &mut cell);
    bounds().check(key, Bytes::from(cell))
}

fn is_refused(result: Result<()>) -> bool {
    result.is_err_and(|error| error.kind() == ErrorKind::Corrupt)
}

#[test]
fn states_have_to_name_what_their_tree_has() {
    let extent = |first, count| Datum::Array(Sequence::Extent(Extent { first, count }));
    let text = |bytes, plain| Datum::Text { bytes, plain };
    let a = group(0, 1, GroupCell::Base, 0);
    for state in [Datum::Int(1), text(b"x", true), text(b"\"", false)] {
        check_states(a, &[state]).unwrap();
    }
    for state in [Datum::Object(ShapeId(0)), text(b"\"", true), text(b"\xff", false)] {
        assert!(is_refused(check_states(a, &[state])), "{state:?}");
    }
    check_states(group(0, 0, GroupCell::Base, 0), &[Datum::Object(ShapeId(0))]).unwrap();
    let l = group(0, 2, GroupCell::Base, 0);
    check_states(l, &[extent(0, 2)]).unwrap();
    for state in [extent(1, 2), Datum::Array(Sequence::Blocks(OrderId(4)))] {
        assert!(is_refused(check_states(l, &[state])), "{state:?}");
    }
}

#[test]
fn states_have_to_be_of_kinds_that_their_columns_had() {
    let mut root = SpaceKinds::default();
    root.add(1, ColumnKinds::INT);
    let bounds = Bounds { kinds: Some(vec![root]), ..bounds() };
    let base = |states: &[Datum<'_>]| {
        let mut cell = Vec::new();
        encode_column(states, &mut cell);
        bounds.check(group(0, 1, GroupCell::Base, 0), Bytes::from(cell))
    };
    let run = |state| {
        let mut cell = Vec::new();
        encode_run(&[(0, 2, state)], &mut cell);
        bounds.check(group(0, 1, GroupCell::Run, 2), Bytes::from(cell))
    };
    for state in [Datum::Int(1), Datum::Null, Datum::Absent] {
        base(&[state]).unwrap();
        run(state).unwrap();
    }
    let text = Datum::Text { bytes: b"x", plain: true };
    assert!(is_refused(base(&[text])) && is_refused(run(text)));
}

#[test]
fn row_group_cells_have_to_be_where_ordinals_were_given_out() {
    let one = [Datum::Int(0)];
    check_states(group(1, 3, GroupCell::Base, 1), &one).unwrap();
    assert!(is_refused(check_states(group(1, 3, GroupCell::Base, 2), &one)), "high water");
    assert!(is_refused(check_states(group(0, 3, GroupCell::Base, 0), &one)), "space");
    assert!(is_refused(check_states(group(1, 4, GroupCell::Base, 0), &one)), "path");
    check_states(group(1, 3, GroupCell::Parent, 0), &one).unwrap();
    assert!(is_refused(check_states(group(1, 3, GroupCell::Parent, 0), &[Datum::Int(1)])));
    check_states(group(1, 3, GroupCell::Born, 0), &[Datum::Int(3)]).unwrap();
    assert!(is_refused(check_states(group(1, 3, GroupCell::Born, 0), &[Datum::Int(4)])));
    assert!(is_refused(check_states(group(1, 3, GroupCell::Key, 0), &one)), "a key is text");
}

#[test]
fn run_pieces_have_to_be_of_revisions_that_there_are() {
    let check = |number, revision| {
        let mut cell = Vec::new();
        encode_run(&[(1, revision, Datum::Null)], &mut cell);
        bounds().check(group(1, 3, GroupCell::Run, number), Bytes::from(cell))
    };
    check(3, 3).unwrap();
    assert!(is_refused(check(2, 3)) && is_refused(check(4, 4)));
}

#[test]
fn order_blocks_entries_values_and_schemas_have_to_be_there() {
    let bounds = bounds();
    let check = |key, cell: &[u8]| bounds.check(key, Bytes::copy_from_slice(cell));
    let mut inner = Vec::new();
    encode_order_block(&OrderBlock::Inner([(OrderId(2), 2)].into()), &mut inner);
    check(CellKey::Order(OrderId(3)), &inner).unwrap();
    assert!(is_refused(check(CellKey::Order(OrderId(2)), &inner)), "below itself");
    assert!(is_refused(check(CellKey::Order(OrderId(4)), &inner)), "beyond the last");
    let entry = CellKey::Entry { space: PathId(3) };
    check(entry, &1_u64.to_le_bytes()).unwrap();
    assert!(is_refused(check(entry, &2_u64.to_le_bytes())));
    assert!(is_refused(check(entry, &[1])));
    check(CellKey::Blob(BlobId(0)), b"text").unwrap();
    assert!(is_refused(check(CellKey::Blob(BlobId(0)), b"\xff")));
    assert!(is_refused(check(CellKey::Blob(BlobId(1)), b"text")));
    check(CellKey::Hash { revision: 3 }, &[7; 32]).unwrap();
    assert!(is_refused(check(CellKey::Hash { revision: 3 }, &[7; 31])));
    assert!(is_refused(check(CellKey::Hash { revision: 4 }, &[7; 32])));
    let empty = [0, 0, 0];
    check(CellKey::Schema(cell_key::schema_number(&empty)), &empty).unwrap();
    assert!(is_refused(check(CellKey::Schema(7), &empty)));
}
