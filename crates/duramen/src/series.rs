//! Time series: points of tags as columns, and the blocks that they are kept in.
//!
//! A point is a time, a value and a quality. Points travel as columns ([`Points`]) from where they
//! are appended to where they are read, and lie in blocks ([`block`]) in between. All of it is
//! exact: a value comes back to the bit, NaN payloads and negative zeros included.

mod aggregate;
mod block;
pub(crate) mod changes;
pub(crate) mod checkpoint;
pub(crate) mod commits;
mod cursor;
mod definition;
pub(crate) mod deletes;
mod filter;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod handle;
mod interpolation;
mod line;
mod lossy;
mod many;
pub(crate) mod merge;
pub(crate) mod names;
pub(crate) mod past;
mod piece;
mod points;
mod quality;
mod range;
mod reading;
pub(crate) mod rollup;
pub(crate) mod rules;
mod snapshot;
mod source;
pub(crate) mod span;
mod stats;
pub(crate) mod tags;
mod texts;
mod thinning;
mod tiers;
mod value;
mod values;
pub(crate) mod verify;
mod windows;
pub(crate) mod young;

pub use aggregate::{
    Aggregate, AggregateOptions, Fill, Hold, QualityFilter, WindowColumn, WindowTable,
};
pub(crate) use block::{Density, Sequences};
pub use cursor::SeriesCursor;
pub(crate) use definition::series_number;
pub use definition::{SeriesDefinition, SeriesInfo};
pub use filter::SeriesFilter;
pub use handle::Series;
pub(crate) use handle::check_type;
pub use lossy::Lossy;
pub use many::{SeriesGrid, TopOptions};
pub(crate) use piece::Piece;
pub use points::{Point, Points};
pub use quality::{Qualities, Quality};
pub use range::{RangeOptions, SeriesRange};
pub(crate) use reading::Reading;
pub use rules::SeriesRule;
pub use snapshot::{Interpolation, SeriesSnapshot};
pub(crate) use source::{Course, Direction};
pub use stats::SeriesStats;
pub use texts::Texts;
pub use thinning::Thinning;
pub use tiers::Rollup;
pub use value::{SeriesValue, ValueType};
pub use values::Values;
pub use windows::Windows;

#[cfg(test)]
mod tests;
