//! Duramen: an embeddable database engine that keeps every revision of JSON documents,
//! readable at the speed of the present.

mod clock;
mod encoding;
mod error;
pub mod io;
pub mod limits;
mod node;
mod revision;
mod state;

pub use clock::{Clock, SystemClock};
pub use error::{Error, ErrorKind, Result};
pub use node::{NodeId, NodeKind, Ordinal, PathId};
pub use revision::{CommitSequence, Micros, Revision};
