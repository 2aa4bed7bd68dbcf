//! The one integration binary of this crate.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bulk;
mod cold_reads;
mod failing_reads;
mod feed;
mod full_disk;
mod indexes;
mod merges;
mod model;
mod purge;
mod tidy;
