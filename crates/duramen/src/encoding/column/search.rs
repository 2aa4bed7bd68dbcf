//! Looks for a text in all strings of a column at once.

use memchr::memmem::Finder;

use super::Column;
use crate::error::Result;
use crate::state::Datum;

impl Column {
    /// Calls `visit` with the slots whose strings have a text in them, rising, and these strings.
    pub(crate) fn each_with<'a>(
        &'a self,
        text: &Finder<'_>,
        visit: &mut impl FnMut(usize, &'a [u8]),
    ) -> Result<()> {
        let mut visit_slot = |slot: usize| {
            if let Datum::Text { bytes, .. } = self.get(slot)?
                && text.find(bytes).is_some()
            {
                visit(slot, bytes);
            }
            Ok(())
        };
        let joined = match (&self.bare, &self.numbers, &self.texts) {
            (None, None, Some(texts)) => {
                let bytes = texts.values.joined_bytes(&self.cell);
                if bytes.is_some_and(|bytes| text.find(bytes).is_none()) {
                    // Most often no string has it, and where they end need not be known.
                    return Ok(());
                }
                texts.values.joined(&self.cell)
            }
            _ => None,
        };
        match joined {
            Some(joined) if !text.needle().is_empty() => joined.with(text).try_for_each(visit_slot),
            _ => (0..self.len()).try_for_each(&mut visit_slot),
        }
    }
}
