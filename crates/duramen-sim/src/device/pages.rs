//! The bytes of one file in pages that versions of it share.
//!
//! Invariants:
//! - bytes at and beyond `len` read as zeros once the file grows over them;
//! - a page that is missing is zeros, and so is what lies behind the last one;
//! - a clone costs one counter a page, and a page is copied when it is first written after that.

use std::sync::Arc;

/// Bytes in a page.
pub(super) const PAGE_BYTES: usize = 4_096;

pub(super) type Page = Arc<[u8; PAGE_BYTES]>;

static ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

#[derive(Debug, Clone, Default)]
pub(super) struct Pages {
    len: u64,
    pages: Vec<Option<Page>>,
}

impl Pages {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Page `index`; `None` if it is zeros.
    pub(super) fn page(&self, index: usize) -> Option<&Page> {
        self.pages.get(index)?.as_ref()
    }

    /// Replaces page `index`, if the file has it.
    pub(super) fn set_page(&mut self, index: usize, page: Option<Page>) {
        if let Some(slot) = self.pages.get_mut(index) {
            *slot = page;
            self.trim();
        }
    }

    /// Fills `buf` from `offset` on; returns how much of it the file has.
    pub(super) fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let rest = self.len.saturating_sub(offset);
        let read = usize::try_from(rest).map_or(buf.len(), |rest| rest.min(buf.len()));
        let mut done = 0;
        while done < read {
            let (index, start) = place(offset + done as u64);
            let take = (PAGE_BYTES - start).min(read - done);
            let page = self.page(index).map_or(&ZEROS, |page| &**page);
            buf[done..done + take].copy_from_slice(&page[start..start + take]);
            done += take;
        }
        read
    }

    /// Writes `bytes`, growing the file if need be.
    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        let end = offset + bytes.len() as u64;
        let mut done = 0;
        while done < bytes.len() {
            let (index, start) = place(offset + done as u64);
            let take = (PAGE_BYTES - start).min(bytes.len() - done);
            self.write_page(index, start, &bytes[done..done + take]);
            done += take;
        }
        self.len = self.len.max(end);
    }

    fn write_page(&mut self, index: usize, start: usize, bytes: &[u8]) {
        if index >= self.pages.len() {
            self.pages.resize(index + 1, None);
        }
        let slot = &mut self.pages[index];
        if let Ok(whole) = <&[u8; PAGE_BYTES]>::try_from(bytes) {
            // Files are filled with zeros before use; such pages need no memory.
            *slot = (*whole != ZEROS).then(|| Arc::new(*whole));
            return;
        }
        let page = Arc::make_mut(slot.get_or_insert_with(|| Arc::new(ZEROS)));
        page[start..start + bytes.len()].copy_from_slice(bytes);
    }

    /// Cuts or grows the file with zeros.
    pub(super) fn set_len(&mut self, len: u64) {
        let is_cut = len < self.len;
        self.len = len;
        if is_cut {
            self.trim();
        }
    }

    /// Puts zeros behind the end, so that growth shows nothing else.
    fn trim(&mut self) {
        let (index, start) = place(self.len);
        self.pages.truncate(if start == 0 { index } else { index + 1 });
        if start > 0
            && let Some(Some(page)) = self.pages.get_mut(index)
        {
            Arc::make_mut(page)[start..].fill(0);
        }
    }

    /// Flips the bits of `mask` in the byte at `offset`, if the file has it.
    pub(super) fn flip(&mut self, offset: u64, mask: u8) {
        let mut byte = [0];
        if self.read(&mut byte, offset) == 1 {
            self.write(&[byte[0] ^ mask], offset);
        }
    }
}

/// The page of a byte and its place in it.
pub(super) fn place(offset: u64) -> (usize, usize) {
    let page_bytes = PAGE_BYTES as u64;
    let index = usize::try_from(offset / page_bytes).expect("files end at FILE_BYTES_MAX");
    (index, usize::try_from(offset % page_bytes).expect("it is below a page"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn pages_behave_like_a_vector() {
        let mut random = Random::new(3);
        let (mut pages, mut vector) = (Pages::default(), Vec::new());
        for _ in 0..400 {
            let (offset, len) = (random.index(20_000), random.index(9_000));
            if random.one_in(4) {
                pages.set_len(offset as u64);
                vector.resize(offset, 0);
            } else {
                let mut bytes = vec![0; len];
                random.fill(&mut bytes);
                pages.write(&bytes, offset as u64);
                vector.resize(vector.len().max(offset + len), 0);
                vector[offset..offset + len].copy_from_slice(&bytes);
            }
            let mut read = vec![0xee; vector.len() + 10];
            assert_eq!(pages.read(&mut read, 0), vector.len());
            assert_eq!(read[..vector.len()], vector[..]);
        }
    }

    #[test]
    fn a_clone_keeps_its_bytes() {
        let mut pages = Pages::default();
        pages.write(&[1; 5_000], 0);
        let before = pages.clone();
        pages.write(&[2; 10], 4_090);
        pages.flip(0, 0x80);
        let mut bytes = [0; 5_000];
        before.read(&mut bytes, 0);
        assert_eq!(bytes, [1; 5_000]);
    }
}
