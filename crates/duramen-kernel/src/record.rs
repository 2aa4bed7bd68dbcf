//! What it takes to append a record: its checksum, and its place in the cache.

/// The CRC-32C that goes on from `sum` over the bytes of a head and of three words, all
/// little-endian.
///
/// ```
/// assert_eq!(duramen_kernel::crc32c_record(0, 0, [0; 3]), 0xf7c9_c769);
/// ```
#[inline]
pub fn crc32c_record(sum: u32, head: u32, words: [u64; 3]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if let Some(sse) = crate::x86::Sse42::detect() {
        return crate::x86::crc32c_record(sse, sum, head, words);
    }
    crate::scalar::crc32c_record(sum, head, words)
}

/// Has a place come into the cache that is written soon: who writes to many places in turn waits
/// for each of them else, and longer where another core has read it.
#[inline]
pub fn fetch_to_write<T>(place: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    prefetchw(place);
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = place;
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[expect(unsafe_code, reason = "an instruction that has no safe name")]
#[inline]
fn prefetchw<T>(place: &T) {
    let place = std::ptr::from_ref(place);
    // SAFETY: it is a hint, which neither reads nor writes and cannot fault; processors that do not
    // know it take it for no operation.
    unsafe { std::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags)) }
}
