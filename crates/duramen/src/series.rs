//! Time series: points of tags as columns, and the blocks that they are kept in.
//!
//! A point is a time, a value and a quality. Points travel as columns ([`Points`]) from where they
//! are appended to where they are read, and lie in blocks ([`block`]) in between. All of it is
//! exact: a value comes back to the bit, NaN payloads and negative zeros included.

#[cfg_attr(not(test), expect(dead_code, reason = "no tag has points before tags exist"))]
mod block;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
#[cfg_attr(not(test), expect(dead_code, reason = "no tag has points before tags exist"))]
mod points;
mod quality;
mod texts;
mod value;
mod values;

pub use points::{Point, Points};
pub use quality::{Qualities, Quality};
pub use texts::Texts;
pub use value::{SeriesValue, ValueType};
pub use values::Values;
