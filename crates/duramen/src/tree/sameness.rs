//! Finds what of a new value is there already, by looking at both side by side.
//!
//! Comparing a stored value with a parsed one member by member takes a fraction of what printing
//! and hashing both takes, which aligning needs (benchmark V7p). So a long array that a put changed
//! here and there is compared place by place first, and only what differs is aligned.

use std::cell::Cell;

use crate::error::Result;
use crate::json::{Item, Tape, TapeIndex, number};
use crate::node::{NodeId, PathId};
use crate::state::{Datum, Extent, Sequence};
use crate::tree::compare::Elements;
use crate::tree::data::{TreeData, node};
use crate::tree::group::Fault;
use crate::tree::schema::Label;
use crate::tree::strips::Strips;
use crate::tree::writer::Writer;

mod places;
mod updates;

/// Elements compared while the tree's lock is held.
const ELEMENTS_AT_A_TIME: usize = 256;
/// Elements of an array from which on it is compared place by place.
const LONG_ELEMENTS: usize = 512;
/// Nodes of one value that are compared together: where a cell is to be read from the disk first,
/// those before it are compared again.
const NODES_OF_VALUE: usize = 1 << 13;

/// Whether values are the same, as far as looking at them tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sameness {
    Same,
    Different,
    /// Order blocks, or values stored apart or whole, would have to be read, or it is large.
    Unknown,
}

impl Writer {
    /// How many elements at the start are the same as those of the new value, as far as looking at
    /// them tells.
    pub(crate) fn same_at_start(
        &self,
        olds: &[NodeId],
        tape: &Tape<'_>,
        new: &[TapeIndex],
    ) -> Result<usize> {
        let mut all = 0;
        for (olds, new) in olds.chunks(ELEMENTS_AT_A_TIME).zip(new.chunks(ELEMENTS_AT_A_TIME)) {
            let same = self.same_run((olds, new), tape)?;
            all += same;
            if same < olds.len().min(new.len()) {
                break;
            }
        }
        Ok(all)
    }

    /// The same at the end.
    pub(crate) fn same_at_end(
        &self,
        olds: &[NodeId],
        tape: &Tape<'_>,
        new: &[TapeIndex],
    ) -> Result<usize> {
        let mut all = 0;
        for (olds, new) in olds.rchunks(ELEMENTS_AT_A_TIME).zip(new.rchunks(ELEMENTS_AT_A_TIME)) {
            let olds: Vec<NodeId> = olds.iter().rev().copied().collect();
            let new: Vec<TapeIndex> = new.iter().rev().copied().collect();
            let same = self.same_run((&olds, &new), tape)?;
            all += same;
            if same < olds.len().min(new.len()) {
                break;
            }
        }
        Ok(all)
    }

    /// Makes elements those of the new value as [`Writer::put_aligned`] does, but keeps those that
    /// are the same at their places, if nearly all of many are; else nothing is done.
    pub(crate) fn put_in_place(
        &self,
        elements: Elements<'_>,
        olds: &[NodeId],
        new: &[TapeIndex],
    ) -> Result<Option<Vec<u64>>> {
        if olds.len() != new.len() || olds.len() < LONG_ELEMENTS {
            return Ok(None);
        }
        let Some(is_same) = places::compare(self, (olds, new), elements.tape)? else {
            return Ok(None);
        };
        let mut ordinals = Vec::with_capacity(new.len());
        let mut at = 0;
        for run in is_same.chunk_by(|a, b| a == b) {
            let places = at..at + run.len();
            at = places.end;
            if run[0] {
                ordinals.extend(olds[places].iter().map(|old| old.ordinal().0));
            } else {
                ordinals.extend(self.put_aligned(elements, &olds[places.clone()], &new[places])?);
            }
        }
        Ok(Some(ordinals))
    }

