//! JSON text in and out: reading into a tape, exact numbers, escapes and JSON Pointer.

pub(crate) mod equality;
pub(crate) mod escape;
mod fault;
mod names;
pub(crate) mod number;
mod parse;
mod pointer;
mod stream;
mod tape;

pub use pointer::{ArrayIndex, JsonPointer};

pub use parse::ParseOptions;
pub(crate) use parse::{Cut, number_end};
pub(crate) use stream::{NextValue, TextStream};
pub(crate) use tape::{Item, Tape, TapeCursor, TapeIndex};
