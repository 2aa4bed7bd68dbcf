//! Looks for a text in the keys of entries, a row group at once.

use std::sync::Arc;

use memchr::memmem::Finder;

use crate::error::Result;
use crate::state::Datum;
use crate::tree::Tree;
use crate::tree::group::{ColumnId, DiskPart, GroupId};

impl Tree {
    /// Calls `visit` with the slots of the entries of a row group whose keys have a text in them,
    /// whether they are there or not, and these keys. One that a checkpoint writes meanwhile may
    /// come twice. Keys that are not decoded are read into `room`, and not kept.
    pub(crate) fn keys_with(
        &self,
        id: GroupId,
        (text, room): (&Finder<'_>, &mut Vec<u8>),
        visit: &mut impl FnMut(u16, &[u8]),
    ) -> Result<()> {
        let disk = self.read(|data| {
            let Some(group) = data.group_for_scan(id)? else { return Ok(None) };
            if let Some(young) = group.young_column(ColumnId::Key) {
                let (first, births) = young.births();
                for (slot, birth) in (first..).zip(births.as_ref()) {
                    if let Datum::Text { bytes, .. } = group.unpack(*birth)
                        && text.find(bytes).is_some()
                    {
                        visit(slot, bytes);
                    }
                }
            }
            Ok(match &group.disk {
                DiskPart::Loaded(disk) => Some(Arc::clone(disk.directory())),
                _ => None,
            })
        })?;
        disk.map_or(Ok(()), |disk| disk.keys_with((text, room), visit))
    }
}
