//! The commands, one a module: each parses, calls the engine once, and renders.

pub(crate) mod check;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod get;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod log;
pub(crate) mod ls;
pub(crate) mod put;
pub(crate) mod remove;
pub(crate) mod set;
pub(crate) mod stat;

mod written;
