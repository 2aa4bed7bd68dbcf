//! Series of whole databases.

mod blocks;
mod lifecycle;
mod model;
mod rollups;
mod staging;
mod storage;
