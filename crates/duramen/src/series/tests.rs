//! Series of whole databases.

mod lifecycle;
mod model;
mod rollups;
mod staging;
mod storage;
