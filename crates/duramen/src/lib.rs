//! Duramen: an embeddable database engine that keeps every revision of JSON documents,
//! readable at the speed of the present.

mod alignment;
mod clock;
mod damage;
mod durability;
mod encoding;
mod error;
pub mod io;
mod journal;
mod json;
pub mod limits;
mod manifest;
mod node;
mod order;
mod revision;
mod segment;
mod state;
mod store;
mod subsequence;
mod tree;
mod wire;

pub use clock::{Clock, SystemClock};
pub use durability::Durability;
pub use error::{Error, ErrorKind, Result};
pub use json::{ArrayIndex, JsonPointer};
pub use node::{NodeId, NodeKind, Ordinal, PathId};
pub use revision::{CommitSequence, Micros, Revision};
pub use tree::{Change, ChangeKind, Diff, Format, Value, ValueRun};
