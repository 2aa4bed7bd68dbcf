//! From when to when.

use std::ops::Bound;

use clap::Args;
use duramen::{Error, ErrorKind, Micros};

use crate::{Result, readings};

/// A span of time.
#[derive(Debug, Args)]
pub(super) struct Span {
    /// From this time on
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// Up to this time, which is not part of it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,
}

impl Span {
    pub(super) fn bounds(&self) -> Result<(Bound<Micros>, Bound<Micros>)> {
        let from = self.from.as_deref().map(parse).transpose()?;
        let to = self.to.as_deref().map(parse).transpose()?;
        let bounds = (from.map_or(Bound::Unbounded, Bound::Included), to);
        Ok((bounds.0, bounds.1.map_or(Bound::Unbounded, Bound::Excluded)))
    }
}

/// A time as people write it.
pub(super) fn parse(text: &str) -> Result<Micros> {
    let time = readings::time(text);
    Ok(time.map_err(|reason| Error::new(ErrorKind::Invalid, reason))?)
}
