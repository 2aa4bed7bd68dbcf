//! The one integration binary of this crate.

mod model;
mod tidy;
