//! Looks for a text in the keys of entries, a row group at once.

use memchr::memmem::Finder;

use crate::state::Datum;
use crate::tree::data::TreeData;
use crate::tree::group::{ColumnId, DiskPart, Fault, GroupId};

impl TreeData {
    /// Calls `visit` with the slots of the entries of a row group whose keys have a text in them,
    /// whether they are there or not, and these keys. One that a checkpoint writes meanwhile may
    /// come twice.
    pub(crate) fn keys_with<'a>(
        &'a self,
        id: GroupId,
        text: &Finder<'_>,
        visit: &mut impl FnMut(u16, &'a [u8]),
    ) -> Result<(), Fault> {
        let Some(group) = self.group_for_scan(id)? else { return Ok(()) };
        if let DiskPart::Loaded(disk) = &group.disk {
            for (first, keys) in disk.bases(ColumnId::Key)? {
                keys.each_with(text, &mut |at, key| {
                    let slot = u16::try_from(at).ok().and_then(|at| first.checked_add(at));
                    if let Some(slot) = slot {
                        visit(slot, key);
                    }
                })?;
            }
        }
        let Some(young) = group.young_column(ColumnId::Key) else { return Ok(()) };
        let (first, births) = young.births();
        for (slot, birth) in (first..).zip(births) {
            if let Datum::Text { bytes, .. } = group.unpack(*birth)
                && text.find(bytes).is_some()
            {
                visit(slot, bytes);
            }
        }
        Ok(())
    }
}
