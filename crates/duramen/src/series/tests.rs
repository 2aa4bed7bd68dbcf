//! Series of whole databases.

mod lifecycle;
mod model;
mod staging;
mod storage;
