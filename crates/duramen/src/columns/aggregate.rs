//! Counts, sums, bounds and distinct values of columns by group, from the cells as they are
//! encoded: nothing is decoded that heads of cells, codes and bitmaps can tell.
//!
//! A column of a range of slots is a *view*: sections of cells and, apart, the slots that changed
//! since. A filter makes a bitmap of a view's values, bitmaps are combined, and what is measured is
//! added up where bits are set. What is not in such a form is decoded ([`ColumnChunk`]) and takes
//! the same way.
//!
//! Invariants:
//! - answers are those of reading every value: heads of cells serve only where all of their slots
//!   are rows and none changed, or where what a few of these had can be taken off;
//! - the lock of the tree is held for one range of slots of one row group at a time.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use super::{ColumnChunk, ColumnRows, Columns, group_of};
use crate::error::{Error, ErrorKind, Result};
use crate::node::PathId;
use crate::state::{Datum, ShapeId};
use crate::tree::conditions::{Bits, GroupScan, has_field};
use crate::tree::data::TreeData;
use crate::tree::encoded::EncodedGroup;
use crate::tree::group::Fault;
use crate::tree::scan::{ColumnScan, Visitor};

mod cache;
mod coding;
mod filter;
mod floats;
mod fold;
mod mask;
mod states;
#[cfg(test)]
mod tests;
mod totals;
mod value;
mod view;

use cache::CachedViews;
pub(super) use cache::ViewCache;
use filter::holding;
pub use filter::{Comparison, RangeOfInt, RowFilter, ValueTest};
pub use floats::FloatSum;
use mask::Mask;
pub use states::{AggregateWork, Aggregates, Measure, Measured, Sum};
pub use value::{AggregateValue, ValueKind};
use view::View;

/// A column that an aggregate looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AggregateColumn {
    /// The path of its values.
    pub path: PathId,
    /// What they are taken as.
    pub kind: ValueKind,
}

/// What is asked of rows together. Columns are named by their places in `columns`.
///
/// ```
/// use duramen::{
///     AggregateColumn, AggregatePlan, CommitOptions, Database, KeyKind, Measure, Measured,
///     RowFilter, ValueKind, ValueTest,
/// };
///
/// let db = Database::memory()?;
/// let players = db.create_collection("players", KeyKind::I64)?;
/// players.put(1, r#"{"team":"oak","won":3}"#, &CommitOptions::default())?;
/// players.put(2, r#"{"team":"oak"}"#, &CommitOptions::default())?;
/// let columns = players.head()?.columns()?;
/// let won = columns.root()?.fields[1].path;
/// let plan = AggregatePlan {
///     columns: vec![AggregateColumn { path: won, kind: ValueKind::Int }],
///     filter: RowFilter::Column(0, ValueTest::IsMissing),
///     keys: Vec::new(),
///     measures: vec![Measure::Rows],
/// };
/// let mut found = plan.start();
/// columns.aggregate(0..columns.parts(), &plan, &mut found)?;
/// assert!(matches!(&found.measured()[0], Measured::Count(rows) if rows == &[1]));
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AggregatePlan {
    /// The columns.
    pub columns: Vec<AggregateColumn>,
    /// Which rows are looked at.
    pub filter: RowFilter,
    /// The columns that rows are grouped by: up to three.
    pub keys: Vec<usize>,
    /// What is found of each group.
    pub measures: Vec<Measure>,
}

/// Why a range of slots has to be looked at again.
enum Ranged {
    /// Not at all; so many bytes of cells said which rows there are.
    Done(usize),
    /// A column has to be decoded first.
    Wants(usize),
}

/// Slots of a row group.
type Place = (u64, Range<u16>);

/// Columns of a plan that had to be decoded.
type Decoded = SmallVec<[(usize, ColumnChunk); 1]>;

impl AggregatePlan {
    /// What is found of no rows.
    pub fn start(&self) -> Aggregates {
        Aggregates::new(&self.measures, self.keys.len())
    }
}

