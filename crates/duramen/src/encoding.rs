//! The warm encoding of cells: what lies on disk is what is read in memory.
//!
//! A cell is parsed as a thin view over its bytes: parsing looks at the headers alone, whatever
//! the number of values, and a read goes straight to its value. `docs/format.md` describes
//! every byte.
//!
//! Invariants:
//! - parsing and reading never panic, whatever the bytes are, and parsing allocates nothing but the
//!   texts of packed keys;
//! - parsing proves that every vector lies inside its cell; what only a pass over all values
//!   could prove (offsets that rise, codes below their dictionary's length, payloads within their
//!   limits) is checked by the read that depends on it, so that a point read pays for one value;
//! - a vector stores no length of its own where its owner knows it;
//! - the parts of a cell (`Integers`, `Bits`, `Tags`, `Texts`) are plain data without a
//!   lifetime and a read takes the cell they were parsed from: the owner holds the bytes once,
//!   and no part costs a reference count. Over any other bytes a part reads `None` or garbage.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod bits;
mod column;
mod integers;
mod order;
mod packed_keys;
mod reader;
mod revision_rows;
mod run;
mod summary;
mod tags;
mod texts;
mod vectors;

#[cfg(test)]
mod tests;

pub(crate) use column::{Column, ColumnBuilder, Encoded, Sizes, Stretch, encode_column};
pub(crate) use integers::{Differences, Integers, Values, ValuesCell};
pub(crate) use order::{decode_order_block, encode_order_block};
pub(crate) use packed_keys::{encode_keys, pack_keys, unmixed_keys};
pub(crate) use revision_rows::{RevisionRows, RevisionRowsBlock};
pub(crate) use run::{RunChange, RunPiece, encode_complete_run, encode_run};
pub(crate) use summary::Summary;
pub(crate) use vectors::{CellForm, Vector, vectors};