    /// How many pairs are the same, from the first on.
    fn same_run(&self, (olds, new): (&[NodeId], &[TapeIndex]), tape: &Tape<'_>) -> Result<usize> {
        // What was found before something had to be loaded stays found.
        let same = Cell::new(0);
        self.tree.read(|data| {
            data.kept.check(self.revision)?;
            let mut side = Side::new(data, self.revision, tape);
            while let (Some(&old), Some(&at)) = (olds.get(same.get()), new.get(same.get())) {
                side.begin_value();
                if side.compare((old.path(), old.ordinal().0), at)? != Sameness::Same {
                    break;
                }
                same.set(same.get() + 1);
            }
            Ok(same.get())
        })
    }
}

/// A stored state of a tree, and a parsed value to compare it with.
struct Side<'a, 't> {
    data: &'a TreeData,
    revision: u32,
    /// None where no other nodes of the same paths are read.
    strips: Option<Strips<'a>>,
    tape: &'t Tape<'t>,
    /// Of one value so many nodes may still be looked at.
    nodes_left: usize,
}

impl<'a, 't> Side<'a, 't> {
    fn new(data: &'a TreeData, revision: u32, tape: &'t Tape<'t>) -> Self {
        Self { strips: Some(Strips::new(data, revision)), ..Self::of_one(data, revision, tape) }
    }

    /// The same for a single node and what is below it.
    fn of_one(data: &'a TreeData, revision: u32, tape: &'t Tape<'t>) -> Self {
        Self { data, revision, strips: None, tape, nodes_left: NODES_OF_VALUE }
    }

    fn begin_value(&mut self) {
        self.nodes_left = NODES_OF_VALUE;
    }

    /// Whether one more node of the value may be looked at.
    fn has_room(&mut self) -> bool {
        #[cfg(test)]
        tests::NODES_LOOKED_AT.with(|nodes| nodes.set(nodes.get() + 1));
        let has_room = self.nodes_left > 0;
        self.nodes_left = self.nodes_left.saturating_sub(1);
        has_room
    }

