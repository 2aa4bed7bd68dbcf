//! Looks for a text in the keys of a large row group.

use memchr::memmem::Finder;

use crate::encoding::Column;
use crate::error::Result;
use crate::segment::CellHandle;
use crate::tree::disk::large::{BaseCell, Content, Directory};

impl Directory {
    /// Calls `visit` with the slots of the keys in which a text is, and these. What is not decoded
    /// of them does not stay so: it is read into `room`, many cells at once.
    pub(crate) fn keys_with(
        &self,
        (text, room): (&Finder<'_>, &mut Vec<u8>),
        visit: &mut impl FnMut(u16, &[u8]),
    ) -> Result<()> {
        let mut look = |cell: &BaseCell, keys: &Column| {
            let first = cell.place.slots_of(keys.len())?.start;
            keys.each_with(text, &mut |at, key| {
                let slot = u16::try_from(at).ok().and_then(|at| first.checked_add(at));
                if let Some(slot) = slot {
                    visit(slot, key);
                }
            })
        };
        let (mut cells, mut handles) = (Vec::new(), Vec::new());
        for base in &self.key {
            let cell = &self.cells[base.cell as usize];
            match (cell.decoded.get(), &cell.content) {
                (Some(keys), _) => look(cell, keys)?,
                (None, Content::Read(content)) => look(cell, &Column::parse(content.clone())?)?,
                (None, Content::Apart(handle)) => {
                    cells.push(cell);
                    handles.push(handle);
                }
            }
        }
        CellHandle::visit_all(&handles, room, &mut |at, content| {
            look(cells[at], &Column::parse(content)?)
        })
    }
}
