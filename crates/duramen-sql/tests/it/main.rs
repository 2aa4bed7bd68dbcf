//! Queries from the outside: files of queries with their answers, and random ones.

mod differential;
mod files;
