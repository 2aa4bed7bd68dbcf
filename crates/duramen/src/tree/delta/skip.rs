//! Reads past a delta without the tree that it belongs to: what repair does where that tree, or a
//! commit before, is lost.
//!
//! Invariant: it ends where applying the delta would have ended.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use super::decode_datum;
use crate::error::Result;
use crate::limits::{ORDINALS_MAX, ROW_GROUP_SLOTS};
use crate::wire::Reader;

/// Reads past one delta.
pub(crate) fn skip(reader: &mut Reader<'_>) -> Result<()> {
    skip_schema(reader)?;
    for _ in 0..reader.count()? {
        skip_births(reader)?;
    }
    // Order blocks, then values stored apart.
    for _ in 0..2 {
        for _ in 0..reader.count()? {
            reader.bytes()?;
        }
    }
    for _ in 0..reader.count()? {
        reader.varint()?;
        reader.varint()?;
        decode_datum(reader)?;
    }
    for _ in 0..reader.count()? {
        for _ in 0..4 {
            reader.varint()?;
        }
    }
    Ok(())
}

fn skip_schema(reader: &mut Reader<'_>) -> Result<()> {
    const FIELD: u8 = 1;
    for _ in 0..reader.count()? {
        let kind = reader.byte()?;
        reader.varint()?;
        if kind == FIELD {
            reader.bytes()?;
        }
    }
    for _ in 0..reader.count()? {
        for _ in 0..reader.count()? {
            reader.signed()?;
        }
    }
    Ok(())
}

/// The births of one space, row group by row group.
fn skip_births(reader: &mut Reader<'_>) -> Result<()> {
    reader.varint()?;
    let (from, count) = (reader.varint()?, reader.varint()?);
    let last = from.checked_add(count).and_then(|end| end.checked_sub(1));
    let Some(last) = last.filter(|&last| last < ORDINALS_MAX) else {
        return Err(reader.corrupt("more ordinals than a tree has"));
    };
    for _ in from / ROW_GROUP_SLOTS..=last / ROW_GROUP_SLOTS {
        for _ in 0..reader.count()? {
            for _ in 0..3 {
                reader.varint()?;
            }
            reader.bytes()?;
        }
    }
    Ok(())
}