    fn state(&mut self, path: PathId, ordinal: u64) -> Result<Datum<'a>, Fault> {
        match &mut self.strips {
            Some(strips) => strips.state(path, ordinal),
            None => self.data.state(node(path, ordinal), self.revision),
        }
    }

    fn compare(
        &mut self,
        (path, ordinal): (PathId, u64),
        at: TapeIndex,
    ) -> Result<Sameness, Fault> {
        if !self.has_room() {
            return Ok(Sameness::Unknown);
        }
        let state = self.state(path, ordinal)?;
        let is_same = match (state, self.tape.item(at)) {
            (Datum::Object(shape), Item::Object { len }) => {
                let fields = self.data.schema.shape(shape);
                if fields.len() != len as usize {
                    return Ok(Sameness::Different);
                }
                for (field, (name, value)) in fields.iter().zip(self.tape.fields(at)) {
                    let Item::Text { bytes, .. } = name else { return Ok(Sameness::Unknown) };
                    if self.data.schema.label(field.path) != Label::Field(bytes) {
                        return Ok(Sameness::Different);
                    }
                    let found = self.compare((field.path, ordinal), value)?;
                    if found != Sameness::Same {
                        return Ok(found);
                    }
                }
                true
            }
            (Datum::Array(Sequence::Extent(extent)), Item::Array { len }) => {
                return self.compare_elements((path, extent), at, len);
            }
            (Datum::Text { bytes, .. }, Item::Text { bytes: given, .. }) => bytes == given,
            (Datum::Bool(value), Item::Bool(given)) => value == given,
            (Datum::Null, Item::Null) => true,
            (Datum::Array(_) | Datum::Map(_) | Datum::Opaque(_) | Datum::Apart { .. }, _) => {
                return Ok(Sameness::Unknown);
            }
            (number, Item::Number(text)) => number::classify(text) == number,
            _ => false,
        };
        Ok(if is_same { Sameness::Same } else { Sameness::Different })
    }

    fn compare_elements(
        &mut self,
        (array, extent): (PathId, Extent),
        at: TapeIndex,
        len: u32,
    ) -> Result<Sameness, Fault> {
        if extent.count != len {
            return Ok(Sameness::Different);
        }
        let Some(path) = self.data.schema.path(array).element else {
            return Ok(Sameness::Unknown);
        };
        for (ordinal, at) in (extent.first..).zip(self.tape.elements(at)) {
            let found = self.compare((path, ordinal), at)?;
            if found != Sameness::Same {
                return Ok(found);
            }
        }
        Ok(Sameness::Same)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crate::{CommitOptions, Database, Document, Revision};

    thread_local! {
        pub(super) static NODES_LOOKED_AT: Cell<usize> = const { Cell::new(0) };
    }

    fn rows(count: usize) -> Vec<String> {
        let row = |index: usize| {
            let more = ["null", "[1,\"\\n\"]", "{}", "1.50", "[]", "{\"x\":[true]}"][index % 6];
            format!("{{\"id\":{index},\"name\":\"row {index}\",\"more\":{more}}}")
        };
        (0..count).map(row).collect()
    }

    fn put(document: &Document, rows: &[String]) -> String {
        let text = format!("[{}]", rows.join(","));
        document.put(&text, &CommitOptions::default()).unwrap();
        assert_eq!(document.head().unwrap().to_json().unwrap(), text);
        text
    }

    /// The operations that lead to the newest revision, without their values.
    fn operations(document: &Document) -> Vec<String> {
        let head = document.head_revision().unwrap();
        let patch = document.diff(Revision(head.0 - 1), head).unwrap().to_json_patch();
        let patch: Vec<serde_json::Value> = serde_json::from_str(&patch).unwrap();
        let told = |operation: &serde_json::Value| {
            let part = |name: &str| operation[name].as_str().unwrap_or("").to_owned();
            format!("{} {}", part("op"), part("path"))
        };
        patch.iter().map(told).collect()
    }

    #[test]
    fn long_array_changed_here_and_there_commits_what_differs_only() {
        let db = Database::memory().unwrap();
        let document = db.create_document("d").unwrap();
        // Threads share them: some stand where a part of one ends and that of another begins.
        let mut rows = rows(9_000);
        let changed = [7, 2_054, 2_055, 4_102, 8_999];
        put(&document, &rows);
        for (round, is_on_disk) in [(1, false), (2, true)] {
            if is_on_disk {
                db.checkpoint().unwrap();
            }
            for at in changed {
                rows[at] = rows[at].replace("row", &format!("row of round {round}"));
            }
            // The same members in another order are another value.
            rows[1_500] = format!("{{\"name\":\"{round}\",\"id\":1500,\"more\":null}}");
            put(&document, &rows);
            let changed = changed.into_iter().chain([1_500]);
            let mut expected: Vec<_> = changed.map(|at| format!("replace /{at}/name")).collect();
            expected.sort();
            let mut found = operations(&document);
            found.sort();
            assert_eq!(found, expected);
        }
    }

    /// It once was compared from its start again for each cell that was read.
    #[test]
    fn large_value_on_disk_is_compared_once() {
        let rows = rows(20_000);
        let nested = |rows: &[String]| format!("{{\"rows\":[{}]}}", rows.join(","));
        let pages: Vec<String> = rows.chunks(7_000).map(nested).collect();
        for elements in [rows, pages] {
            let db = Database::memory().unwrap();
            let document = db.create_document("d").unwrap();
            put(&document, &elements);
            db.checkpoint().unwrap();
            let before = NODES_LOOKED_AT.get();
            put(&document, &elements);
            assert_eq!(document.head_revision().unwrap(), Revision(1));
            let looked_at = NODES_LOOKED_AT.get() - before;
            // A row has four nodes, and some of those within its last member.
            assert!(looked_at < 300_000, "{looked_at} nodes");
        }
    }

    #[test]
    fn items_that_move_a_little_in_a_long_array_are_still_matched() {
        let db = Database::memory().unwrap();
        let document = db.create_document("d").unwrap();
        let mut rows = rows(3_000);
        put(&document, &rows);
        // As many as before: ten items in between are at other places.
        rows.remove(100);
        rows.insert(110, "\"new\"".to_owned());
        rows[2_000] = "\"other\"".to_owned();
        put(&document, &rows);
        assert_eq!(operations(&document), ["remove /100", "add /110", "replace /2000"]);
    }
}