impl Columns {
    /// Adds what some parts have to what is found; `Unsupported` if rows are versions of records.
    ///
    /// What was looked up of their columns is kept for the next aggregate over the same rows,
    /// within the memory of the database.
    pub fn aggregate(
        &self,
        parts: Range<usize>,
        plan: &AggregatePlan,
        found: &mut Aggregates,
    ) -> Result<()> {
        if self.are_versions() {
            let message = "versions of records are not aggregated by column: read them as rows";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let erasures = self.tree.read(|data| {
            data.kept.check(self.revision)?;
            Ok(data.disk_state().erasures)
        })?;
        let cached = self.views.of(plan, self.parts(), erasures);
        for part in parts.start..parts.end.min(self.parts()) {
            if found.is_full() {
                break;
            }
            found.work.parts += 1;
            self.aggregate_part((part, plan), &cached, found)?;
        }
        Ok(())
    }

    fn aggregate_part(
        &self,
        (part, plan): (usize, &AggregatePlan),
        cached: &CachedViews,
        found: &mut Aggregates,
    ) -> Result<()> {
        let ranges = &self.parts[part][..];
        // What is in no column is read row by row.
        let are_all_in_columns = !self.has_outgrown()?;
        // What is known is known of parts of one range.
        let cached = (ranges.len() == 1).then_some(cached);
        for ordinals in ranges {
            let place = group_of(ordinals);
            if let Some((rows, views)) = cached.and_then(|all| all.part(part, (plan, &place.1))) {
                found.look((plan, &place.1), rows, &views);
                continue;
            }
            let mut decoded = Decoded::new();
            loop {
                let mut look = |rows: &Mask, views: &[View<'_>]| {
                    found.look((plan, &place.1), rows, views);
                    if let Some(cached) = cached {
                        cached.keep(part, rows, views);
                    }
                };
                let outcome = self.tree.read(|data| {
                    self.aggregate_range(
                        (data, &place, are_all_in_columns),
                        plan,
                        &decoded,
                        &mut look,
                    )
                })?;
                let column = match outcome {
                    Ranged::Done(bytes) => {
                        found.work.bytes += bytes as u64;
                        break;
                    }
                    Ranged::Wants(column) => column,
                };
                let ordinals = ordinals.clone().collect();
                let rows = ColumnRows { ordinals, ..ColumnRows::default() };
                decoded.push((column, self.read(&rows, plan.columns[column].path)?));
            }
            found.work.decoded += u64::from(!decoded.is_empty());
            self.tree.cells.memory().settle();
        }
        Ok(())
    }

    fn aggregate_range(
        &self,
        (data, (group, slots), are_all_in_columns): (&TreeData, &Place, bool),
        plan: &AggregatePlan,
        decoded: &Decoded,
        look: &mut dyn FnMut(&Mask, &[View<'_>]),
    ) -> Result<Ranged, Fault> {
        let Some(path) = self.path else { return Ok(Ranged::Done(0)) };
        let scan = self.scan(data, path, *group, slots.clone());
        let encoded = data.encoded_group(scan.group, slots.clone(), self.revision)?;
        let Rows { live, there, bytes } = self.rows_of((data, &encoded), &scan, plan)?;
        let mut views = SmallVec::<[View<'_>; 2]>::new();
        for ((index, column), there) in plan.columns.iter().enumerate().zip(there) {
            let chunk = decoded.iter().find(|(known, _)| *known == index);
            let view = if let Some((_, chunk)) = chunk {
                Some(View::decoded(chunk, column.kind, slots))
            } else {
                let info = data.schema.path(column.path);
                let is_own = info.space == scan.group.space && are_all_in_columns;
                let stored = if is_own { encoded.column(info.column)? } else { None };
                stored.and_then(|stored| View::encoded(&stored, column.kind, slots, there))
            };
            let Some(view) = view else { return Ok(Ranged::Wants(index)) };
            views.push(view);
        }
        look(&live, &views);
        Ok(Ranged::Done(bytes))
    }

    /// Which slots are rows, and which have the fields of a plan.
    fn rows_of(
        &self,
        (data, encoded): (&TreeData, &EncodedGroup<'_>),
        scan: &ColumnScan,
        plan: &AggregatePlan,
    ) -> Result<Rows, Fault> {
        let of = data.schema.space(scan.group.space).path;
        let there = smallvec![Mask::All; plan.columns.len()];
        let mut rows = Rows { live: Mask::All, there, bytes: 0 };
        let mut fields = Fields { data, wanted: SmallVec::new(), known: None };
        for (index, column) in plan.columns.iter().enumerate() {
            let (path, slots) = (column.path, scan.slots.clone());
            if path != of && data.schema.path(path).parent == of {
                fields.wanted.push((index, path, false));
            } else if path != of {
                let group = u64::from(scan.group.group);
                let mut levels = GroupScan::new(data, of, group, slots, self.revision);
                rows.there[index] = Mask::Some(Box::new(levels.presence(path)?));
                rows.bytes += levels.read_bytes;
            }
        }
        // The elements of an array are there; a record may have been deleted.
        if self.keys.is_none() && fields.wanted.is_empty() {
            return Ok(rows);
        }
        let stored = encoded.column(scan.column)?;
        if let Some(state) = stored.and_then(|stored| stored.only(&scan.slots)) {
            let is_row = fields.look(data.schema.extent().vet(state)?);
            rows.live = if is_row { Mask::All } else { Mask::None };
            for (index, _, has) in fields.wanted {
                rows.there[index] = if has { Mask::All } else { Mask::None };
            }
        } else {
            let there = smallvec![Bits::none(); fields.wanted.len()];
            let mut visited = Visited { live: Bits::none(), there, fields, bytes: 0 };
            data.scan(scan, &mut visited)?;
            rows.bytes += visited.bytes;
            rows.live = Mask::Some(Box::new(visited.live));
            for ((index, ..), there) in visited.fields.wanted.into_iter().zip(visited.there) {
                rows.there[index] = Mask::Some(Box::new(there));
            }
        }
        if self.keys.is_none() {
            rows.live = Mask::All;
        }
        Ok(rows)
    }
}

impl Aggregates {
    /// Adds the rows among some slots that the filter of a plan holds for.
    fn look(
        &mut self,
        (plan, slots): (&AggregatePlan, &Range<u16>),
        rows: &Mask,
        views: &[View<'_>],
    ) {
        self.work.rows += rows.count(slots);
        let held = holding(&plan.filter, views, rows);
        let is_read = || views.iter().any(|view| view.read.get());
        if held.is_none() {
            self.work.pruned += u64::from(!is_read() && !rows.is_none());
        } else {
            self.fold(views, &plan.keys, (slots, &held));
            self.work.summarised += u64::from(!is_read());
        }
        let of_cells = |view: &View<'_>| if view.read.get() { view.bytes } else { 0 };
        let read = views.iter().map(|view| (of_cells(view) + view.changes_bytes) as u64);
        self.work.bytes += read.sum::<u64>();
    }
}

/// What the states of elements or entries say of their slots.
struct Rows {
    /// Where there is a value other than null.
    live: Mask,
    /// By column of the plan, where objects have it.
    there: SmallVec<[Mask; 4]>,
    /// Of the cells that say so.
    bytes: usize,
}

/// Columns of a plan that are fields of the elements or entries.
struct Fields<'d> {
    data: &'d TreeData,
    /// Their places in the plan, and whether objects of the known shape have them.
    wanted: SmallVec<[(usize, PathId, bool); 4]>,
    known: Option<ShapeId>,
}

impl Fields<'_> {
    /// Finds out which fields there are; whether there is a row.
    fn look(&mut self, state: Datum<'_>) -> bool {
        let shape = match state {
            Datum::Object(shape) => Some(shape),
            _ => None,
        };
        if shape.is_none() || shape != self.known {
            for (_, path, has) in &mut self.wanted {
                *has = shape.is_some_and(|shape| has_field(self.data, shape, *path));
            }
            self.known = shape;
        }
        !matches!(state, Datum::Absent | Datum::Null)
    }
}

/// The elements or entries slot by slot.
struct Visited<'d> {
    live: Bits,
    /// By field, where objects have it.
    there: SmallVec<[Bits; 2]>,
    fields: Fields<'d>,
    bytes: usize,
}

impl Visitor for Visited<'_> {
    fn reads(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    fn state(&mut self, slot: u16, state: Datum<'_>) {
        let is_row = self.fields.look(state);
        self.live.assign(slot, is_row);
        for (there, (_, _, has)) in self.there.iter_mut().zip(&self.fields.wanted) {
            there.assign(slot, *has);
        }
    }

    fn same(&mut self, slots: Range<u16>, state: Datum<'_>) {
        let is_row = self.fields.look(state);
        let all = Bits::of(&slots);
        let assign = |bits: &mut Bits, is_set: bool| {
            *bits = if is_set { bits.or(&all) } else { bits.without(&all) };
        };
        assign(&mut self.live, is_row);
        for (there, (_, _, has)) in self.there.iter_mut().zip(&self.fields.wanted) {
            assign(there, *has);
        }
    }
}
