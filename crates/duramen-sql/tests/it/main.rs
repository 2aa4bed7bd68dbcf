//! Queries from the outside: files of queries with their answers, and random ones.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod by_group;
mod damage;
mod depth;
mod differential;
mod fast;
mod files;
mod joined;
mod loads;
mod marks;
mod memory;
mod names;
mod outgrown;
mod parameters;
mod sought;
mod sqlite;
