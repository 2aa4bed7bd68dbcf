//! Where: a value of a document.

use clap::Args;
use duramen::{JsonPointer, Target};

use crate::Result;

/// One value of a document.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// A JSON Pointer, such as /players/3/name, or # and a value's id; '' is the whole document
    #[arg(value_name = "POINTER")]
    place: String,
}

impl Place {
    pub(crate) fn target(&self) -> Result<Target> {
        Ok(Target::parse(&self.place)?)
    }

    pub(crate) fn pointer(&self) -> Result<JsonPointer> {
        Ok(JsonPointer::parse(&self.place)?)
    }
}
