//! The commands, one a module: each parses, calls the engine once, and renders.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod log;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod put;
pub(crate) mod remove;
pub(crate) mod set;
pub(crate) mod shell;
pub(crate) mod show;
pub(crate) mod stat;
